//! Jobs that credits pay for: opened by a charge, refunded when they fail, reclaimed when they are delivered after all
//! (CL-02 to CL-06, reference 004).
//!
//! Invariants: whatever is said of a job, in whatever order and however often, its entries add up to −cost, or to 0 while
//! it has failed and was not delivered; never to −2×cost, never to 0 after delivery (CL-05). Mark, entry and move in the
//! retry lane are one ChangeSet. A token that is not the present one moves nothing in the lane, while the ledger takes
//! what is true: a delivery is one, whoever held the lease. Whoever shows no token speaks for the present holder.
//! Deliberately absent: calling workers. Read next: [`crate::machine::job`], [`crate::decide::job_queue`].

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::credit::{Credits, EntryKind};
use crate::decide::credit::{Posting, check_funds};
use crate::decide::{Draft, queue};
use crate::due::{Charge, DueChange, DueEntry, Held, Lane, Member, Token};
use crate::error::{Code, Error};
use crate::facts::{Facts, Need};
use crate::guard::Guard;
use crate::id::{AccountId, JobId};
use crate::job::{ATTEMPTS_LIMIT, Job};
use crate::machine::Machine;
use crate::machine::job::{Job as JobStatus, JobEvent, LedgerEffect};
use crate::notice::work_exhausted;
use crate::retry::RetryPolicy;
use crate::time::Timestamp;

/// Opens a job and charges its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenJob {
    /// Which.
    pub id: JobId,
    /// Who pays.
    pub account: AccountId,
    /// How much.
    pub cost: Credits,
    /// How many runs it may have.
    pub max_attempts: u32,
    /// What its worker needs, as JSON text.
    pub payload: Option<Arc<str>>,
    /// Who asked.
    pub actor: Arc<str>,
}

/// What somebody says of a job's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which job.
    pub job: JobId,
    /// The claim under which it ran, where the speaker names it.
    pub token: Option<Token>,
    /// What.
    pub word: Word,
    /// Who.
    pub actor: Arc<str>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It delivered.
    Succeeded,
    /// It failed, and another one may work.
    FailedForNow(Arc<str>),
    /// It failed, and no other one can work.
    FailedForGood(Arc<str>),
}

/// One thing to decide about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Open it.
    Open(OpenJob),
    /// Hear of it.
    Report(Report),
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The job was opened and charged now.
    Opened(Job),
    /// The job as it is now: opened before, or heard of.
    Heard(Job),
    /// The token is not the present one. Nothing was moved in the lane; the ledger took what was true.
    LeaseLost(Job),
}

/// The member of the retry lane that stands for a job.
pub(super) fn key_of(id: &JobId) -> (Lane, Member) {
    (Lane::new(Lane::JOB_RETRY), Arc::from(id.as_str()))
}

fn dead_key_of(id: &JobId) -> (Lane, Member) {
    let (lane, member) = key_of(id);
    (lane.dead_letters(), member)
}

/// The rows that decisions about these jobs look at; a job comes with its account.
#[must_use]
pub fn need_of<'a>(jobs: impl Iterator<Item = &'a JobId>) -> Need {
    let mut need = Need::default();
    for id in jobs {
        need.jobs.push(id.clone());
        need.due.extend([key_of(id), dead_key_of(id)]);
    }
    need
}

/// The rows that these commands look at.
#[must_use]
pub fn need_of_commands(commands: &[Command]) -> Need {
    let mut need = need_of(commands.iter().filter_map(|command| match command {
        Command::Open(_) => None,
        Command::Report(report) => Some(&report.job),
    }));
    for command in commands {
        if let Command::Open(open) = command {
            need.jobs.push(open.id.clone());
            need.accounts.push(open.account.clone());
        }
    }
    need
}

/// Opens jobs and hears of them, each command as if it had come alone. Needs [`need_of_commands`].
#[must_use]
pub fn decide(
    facts: &mut Facts,
    policy: &RetryPolicy,
    commands: &[Command],
) -> (ChangeSet, Vec<Result<Outcome, Error>>) {
    let mut draft = Draft::default();
    let outcomes = commands
        .iter()
        .map(|command| match command {
            Command::Open(open) => open_into(facts, &mut draft, open),
            Command::Report(report) => hear_into(facts, &mut draft, policy, report),
        })
        .collect();
    (draft.finish(facts), outcomes)
}

