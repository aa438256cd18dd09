//! `/v1/ops/admission`: how the gate stands, and making it anew from the store (FS-18).

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::json;
use crate::auth::Caller;
use crate::check::{self, Faults};
use crate::dto::Page;
use crate::dto::admission::GateView;
use crate::operation::detached;
use crate::params::{BAD_CURSOR, PathIds, Query};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::IdText;
use onceward::operations::admission;
use onceward_domain::id::SkuKey;

/// Between activity and SKU in a cursor; no id has one in it.
const CURSOR_SPLIT: char = '/';

/// Lists how the gate stands, SKU by SKU.
#[utoipa::path(
    get, path = "/v1/ops/admission", tag = "operations", operation_id = "list_gates",
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, max_length = 129, pattern = "^[A-Za-z0-9._~:-]{1,64}/[A-Za-z0-9._~:-]{1,64}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page, by the ids of activity and SKU.", body = Page<GateView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let limit = query.limit(&mut faults);
    let after = query.get("after").map(key_of);
    if matches!(after, Some(None)) {
        faults.add("/after", BAD_CURSOR);
    }
    let limit = faults.finish(limit)?;
    let found = admission::gates(&state.engine, limit + 1, after.flatten().as_ref()).await?;
    let place =
        |one: &admission::GateView| format!("{}{CURSOR_SPLIT}{}", one.sku.key.activity, one.sku.key.sku);
    let page = Page::of(found, limit, place, |one| Ok(GateView::from(one)))?;
    Ok(json(StatusCode::OK, &page))
}

fn key_of(cursor: &str) -> Option<SkuKey> {
    let (activity, sku) = cursor.split_once(CURSOR_SPLIT)?;
    check::sku_key(activity, sku).ok()
}

/// Shows how the gate stands for one SKU; looking changes nothing.
#[utoipa::path(
    get, path = "/v1/ops/admission/{activity_id}/{sku_id}", tag = "operations", operation_id = "get_gate",
    params(("activity_id" = IdText<'_>, Path), ("sku_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "How it stands.", body = GateView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn view(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let found = admission::gate(&state.engine, &ids.sku()?).await?;
    Ok(json(StatusCode::OK, &GateView::from(&found)))
}

/// Brings the gate of one SKU back to what the store has decided, and opens it under the next epoch. Reservations that it
/// still knows are kept. Where it lives in the store there is nothing to be done.
#[utoipa::path(
    post, path = "/v1/ops/admission/{activity_id}/{sku_id}/rebuild", tag = "operations", operation_id = "rebuild_gate",
    params(("activity_id" = IdText<'_>, Path), ("sku_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "How it stands now; a repeat is harmless.", body = GateView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`: the gate does not answer, or lost its data again", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn rebuild(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
) -> Result<Response, Problem> {
    let key = ids.sku()?;
    let rebuilt = detached(async move { admission::rebuild(&state.engine, &key, &caller.0).await }).await?;
    Ok(json(StatusCode::OK, &GateView::from(&rebuilt)))
}
