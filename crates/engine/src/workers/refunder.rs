//! Asks providers to give money back (OT-09): from the durable row, with the refund's own id each time.
//!
//! Invariants: an answer that was lost is asked for again under the same id, which the provider knows; the refund stays
//! open until it has the provider's word, however long that takes — a person is told, but nothing is given up.

use std::sync::Arc;

use futures_util::future::join_all;
use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::pay::hear;
use onceward_domain::due::{Charge, Claimed, DueChange, Lane};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::guard::Guard;
use onceward_domain::id::RefundId;
use onceward_domain::payment::{Refund, Word};
use onceward_domain::ports::provider::RefundOrder;
use uuid::Uuid;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::{Next, asker, claim_for_provider, wait_of, wait_until};

const SOURCE: &str = "refund";

/// Claims refunds, asks the provider, writes its word.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let claimed = claim_for_provider(engine, Lane::REFUND).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(Lane::new(Lane::REFUND)).await?).await;
    }
    for outcome in join_all(claimed.iter().map(|entry| carry_out(engine, entry))).await {
        match outcome {
            Ok(()) => engine.signals().relay.notify_one(),
            // The lease was lost: whoever holds it now asks under the same id.
            Err(error) if error.class() == Class::Conflict => {}
            // A defect of one must not hold up the others; it comes again after its lease, and is told each time.
            Err(error) if error.class() == Class::Manual => {
                tracing::error!(target: "onceward", event = "payment.refund_failed", error = ?error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Next::Again)
}

async fn carry_out(engine: &Engine, entry: &Claimed) -> Result<(), Error> {
    let id = Uuid::from_slice(&entry.body).ok().map(RefundId);
    let refund = match id {
        Some(id) => {
            let facts = engine.store().view(Need { refunds: vec![id], ..Need::default() }).await?;
            facts.refunds.get(&id).filter(|one| one.is_open()).cloned()
        }
        None => None,
    };
    let Some(refund) = refund else {
        return close(engine, entry, None).await;
    };
    let word = ask(engine, &refund).await;
    close(engine, entry, Some((refund, word))).await
}

async fn ask(engine: &Engine, refund: &Refund) -> Word {
    let silent = Word::RefundSilent { refund: refund.id };
    let Ok(facts) = engine.store().view(Need { payments: vec![refund.payment], ..Need::default() }).await
    else {
        return silent;
    };
    let provider = facts.payments.get(&refund.payment).and_then(|payment| engine.provider(&payment.provider));
    let Some(provider) = provider else { return silent };
    let order = RefundOrder { refund: refund.id, payment: refund.payment, amount: refund.amount };
    provider.refund(order).await.unwrap_or_else(|error| {
        observe::provider_silent(provider.name(), &error);
        silent
    })
}

/// The word and the entry's end are one transaction.
async fn close(engine: &Engine, entry: &Claimed, heard: Option<(Refund, Word)>) -> Result<(), Error> {
    let wait = wait_of(engine, entry);
    let held = entry.held.clone();
    let need = match &heard {
        Some((refund, _)) => {
            let id = refund.purchase;
            let known = engine.store().view(Need { purchases: vec![id], ..Need::default() }).await?;
            asker::need_of(&known, id)
        }
        None => Need::default(),
    };
    let source: Arc<str> = Arc::from(SOURCE);
    execute(engine, "refund.heard", need, move |facts: &mut Facts| {
        let mut changes = ChangeSet::default();
        let mut is_over = true;
        if let Some((_, word)) = &heard {
            (changes, _) = hear(facts, word, &source)?;
            let is_last = matches!(word, Word::Refunded { .. } | Word::RefundFailed { .. });
            is_over = Guard::SilentRefundIsRepeated.holds(is_last);
        }
        let held = held.clone();
        changes.due.push(if is_over {
            DueChange::Complete(held)
        } else {
            DueChange::Retry { held, due_at: facts.now.plus(wait), body: None, charge: Charge::Keep }
        });
        Ok((changes, ()))
    })
    .await
}
