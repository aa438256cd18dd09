//! `/v1/ops/queues`, `/v1/ops/dead-letters`, `/v1/ops/notices`: due work, as an operator handles it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use onceward_domain::due::{Lane, Waiting};

use super::json;
use crate::auth::Caller;
use crate::check::Faults;
use crate::dto::queue::{DeadLetterView, NoticeView, QueueView};
use crate::dto::{Data, Page};
use crate::operation::detached;
use crate::params::{PathIds, Query, cursor};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use onceward::operations::queue;
use onceward_domain::ports::store::PageRequest;

/// Longest name of a dead letter that can exist.
const LETTER_ID_LIMIT: usize = 256;
/// Between lane and member in a cursor of the engine's own.
const CURSOR_SPLIT: char = '|';

/// Lists the queues.
#[utoipa::path(
    get, path = "/v1/ops/queues", tag = "operations", operation_id = "list_queues",
    responses((status = 200, description = "Every queue, by name.", body = Data<QueueView>)),
)]
pub(super) async fn queues(State(state): State<AppState>) -> Result<Response, Problem> {
    let (now, found) = queue::queues(&state.engine).await?;
    let data = found.iter().map(|one| QueueView::of(now, &one.lane, one.exhausted)).collect();
    Ok(json(StatusCode::OK, &Data { data }))
}

/// Stops giving out a queue; what is being worked on may be finished.
#[utoipa::path(
    post, path = "/v1/ops/queues/{name}/pause", tag = "operations", operation_id = "pause_queue",
    params(("name" = String, Path, min_length = 1, max_length = 256, description = "A name from the list; a slash in it is sent as %2F.")),
    responses(
        (status = 204, description = "It is paused; a repeat is harmless."),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn pause(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
) -> Result<StatusCode, Problem> {
    set_paused(state, caller, &ids, true).await
}

/// Gives out a queue again.
#[utoipa::path(
    post, path = "/v1/ops/queues/{name}/resume", tag = "operations", operation_id = "resume_queue",
    params(("name" = String, Path, min_length = 1, max_length = 256, description = "A name from the list; a slash in it is sent as %2F.")),
    responses(
        (status = 204, description = "It runs; a repeat is harmless."),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn resume(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
) -> Result<StatusCode, Problem> {
    set_paused(state, caller, &ids, false).await
}

async fn set_paused(
    state: AppState,
    caller: Caller,
    ids: &PathIds,
    paused: bool,
) -> Result<StatusCode, Problem> {
    let name: Arc<str> = Arc::from(ids.text("name"));
    detached(async move { queue::set_paused(&state.engine, &name, paused, &caller.0).await }).await?;
    Ok(StatusCode::NO_CONTENT)
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
    let found = queue::dead_letters(&state.engine, limit + 1, after).await?;
    let place = |letter: &Waiting| format!("{}{CURSOR_SPLIT}{}", letter.lane, letter.member);
    let page = Page::of(found, limit, place, |letter| Ok(DeadLetterView::from(letter)))?;
    Ok(json(StatusCode::OK, &page))
}

/// Whether it looks like lane and member, as the engine's cursors do.
fn is_cursor(text: &str) -> bool {
    let is_visible = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    let parts = text.strip_prefix(Lane::DEAD_PREFIX).and_then(|rest| rest.split_once(CURSOR_SPLIT));
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
    detached(async move { queue::replay_dead_letter(&state.engine, &id, &caller.0).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists notices, newest first.
#[utoipa::path(
    get, path = "/v1/ops/notices", tag = "operations", operation_id = "list_notices",
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, min_length = 18, max_length = 18, pattern = "^c1[0-9a-f]{16}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<NoticeView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn notices(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let page = query.page(&mut faults);
    let page = faults.finish(page)?;
    let one_more = PageRequest { limit: page.limit + 1, ..page };
    let found = queue::notices(&state.engine, one_more).await?;
    let page =
        Page::of(found, page.limit, |(handle, _)| cursor(*handle), |(_, one)| Ok(NoticeView::from(one)))?;
    Ok(json(StatusCode::OK, &page))
}
