//! Processes callbacks from the inbox (OT-08): a verified callback is kept first, answered, then heard.
//!
//! Invariants: hearing and the entry's end are one transaction; a callback for a payment nobody knows yet is kept and tried
//! again, never dropped (C42); when tries are used up it is a dead letter, shown and replayed by a person.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::pay::{Heard, hear};
use onceward_domain::decide::queue::exhaust;
use onceward_domain::due::{Charge, Claimed, DueChange, Lane, Sequence};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::guard::Guard;
use onceward_domain::payment::{Case, CaseKind, Word};
use onceward_domain::retry::After;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::wire;
use crate::workers::{Next, asker, claim_limited, wait_until};

/// Claims callbacks and hears each.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let claimed = claim_limited(engine, Lane::CALLBACK, Sequence::ByDue).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(Lane::new(Lane::CALLBACK)).await?).await;
    }
    for entry in claimed {
        match process(engine, &entry).await {
            Ok(heard) => {
                observe::heard(heard, "callback");
                engine.signals().relay.notify_one();
                engine.signals().refund.notify_one();
            }
            // The lease was lost: whoever holds it now hears the same.
            Err(error) if error.class() == Class::Conflict => {}
            // A contradiction that the store itself refuses: a person must look, and the others must not wait.
            Err(error) if error.class() == Class::Manual => {
                tracing::error!(target: "onceward", event = "callback.refused", error = ?error);
                set_aside(engine, &entry).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Next::Again)
}

/// The purchase a word is about, if the store knows its payment or refund.
pub(crate) async fn need_of_word(engine: &Engine, word: &Word) -> Result<Need, Error> {
    let mut need = Need::default();
    match word {
        Word::Succeeded { payment, .. }
        | Word::Failed { payment }
        | Word::Closed { payment }
        | Word::Processing { payment }
        | Word::Silent { payment } => need.payments.push(*payment),
        Word::Refunded { refund } | Word::RefundFailed { refund } | Word::RefundSilent { refund } => {
            need.refunds.push(*refund);
        }
    }
    let facts = engine.store().view(need.clone()).await?;
    let purchase = facts.payments.values().map(|one| one.purchase).next();
    let Some(id) = purchase.or_else(|| facts.refunds.values().map(|one| one.purchase).next()) else {
        return Ok(need);
    };
    let known = engine.store().view(Need { purchases: vec![id], ..Need::default() }).await?;
    Ok(Need { payments: need.payments, refunds: need.refunds, ..asker::need_of(&known, id) })
}

async fn process(engine: &Engine, entry: &Claimed) -> Result<Heard, Error> {
    let after = engine.settings().retry().after(entry.attempts, entry.held.seed());
    let word = match wire::decode_word(&entry.body) {
        Ok(word) => word,
        Err(error) => {
            tracing::error!(target: "onceward", event = "callback.unreadable", error = ?error);
            return set_aside(engine, entry).await;
        }
    };
    let need = need_of_word(engine, &word).await?;
    let source: Arc<str> = Arc::from("callback");
    let entry = entry.clone();
    execute(engine, "callback.heard", need, move |facts: &mut Facts| {
        let (mut changes, heard) = hear(facts, &word, &source)?;
        let held = entry.held.clone();
        let is_known = Guard::UnknownPaymentIsKept.holds(heard != Heard::UnknownPayment);
        match after {
            _ if is_known => changes.due.push(DueChange::Complete(held)),
            After::Again(wait) => {
                let due_at = facts.now.plus(wait);
                changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Keep });
            }
            After::Exhausted => exhaust(facts, &mut changes, &held),
        }
        Ok((changes, heard))
    })
    .await
}

async fn set_aside(engine: &Engine, entry: &Claimed) -> Result<Heard, Error> {
    let entry = entry.clone();
    execute(engine, "callback.set_aside", Need::default(), move |facts: &mut Facts| {
        let case = Case {
            kind: CaseKind::TransactionReused,
            subject: entry.held.member.clone(),
            detail: Arc::from(String::from_utf8_lossy(&entry.body).into_owned()),
            at: facts.now,
        };
        let mut changes = ChangeSet { cases: vec![case], ..ChangeSet::default() };
        exhaust(facts, &mut changes, &entry.held);
        Ok((changes, Heard::Contradiction))
    })
    .await
}
