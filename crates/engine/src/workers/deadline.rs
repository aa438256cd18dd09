//! The deadline worker (FS-15): reservations without an order are rejected when their business deadline has passed.
//!
//! Invariants: the durable rejection comes first; units go back only through the compensation it creates. While consumers are
//! far behind, the message of an overdue reservation may be the next, so nothing is rejected for its time then (FS-17).

use onceward_domain::decide::deadline::{Outcome, pass_deadline};
use onceward_domain::error::Error;
use onceward_domain::facts::Facts;
use onceward_domain::ports::admission::OverdueClaim;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::{Next, need_of_messages, strays, wait_until};

/// Claims overdue reservations, rejects the undecided ones, settles the claims.
///
/// # Errors
/// The ports'; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    if are_consumers_behind(engine).await? {
        return Ok(Next::Wait(Some(settings.governor.interval)));
    }
    let mut claims = engine.admission().claim_overdue(settings.claim_batch, settings.lease).await?;
    if claims.is_empty() {
        return wait_until(engine, engine.admission().next_overdue().await?).await;
    }
    for claim in &mut claims {
        if claim.reservations.is_empty() {
            continue;
        }
        let need = need_of_messages(claim.reservations.iter());
        let overdue = claim.reservations.clone();
        let births = engine.admission().births(overdue.clone()).await?;
        let decide = move |facts: &mut Facts| pass_deadline(facts, &overdue, &births);
        let outcomes = execute(engine, "pass_deadline", need, decide).await?;
        if outcomes.contains(&Outcome::Rejected) {
            observe::order_refused("BUSINESS_DEADLINE_EXCEEDED");
            engine.signals().compensate.notify_one();
            engine.signals().relay.notify_one();
            engine.signals().decided.notify_waiters();
        }
        let decided = claim.reservations.iter().zip(&outcomes).filter(|(_, one)| **one == Outcome::Decided);
        strays::give_back(engine, decided.map(|(message, _)| message.purchase).collect()).await?;
        keep_early(claim, &outcomes);
    }
    engine.admission().settle_overdue(claims).await?;
    Ok(Next::Again)
}

async fn are_consumers_behind(engine: &Engine) -> Result<bool, Error> {
    let settings = &engine.settings().governor;
    let holds = match engine.governor().behind().filter(|behind| behind.is_far(settings)) {
        Some(behind) => behind.holds_deadlines(engine.store().now().await?, settings),
        None => false,
    };
    observe::deadlines_paused(holds);
    Ok(holds)
}

/// The gate's clock may have been set back since the claim: what the decision found too early keeps its entry, or
/// nobody would ever look at it again (DR-06).
fn keep_early(claim: &mut OverdueClaim, outcomes: &[Outcome]) {
    for (message, outcome) in claim.reservations.iter().zip(outcomes) {
        if *outcome == Outcome::NotYet {
            let (first, ids) = claim.remaining.get_or_insert((message.business_deadline, Vec::new()));
            *first = (*first).min(message.business_deadline);
            ids.push(message.purchase);
        }
    }
}
