//! `bench redis.queue`: claims and completions of due work over Redis (LQ-08).
//!
//! Purpose: the queue beside BullMQ on the same server; what a claim costs at a million members beside what it costs at a
//! thousand; and a lane in which everything is due at once. Invariants: every member that was due is claimed once and completed
//! once, or the round does not count; both sides of a comparison alternate. Read next: [`super::super::queue`].

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use onceward_domain::due::Lane;
use onceward_redis::{Options, RedisQueue};
use tokio::task::JoinSet;

use super::super::queue::{drain, long_wait, put, put_due};
use super::places::Places;
use super::{Effort, Failure, Machine, Report};
use crate::bench::bullmq::{self, Tuning};
use crate::bench::histogram::Histogram;
use crate::bench::interleave::interleave;
use crate::output;

const COMPARED: &str = "redis.queue.compared";
const MEMBERS: &str = "redis.queue.members";
const FLOOD: &str = "redis.queue.flood";
pub(super) const PARTS: [&str; 3] = [COMPARED, MEMBERS, FLOOD];

/// Members of one claim, and of one completion.
const TOGETHER: u32 = 100;
/// Claimers at work at once, where the rate is of interest.
const CLAIMERS: u64 = 4;
/// The small lane.
const FEW: u64 = 1_000;
/// BullMQ takes several times longer for a job, so its rounds have fewer.
const JOBS_PART: u64 = 4;

pub(super) async fn run(effort: &Effort, machine: &Machine, places: &Places) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    if effort.names(COMPARED) {
        reports.push(compared(effort, machine, places).await?);
    }
    if effort.names(MEMBERS) {
        let work = async |options| by_members(effort, machine, options).await;
        reports.push(places.with_keys(work).await?);
    }
    if effort.names(FLOOD) {
        let work = async |options| flood(effort, machine, options).await;
        reports.push(places.with_keys(work).await?);
    }
    Ok(reports)
}

/// Claims and completes with several claimers at once; members a second, and how long each claim took.
async fn together(queue: &Arc<RedisQueue>, lane: &Lane, count: u64) -> Result<(f64, Histogram), Failure> {
    let (started, mut claimers) = (Instant::now(), JoinSet::new());
    for _claimer in 0..CLAIMERS {
        let (queue, lane) = (Arc::clone(queue), lane.clone());
        claimers.spawn(async move { drain(&*queue, &lane, TOGETHER).await });
    }
    let (mut completed, mut claims) = (0, Histogram::new());
    while let Some(joined) = claimers.join_next().await {
        let drained = joined.map_err(|cause| Failure::other("a claimer", cause))??;
        completed += drained.completed;
        claims.merge(&drained.claims);
    }
    let elapsed = started.elapsed();
    if completed != count {
        return Err(Failure::Other(format!("{completed} of {count} members were completed")));
    }
    Ok((count as f64 / elapsed.as_secs_f64(), claims))
}

async fn compared(effort: &Effort, machine: &Machine, places: &Places) -> Result<Report, Failure> {
    let folder = effort.bullmq.as_deref().ok_or_else(|| {
        Failure::Usage(format!(
            "{COMPARED} needs BullMQ: `npm install bullmq ioredis` in a folder, and name it with --bullmq"
        ))
    })?;
    let jobs = effort.count / JOBS_PART;
    output::note(&format!("{COMPARED}: looking for BullMQ's best tuning"));
    let (tuning, tried) = best_tuning(places, folder, jobs).await?;
    output::note(&format!("{COMPARED}: the queue against BullMQ with {tuning:?}"));
    let claims = Mutex::new(Histogram::new());
    let compared = interleave(
        effort.rounds,
        async || jobs_per_second(places, folder, tuning, jobs).await,
        async || {
            places
                .with_keys(async |options| {
                    let (queue, lane) = (Arc::new(RedisQueue::open(options)?), Lane::new("bench"));
                    put_due(&*queue, &lane, "due", 0..effort.count).await?;
                    let (rate, taken) = together(&queue, &lane, effort.count).await?;
                    claims.lock().unwrap_or_else(PoisonError::into_inner).merge(&taken);
                    Ok(rate)
                })
                .await
        },
    )
    .await?;
    let claims = claims.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Report::against(COMPARED, compared, machine)
        .with_parameter("due", effort.count)
        .with_parameter("claimed_together", TOGETHER)
        .with_parameter("claimers", CLAIMERS)
        .with_parameter("bullmq_jobs", jobs)
        .with_parameter("bullmq_threads", tuning.threads)
        .with_parameter("bullmq_concurrency", tuning.concurrency)
        .with_extra("bullmq_per_second_by_tuning", tried)
        .with_latency(&claims))
}

