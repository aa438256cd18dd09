//! Reading payment attempts, refunds, callbacks and cases.

use std::sync::Arc;

use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PaymentId, PurchaseId, RefundId};
use onceward_domain::payment::{Callback, Case, CaseKind, Payment, Refund, RefundCause};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use crate::load::{every, first};
use crate::queries;
use crate::rows::{get, listed, money, state};

/// Loads what a need names of money.
pub(crate) fn load(conn: &Connection, need: &Need, facts: &mut Facts) -> Result<(), Error> {
    for id in &need.payments {
        let found = first(conn, queries::PAYMENT_BY_ID, [id.0.as_bytes()], "loading a payment", payment)?;
        facts.payments.extend(found.map(|one| (one.id, one)));
    }
    for id in &need.refunds {
        let found = first(conn, queries::REFUND_BY_ID, [id.0.as_bytes()], "loading a refund", refund)?;
        facts.refunds.extend(found.map(|one| (one.id, one)));
    }
    for id in &need.attempts {
        let paid = every(conn, queries::PAYMENT_OF_PURCHASE, [id.bytes()], "loading payments", payment)?;
        facts.payments.extend(paid.into_iter().map(|one| (one.id, one)));
        let back = every(conn, queries::REFUND_OF_PURCHASE, [id.bytes()], "loading refunds", refund)?;
        facts.refunds.extend(back.into_iter().map(|one| (one.id, one)));
    }
    for key in &need.callbacks {
        let (provider, event) = key;
        let found =
            first(conn, queries::CALLBACK_BY_EVENT, [provider, event], "loading a callback", |row| {
                Ok(Callback {
                    provider: Arc::clone(provider),
                    event: Arc::clone(event),
                    payload_hash: get(row, 0)?,
                    payload: get(row, 1)?,
                    received_at: Timestamp(get(row, 2)?),
                })
            })?;
        facts.callbacks.extend(found.map(|one| (key.clone(), one)));
    }
    Ok(())
}

fn payment(row: &Row<'_>) -> Result<Payment, Error> {
    Ok(Payment {
        id: PaymentId(Uuid::from_bytes(get(row, 0)?)),
        purchase: PurchaseId::from_bytes(get(row, 1)?),
        provider: get(row, 2)?,
        amount: money(get(row, 3)?, get(row, 4)?)?,
        status: state(get(row, 5)?)?,
        transaction: get(row, 6)?,
        created_at: Timestamp(get(row, 7)?),
        updated_at: Timestamp(get(row, 8)?),
        revision: get(row, 9)?,
    })
}

fn refund(row: &Row<'_>) -> Result<Refund, Error> {
    Ok(Refund {
        id: RefundId(Uuid::from_bytes(get(row, 0)?)),
        purchase: PurchaseId::from_bytes(get(row, 1)?),
        payment: PaymentId(Uuid::from_bytes(get(row, 2)?)),
        amount: money(get(row, 3)?, get(row, 4)?)?,
        status: state(get(row, 5)?)?,
        cause: listed(&RefundCause::ALL, get(row, 6)?, "refund cause")?,
        reason: get(row, 7)?,
        created_at: Timestamp(get(row, 8)?),
        updated_at: Timestamp(get(row, 9)?),
        revision: get(row, 10)?,
    })
}

/// Cases with their handles, newest first.
pub(crate) fn cases(conn: &Connection, page: PageRequest) -> Result<Vec<(i64, Case)>, Error> {
    let parameters = params![page.before.unwrap_or(i64::MAX), page.limit];
    every(conn, queries::OPEN_CASE_LIST, parameters, "listing cases", |row| {
        let case = Case {
            kind: listed(&CaseKind::ALL, get(row, 1)?, "kind of case")?,
            subject: get(row, 2)?,
            detail: get(row, 3)?,
            at: Timestamp(get(row, 4)?),
        };
        Ok((get(row, 0)?, case))
    })
}
