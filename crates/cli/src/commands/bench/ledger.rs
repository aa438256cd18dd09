//! `bench ledger`: entries of the credit ledger per second, on one hot account and on ten thousand.
//!
//! Purpose: what a busy account costs where everybody charges the same one, beside charges that never meet. Invariants: the
//! entries are those of real jobs through the front that `serve` has: each job is charged, refunded and reclaimed, in this
//! order, and each answer comes after its commit; the store's own count and its judgement of every balance decide whether a
//! round counts. Deliberately absent: a baseline, and HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceward::Engine;
use onceward::ledger::Ledger;
use onceward::operations::credit::{PutAccount, put};
use onceward::operations::job::{Command, OpenJob, Report as Hearing, Word};
use onceward_domain::credit::{BALANCE_LIMIT, Credits};
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::tally::CreditTally;
use tokio::task::JoinSet;

use super::Effort;
use super::shop::{Shop, Transport};
use crate::bench::disk::folder_bytes;
use crate::bench::histogram::Histogram;
use crate::bench::interleave::median;
use crate::bench::report::{Machine, Report};
use crate::failure::Failure;
use crate::output;

/// Accounts of the two measurements.
const ACCOUNTS: [(&str, u64); 2] = [("ledger.hot", 1), ("ledger.spread", 10_000)];
/// Entries of one job: a charge, a refund, a reclaim.
const ENTRIES_PER_JOB: u64 = 3;
/// Jobs under way at once, each with one question.
const JOBS_AT_ONCE: u64 = 512;
/// What a job costs.
const COST: i64 = 40;
/// Batch of the consumer, which has nothing to do here.
const ORDER_BATCH: usize = 500;

/// The parts that can be chosen.
pub(crate) fn parts() -> Vec<String> {
    ACCOUNTS.iter().map(|(part, _)| (*part).to_owned()).collect()
}

/// Measures what was chosen of the ledger.
///
/// # Errors
/// When a round is not clean.
pub(crate) async fn run(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for (part, accounts) in ACCOUNTS.into_iter().filter(|(part, _)| effort.wants(part)) {
        output::note(&format!("ledger: {accounts} accounts"));
        reports.push(measure(part, accounts, effort, machine).await?);
    }
    Ok(reports)
}

async fn measure(part: &str, accounts: u64, effort: &Effort, machine: &Machine) -> Result<Report, Failure> {
    let shop = Shop::open(&effort.folder, Transport::Store, ORDER_BATCH).await?;
    open_accounts(&shop.engine, accounts).await?;
    let ledger = Ledger::open(shop.engine.clone());
    let jobs = (effort.count / ENTRIES_PER_JOB).max(1);
    let (mut rates, mut answers) = (Vec::new(), Histogram::new());
    for round in 0..u64::from(effort.rounds.get()) {
        let before = credit_of(&shop).await?;
        let started = Instant::now();
        answers.merge(&live(&ledger, accounts, round * jobs..(round + 1) * jobs).await?);
        let elapsed: Duration = started.elapsed();
        let entries = clean_entries(&shop, &before).await?;
        if entries != jobs * ENTRIES_PER_JOB {
            return Err(Failure::Other(format!("{jobs} jobs made {entries} entries")));
        }
        rates.push(entries as f64 / elapsed.as_secs_f64());
    }
    drop(ledger);
    let folder = shop.close().await?;
    let stored =
        folder_bytes(folder.path()).map_err(|cause| Failure::other("looking at the store", cause))?;
    let entries = jobs * ENTRIES_PER_JOB * u64::from(effort.rounds.get());
    Ok(Report::new(part, median(&rates), machine)
        .with_parameter("accounts", accounts)
        .with_parameter("entries", jobs * ENTRIES_PER_JOB)
        .with_parameter("jobs_at_once", JOBS_AT_ONCE)
        .with_parameter("rounds", effort.rounds.get())
        .with_extra("rounds_per_second", rates)
        .with_extra("stored_bytes_per_entry", stored as f64 / entries as f64)
        .with_latency(&answers))
}

fn account(number: u64) -> AccountId {
    AccountId::trusted(&format!("account-{number:05}"))
}

/// Accounts that may owe as much as it takes: what is measured are entries, not gifts.
async fn open_accounts(engine: &Engine, count: u64) -> Result<(), Failure> {
    let mut opening = JoinSet::new();
    for lane in 0..JOBS_AT_ONCE.min(count) {
        let engine = engine.clone();
        opening.spawn(async move {
            let mut number = lane;
            while number < count {
                put(&engine, PutAccount { account: account(number), overdraft: BALANCE_LIMIT }).await?;
                number += JOBS_AT_ONCE;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(joined) = opening.join_next().await {
        joined.map_err(|cause| Failure::other("opening accounts", cause))??;
    }
    Ok(())
}

/// Lets all jobs live, so many at once; gives the time of each answer.
async fn live(ledger: &Ledger, accounts: u64, jobs: std::ops::Range<u64>) -> Result<Histogram, Failure> {
    let mut living = JoinSet::new();
    for lane in 0..JOBS_AT_ONCE {
        let (ledger, jobs) = (ledger.clone(), jobs.clone());
        living.spawn(async move {
            let mut answers = Histogram::new();
            for number in (jobs.start + lane..jobs.end).step_by(usize::try_from(JOBS_AT_ONCE).unwrap_or(1)) {
                for command in life(number, accounts)? {
                    let asked = Instant::now();
                    ledger.ask(command).await?;
                    answers.record(asked.elapsed());
                }
            }
            Ok::<_, Failure>(answers)
        });
    }
    let mut answers = Histogram::new();
    while let Some(joined) = living.join_next().await {
        answers.merge(&joined.map_err(|cause| Failure::other("a job", cause))??);
    }
    Ok(answers)
}

/// A job that is charged, fails, and was delivered after all.
fn life(number: u64, accounts: u64) -> Result<[Command; 3], Failure> {
    let (job, actor) = (JobId::trusted(&format!("job-{number:010}")), Arc::<str>::from("bench"));
    let open = OpenJob {
        id: job.clone(),
        account: account(number % accounts),
        cost: Credits::new(COST).map_err(|cause| Failure::other("naming a cost", cause))?,
        max_attempts: 5,
        payload: None,
        actor: actor.clone(),
    };
    let say = |word| Command::Report(Hearing { job: job.clone(), token: None, word, actor: actor.clone() });
    Ok([Command::Open(open), say(Word::FailedForGood(Arc::from("it broke"))), say(Word::Succeeded)])
}

async fn credit_of(shop: &Shop) -> Result<CreditTally, Failure> {
    Ok(shop.engine.store().tally().await?.credit)
}

/// How many entries were made since, where every balance and every job is the sum of its entries.
async fn clean_entries(shop: &Shop, before: &CreditTally) -> Result<u64, Failure> {
    let now = credit_of(shop).await?;
    if now.balance_contradictions > 0 || now.job_contradictions > 0 {
        return Err(Failure::Other(format!("the ledger contradicts itself: {now:?}")));
    }
    Ok(now.entries.saturating_sub(before.entries))
}
