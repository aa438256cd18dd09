//! `/v1/groups`: group orders, who takes part, and a person's wish to settle one that failed.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use onceward_domain::error::Code;
use onceward_domain::id::{GroupId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::ports::store::PageRequest;

use super::activity::status_of;
use super::json;
use crate::auth::Caller;
use crate::body::Payload;
use crate::check::Faults;
use crate::dto::group::{
    GroupBody, GroupFullView, GroupStatusName, GroupSummaryView, GroupTransitionView, ParticipantBody,
    ParticipantView,
};
use crate::dto::{Data, Page};
use crate::first_answer::{Once, carry_out};
use crate::operation::detached;
use crate::params::{PathIds, Query, cursor};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::IdText;
use onceward::operations::group::{self, GroupOrder, GroupView, Join, Leave, PutGroup, SettleByHand};

/// Puts a group order: makes it, or confirms it where it is the same.
#[utoipa::path(
    put, path = "/v1/groups/{group_id}", tag = "group orders", operation_id = "put_group",
    params(("group_id" = IdText<'_>, Path)),
    request_body = GroupBody<'_>,
    responses(
        (status = 201, description = "It was made.", body = GroupFullView),
        (status = 200, description = "It was there, with the same terms.", body = GroupFullView),
        (status = 409, description = "`conflict`: it is there with other terms.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, also for a new one whose deadline has come.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn put(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let id = ids.owned_new("group_id", GroupId::new)?;
    let is_known = |name: &str| state.engine.provider(name).is_some();
    let terms = payload.parse::<GroupBody<'_>>()?.into_terms(id.clone(), is_known)?;
    let (engine, command) = (state.engine.clone(), PutGroup { terms, actor: caller.0 });
    let put = detached(async move { group::put(&engine, command).await }).await;
    let (put, made) = put.map_err(|problem| {
        if problem.is(Code::Invalid) { problem.at("/deadline", "must lie ahead") } else { problem }
    })?;
    let view = match put {
        group::Put::Created => GroupView { group: made, participants: Vec::new() },
        group::Put::Unchanged | group::Put::Changed => group::get(&state.engine, &id).await?,
    };
    Ok(json(status_of(&put), &GroupFullView::from(&view)))
}

/// Shows a group order with everybody who takes part.
#[utoipa::path(
    get, path = "/v1/groups/{group_id}", tag = "group orders", operation_id = "get_group",
    params(("group_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "The group order.", body = GroupFullView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn view(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let found = group::get(&state.engine, &ids.owned("group_id", GroupId::new)?).await?;
    Ok(json(StatusCode::OK, &GroupFullView::from(&found)))
}

/// Lists group orders, newest first.
#[utoipa::path(
    get, path = "/v1/groups", tag = "group orders", operation_id = "list_groups",
    params(
        ("status" = Option<GroupStatusName>, Query, description = "Only in this state."),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, pattern = "^c1[0-9a-f]{16}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<GroupSummaryView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let status = match query.get("status") {
        None => Some(None),
        Some(name) => faults.one_of("/status", name, GroupStatus::STATES, Machine::name).map(Some),
    };
    let page = query.page(&mut faults);
    let (status, page) = faults.finish(status.zip(page))?;
    let asked = PageRequest { limit: page.limit + 1, ..page };
    let found = group::list(&state.engine, status, asked).await?;
    let view = |group: &GroupOrder| Ok(GroupSummaryView::from(group));
    let page = Page::of(found, page.limit, |group| cursor(group.handle), view)?;
    Ok(json(StatusCode::OK, &page))
}

/// Tells what happened to a group order, oldest first.
#[utoipa::path(
    get, path = "/v1/groups/{group_id}/timeline", tag = "group orders", operation_id = "get_group_timeline",
    params(("group_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "Its history.", body = Data<GroupTransitionView>),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn timeline(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let found = group::timeline(&state.engine, &ids.owned("group_id", GroupId::new)?).await?;
    Ok(json(StatusCode::OK, &Data { data: found.iter().map(GroupTransitionView::from).collect() }))
}

/// Lets a user join until the deadline. A repeat is harmless; for another amount the user leaves first.
#[utoipa::path(
    put, path = "/v1/groups/{group_id}/participants/{user_id}", tag = "group orders", operation_id = "join_group",
    params(("group_id" = IdText<'_>, Path), ("user_id" = IdText<'_>, Path)),
    request_body = ParticipantBody<'_>,
    responses(
        (status = 201, description = "The user takes part.", body = ParticipantView),
        (status = 200, description = "The user did already, for the same amount.", body = ParticipantView),
        (status = 404, description = "`not_found`: there is no such group.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`group_closed` (with `group_status`), `conflict`: for another amount, `group_full`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, also for another currency than the group's.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn join(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let group = ids.owned("group_id", GroupId::new)?;
    let user = ids.owned_new("user_id", UserId::new)?;
    let amount = payload.parse::<ParticipantBody<'_>>()?.into_amount()?;
    let joined =
        detached(async move { group::join(&state.engine, Join { group, user, amount }).await }).await;
    let (put, participant) = joined.map_err(|problem| {
        let is_invalid = problem.is(Code::Invalid);
        if is_invalid { problem.at("/amount/currency", "must be the group's currency") } else { problem }
    })?;
    Ok(json(status_of(&put), &ParticipantView::from(&participant)))
}

/// Lets a user leave until the deadline.
#[utoipa::path(
    delete, path = "/v1/groups/{group_id}/participants/{user_id}", tag = "group orders", operation_id = "leave_group",
    params(("group_id" = IdText<'_>, Path), ("user_id" = IdText<'_>, Path)),
    responses(
        (status = 204, description = "The user takes no part any more."),
        (status = 404, description = "`not_found`: there is no such group, or the user takes no part.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`group_closed` (with `group_status`)", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn leave(State(state): State<AppState>, ids: PathIds) -> Result<StatusCode, Problem> {
    let group = ids.owned("group_id", GroupId::new)?;
    let user = ids.owned("user_id", UserId::new)?;
    detached(async move { group::leave(&state.engine, Leave { group, user }).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a group order that failed another round of attempts; it is recorded who asked.
#[utoipa::path(
    post, path = "/v1/groups/{group_id}/settle", tag = "group orders", operation_id = "settle_group",
    params(
        ("group_id" = IdText<'_>, Path),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, pattern = "^[\\x21-\\x7e]{1,255}$",
            description = "Names this request: a repeat gets the first answer again."),
    ),
    responses(
        (status = 202, description = "It is being settled.", body = GroupSummaryView,
            headers(("Idempotency-Replayed" = String, description = "`true` where this is the first answer again."))),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`group_not_retryable` (with `group_status`), `idempotency_in_progress`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`idempotency_key_reused`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn settle(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let group = ids.owned("group_id", GroupId::new)?;
    let operation = format!("POST /v1/groups/{group}/settle");
    let once = Once { caller: &caller, operation: &operation, status: StatusCode::ACCEPTED };
    let (idempotent, running) = once.begin::<GroupOrder, GroupSummaryView>(&state, &headers, &())?;
    let command = SettleByHand { group, actor: caller.0, idempotent };
    carry_out(running, async move { group::settle_by_hand(&state.engine, command).await }).await
}
