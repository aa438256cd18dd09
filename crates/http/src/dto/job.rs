//! Jobs that credits pay for, on the wire.

use std::sync::Arc;

use onceward_domain::credit::Credits;
use onceward_domain::due::Token;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::{ATTEMPTS_LIMIT, Job};
use onceward_domain::machine::Machine;
use onceward_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::sku::REASON_LIMIT;
use crate::check::Faults;
use crate::problem::Problem;
use crate::raw_json::RawObject;
use crate::values::{IdText, Text, Whole};
use crate::when::Time;
use onceward::operations::job::{Claim, Given, OpenJob, Report, Word};

/// Most jobs of one claim.
const CLAIM_LIMIT: i64 = 100;
/// Longest lease that is given: a day.
const LEASE_LIMIT: i64 = 24 * 60 * 60 * 1000;
/// Most characters of a worker's name.
const WORKER_LIMIT: usize = 200;

/// A job to be opened and charged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = JobTerms)]
pub(crate) struct JobBody<'a> {
    /// Who pays.
    #[serde(borrow)]
    account_id: IdText<'a>,
    /// How much.
    #[schema(value_type = i64, minimum = 1, maximum = 1_000_000_000_000_000_i64)]
    cost: Whole,
    /// How many runs it may have, the first one counted.
    #[serde(default = "five")]
    #[schema(value_type = i64, minimum = 1, maximum = 1_000, default = 5)]
    max_attempts: Whole,
    /// What its worker needs; it comes back to the last digit.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    payload: Option<RawObject>,
}

fn five() -> Whole {
    Whole(5)
}

impl JobBody<'_> {
    /// The job, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_job(self, id: JobId, actor: Arc<str>) -> Result<OpenJob, Problem> {
        let mut faults = Faults::default();
        let account = faults.id("/account_id", &self.account_id, AccountId::new);
        let cost = faults.keep("/cost", Credits::new(self.cost.0));
        let attempts = faults.within("/max_attempts", self.max_attempts, 1..=i64::from(ATTEMPTS_LIMIT));
        let attempts = attempts.and_then(|count| u32::try_from(count).ok());
        let payload = self.payload.map(|payload| Arc::from(payload.0));
        let job = (|| {
            Some(OpenJob { id, account: account?, cost: cost?, max_attempts: attempts?, payload, actor })
        })();
        faults.finish(job)
    }
}

/// A failed run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = JobFailure)]
pub(crate) struct FailBody<'a> {
    /// What went wrong.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    reason: Text<'a>,
    /// Whether another run may work.
    #[serde(default = "yes")]
    #[schema(default = true)]
    retryable: bool,
    /// The claim under which it ran.
    #[serde(default)]
    #[schema(value_type = Option<i64>)]
    token: Option<Whole>,
}

fn yes() -> bool {
    true
}

impl FailBody<'_> {
    /// The report, judged.
    ///
    /// # Errors
    /// 422 `invalid`.
    pub(crate) fn into_report(self, job: JobId, actor: Arc<str>) -> Result<Report, Problem> {
        let mut faults = Faults::default();
        let reason = faults.words("/reason", &self.reason, REASON_LIMIT);
        let reason = faults.finish(reason)?;
        let word = if self.retryable { Word::FailedForNow(reason) } else { Word::FailedForGood(reason) };
        Ok(Report { job, token: self.token.map(|token| Token(token.0)), word, actor })
    }
}

/// A run that delivered.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = JobSuccess)]
pub(crate) struct SucceedBody {
    /// The claim under which it ran.
    #[serde(default)]
    #[schema(value_type = Option<i64>)]
    token: Option<Whole>,
}

impl SucceedBody {
    /// The report.
    pub(crate) fn into_report(self, job: JobId, actor: Arc<str>) -> Report {
        Report { job, token: self.token.map(|token| Token(token.0)), word: Word::Succeeded, actor }
    }
}

/// A worker's wish.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = JobClaim)]
pub(crate) struct ClaimBody<'a> {
    /// A name for people.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    worker: Text<'a>,
    /// Most jobs to be handed out.
    #[serde(default = "ten")]
    #[schema(value_type = i64, minimum = 1, maximum = 100, default = 10)]
    limit: Whole,
    /// How long the lease lasts.
    #[serde(default = "half_a_minute")]
    #[schema(value_type = i64, minimum = 1, maximum = 86_400_000, default = 30_000)]
    lease_ms: Whole,
}