fn open_into(facts: &mut Facts, draft: &mut Draft, command: &OpenJob) -> Result<Outcome, Error> {
    if let Some(known) = facts.jobs.get(&command.id) {
        let is_same = known.account == command.account
            && known.cost == command.cost
            && known.max_attempts == command.max_attempts
            && known.payload == command.payload;
        if !Guard::JobKeepsItsTerms.holds(is_same) {
            return Err(Error::new(
                Code::Differs,
                format!("opening job {} again with other terms", command.id),
            ));
        }
        return Ok(Outcome::Heard(known.clone()));
    }
    if !(1..=ATTEMPTS_LIMIT).contains(&command.max_attempts) {
        return Err(Error::new(Code::Invalid, format!("opening job {} with its attempts", command.id)));
    }
    check_funds(facts, &command.account, command.cost)?;
    let posting = Posting {
        kind: EntryKind::Charge,
        amount: -command.cost.amount(),
        job: Some(command.id.clone()),
        reference: None,
        reason: None,
        actor: command.actor.clone(),
    };
    draft.enter(facts, &command.account, posting)?;
    let job = Job {
        id: command.id.clone(),
        account: command.account.clone(),
        cost: command.cost,
        max_attempts: command.max_attempts,
        payload: command.payload.clone(),
        status: JobStatus::Running,
        attempts: 1,
        not_before: None,
        token: None,
        worker: None,
        last_error: None,
        is_refunded: false,
        is_reclaimed: false,
        created_at: facts.now,
        updated_at: facts.now,
        revision: 0,
    };
    draft.open_job(&job.id);
    facts.jobs.insert(job.id.clone(), job.clone());
    Ok(Outcome::Opened(job))
}

/// What the speaker's token is worth.
enum Standing {
    /// It holds the job, or nobody showed one and somebody does.
    Holds(Held),
    /// There is no claim to hold: the run was not begun from the lane, or its claim was settled before.
    Unclaimed,
    /// Somebody else has claimed the job since, or nobody ever gave this token out.
    Stale,
}

fn standing(facts: &Facts, job: &Job, token: Option<Token>) -> Standing {
    let key = key_of(&job.id);
    let entry = facts.due.get(&key);
    match token {
        None => match entry.filter(|entry| entry.is_held) {
            Some(entry) => Standing::Holds(held(key, entry.token)),
            None => Standing::Unclaimed,
        },
        Some(token) if entry.is_some_and(|entry| entry.is_held_by(token)) => {
            Standing::Holds(held(key, token))
        }
        // The last claim that was given out, settled before: this is a repeat, perhaps of a call whose answer was lost.
        Some(token) if entry.is_none_or(|entry| !entry.is_held) && job.token == Some(token) => {
            Standing::Unclaimed
        }
        Some(_) => Standing::Stale,
    }
}

pub(super) fn held((lane, member): (Lane, Member), token: Token) -> Held {
    Held { lane, member, token }
}

fn hear_into(
    facts: &mut Facts,
    draft: &mut Draft,
    policy: &RetryPolicy,
    report: &Report,
) -> Result<Outcome, Error> {
    let absent = || Error::new(Code::NotFound, format!("hearing of job {}", report.job));
    let job = facts.jobs.get(&report.job).cloned().ok_or_else(absent)?;
    let standing = standing(facts, &job, report.token);
    let is_stale = matches!(standing, Standing::Stale);
    let job = match &report.word {
        Word::Succeeded => succeed(facts, draft, job, &standing, &report.actor)?,
        // A failure of a run that somebody else has taken over says nothing of the job (F2).
        Word::FailedForNow(_) | Word::FailedForGood(_)
            if !Guard::StaleFailureSaysNothing.holds(!is_stale) =>
        {
            job
        }
        Word::FailedForNow(reason) => {
            let event = if job.attempts >= job.max_attempts { JobEvent::Exhaust } else { JobEvent::Retry };
            let failure = Failure { event, reason, policy, actor: &report.actor };
            fail(facts, draft, job, standing, &failure)?
        }
        Word::FailedForGood(reason) => {
            let failure = Failure { event: JobEvent::Fail, reason, policy, actor: &report.actor };
            fail(facts, draft, job, standing, &failure)?
        }
    };
    Ok(if is_stale { Outcome::LeaseLost(job) } else { Outcome::Heard(job) })
}

/// The success path. It reclaims unconditionally, any number of times; the guard decides (CL-03).
fn succeed(
    facts: &mut Facts,
    draft: &mut Draft,
    mut job: Job,
    standing: &Standing,
    actor: &Arc<str>,
) -> Result<Job, Error> {
    let before = job.clone();
    reclaim(facts, draft, &mut job, actor)?;
    if let Some(row) = job.status.next(JobEvent::Succeed) {
        (job.status, job.not_before) = (row.to, None);
    }
    let is_held = facts.due.get(&key_of(&job.id)).is_some_and(|entry| entry.is_held);
    match standing {
        Standing::Holds(held) => {
            facts.due.remove(&key_of(&job.id));
            draft.changes.due.push(DueChange::Complete(held.clone()));
        }
        // Whoever holds it finds the job delivered, by its own word or at the next claim.
        Standing::Stale if is_held => {}
        Standing::Unclaimed | Standing::Stale => {
            for (lane, member) in [key_of(&job.id), dead_key_of(&job.id)] {
                if facts.due.remove(&(lane.clone(), member.clone())).is_some() {
                    draft.changes.due.push(DueChange::Remove { lane, member });
                }
            }
        }
    }
    Ok(keep(facts, draft, &before, job))
}

/// A failed run.
pub(super) struct Failure<'a> {
    pub(super) event: JobEvent,
    pub(super) reason: &'a Arc<str>,
    pub(super) policy: &'a RetryPolicy,
    pub(super) actor: &'a Arc<str>,
}

