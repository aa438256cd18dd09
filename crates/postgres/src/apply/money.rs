//! Writing payment attempts, refunds, callbacks and cases.
//!
//! Invariants: changed rows name the revision they were decided on; repeated callbacks and cases are ignored; the
//! provider's transaction is kept to one payment by its index.

use onceward_domain::changes::ChangeSet;
use onceward_domain::payment::{Callback, Case, CaseKind, Payment, Refund, RefundCause};

use super::script::{Guarded, Loss, Script, column};
use crate::pipeline::params;
use crate::queries;
use crate::rows::{code, currency_code, position, uuid_of};
use crate::transact::Refusal;

pub(super) async fn write<'a>(script: &mut Script<'a>, changes: &'a ChangeSet) -> Result<(), Refusal> {
    if !changes.new_payments.is_empty() {
        add_payments(script, &changes.new_payments).await?;
    }
    if !changes.payments.is_empty() {
        move_payments(script, &changes.payments).await?;
    }
    if !changes.new_refunds.is_empty() {
        add_refunds(script, &changes.new_refunds).await?;
    }
    if !changes.refunds.is_empty() {
        move_refunds(script, &changes.refunds).await?;
    }
    if !changes.callbacks.is_empty() {
        keep_callbacks(script, &changes.callbacks).await?;
    }
    if !changes.cases.is_empty() {
        open_cases(script, &changes.cases).await?;
    }
    Ok(())
}

async fn add_payments<'a>(script: &mut Script<'a>, payments: &'a [Payment]) -> Result<(), Refusal> {
    let parameters = params![
        column(payments, |one| one.id.0),
        column(payments, |one| uuid_of(one.purchase)),
        column(payments, |one| &*one.provider),
        column(payments, |one| one.amount.amount()),
        column(payments, |one| currency_code(one.amount.currency())),
        column(payments, |one| code(one.status)),
        column(payments, |one| one.transaction.as_deref()),
        column(payments, |one| one.created_at.0),
        column(payments, |one| one.updated_at.0),
        column(payments, |one| one.revision),
    ];
    let missing = (payments.len(), "a payment names a purchase that is not there");
    script.each("adding a payment attempt", queries::PAYMENT_INSERT, parameters, missing).await
}

async fn move_payments<'a>(script: &mut Script<'a>, payments: &'a [Payment]) -> Result<(), Refusal> {
    let parameters = params![
        column(payments, |one| one.id.0),
        column(payments, |one| one.revision),
        column(payments, |one| code(one.status)),
        column(payments, |one| one.transaction.as_deref()),
        column(payments, |one| one.updated_at.0),
    ];
    let row =
        |one: &Payment| Guarded { shown: one.id.to_string(), key: params![one.id.0], revision: one.revision };
    let loss = move || Loss::Revision {
        what: "payment",
        peek: queries::PAYMENT_PEEK,
        rows: payments.iter().map(row).collect(),
    };
    script
        .guarded("changing a payment attempt", queries::PAYMENT_MOVE, parameters, (payments.len(), loss))
        .await
}

async fn add_refunds<'a>(script: &mut Script<'a>, refunds: &'a [Refund]) -> Result<(), Refusal> {
    let parameters = params![
        column(refunds, |one| one.id.0),
        column(refunds, |one| uuid_of(one.purchase)),
        column(refunds, |one| one.payment.0),
        column(refunds, |one| one.amount.amount()),
        column(refunds, |one| currency_code(one.amount.currency())),
        column(refunds, |one| code(one.status)),
        column(refunds, |one| position(&RefundCause::ALL, one.cause)),
        column(refunds, |one| &*one.reason),
        column(refunds, |one| one.created_at.0),
        column(refunds, |one| one.updated_at.0),
        column(refunds, |one| one.revision),
    ];
    let missing = (refunds.len(), "a refund names a purchase that is not there");
    script.each("adding a refund", queries::REFUND_INSERT, parameters, missing).await
}

async fn move_refunds<'a>(script: &mut Script<'a>, refunds: &'a [Refund]) -> Result<(), Refusal> {
    let parameters = params![
        column(refunds, |one| one.id.0),
        column(refunds, |one| one.revision),
        column(refunds, |one| code(one.status)),
        column(refunds, |one| one.updated_at.0),
    ];
    let row =
        |one: &Refund| Guarded { shown: one.id.to_string(), key: params![one.id.0], revision: one.revision };
    let loss = move || Loss::Revision {
        what: "refund",
        peek: queries::REFUND_PEEK,
        rows: refunds.iter().map(row).collect(),
    };
    script.guarded("changing a refund", queries::REFUND_MOVE, parameters, (refunds.len(), loss)).await
}

async fn keep_callbacks<'a>(script: &mut Script<'a>, callbacks: &'a [Callback]) -> Result<(), Refusal> {
    let parameters = params![
        column(callbacks, |one| &*one.provider),
        column(callbacks, |one| &*one.event),
        column(callbacks, |one| one.payload_hash.as_slice()),
        column(callbacks, |one| one.payload.as_slice()),
        column(callbacks, |one| one.received_at.0),
    ];
    script.any("keeping a callback", queries::CALLBACK_INSERT, parameters).await
}

async fn open_cases<'a>(script: &mut Script<'a>, cases: &'a [Case]) -> Result<(), Refusal> {
    let parameters = params![
        column(cases, |one| position(&CaseKind::ALL, one.kind)),
        column(cases, |one| &*one.subject),
        column(cases, |one| &*one.detail),
        column(cases, |one| one.at.0),
    ];
    script.any("opening a case", queries::OPEN_CASE_INSERT, parameters).await
}
