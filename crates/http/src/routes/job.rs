//! `/v1/jobs/{job_id}` and `/v1/job-queue`.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use onceward_domain::error::Code;
use onceward_domain::id::JobId;

use super::json;
use crate::auth::Caller;
use crate::body::{MaybePayload, Payload};
use crate::check::Faults;
use crate::dto::Data;
use crate::dto::job::{ClaimBody, ExtendBody, FailBody, GivenView, JobBody, JobView, LeaseView, SucceedBody};
use crate::operation::detached;
use crate::params::PathIds;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::IdText;
use onceward::operations::job::{self, Command, Outcome};

/// Opens a job and charges its account. A repeat is harmless.
#[utoipa::path(
    put, path = "/v1/jobs/{job_id}", tag = "credits", operation_id = "put_job",
    params(("job_id" = IdText<'_>, Path)),
    request_body = JobBody<'_>,
    responses(
        (status = 201, description = "It was opened and charged.", body = JobView),
        (status = 200, description = "It was there, with the same terms: the job as it is now.", body = JobView),
        (status = 409, description = "`insufficient_credit`; `conflict`: it is there with other terms.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn put(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let id = faults.keep("/job_id", JobId::new(ids.text("job_id")));
    let id = faults.finish(id)?;
    let open = payload.parse::<JobBody<'_>>()?.into_job(id, caller.0)?;
    tell(state, Command::Open(open)).await
}

async fn tell(state: AppState, command: Command) -> Result<Response, Problem> {
    let outcome = detached(async move { state.ledger.ask(command).await }).await?;
    Ok(match outcome {
        Outcome::Opened(job) => json(StatusCode::CREATED, &JobView::from(&job)),
        Outcome::Heard(job) | Outcome::LeaseLost(job) => json(StatusCode::OK, &JobView::from(&job)),
    })
}

/// Shows a job.
#[utoipa::path(
    get, path = "/v1/jobs/{job_id}", tag = "credits", operation_id = "get_job",
    params(("job_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "The job.", body = JobView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn view(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let found = job::get(&state.engine, job_id(&ids)?).await?;
    Ok(json(StatusCode::OK, &JobView::from(&found)))
}

/// Says that a run failed. Its cost is given back, once. A repeat is harmless.
#[utoipa::path(
    post, path = "/v1/jobs/{job_id}/fail", tag = "credits", operation_id = "fail_job",
    params(("job_id" = IdText<'_>, Path)),
    request_body = FailBody<'_>,
    responses(
        (status = 200, description = "The job as it is now.", body = JobView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`lease_lost`: the token is not the present one; nothing was changed.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn fail(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let report = payload.parse::<FailBody<'_>>()?.into_report(job_id(&ids)?, caller.0)?;
    tell(state, Command::Report(report)).await
}

/// Says that a run delivered. What was given back is taken again, once. A repeat is harmless; the body may be left out.
#[utoipa::path(
    post, path = "/v1/jobs/{job_id}/succeed", tag = "credits", operation_id = "succeed_job",
    params(("job_id" = IdText<'_>, Path)),
    request_body = Option<SucceedBody>,
    responses(
        (status = 200, description = "The job as it is now.", body = JobView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`lease_lost`: the token is not the present one; the delivery was taken all the same.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn succeed(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    payload: MaybePayload,
) -> Result<Response, Problem> {
    let id = job_id(&ids)?;
    let body =
        payload.0.map_or_else(|| Ok(SucceedBody::default()), |payload| payload.parse::<SucceedBody>())?;
    tell(state, Command::Report(body.into_report(id, caller.0))).await
}

/// Hands out jobs of the retry lane whose time has come, each under a lease.
#[utoipa::path(
    post, path = "/v1/job-queue/claim", tag = "credits", operation_id = "claim_jobs",
    request_body = ClaimBody<'_>,
    responses(
        (status = 200, description = "The jobs; none where none is due.", body = Data<GivenView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn claim(State(state): State<AppState>, payload: Payload) -> Result<Response, Problem> {
    let claim = payload.parse::<ClaimBody<'_>>()?.into_claim()?;
    let given = detached(async move { job::claim(&state.engine, claim).await }).await?;
    Ok(json(StatusCode::OK, &Data { data: given.iter().map(GivenView::from).collect() }))
}

/// Lengthens a lease, from now.
#[utoipa::path(
    post, path = "/v1/job-queue/extend", tag = "credits", operation_id = "extend_job",
    request_body = ExtendBody<'_>,
    responses(
        (status = 200, description = "The lease.", body = LeaseView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`lease_lost`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn extend(State(state): State<AppState>, payload: Payload) -> Result<Response, Problem> {
    let (id, token, lease) = payload.parse::<ExtendBody<'_>>()?.into_extension()?;
    let job_id = id.as_str().to_owned();
    let until = detached(async move { job::extend(&state.engine, id, token, lease).await }).await?;
    Ok(json(StatusCode::OK, &LeaseView { job_id, token: token.0, lease_until: until.into() }))
}

fn job_id(ids: &PathIds) -> Result<JobId, Problem> {
    JobId::new(ids.text("job_id")).map_err(|_| Problem::code(Code::NotFound))
}
