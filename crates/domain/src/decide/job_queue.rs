//! Jobs in workers' hands: claimed from the retry lane under a lease, and brought back by a person (CL-06).
//!
//! Invariants: a run is counted when it is handed out, and one more than the job may have is never handed out: the job is
//! laid aside instead, with its notice, in the same ChangeSet. Nothing here takes a dead letter by itself. Read next:
//! [`crate::decide::job`].

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::decide::job::{Failure, held, keep, key_of, refund};
use crate::decide::{Draft, ENGINE, queue};
use crate::due::{Claimed, DueChange, Lane, Token};
use crate::error::{Code, Error};
use crate::facts::Facts;
use crate::guard::Guard;
use crate::id::JobId;
use crate::job::Job;
use crate::machine::Machine;
use crate::machine::job::JobEvent;
use crate::ports::due_queue::{Exhaustion, Replayed, Settled, Settlement};
use crate::retry::RetryPolicy;
use crate::time::{Millis, Timestamp};

/// A job in a worker's hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The job.
    pub job: Job,
    /// The claim.
    pub token: Token,
    /// When it ends.
    pub lease_until: Timestamp,
}

/// Hands claimed members of the retry lane to a worker, as jobs: none for a claim that is lost, or that has no run to begin,
/// which is settled here. Needs [`crate::decide::job::need_of`] the jobs.
///
/// # Errors
/// [`Code::Invalid`] where a refund would leave the range of its account.
pub fn claim(
    facts: &mut Facts,
    worker: &Arc<str>,
    claims: &[Claimed],
) -> Result<(ChangeSet, Vec<Option<Given>>), Error> {
    let mut draft = Draft::default();
    let mut given = Vec::with_capacity(claims.len());
    for claim in claims {
        given.push(claim_into(facts, &mut draft, worker, claim)?);
    }
    Ok((draft.finish(facts), given))
}

fn claim_into(
    facts: &mut Facts,
    draft: &mut Draft,
    worker: &Arc<str>,
    claim: &Claimed,
) -> Result<Option<Given>, Error> {
    let held = &claim.held;
    let key = (held.lane.clone(), held.member.clone());
    if !facts.due.get(&key).is_some_and(|entry| entry.is_held_by(held.token)) {
        return Ok(None);
    }
    let found = facts.jobs.get(&JobId::trusted(&held.member)).cloned();
    let Some(before) = found.filter(|job| !job.status.is_over()) else {
        facts.due.remove(&key);
        draft.changes.due.push(DueChange::Complete(held.clone()));
        return Ok(None);
    };
    let mut job = before.clone();
    if let Some(row) = job.status.next(JobEvent::Replay) {
        // A person brought back the member, not knowing that it stands for a job.
        (job.status, job.attempts) = (row.to, 0);
    }
    if !Guard::RunsAreLimited.holds(job.attempts < job.max_attempts)
        && let Some(row) = job.status.next(JobEvent::Exhaust)
    {
        let reason: Arc<str> = Arc::from("the lease of the last run ended");
        let actor: Arc<str> = Arc::from(ENGINE);
        let policy = &RetryPolicy::default();
        let failure = Failure { event: JobEvent::Exhaust, reason: &reason, policy, actor: &actor };
        refund(facts, draft, &mut job, &failure)?;
        (job.status, job.last_error) = (row.to, Some(reason));
        queue::exhaust(facts, &mut draft.changes, held);
        keep(facts, draft, &before, job);
        return Ok(None);
    }
    let row = job.status.next(JobEvent::Claim).expect("what is not over and not spent can be claimed");
    (job.status, job.not_before) = (row.to, None);
    job.attempts += 1;
    (job.token, job.worker) = (Some(held.token), Some(worker.clone()));
    let job = keep(facts, draft, &before, job);
    Ok(Some(Given { job, token: held.token, lease_until: claim.lease_until }))
}

/// Lengthens the lease of a job that is in a worker's hands, from now. Needs [`crate::decide::job::need_of`] the job.
///
/// # Errors
/// [`Code::NotFound`]; [`Code::LeaseLost`] where the token is not the present one.
pub fn extend(
    facts: &mut Facts,
    id: &JobId,
    token: Token,
    lease: Millis,
) -> Result<(ChangeSet, Timestamp), Error> {
    let about = || format!("extending the lease of job {id}");
    if !facts.jobs.contains_key(id) {
        return Err(Error::new(Code::NotFound, about()));
    }
    let settlement = Settlement::Extend { held: held(key_of(id), token), lease };
    let (changes, mut answers) = queue::settle(facts, std::slice::from_ref(&settlement));
    match answers.remove(0) {
        Settled::Extended(lease_until) => Ok((changes, lease_until)),
        Settled::LeaseLost | Settled::Completed | Settled::Again(_) | Settled::Exhausted => {
            Err(Error::new(Code::LeaseLost, about()))
        }
    }
}

/// Brings dead letters back into the retry lane, with fresh tries; only a person asks for this. Needs [`crate::decide::job::need_of`] the jobs.
#[must_use]
pub fn replay(facts: &mut Facts, which: &[Exhaustion]) -> (ChangeSet, Vec<Replayed>) {
    let (moved, answers) = queue::replay(facts, &Lane::new(Lane::JOB_RETRY), which);
    let mut draft = Draft { changes: moved, ..Draft::default() };
    for (one, _) in which.iter().zip(&answers).filter(|(_, answer)| **answer == Replayed::Revived) {
        let Some(before) = facts.jobs.get(&JobId::trusted(&one.member)).cloned() else { continue };
        let Some(row) = before.status.next(JobEvent::Replay) else { continue };
        let job = Job { status: row.to, attempts: 0, not_before: Some(facts.now), ..before.clone() };
        keep(facts, &mut draft, &before, job);
    }
    (draft.finish(facts), answers)
}
