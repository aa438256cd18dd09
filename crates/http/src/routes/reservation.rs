//! Reservations: the hot path in, and its outcome.
//!
//! Invariant: `reserve` does nothing but read, ask the gate and write. The gate runs its transactions in a task of
//! its own, so a buyer who hangs up cancels nothing, and no task is made for a request. Read next: the engine's
//! gate.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use onceward_domain::error::Code;
use onceward_domain::id::ReservationId;
use onceward_domain::machine::Machine;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::ReserveAnswer;
use onceward_domain::time::Millis;

use super::json;
use crate::body::Payload;
use crate::check::Faults;
use crate::dto::reservation::{Receipt, ReservationView, ReserveBody};
use crate::params::{PathIds, Query};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::{Id, IdText};
use onceward::operations::reservation;

/// Longest `wait_ms`; the request time-out must be longer.
const WAIT_LIMIT_MS: i64 = 10_000;

/// Reserves for a buyer. Order of the checks: known request, open, limit, stock.
#[utoipa::path(
    post, path = "/v1/activities/{activity_id}/skus/{sku_id}/reservations", tag = "flash sale", operation_id = "reserve",
    params(("activity_id" = IdText<'_>, Path), ("sku_id" = IdText<'_>, Path)),
    request_body = ReserveBody<'_>,
    responses(
        (status = 202, description = "Let in: durably queued, the order follows.", body = Receipt),
        (status = 200, description = "This request was known: its reservation, and its present state.", body = Receipt),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`sold_out`, `limit_reached` (with `reservation_id` of the live one where the limit is 1), `not_open`, `request_conflict`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "`backlog`, `unavailable`, `outcome_unknown`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn reserve(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let key = ids.sku()?;
    let request = payload.parse::<ReserveBody<'_>>()?.into_request(key)?;
    match state.gate.reserve(request).await? {
        ReserveAnswer::Queued { reservation } => {
            let message = "The reservation is queued; the order follows.";
            Ok(receipt(StatusCode::ACCEPTED, reservation, Reservation::Reserved, message))
        }
        ReserveAnswer::Repeat { reservation, status } => {
            let message = "This request was known; this is its reservation.";
            Ok(receipt(StatusCode::OK, reservation, status, message))
        }
        ReserveAnswer::RequestConflict => Err(Problem::code(Code::RequestConflict)),
        ReserveAnswer::Unknown => Err(Problem::code(Code::NotFound)),
        ReserveAnswer::NotOpen => Err(Problem::code(Code::NotOpen)),
        ReserveAnswer::LimitReached { live: None } => Err(Problem::code(Code::LimitReached)),
        ReserveAnswer::LimitReached { live: Some(live) } => {
            Err(Problem::code(Code::LimitReached).with_member("reservation_id", live.to_string()))
        }
        ReserveAnswer::SoldOut => Err(Problem::code(Code::SoldOut)),
    }
}

fn receipt(code: StatusCode, id: ReservationId, status: Reservation, message: &'static str) -> Response {
    json(code, &Receipt { code: "QUEUED", reservation_id: Id(id.0), status: status.name(), message })
}

/// Shows a reservation. With `wait_ms`, answers as soon as it has left `RESERVED`, or at the end of the wait.
#[utoipa::path(
    get, path = "/v1/reservations/{reservation_id}", tag = "flash sale", operation_id = "get_reservation",
    params(
        ("reservation_id" = Id, Path),
        ("wait_ms" = Option<i64>, Query, minimum = 0, maximum = 10_000, description = "Longest wait, in milliseconds."),
    ),
    responses(
        (status = 200, description = "The reservation.", body = ReservationView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn view(
    State(state): State<AppState>,
    ids: PathIds,
    query: Query,
) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let wait = query.number(&mut faults, "wait_ms", 0..=WAIT_LIMIT_MS, 0);
    let wait = faults.finish(wait)?;
    let id = ReservationId(ids.uuid("reservation_id")?);
    let found = reservation::view(&state.engine, id, Millis(wait)).await?;
    let view = ReservationView::of(&found).ok_or_else(|| Problem::code(Code::NotFound))?;
    Ok(json(StatusCode::OK, &view))
}