async fn jobs_per_second(places: &Places, folder: &Path, tuning: Tuning, jobs: u64) -> Result<f64, Failure> {
    let url = places.redis_url()?;
    places
        .with_keys(async |options| {
            let elapsed = bullmq::run(folder, url, options.prefix(), tuning, jobs).await;
            let elapsed = elapsed.map_err(|cause| Failure::other("running BullMQ", cause))?;
            Ok(jobs as f64 / elapsed.as_secs_f64())
        })
        .await
}

async fn best_tuning(places: &Places, folder: &Path, jobs: u64) -> Result<(Tuning, Vec<f64>), Failure> {
    let mut tried = Vec::with_capacity(Tuning::ALL.len());
    for tuning in Tuning::ALL {
        tried.push(jobs_per_second(places, folder, tuning, jobs).await?);
    }
    let best = Tuning::ALL.into_iter().zip(&tried).max_by(|one, other| one.1.total_cmp(other.1));
    Ok((best.map_or(Tuning::ALL[0], |(tuning, _)| tuning), tried))
}

/// One claimer at a lane with few members that wait, and at one with many.
async fn by_members(effort: &Effort, machine: &Machine, options: Options) -> Result<Report, Failure> {
    output::note(&format!("{MEMBERS}: beside {FEW} and beside {} that wait", effort.members));
    let queue = RedisQueue::open(options)?;
    let (few, many) = (Lane::new("few"), Lane::new("many"));
    put(&queue, &few, "waiting", 0..FEW, long_wait).await?;
    put(&queue, &many, "waiting", 0..effort.members, long_wait).await?;
    let claims = [Mutex::new(Histogram::new()), Mutex::new(Histogram::new())];
    let round = async |lane: &Lane, number: usize| {
        put_due(&queue, lane, "due", 0..effort.count).await?;
        let drained = drain(&queue, lane, TOGETHER).await?;
        if drained.completed != effort.count {
            return Err(Failure::Other(format!(
                "{} of {} members were completed",
                drained.completed, effort.count
            )));
        }
        claims[number].lock().unwrap_or_else(PoisonError::into_inner).merge(&drained.claims);
        Ok(drained.per_second())
    };
    let compared =
        interleave(effort.rounds, async || round(&few, 0).await, async || round(&many, 1).await).await?;
    let [few_claims, claims] = claims.map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
    let cost = compared.baseline_median / compared.measured_median;
    Ok(Report::against(MEMBERS, compared, machine)
        .with_parameter("members", effort.members)
        .with_parameter("baseline_members", FEW)
        .with_parameter("due", effort.count)
        .with_parameter("claimed_together", TOGETHER)
        .with_extra("cost_ratio", cost)
        .with_extra("baseline_p50_us", few_claims.percentile_us(50))
        .with_extra("baseline_p99_us", few_claims.percentile_us(99))
        .with_latency(&claims))
}

/// All members are due, and all of them are taken.
async fn flood(effort: &Effort, machine: &Machine, options: Options) -> Result<Report, Failure> {
    output::note(&format!("{FLOOD}: {} members, all of them due", effort.members));
    let (queue, lane) = (Arc::new(RedisQueue::open(options)?), Lane::new("flood"));
    let started = Instant::now();
    put_due(&*queue, &lane, "due", 0..effort.members).await?;
    let filled = effort.members as f64 / started.elapsed().as_secs_f64();
    let (rate, claims) = together(&queue, &lane, effort.members).await?;
    Ok(Report::new(FLOOD, rate, machine)
        .with_parameter("members", effort.members)
        .with_parameter("claimed_together", TOGETHER)
        .with_parameter("claimers", CLAIMERS)
        .with_extra("filled_per_second", filled)
        .with_latency(&claims))
}
