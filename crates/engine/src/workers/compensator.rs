//! The compensator (FS-12): authorize in the store, release at the gate, conclude in the store.
//!
//! Invariants: the gate is called only with a durable authorization, and outside any transaction; a crash between any
//! two steps is taken up by the next claim, and the gate then answers "already"; without an answer the task waits and
//! is tried again with the same id, until tries are used up and a person takes over.

use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::compensate::{Authorized, Conclusion, Unanswered, authorize, conclude};
use onceward_domain::due::{Charge, Claimed, DueChange, Held, Lane, Sequence, unpack_ids};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::admission::{Compensate, CompensateCode};
use onceward_domain::retry::{After, RetryPolicy};
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::{Next, claim_limited, wait_until};

struct Task {
    purchase: PurchaseId,
    claimed: Claimed,
}

/// Claims tasks and carries them through.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let lane = Lane::new(Lane::COMPENSATION);
    let claimed = claim_limited(engine, Lane::COMPENSATION, Sequence::ByDue).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(lane).await?).await;
    }
    let tasks: Vec<Task> = claimed
        .into_iter()
        .filter_map(|claimed| {
            let purchase = unpack_ids(&claimed.body).first().copied()?;
            Some(Task { purchase, claimed })
        })
        .collect();
    let ids: Vec<PurchaseId> = tasks.iter().map(|task| task.purchase).collect();
    let need = Need { purchases: ids.clone(), compensations: ids.clone(), ..Need::default() };
    let named = ids.clone();
    let verdicts =
        execute(engine, "compensation.authorize", need.clone(), move |facts| authorize(facts, &named))
            .await?;
    let (release, idle) = sort(tasks, verdicts);
    let heard = carry_out(engine, &release).await;
    finish(engine, need, release, idle, heard).await?;
    Ok(Next::Again)
}

fn sort(tasks: Vec<Task>, verdicts: Vec<Authorized>) -> (Vec<(Task, Compensate)>, Vec<Held>) {
    let mut release = Vec::new();
    let mut idle = Vec::new();
    for (task, verdict) in tasks.into_iter().zip(verdicts) {
        match verdict {
            Authorized::Release(command) => {
                observe::compensation_authorized(task.purchase);
                release.push((task, command));
            }
            Authorized::Done | Authorized::Refused => idle.push(task.claimed.held),
        }
    }
    (release, idle)
}

/// Without an answer nothing is known: such a task waits and asks again with the same id (DR-02).
async fn carry_out(engine: &Engine, release: &[(Task, Compensate)]) -> Vec<Result<CompensateCode, Error>> {
    let commands: Vec<Compensate> = release.iter().map(|(_, command)| command.clone()).collect();
    let heard = engine.admission().compensate(commands).await;
    let heard = heard.unwrap_or_else(|error| error.for_each(release.len()));
    let failed = heard.iter().filter_map(|answer| answer.as_ref().err());
    if let Some(error) = failed.clone().next() {
        tracing::warn!(target: "onceward", event = "compensation.no_answer", ?error, tasks = failed.count());
    }
    heard
}

fn unanswered(policy: RetryPolicy, claimed: &Claimed, is_away: bool, now: Timestamp) -> Unanswered {
    if is_away {
        return Unanswered::Again(
            now.plus(policy.wait_of_age(now.since(claimed.created_at))),
            Charge::Refund,
        );
    }
    match policy.after(claimed.attempts, claimed.held.seed()) {
        After::Again(wait) => Unanswered::Again(now.plus(wait), Charge::Keep),
        After::Exhausted => Unanswered::Exhausted,
    }
}

async fn finish(
    engine: &Engine,
    need: Need,
    release: Vec<(Task, Compensate)>,
    idle: Vec<Held>,
    heard: Vec<Result<CompensateCode, Error>>,
) -> Result<(), Error> {
    let policy = engine.settings().retry();
    let now = engine.store().now().await?;
    let conclusions: Vec<Conclusion> = release
        .into_iter()
        .zip(heard)
        .map(|((task, _), heard)| {
            // It has certainly done nothing.
            let is_away = heard.as_ref().is_err_and(|error| error.class() == Class::Retryable);
            let code = heard.ok();
            observe::compensation(task.purchase, code.map_or("NO_ANSWER", CompensateCode::name));
            let unanswered = unanswered(policy, &task.claimed, is_away, now);
            Conclusion { purchase: task.purchase, code, held: task.claimed.held, unanswered }
        })
        .collect();
    let together = write(engine, need, conclusions.clone(), idle.clone()).await;
    match together {
        Err(error) if error.class() == Class::Conflict => {}
        outcome => return outcome,
    }
    // One of them has lost its lease: one by one, so that it does not undo the others.
    for conclusion in conclusions {
        let ids = vec![conclusion.purchase];
        let need = Need { purchases: ids.clone(), compensations: ids, ..Need::default() };
        skip_lost(write(engine, need, vec![conclusion], Vec::new()).await)?;
    }
    for held in idle {
        skip_lost(write(engine, Need::default(), Vec::new(), vec![held]).await)?;
    }
    Ok(())
}

/// A lost lease is no error: whoever holds it now concludes the same.
fn skip_lost(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.class() == Class::Conflict => Ok(()),
        outcome => outcome,
    }
}

async fn write(
    engine: &Engine,
    need: Need,
    conclusions: Vec<Conclusion>,
    idle: Vec<Held>,
) -> Result<(), Error> {
    execute(engine, "compensation.conclude", need, move |facts: &mut Facts| {
        let mut changes: ChangeSet = conclude(facts, &conclusions)?;
        changes.due.extend(idle.iter().cloned().map(DueChange::Complete));
        Ok((changes, ()))
    })
    .await
}