fn fail(
    facts: &mut Facts,
    draft: &mut Draft,
    mut job: Job,
    standing: Standing,
    failure: &Failure<'_>,
) -> Result<Job, Error> {
    let before = job.clone();
    let Some(row) = job.status.next(failure.event) else {
        // Delivered, failed or given up before: there is nothing to give back, and no further run.
        if let (Standing::Holds(held), true) = (standing, job.status.is_over()) {
            facts.due.remove(&key_of(&job.id));
            draft.changes.due.push(DueChange::Complete(held));
        }
        return Ok(job);
    };
    if row.effect == LedgerEffect::Refund {
        refund(facts, draft, &mut job, failure)?;
    }
    (job.status, job.not_before) = (row.to, None);
    job.last_error = Some(failure.reason.clone());
    let (lane, member) = key_of(&job.id);
    match (failure.event, standing) {
        (JobEvent::Retry, standing) => {
            let due_at = facts.now.plus(failure.policy.wait(job.attempts, seed_of(&job)));
            job.not_before = Some(due_at);
            wait_until(facts, draft, &job.id, standing, due_at);
        }
        (JobEvent::Exhaust, Standing::Holds(held)) => queue::exhaust(facts, &mut draft.changes, &held),
        (JobEvent::Exhaust, Standing::Unclaimed | Standing::Stale) => lay_aside(facts, draft, &job.id),
        (_, Standing::Holds(held)) => {
            facts.due.remove(&(lane, member));
            draft.changes.due.push(DueChange::Complete(held));
        }
        (_, Standing::Unclaimed | Standing::Stale) => {
            if facts.due.remove(&(lane.clone(), member.clone())).is_some() {
                draft.changes.due.push(DueChange::Remove { lane, member });
            }
        }
    }
    Ok(keep(facts, draft, &before, job))
}

/// A number that differs from run to run, to spread waits by.
fn seed_of(job: &Job) -> u64 {
    let held = held(key_of(&job.id), Token(i64::from(job.attempts)));
    held.seed()
}

/// Lets a job wait in the retry lane: gives back the claim, or puts it in after its first run.
fn wait_until(facts: &mut Facts, draft: &mut Draft, id: &JobId, standing: Standing, due_at: Timestamp) {
    let key = key_of(id);
    if let Standing::Holds(held) = standing {
        let entry = facts.due.get_mut(&key).expect("a claim that is held has its member");
        (entry.due_at, entry.is_held) = (due_at, false);
        draft.changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Keep });
        return;
    }
    put(facts, draft, key, due_at);
}

/// Puts a job whose only run was not begun from the lane among the exhausted, with its notice.
fn lay_aside(facts: &mut Facts, draft: &mut Draft, id: &JobId) {
    let (lane, member) = key_of(id);
    draft.changes.new_notices.push(work_exhausted(&lane, &member, Token::NONE, facts.now));
    let now = facts.now;
    put(facts, draft, (lane.dead_letters(), member), now);
}

fn put(facts: &mut Facts, draft: &mut Draft, key: (Lane, Member), due_at: Timestamp) {
    let entry = DueEntry::new(due_at, facts.now, Vec::new());
    let (lane, member) = key.clone();
    facts.due.insert(key, entry);
    draft.changes.due.push(DueChange::Put { lane, member, due_at, body: Vec::new() });
}

/// Gives the cost back, if it was charged and not given back before (CL-02). A job that is there was charged.
pub(super) fn refund(
    facts: &mut Facts,
    draft: &mut Draft,
    job: &mut Job,
    failure: &Failure<'_>,
) -> Result<(), Error> {
    if !Guard::JobIsRefundedOnce.holds(!job.is_refunded) {
        return Ok(());
    }
    let posting = Posting {
        kind: EntryKind::Refund,
        amount: job.cost.amount(),
        job: Some(job.id.clone()),
        reference: None,
        reason: Some(failure.reason.clone()),
        actor: failure.actor.clone(),
    };
    draft.enter(facts, &job.account, posting)?;
    job.is_refunded = true;
    Ok(())
}

/// Takes the cost again, if it was given back and not taken again before (CL-02), whatever the account holds by now.
fn reclaim(facts: &mut Facts, draft: &mut Draft, job: &mut Job, actor: &Arc<str>) -> Result<(), Error> {
    let was_given_back = Guard::ReclaimNeedsARefund.holds(job.is_refunded);
    if !(was_given_back && Guard::JobIsReclaimedOnce.holds(!job.is_reclaimed)) {
        return Ok(());
    }
    let posting = Posting {
        kind: EntryKind::Reclaim,
        amount: -job.cost.amount(),
        job: Some(job.id.clone()),
        reference: None,
        reason: None,
        actor: actor.clone(),
    };
    draft.enter(facts, &job.account, posting)?;
    job.is_reclaimed = true;
    Ok(())
}

/// Keeps a job that may have changed.
pub(super) fn keep(facts: &mut Facts, draft: &mut Draft, before: &Job, mut job: Job) -> Job {
    if job != *before {
        job.updated_at = facts.now;
        draft.touch_job(&job.id);
        facts.jobs.insert(job.id.clone(), job.clone());
    }
    job
}
