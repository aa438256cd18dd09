//! Writing payment attempts, refunds, callbacks and cases.
//!
//! Invariants: changed rows name the revision they were decided on; repeated callbacks and cases are ignored; the
//! provider's transaction is kept to one payment by its index.

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Error;
use onceward_domain::machine::Machine;
use onceward_domain::payment::{CaseKind, Payment, Refund, RefundCause};
use rusqlite::{Connection, params};

use super::Handles;
use super::catalogue::revision_lost;
use crate::failure::failed;
use crate::load::first;
use crate::queries;
use crate::rows::{get, position};

pub(super) fn write(conn: &Connection, changes: &ChangeSet, handles: &mut Handles) -> Result<(), Error> {
    add_payments(conn, &changes.new_payments, handles)?;
    move_payments(conn, &changes.payments)?;
    add_refunds(conn, &changes.new_refunds, handles)?;
    move_refunds(conn, &changes.refunds)?;
    for callback in &changes.callbacks {
        let doing = failed("keeping a callback");
        let mut statement = conn.prepare_cached(queries::CALLBACK_INSERT).map_err(&doing)?;
        let parameters = params![
            callback.provider,
            callback.event,
            callback.payload_hash,
            callback.payload,
            callback.received_at.0
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    for case in &changes.cases {
        let doing = failed("opening a case");
        let mut statement = conn.prepare_cached(queries::OPEN_CASE_INSERT).map_err(&doing)?;
        let kind = position(&CaseKind::ALL, case.kind);
        statement.execute(params![kind, case.subject, case.detail, case.at.0]).map_err(&doing)?;
    }
    Ok(())
}

fn add_payments(conn: &Connection, payments: &[Payment], handles: &mut Handles) -> Result<(), Error> {
    let doing = failed("adding a payment attempt");
    for payment in payments {
        let handle = handles.of(conn, payment.purchase)?;
        let mut statement = conn.prepare_cached(queries::PAYMENT_INSERT).map_err(&doing)?;
        let parameters = params![
            payment.id.0.as_bytes(),
            handle,
            payment.provider,
            payment.amount.amount(),
            payment.amount.currency().numeric(),
            payment.status.code(),
            payment.transaction,
            payment.created_at.0,
            payment.updated_at.0,
            payment.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

fn move_payments(conn: &Connection, payments: &[Payment]) -> Result<(), Error> {
    let doing = failed("changing a payment attempt");
    for payment in payments {
        let key = payment.id.0.as_bytes();
        let mut statement = conn.prepare_cached(queries::PAYMENT_MOVE).map_err(&doing)?;
        let parameters =
            params![payment.status.code(), payment.transaction, payment.updated_at.0, key, payment.revision];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there = first(conn, queries::PAYMENT_PEEK, [key], "looking at a payment", |row| get(row, 0))?;
            return Err(revision_lost("payment", &payment.id, payment.revision, there));
        }
    }
    Ok(())
}

fn add_refunds(conn: &Connection, refunds: &[Refund], handles: &mut Handles) -> Result<(), Error> {
    let doing = failed("adding a refund");
    for refund in refunds {
        let handle = handles.of(conn, refund.purchase)?;
        let mut statement = conn.prepare_cached(queries::REFUND_INSERT).map_err(&doing)?;
        let parameters = params![
            refund.id.0.as_bytes(),
            handle,
            refund.payment.0.as_bytes(),
            refund.amount.amount(),
            refund.amount.currency().numeric(),
            refund.status.code(),
            position(&RefundCause::ALL, refund.cause),
            refund.reason,
            refund.created_at.0,
            refund.updated_at.0,
            refund.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

fn move_refunds(conn: &Connection, refunds: &[Refund]) -> Result<(), Error> {
    let doing = failed("changing a refund");
    for refund in refunds {
        let key = refund.id.0.as_bytes();
        let mut statement = conn.prepare_cached(queries::REFUND_MOVE).map_err(&doing)?;
        let parameters = params![refund.status.code(), refund.updated_at.0, key, refund.revision];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there = first(conn, queries::REFUND_PEEK, [key], "looking at a refund", |row| get(row, 0))?;
            return Err(revision_lost("refund", &refund.id, refund.revision, there));
        }
    }
    Ok(())
}
