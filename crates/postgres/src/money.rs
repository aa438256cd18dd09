//! Reading payment attempts, refunds, callbacks and cases.

use std::sync::Arc;

use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PaymentId, RefundId};
use onceward_domain::payment::{Callback, Case, CaseKind, Payment, Refund, RefundCause};
use onceward_domain::ports::store::PageRequest;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::link::Link;
use crate::load::{Kind, each};
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{digest, get, kept, kept_if, listed, money, purchase_id, state, time, uuid_of};

/// Asks for what a need names of money.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, need: &'a Need) -> Result<(), Error> {
    let of: Vec<Uuid> = need.attempts.iter().copied().map(uuid_of).collect();
    if !need.payments.is_empty() || !of.is_empty() {
        let ids: Vec<Uuid> = need.payments.iter().map(|id| id.0).collect();
        questions.ask(Kind::Payments, queries::PAYMENT_BY_IDS, params![ids, of.clone()]).await?;
    }
    if !need.refunds.is_empty() || !of.is_empty() {
        let ids: Vec<Uuid> = need.refunds.iter().map(|id| id.0).collect();
        questions.ask(Kind::Refunds, queries::REFUND_BY_IDS, params![ids, of]).await?;
    }
    if !need.callbacks.is_empty() {
        let providers: Vec<&str> = need.callbacks.iter().map(|(provider, _)| &**provider).collect();
        let events: Vec<&str> = need.callbacks.iter().map(|(_, event)| &**event).collect();
        questions.ask(Kind::Callbacks, queries::CALLBACK_BY_EVENTS, params![providers, events]).await?;
    }
    Ok(())
}

/// Notes payment attempts.
pub(crate) fn payments(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let payment = Payment {
            id: PaymentId(get(row, 0)?),
            purchase: purchase_id(row, 1)?,
            provider: kept(row, 2)?,
            amount: money(get(row, 3)?, get(row, 4)?)?,
            status: state(row, 5)?,
            transaction: kept_if(row, 6)?,
            created_at: time(row, 7)?,
            updated_at: time(row, 8)?,
            revision: get(row, 9)?,
        };
        facts.payments.insert(payment.id, payment);
        Ok(())
    })
}

/// Notes refunds.
pub(crate) fn refunds(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let refund = Refund {
            id: RefundId(get(row, 0)?),
            purchase: purchase_id(row, 1)?,
            payment: PaymentId(get(row, 2)?),
            amount: money(get(row, 3)?, get(row, 4)?)?,
            status: state(row, 5)?,
            cause: listed(&RefundCause::ALL, get(row, 6)?, "refund cause")?,
            reason: kept(row, 7)?,
            created_at: time(row, 8)?,
            updated_at: time(row, 9)?,
            revision: get(row, 10)?,
        };
        facts.refunds.insert(refund.id, refund);
        Ok(())
    })
}

/// Notes callbacks.
pub(crate) fn callbacks(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let callback = Callback {
            provider: kept(row, 0)?,
            event: kept(row, 1)?,
            payload_hash: digest(row, 2)?,
            payload: get(row, 3)?,
            received_at: time(row, 4)?,
        };
        let key = (Arc::clone(&callback.provider), Arc::clone(&callback.event));
        facts.callbacks.insert(key, callback);
        Ok(())
    })
}

/// Cases with their handles, newest first.
pub(crate) async fn cases(link: &Link, page: PageRequest) -> Result<Vec<(i64, Case)>, Error> {
    let parameters = params![page.before.unwrap_or(i64::MAX), i64::from(page.limit)];
    let rows = link.rows("listing cases", queries::OPEN_CASE_LIST, parameters).await?;
    let case = |row: &Row| {
        let case = Case {
            kind: listed(&CaseKind::ALL, get(row, 1)?, "kind of case")?,
            subject: kept(row, 2)?,
            detail: kept(row, 3)?,
            at: time(row, 4)?,
        };
        Ok((get(row, 0)?, case))
    };
    rows.iter().map(case).collect()
}
