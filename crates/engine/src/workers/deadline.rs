//! The deadline worker (FS-15): reservations without an order are rejected when their business deadline has passed.
//!
//! Invariants: the durable rejection comes first; units go back only through the compensation it creates. While consumers of any
//! process are far behind, the message of an overdue reservation may be the next, so nothing is rejected for its time then (FS-17).

use std::sync::Arc;

use onceward_domain::decide::behind::{holds, sweep};
use onceward_domain::decide::deadline::{Outcome, pass_deadline};
use onceward_domain::due::{Lane, Member, Waiting};
use onceward_domain::error::Error;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::admission::{Birth, OverdueClaim};
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::execute::{decide_apart, execute, transact};
use crate::observe;
use crate::outage::outage_in;
use crate::workers::{Next, need_of_messages, strays, wait_until};

/// More processes than a cluster has.
const PROCESSES_OF_ONE_READ: u32 = 64;
/// So many pages of dead ones are removed in one step; the next one removes the rest.
const READS_LIMIT: u32 = 16;

/// Claims overdue reservations, rejects the undecided ones, settles the claims.
///
/// # Errors
/// The ports'; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    if are_consumers_behind(engine).await? {
        return Ok(Next::Wait(Some(settings.governor.interval)));
    }
    let claims = engine.admission().claim_overdue(settings.claim_batch, settings.lease).await?;
    if claims.is_empty() {
        return wait_until(engine, engine.admission().next_overdue().await?).await;
    }
    let mut decided = Vec::with_capacity(claims.len());
    let mut failed = Ok(Next::Again);
    for mut claim in claims {
        match decide(engine, &mut claim).await {
            Ok(()) => decided.push(claim),
            Err(error) => {
                failed = Err(error);
                break;
            }
        }
    }
    engine.admission().settle_overdue(decided).await?;
    failed
}

/// Rejects the undecided ones of a claim; what of it is to be looked at again remains.
async fn decide(engine: &Engine, claim: &mut OverdueClaim) -> Result<(), Error> {
    if claim.reservations.is_empty() {
        return Ok(());
    }
    let births = engine.admission().births(claim.reservations.clone()).await?;
    let overdue: Vec<Overdue> = claim.reservations.iter().cloned().zip(births).collect();
    let mut heard = decide_apart(overdue, |part| Box::pin(reject(engine, part))).await;
    if let Some(error) = outage_in(&mut heard) {
        return Err(error);
    }
    let outcomes: Vec<Option<Outcome>> = heard.iter().map(|one| one.as_ref().ok().copied()).collect();
    if outcomes.contains(&Some(Outcome::Rejected)) {
        observe::order_refused("BUSINESS_DEADLINE_EXCEEDED");
        engine.signals().compensate.notify_one();
        engine.signals().relay.notify_one();
        engine.signals().decided.notify_waiters();
    }
    let of = |wanted: Option<Outcome>| {
        let with_outcomes = claim.reservations.iter().zip(&outcomes);
        with_outcomes.filter(move |(_, one)| **one == wanted).map(|(message, _)| message.purchase)
    };
    let kept = strays::give_back(engine, of(Some(Outcome::Decided)).collect()).await?;
    let undecided: Vec<PurchaseId> = of(None).collect();
    if let Some(error) = heard.iter().find_map(|one| one.as_ref().err()) {
        tracing::error!(target: "onceward", event = "deadline.not_decided", ?error, reservations = undecided.len());
    }
    let settings = engine.settings();
    keep_early(claim, &outcomes);
    keep_for(engine, claim, settings.poll, kept).await?;
    // What meets a defect holds up nothing that is beside it, and is tried as often as a lease would let it come again.
    keep_for(engine, claim, settings.lease, undecided).await
}

/// A reservation, and how it is to be written where the store first hears of it here.
type Overdue = (OrderCreateRequested, Birth);

async fn reject(engine: &Engine, part: Arc<[Overdue]>) -> Result<Vec<Outcome>, Error> {
    let need = need_of_messages(part.iter().map(|(message, _)| message));
    let (overdue, births): (Vec<OrderCreateRequested>, Vec<Birth>) = part.iter().cloned().unzip();
    let decide = move |facts: &mut Facts| pass_deadline(facts, &overdue, &births);
    execute(engine, "pass_deadline", need, decide).await
}

/// Whether a process says that its consumers are far behind; what somebody said who does not say it any more is removed.
async fn are_consumers_behind(engine: &Engine) -> Result<bool, Error> {
    let mut holds_now = false;
    for _ in 0..READS_LIMIT {
        let said = engine.store().list_due(Lane::new(Lane::BEHIND), PROCESSES_OF_ONE_READ, None).await?;
        if said.is_empty() {
            break;
        }
        let is_full = said.len() >= usize::try_from(PROCESSES_OF_ONE_READ).unwrap_or(usize::MAX);
        let now = engine.store().now().await?;
        let (held, over): (Vec<Waiting>, Vec<Waiting>) =
            said.into_iter().partition(|one| holds(one.due_at, now));
        holds_now = !held.is_empty();
        remove(engine, over.into_iter().map(|one| one.member).collect()).await?;
        // Somebody who is alive may stand behind a page of dead ones.
        if holds_now || !is_full {
            break;
        }
    }
    observe::deadlines_paused(holds_now);
    Ok(holds_now)
}

async fn remove(engine: &Engine, over: Vec<Member>) -> Result<(), Error> {
    if over.is_empty() {
        return Ok(());
    }
    let due = over.iter().map(|process| (Lane::new(Lane::BEHIND), process.clone())).collect();
    let decide = move |facts: &mut Facts| Ok((sweep(facts, &over), ()));
    transact(engine.store(), "sweep_behind", Need { due, ..Need::default() }, decide).await
}

/// These keep their entry, and are looked at again after this long.
async fn keep_for(
    engine: &Engine,
    claim: &mut OverdueClaim,
    wait: Millis,
    kept: impl IntoIterator<Item = PurchaseId>,
) -> Result<(), Error> {
    let mut kept = kept.into_iter().peekable();
    if kept.peek().is_none() {
        return Ok(());
    }
    let again = engine.store().now().await?.plus(wait);
    let (first, ids) = claim.remaining.get_or_insert((again, Vec::new()));
    *first = (*first).min(again);
    ids.extend(kept);
    Ok(())
}

/// The gate's clock may have been set back since the claim: what the decision found too early keeps its entry, or
/// nobody would ever look at it again (DR-06).
fn keep_early(claim: &mut OverdueClaim, outcomes: &[Option<Outcome>]) {
    for (message, outcome) in claim.reservations.iter().zip(outcomes) {
        if *outcome == Some(Outcome::NotYet) {
            let (first, ids) = claim.remaining.get_or_insert((message.business_deadline, Vec::new()));
            *first = (*first).min(message.business_deadline);
            ids.push(message.purchase);
        }
    }
}
