//! The deadline worker (FS-15): reservations without an order are rejected when their business deadline has passed.
//!
//! Invariants: the durable rejection comes first; units go back only through the compensation it creates. While consumers of any
//! process are far behind, the message of an overdue reservation may be the next, so nothing is rejected for its time then (FS-17).

use onceward_domain::decide::behind::sweep;
use onceward_domain::decide::deadline::{Outcome, pass_deadline};
use onceward_domain::due::{Lane, Member, Waiting};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::admission::OverdueClaim;

use crate::engine::Engine;
use crate::execute::{execute, transact};
use crate::observe;
use crate::workers::{Next, need_of_messages, strays, wait_until};

/// More processes than a cluster has. Of more than so many dead ones the next step removes the rest.
const PROCESSES_OF_ONE_READ: u32 = 64;

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

/// Whether a process says that its consumers are far behind; what somebody said who does not say it any more is removed.
async fn are_consumers_behind(engine: &Engine) -> Result<bool, Error> {
    let lane = Lane::new(Lane::BEHIND);
    let said = engine.store().list_due(lane.clone(), PROCESSES_OF_ONE_READ, None).await?;
    let mut holds = false;
    if !said.is_empty() {
        let now = engine.store().now().await?;
        let (held, over): (Vec<Waiting>, Vec<Waiting>) = said.into_iter().partition(|one| one.due_at > now);
        holds = !held.is_empty();
        let over: Vec<Member> = over.into_iter().map(|one| one.member).collect();
        if !over.is_empty() {
            let due = over.iter().map(|process| (lane.clone(), process.clone())).collect();
            let decide = move |facts: &mut Facts| Ok((sweep(facts, &over), ()));
            transact(engine.store(), "sweep_behind", Need { due, ..Need::default() }, decide).await?;
        }
    }
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
