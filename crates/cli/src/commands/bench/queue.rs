//! `bench queue`: claims and completions of due work, and what a member costs, at 10^4 to 10^7 members (LQ-08).
//!
//! Purpose: the rate of claim and completion through the port that everybody uses, and whether it depends on how many
//! members are not due. Invariants: the members that wait are spread over a month and none of them comes due; every member
//! that was due is claimed once and completed once, or the round does not count; all of it is durable. One store grows
//! from size to size. Deliberately absent: a baseline; the figure of interest is the column's shape.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceward::store_queue::StoreQueue;
use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{DueChange, Lane};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::due_queue::{
    ClaimWork, Due, DueQueue, NewWork, Put, QUEUE_BATCH_LIMIT, Settled, Settlement,
};
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::{Millis, Timestamp};
use onceward_sqlite::SqliteStore;

use super::Effort;
use crate::bench::disk::folder_bytes;
use crate::bench::histogram::Histogram;
use crate::bench::interleave::median;
use crate::bench::report::{Machine, Report};
use crate::failure::Failure;
use crate::output;
use crate::settings::STORE_FILE;
use crate::temp_dir::Folder;
use crate::wiring;

/// Sizes that are measured, as far as `--members` allows.
const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Members of one claim: the engine's own batch is of this order.
const CLAIM: u32 = 100;
/// Members that one transaction puts in while the store is filled.
const FILLED_TOGETHER: u64 = 5_000;
/// Waiting members come due between tomorrow and in a month.
const FIRST_DUE: Millis = Millis(24 * 60 * 60 * 1_000);
const SPREAD_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// A waiting member's payload: an id, as most lanes keep.
const BODY_BYTES: usize = 16;
const LEASE: Millis = Millis(60_000);

/// The parts that can be chosen.
pub(crate) fn parts() -> Vec<String> {
    vec!["queue".to_owned()]
}

/// Measures every size up to the largest that was asked for.
///
/// # Errors
/// When a round is not clean.
pub(crate) async fn run(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    if !effort.wants("queue") {
        return Ok(reports);
    }
    let folder = Folder::inside(&effort.folder)?;
    let store = wiring::open_store(&folder.path().join(STORE_FILE))?;
    let bench = Bench { queue: StoreQueue::new(Arc::clone(&store) as _), store };
    let mut filled = 0;
    for size in SIZES.into_iter().filter(|size| *size <= effort.members) {
        output::note(&format!("queue: {size} members"));
        let growth = bench.fill(folder.path(), filled, size).await?;
        filled = size;
        let mut rounds = Vec::new();
        for round in 0..effort.rounds.get() {
            rounds.push(bench.round(size, round, effort.count).await?);
        }
        reports.push(report(size, effort, growth, &rounds, machine));
    }
    close(bench.store).await?;
    Ok(reports)
}

async fn close(store: Arc<SqliteStore>) -> Result<(), Failure> {
    let closed = tokio::task::spawn_blocking(move || store.close()).await;
    closed.map_err(|cause| Failure::other("closing the store", cause))
}

struct Bench {
    store: Arc<SqliteStore>,
    queue: StoreQueue,
}

/// What filling cost.
struct Growth {
    per_second: f64,
    bytes_per_member: f64,
}

/// What one round came to.
struct Round {
    per_second: f64,
    claims: Histogram,
}

fn lane() -> Lane {
    Lane::new("bench")
}

/// A number that looks drawn and is the same each time.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

impl Bench {
    /// Puts in members that wait, `from..to`.
    async fn fill(&self, folder: &Path, from: u64, to: u64) -> Result<Growth, Failure> {
        let size_of = || folder_bytes(folder).map_err(|cause| Failure::other("looking at the store", cause));
        let (before, started) = (size_of()?, Instant::now());
        for first in (from..to).step_by(usize::try_from(FILLED_TOGETHER).unwrap_or(1)) {
            let numbers = first..to.min(first + FILLED_TOGETHER);
            let decide = move |facts: &mut Facts| {
                let due = numbers.clone().map(|number| waiting(number, facts.now)).collect();
                Ok(ChangeSet { due, ..ChangeSet::default() })
            };
            let work = Work { name: "bench.fill", need: Need::default(), decide: Arc::new(decide) };
            self.store.transact(work).await?;
        }
        let count = (to - from) as f64;
        let per_second = count / started.elapsed().as_secs_f64();
        Ok(Growth { per_second, bytes_per_member: size_of()?.saturating_sub(before) as f64 / count })
    }

