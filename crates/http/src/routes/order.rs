//! `/v1/orders`.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use onceward_domain::error::Code;
use onceward_domain::id::{ActivityId, OrderId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::Order;
use onceward_domain::ports::store::{OrderFilter, PageRequest};

use super::json;
use crate::auth::Caller;
use crate::body::Payload;
use crate::check::Faults;
use crate::dto::order::{CancelBody, OrderBody, OrderStatusName, OrderView, TransitionView};
use crate::dto::{Data, Page};
use crate::operation::detached;
use crate::params::{PathIds, Query, cursor};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::{Id, IdText};
use onceward::operations::order;

/// Places a direct order; (`user_id`, `request_id`) is its key.
#[utoipa::path(
    post, path = "/v1/orders", tag = "orders", operation_id = "place_order",
    request_body = OrderBody<'_>,
    responses(
        (status = 201, description = "The order.", body = OrderView),
        (status = 200, description = "This request was known: its order as it is now.", body = OrderView),
        (status = 404, description = "`not_found`: an activity or SKU does not exist.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`insufficient_stock`, `limit_reached`, `not_open`, `request_conflict`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn place(State(state): State<AppState>, payload: Payload) -> Result<Response, Problem> {
    let request = payload.parse::<OrderBody<'_>>()?.into_order()?;
    let placed = detached(async move { order::place(&state.engine, request).await }).await?;
    let status = if placed.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &OrderView::of(&placed.purchase)?))
}

/// Shows an order.
#[utoipa::path(
    get, path = "/v1/orders/{order_id}", tag = "orders", operation_id = "get_order",
    params(("order_id" = Id, Path)),
    responses(
        (status = 200, description = "The order.", body = OrderView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn view(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let purchase = order::get(&state.engine, order_id(&ids)?).await?;
    Ok(json(StatusCode::OK, &OrderView::of(&purchase)?))
}

/// Lists orders, newest first.
#[utoipa::path(
    get, path = "/v1/orders", tag = "orders", operation_id = "list_orders",
    params(
        ("user_id" = Option<IdText<'_>>, Query, description = "Only of this buyer."),
        ("status" = Option<OrderStatusName>, Query, description = "Only in this state."),
        ("activity_id" = Option<IdText<'_>>, Query, description = "Only with a line of this activity."),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, pattern = "^c1[0-9a-f]{16}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<OrderView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let (filter, page) = list_request(&query)?;
    let found = order::list(&state.engine, filter, PageRequest { limit: page.limit + 1, ..page }).await?;
    let page = Page::of(found, page.limit, |purchase| cursor(purchase.handle), OrderView::of)?;
    Ok(json(StatusCode::OK, &page))
}

fn list_request(query: &Query) -> Result<(OrderFilter, PageRequest), Problem> {
    let mut faults = Faults::default();
    let user = faults.keep("/user_id", query.get("user_id").map(UserId::new).transpose());
    let activity = faults.keep("/activity_id", query.get("activity_id").map(ActivityId::new).transpose());
    let status = match query.get("status") {
        None => Some(None),
        Some(name) => faults.one_of("/status", name, Order::STATES, Machine::name).map(Some),
    };
    let page = query.page(&mut faults);
    let filter = (|| Some(OrderFilter { user: user?, status: status?, activity: activity? }))();
    faults.finish(filter.zip(page))
}

/// Tells what happened to an order, oldest first.
#[utoipa::path(
    get, path = "/v1/orders/{order_id}/timeline", tag = "orders", operation_id = "get_order_timeline",
    params(("order_id" = Id, Path)),
    responses(
        (status = 200, description = "Its history.", body = Data<TransitionView>),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn timeline(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let found = order::timeline(&state.engine, order_id(&ids)?).await?;
    Ok(json(StatusCode::OK, &Data { data: found.iter().map(TransitionView::from).collect() }))
}

/// Cancels an order that is not paid. A repeat is harmless.
#[utoipa::path(
    post, path = "/v1/orders/{order_id}/cancel", tag = "orders", operation_id = "cancel_order",
    params(("order_id" = Id, Path)),
    request_body = CancelBody<'_>,
    responses(
        (status = 200, description = "The order, `CANCEL_PENDING` or `CANCELLED`.", body = OrderView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`order_not_cancellable` (with `order_status`)", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn cancel(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let id = order_id(&ids)?;
    let reason = payload.parse::<CancelBody<'_>>()?.into_reason()?;
    let engine = state.engine.clone();
    let cancelled = detached(async move { order::cancel(&engine, id, reason, caller.0).await }).await;
    match cancelled {
        Ok(purchase) => Ok(json(StatusCode::OK, &OrderView::of(&purchase)?)),
        Err(problem) if problem.code_text() == Code::OrderNotCancellable.as_str() => {
            Err(with_order_status(&state, id, problem).await)
        }
        Err(problem) => Err(problem),
    }
}

/// Adds the state that stands in the way; a read that fails only leaves it out.
async fn with_order_status(state: &AppState, id: OrderId, problem: Problem) -> Problem {
    let found = order::get(&state.engine, id).await.ok();
    match found.and_then(|purchase| purchase.order) {
        Some(order) => problem.with_member("order_status", order.status.name().to_owned()),
        None => problem,
    }
}

fn order_id(ids: &PathIds) -> Result<OrderId, Problem> {
    ids.uuid("order_id").map(OrderId)
}
