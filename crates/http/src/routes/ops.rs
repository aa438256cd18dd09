//! `/v1/ops`: what an operator looks at.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::json;
use crate::dto::ops::{InvariantsView, OverviewView};
use crate::problem::Problem;
use crate::state::AppState;
use onceward::operations::operate;

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
