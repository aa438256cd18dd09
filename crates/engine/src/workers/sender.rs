//! The send scanner: closes the gap between reserving and sending (FS-05, reference 003 §7.2).
//!
//! Invariants: an entry is claimed, sent, then removed — never removed first; every copy carries the same message id;
//! an unknown send is sent again (DR-02).

use std::collections::BTreeSet;

use onceward_domain::error::{Class, Error};
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::ports::admission::{SendClaim, SendSettlement};
use onceward_domain::ports::bus::{Published, Topic};

use crate::engine::Engine;
use crate::observe;
use crate::wire;
use crate::workers::{Next, wait_until};

/// Claims what is due, sends it, settles it.
///
/// # Errors
/// The gate's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    let claims = engine.admission().claim_send(settings.claim_batch, settings.lease).await?;
    if claims.is_empty() {
        return wait_until(engine, engine.admission().next_send().await?).await;
    }
    let messages: Vec<&OrderCreateRequested> = claims.iter().flat_map(|claim| &claim.messages).collect();
    let outcomes = publish(engine, &messages).await;
    let unsent: BTreeSet<_> = messages
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| **outcome != Published::Acked)
        .map(|(message, _)| message.purchase)
        .collect();
    count(&claims, &outcomes);
    let settlements = claims
        .into_iter()
        .map(|claim| {
            let left: Vec<_> =
                claim.messages.iter().map(|one| one.purchase).filter(|id| unsent.contains(id)).collect();
            if left.is_empty() {
                SendSettlement::Sent(claim.held)
            } else {
                let wait = settings.retry().wait(claim.attempts, claim.held.seed());
                SendSettlement::Again { held: claim.held, unsent: left, wait }
            }
        })
        .collect();
    engine.signals().consume.notify_one();
    engine.admission().settle_send(settlements).await?;
    Ok(Next::Again)
}

/// A bus that is away answers for all: nothing is known to be sent.
async fn publish(engine: &Engine, messages: &[&OrderCreateRequested]) -> Vec<Published> {
    let encoded = messages.iter().map(|message| wire::encode_message(message)).collect();
    match engine.bus().publish(Topic::OrderCreate, encoded).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::warn!(target: "onceward", event = "reservation.mq_send_failed", error = ?error);
            let known = error.class() != Class::UnknownOutcome;
            let outcome = if known { Published::Rejected } else { Published::Unknown };
            vec![outcome; messages.len()]
        }
    }
}

fn count(claims: &[SendClaim], outcomes: &[Published]) {
    let of = |wanted: Published| outcomes.iter().filter(|one| **one == wanted).count() as u64;
    let again =
        claims.iter().filter(|claim| claim.attempts > 1).map(|claim| claim.messages.len() as u64).sum();
    for claim in claims {
        observe::claimed(claim.held.lane.as_str(), claim.attempts);
    }
    observe::messages_sent(of(Published::Acked), again, of(Published::Unknown));
}
