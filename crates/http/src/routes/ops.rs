//! `/v1/ops`: what an operator looks at and sets going again.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use onceward_domain::due::{Lane, Waiting};

use super::json;
use crate::auth::Caller;
use crate::check::Faults;
use crate::dto::ops::{DeadLetterView, InvariantsView, OverviewView, QueueView};
use crate::dto::{Data, Page};
use crate::operation::detached;
use crate::params::{PathIds, Query};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use onceward::operations::operate;

/// Longest name of a dead letter that can exist.
const LETTER_ID_LIMIT: usize = 256;
/// Between lane and member in a cursor of the engine's own.
const CURSOR_SPLIT: char = '|';

/// Shows queues, stock and purchases at a glance.
#[utoipa::path(
    get, path = "/v1/ops/overview", tag = "operations", operation_id = "overview",
    responses((status = 200, description = "The overview, computed now.", body = OverviewView)),
)]
pub(super) async fn overview(State(state): State<AppState>) -> Result<Response, Problem> {
    let overview = operate::overview(&state.engine).await?;
    Ok(json(StatusCode::OK, &OverviewView::from(&overview)))
}

/// Checks every invariant, now, from the stores.
#[utoipa::path(
    get, path = "/v1/ops/invariants", tag = "operations", operation_id = "check_invariants",
    responses((status = 200, description = "The verdict; a broken invariant is an answer too.", body = InvariantsView)),
)]
pub(super) async fn invariants(State(state): State<AppState>) -> Result<Response, Problem> {
    let checks = operate::invariants(&state.engine).await?;
    Ok(json(StatusCode::OK, &InvariantsView::from(checks)))
}

/// Lists the queues.
#[utoipa::path(
    get, path = "/v1/ops/queues", tag = "operations", operation_id = "list_queues",
    responses((status = 200, description = "Every queue that has members.", body = Data<QueueView>)),
)]
pub(super) async fn queues(State(state): State<AppState>) -> Result<Response, Problem> {
    let overview = operate::overview(&state.engine).await?;
    Ok(json(StatusCode::OK, &Data { data: overview.lanes.iter().map(QueueView::from).collect() }))
}

/// Lists dead letters.
#[utoipa::path(
    get, path = "/v1/ops/dead-letters", tag = "operations", operation_id = "list_dead_letters",
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, max_length = 256, pattern = "^dead/[!-~]+\\|[!-~]+$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<DeadLetterView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn dead_letters(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let limit = query.limit(&mut faults);
    let after = query.get("after");
    if after.is_some_and(|after| !is_cursor(after)) {
        faults.add("/after", crate::params::BAD_CURSOR);
    }
    let limit = faults.finish(limit)?;
    let found = operate::dead_letters(&state.engine, limit + 1, after).await?;
    let cursor = |letter: &Waiting| format!("{}{CURSOR_SPLIT}{}", letter.lane, letter.member);
    let page = Page::of(found, limit, cursor, |letter| Ok(DeadLetterView::from(letter)))?;
    Ok(json(StatusCode::OK, &page))
}

/// Whether it looks like lane and member, as the engine's cursors do.
fn is_cursor(text: &str) -> bool {
    let is_visible = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    let parts = text.strip_prefix(Lane::DEAD_PREFIX).and_then(|rest| rest.rsplit_once(CURSOR_SPLIT));
    text.len() <= LETTER_ID_LIMIT
        && parts.is_some_and(|(lane, member)| is_visible(lane) && is_visible(member))
}

/// Sets a dead letter going again.
#[utoipa::path(
    post, path = "/v1/ops/dead-letters/{id}/replay", tag = "operations", operation_id = "replay_dead_letter",
    params(("id" = String, Path, min_length = 1, max_length = 256)),
    responses(
        (status = 204, description = "It is back in its queue."),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn replay_dead_letter(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
) -> Result<StatusCode, Problem> {
    let id: Arc<str> = Arc::from(ids.text("id"));
    detached(async move { operate::replay_dead_letter(&state.engine, &id, &caller.0).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