fn ten() -> Whole {
    Whole(10)
}

fn half_a_minute() -> Whole {
    Whole(30_000)
}

impl ClaimBody<'_> {
    /// The claim, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_claim(self) -> Result<Claim, Problem> {
        let mut faults = Faults::default();
        let worker = faults.words("/worker", &self.worker, WORKER_LIMIT);
        let limit = faults.within("/limit", self.limit, 1..=CLAIM_LIMIT);
        let limit = limit.and_then(|limit| u32::try_from(limit).ok());
        let lease = faults.within("/lease_ms", self.lease_ms, 1..=LEASE_LIMIT).map(Millis);
        let claim = (|| Some(Claim { worker: worker?, limit: limit?, lease: lease? }))();
        faults.finish(claim)
    }
}

/// A lease to be lengthened, from now.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = JobExtension)]
pub(crate) struct ExtendBody<'a> {
    #[serde(borrow)]
    job_id: IdText<'a>,
    /// The claim.
    #[schema(value_type = i64)]
    token: Whole,
    /// How long the lease lasts, from now.
    #[schema(value_type = i64, minimum = 1, maximum = 86_400_000)]
    lease_ms: Whole,
}

impl ExtendBody<'_> {
    /// Job, token and lease, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_extension(self) -> Result<(JobId, Token, Millis), Problem> {
        let mut faults = Faults::default();
        let job = faults.id("/job_id", &self.job_id, JobId::new);
        let lease = faults.within("/lease_ms", self.lease_ms, 1..=LEASE_LIMIT).map(Millis);
        faults.finish(job.zip(lease).map(|(job, lease)| (job, Token(self.token.0), lease)))
    }
}

/// The states of a job.
#[derive(ToSchema)]
#[schema(as = JobStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum JobStatusName {
    Running,
    WaitingRetry,
    Delivered,
    Failed,
    DeadLetter,
}

/// A job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobView {
    job_id: String,
    account_id: String,
    cost: i64,
    #[schema(value_type = JobStatusName)]
    status: &'static str,
    /// Runs that were begun.
    #[schema(value_type = i64, minimum = 0)]
    attempts: u32,
    #[schema(value_type = i64, minimum = 1)]
    max_attempts: u32,
    #[schema(required = true)]
    not_before: Option<Time>,
    is_refunded: bool,
    is_reclaimed: bool,
    /// What its entries add up to: −cost, or 0 while it is refunded and not reclaimed.
    net: i64,
    /// What was last said of a failure.
    #[schema(required = true)]
    last_error: Option<String>,
}

impl From<&Job> for JobView {
    fn from(job: &Job) -> Self {
        Self {
            job_id: job.id.as_str().to_owned(),
            account_id: job.account.as_str().to_owned(),
            cost: job.cost.amount(),
            status: job.status.name(),
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            not_before: job.not_before.map(Time::from),
            is_refunded: job.is_refunded,
            is_reclaimed: job.is_reclaimed,
            net: job.net(),
            last_error: job.last_error.as_deref().map(str::to_owned),
        }
    }
}

/// A job in a worker's hands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ClaimedJob)]
pub(crate) struct GivenView {
    job_id: String,
    /// As it was given; `null` where none was.
    #[schema(required = true, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    payload: Option<Box<RawValue>>,
    /// Runs that were begun, this one counted.
    #[schema(value_type = i64, minimum = 1)]
    attempts: u32,
    /// To be shown when it is settled or extended.
    token: i64,
    lease_until: Time,
}

impl From<&Given> for GivenView {
    fn from(given: &Given) -> Self {
        let text = given.job.payload.as_deref();
        Self {
            job_id: given.job.id.as_str().to_owned(),
            payload: text.and_then(|text| RawValue::from_string(text.to_owned()).ok()),
            attempts: given.job.attempts,
            token: given.token.0,
            lease_until: given.lease_until.into(),
        }
    }
}

/// A lengthened lease.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobLease)]
pub(crate) struct LeaseView {
    pub(crate) job_id: String,
    pub(crate) token: i64,
    pub(crate) lease_until: Time,
}
