//! The bookkeeper: judges accounts, entries and jobs after every commit (CL-01 to CL-07).
//!
//! **Invariants checked.** An entry that was seen stays as it was; a balance is the sum of its entries, each of which says the
//! sum until then; no charge overdraws. A job's entries add up to −cost or to 0, never to −2×cost, never to 0 after delivery;
//! its marks are its entries; it moves along its table; once somebody was heard to say that it delivered it is delivered; a job
//! that waits is in its lane, a dead one where dead letters are.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::due::Lane;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;
use onceward_domain::machine::job::Job as Status;

use super::audit::reaches;
use super::group_audit::{Rule, report};
use super::world::World;
use crate::model::rows::Rows;

/// What the bookkeeper remembers of earlier looks.
#[derive(Default)]
pub(crate) struct Bookkeeper {
    jobs: BTreeMap<JobId, Job>,
    entries: BTreeMap<(AccountId, i64), Entry>,
}

impl Bookkeeper {
    /// Looks at every account and job after a commit.
    pub(crate) fn look(&mut self, world: &World, rows: &Rows) {
        self.check_entries(world, rows);
        for (_, account) in rows.accounts.iter() {
            report(world, &rules_of_account(rows, account), || format!("{account:?}"));
        }
        for (id, job) in rows.jobs.iter() {
            let before = self.jobs.insert(id.clone(), job.clone());
            let mut rules = rules_of_ledger(rows, job);
            rules.push(("a delivery that was heard stands", !world.was_delivered(id) || is_delivered(job)));
            rules.push(("a job that waits is somewhere", waits_somewhere(rows, job)));
            rules.extend(before.as_ref().map(|before| rules_of_move(before, job)).unwrap_or_default());
            report(world, &rules, || format!("{job:?}, before {before:?}"));
            count_cases(world, before.as_ref(), job);
        }
        if rows.jobs.len() != self.jobs.len() {
            world.violated("a job vanished".to_owned());
        }
    }

    fn check_entries(&mut self, world: &World, rows: &Rows) {
        for (key, before) in &self.entries {
            let now = rows.credit_entries.get(key);
            if now != Some(before) {
                world.violated(format!("CL-01: an entry changed: {before:?} is {now:?}"));
            }
        }
        let new = rows.credit_entries.iter().filter(|(key, _)| !self.entries.contains_key(key));
        let new: Vec<_> = new.map(|(key, entry)| (key.clone(), entry.clone())).collect();
        self.entries.extend(new);
    }
}

fn is_delivered(job: &Job) -> bool {
    job.status == Status::Delivered
}

fn rules_of_account(rows: &Rows, account: &Account) -> Vec<Rule> {
    let (from, to) = ((account.id.clone(), i64::MIN), (account.id.clone(), i64::MAX));
    let entries: Vec<&Entry> = rows.credit_entries.range(from..=to).map(|(_, entry)| entry).collect();
    let (mut sum, mut goes_on, mut overdraws) = (0_i64, true, false);
    for (entry, number) in entries.iter().zip(1..) {
        sum += entry.amount;
        goes_on &= entry.number == number && entry.balance_after == sum;
        overdraws |= entry.kind == EntryKind::Charge && entry.balance_after < -account.overdraft;
    }
    vec![
        ("a balance is the sum of its entries (CL-01)", account.balance == sum),
        ("an account knows how many entries it has", usize::try_from(account.entries) == Ok(entries.len())),
        ("each entry says the sum until then (CL-01)", goes_on),
        ("no charge overdraws (CL-07)", !overdraws),
        ("the times of entries never run backwards", entries.is_sorted_by_key(|entry| entry.at)),
    ]
}

fn rules_of_ledger(rows: &Rows, job: &Job) -> Vec<Rule> {
    let of_job = rows.credit_entries.iter().map(|(_, entry)| entry);
    let of_job: Vec<&Entry> = of_job.filter(|entry| entry.job.as_ref() == Some(&job.id)).collect();
    let amounts = |kind: EntryKind| -> Vec<i64> {
        of_job.iter().filter(|entry| entry.kind == kind).map(|entry| entry.amount).collect()
    };
    let cost = job.cost.amount();
    let once = |holds: bool, amount: i64| if holds { vec![amount] } else { Vec::new() };
    let net: i64 = of_job.iter().map(|entry| entry.amount).sum();
    let has_failed = matches!(job.status, Status::WaitingRetry | Status::Failed | Status::DeadLetter);
    vec![
        ("a job is charged once, its cost (CL-04)", amounts(EntryKind::Charge) == [-cost]),
        (
            "it is refunded as its mark says (CL-02)",
            amounts(EntryKind::Refund) == once(job.is_refunded, cost),
        ),
        (
            "it is reclaimed as its mark says (CL-02)",
            amounts(EntryKind::Reclaim) == once(job.is_reclaimed, -cost),
        ),
        ("a job comes to −cost or to nothing (CL-05)", net == -cost || net == 0),
        ("what was delivered is paid (CL-05)", !is_delivered(job) || net == -cost),
        ("what failed costs nothing (CL-05)", !has_failed || net == 0),
        ("its entries are its account's", of_job.iter().all(|entry| entry.account == job.account)),
        ("no run beyond those it may have (CL-06)", job.attempts <= job.max_attempts),
    ]
}

fn rules_of_move(before: &Job, after: &Job) -> Vec<Rule> {
    let terms = |job: &Job| (job.account.clone(), job.cost, job.max_attempts, job.payload.clone());
    vec![
        ("a job moves along its table", reaches(before.status, after.status)),
        ("its terms are final (CL-04)", terms(before) == terms(after)),
        (
            "marks are never taken back",
            before.is_refunded <= after.is_refunded && before.is_reclaimed <= after.is_reclaimed,
        ),
        ("what was delivered stays so", !is_delivered(before) || before == after),
        (
            "only a replay gives fresh tries (LQ-03)",
            before.attempts <= after.attempts || before.status == Status::DeadLetter,
        ),
    ]
}

fn waits_somewhere(rows: &Rows, job: &Job) -> bool {
    let lane = Lane::new(Lane::JOB_RETRY);
    let is_in = |lane: Lane| rows.due.contains(&(lane, Arc::from(job.id.as_str())));
    match job.status {
        Status::WaitingRetry => is_in(lane),
        Status::DeadLetter => is_in(lane.dead_letters()) || is_in(lane),
        Status::Running | Status::Delivered | Status::Failed => true,
    }
}

fn count_cases(world: &World, before: Option<&Job>, after: &Job) {
    if after.is_refunded && !before.is_some_and(|job| job.is_refunded) {
        world.sometimes("job_refunded");
    }
    if after.is_reclaimed && !before.is_some_and(|job| job.is_reclaimed) {
        world.sometimes("job_reclaimed");
    }
    let was = before.map(|job| job.status);
    if was == Some(after.status) {
        return;
    }
    match after.status {
        Status::Running => {}
        Status::WaitingRetry => world.sometimes("job_waits"),
        Status::Failed => world.sometimes("job_failed"),
        Status::DeadLetter => world.sometimes("job_dead"),
        Status::Delivered if was == Some(Status::DeadLetter) => {
            world.sometimes("job_delivered_from_the_dead")
        }
        Status::Delivered => world.sometimes("job_delivered"),
    }
}