    /// Puts in what is due, then claims and completes all of it; only the latter is measured.
    async fn round(&self, size: u64, round: u32, count: u64) -> Result<Round, Failure> {
        put_due(&self.queue, &lane(), &format!("due-{size}-{round}"), 0..count).await?;
        let drained = drain(&self.queue, &lane(), CLAIM).await?;
        if drained.completed != count {
            return Err(Failure::Other(format!("{} of {count} members were completed", drained.completed)));
        }
        Ok(Round { per_second: drained.per_second(), claims: drained.claims })
    }
}

/// Puts in members that are due at once, under names of their own.
///
/// # Errors
/// The queue's; or a member was there before.
pub(super) async fn put_due(
    queue: &dyn DueQueue,
    lane: &Lane,
    name: &str,
    numbers: std::ops::Range<u64>,
) -> Result<(), Failure> {
    put(queue, lane, name, numbers, |_| Millis(0)).await
}

/// Puts in members that come due so much later, under names of their own.
///
/// # Errors
/// The queue's; or a member was there before.
pub(super) async fn put(
    queue: &dyn DueQueue,
    lane: &Lane,
    name: &str,
    numbers: std::ops::Range<u64>,
    wait: impl Fn(u64) -> Millis,
) -> Result<(), Failure> {
    let step = QUEUE_BATCH_LIMIT as u64;
    for first in numbers.clone().step_by(QUEUE_BATCH_LIMIT) {
        let work = (first..numbers.end.min(first + step)).map(|number| NewWork {
            member: Arc::from(format!("{name}-{number:08}")),
            due: Due::After(wait(number)),
            body: vec![7; BODY_BYTES],
        });
        let answers = queue.put(lane.clone(), work.collect()).await?;
        if answers.iter().any(|answer| *answer != Put::Added) {
            return Err(Failure::Other("a member was there before it was put in".to_owned()));
        }
    }
    Ok(())
}

/// What became of a lane.
pub(super) struct Drained {
    /// Members that were claimed and completed.
    pub(super) completed: u64,
    /// How long each claim took.
    pub(super) claims: Histogram,
    elapsed: Duration,
}

impl Drained {
    /// Members claimed and completed in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.completed as f64 / self.elapsed.as_secs_f64()
    }
}

/// Claims and completes all that is due in a lane, so many members a call.
///
/// # Errors
/// The queue's.
pub(super) async fn drain(queue: &dyn DueQueue, lane: &Lane, together: u32) -> Result<Drained, Failure> {
    let (mut claims, mut completed, started) = (Histogram::new(), 0, Instant::now());
    loop {
        let asked = Instant::now();
        let request =
            ClaimWork { lane: lane.clone(), limit: together, lease: LEASE, policy: RetryPolicy::default() };
        let claimed = queue.claim(request).await?;
        if claimed.is_empty() {
            return Ok(Drained { completed, claims, elapsed: started.elapsed() });
        }
        claims.record(asked.elapsed());
        let settlements = claimed.into_iter().map(|one| Settlement::Complete(one.held)).collect();
        let answers = queue.settle(settlements).await?;
        completed += answers.iter().filter(|answer| **answer == Settled::Completed).count() as u64;
    }
}

/// How long a waiting member waits: between a day and a month, scattered.
pub(super) fn long_wait(number: u64) -> Millis {
    Millis(FIRST_DUE.0 + i64::try_from(scattered(number) % SPREAD_MS).unwrap_or(0))
}

fn waiting(number: u64, now: Timestamp) -> DueChange {
    DueChange::Put {
        lane: lane(),
        member: Arc::from(format!("waiting-{number:010}")),
        due_at: now.plus(long_wait(number)),
        body: vec![7; BODY_BYTES],
    }
}

fn report(size: u64, effort: &Effort, growth: Growth, rounds: &[Round], machine: &Machine) -> Report {
    let rates: Vec<f64> = rounds.iter().map(|round| round.per_second).collect();
    let mut claims = Histogram::new();
    rounds.iter().for_each(|round| claims.merge(&round.claims));
    Report::new("queue", median(&rates), machine)
        .with_parameter("members", size)
        .with_parameter("claimed_together", CLAIM)
        .with_parameter("due", effort.count)
        .with_parameter("rounds", effort.rounds.get())
        .with_extra("rounds_per_second", rates)
        .with_extra("bytes_per_member", growth.bytes_per_member)
        .with_extra("filled_per_second", growth.per_second)
        .with_latency(&claims)
}
