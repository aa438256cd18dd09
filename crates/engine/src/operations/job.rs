//! Jobs in workers' hands (CL-06). Opening and hearing go through [`crate::ledger`], in batches.

use std::sync::Arc;

use onceward_domain::decide::job;
pub use onceward_domain::decide::job::{Command, OpenJob, Outcome, Report, Word};
use onceward_domain::decide::job_queue;
pub use onceward_domain::decide::job_queue::Given;
use onceward_domain::due::{ClaimRequest, Lane, Sequence, Token};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::JobId;
pub use onceward_domain::job::Job;
use onceward_domain::ports::due_queue::{Exhaustion, Replayed};
use onceward_domain::time::{Millis, Timestamp};

use crate::engine::Engine;
use crate::execute::execute;

/// A worker asks for jobs.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who.
    pub worker: Arc<str>,
    /// At most this many.
    pub limit: u32,
    /// How long the lease lasts.
    pub lease: Millis,
}

/// Hands out jobs whose time has come. Where the answer is lost, the leases end and the jobs are given out again.
///
/// # Errors
/// The store's.
pub async fn claim(engine: &Engine, command: Claim) -> Result<Vec<Given>, Error> {
    let request = ClaimRequest {
        lane: Lane::new(Lane::JOB_RETRY),
        limit: command.limit,
        lease: command.lease,
        sequence: Sequence::ByDue,
    };
    let claims = engine.store().claim_due(request).await?;
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<JobId> = claims.iter().map(|claim| JobId::trusted(&claim.held.member)).collect();
    let worker = command.worker;
    let given = execute(engine, "claim_jobs", job::need_of(ids.iter()), move |facts| {
        job_queue::claim(facts, &worker, &claims)
    });
    Ok(given.await?.into_iter().flatten().collect())
}

/// Lengthens a lease, from now.
///
/// # Errors
/// [`Code::NotFound`], [`Code::LeaseLost`]; the store's.
pub async fn extend(engine: &Engine, id: JobId, token: Token, lease: Millis) -> Result<Timestamp, Error> {
    let need = job::need_of(std::iter::once(&id));
    execute(engine, "extend_job", need, move |facts| job_queue::extend(facts, &id, token, lease)).await
}

/// Brings dead jobs back into the retry lane, with fresh tries; only a person asks for this (CL-06).
///
/// # Errors
/// The store's.
pub async fn replay(engine: &Engine, which: Vec<Exhaustion>) -> Result<Vec<Replayed>, Error> {
    let ids: Vec<JobId> = which.iter().map(|one| JobId::trusted(&one.member)).collect();
    execute(engine, "replay_jobs", job::need_of(ids.iter()), move |facts| {
        Ok(job_queue::replay(facts, &which))
    })
    .await
}

/// A job as it is.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn get(engine: &Engine, id: JobId) -> Result<Job, Error> {
    let facts = engine.store().view(Need { jobs: vec![id.clone()], ..Need::default() }).await?;
    facts.jobs.get(&id).cloned().ok_or_else(|| Error::new(Code::NotFound, format!("looking at job {id}")))
}
