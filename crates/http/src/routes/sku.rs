//! `/v1/activities/{activity_id}/skus/{sku_id}` and its stock adjustments.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::activity::status_of;
use super::json;
use crate::auth::Caller;
use crate::body::Payload;
use crate::dto::sku::{AdjustBody, Adjustment, SkuBody, SkuView};
use crate::first_answer::{Once, carry_out};
use crate::idempotency;
use crate::operation::detached;
use crate::params::PathIds;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::IdText;
use onceward::operations::catalogue::{self, AdjustStock, SkuView as Found};

/// Shows a SKU with its stock and admission's counters.
#[utoipa::path(
    get, path = "/v1/activities/{activity_id}/skus/{sku_id}", tag = "flash sale", operation_id = "get_sku",
    params(("activity_id" = IdText<'_>, Path), ("sku_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "The SKU.", body = SkuView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn get(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let found = catalogue::sku(&state.engine, &ids.sku()?).await?;
    Ok(json(StatusCode::OK, &SkuView::from(&found)))
}

/// Puts a SKU on sale, or changes its price or limit.
#[utoipa::path(
    put, path = "/v1/activities/{activity_id}/skus/{sku_id}", tag = "flash sale", operation_id = "put_sku",
    params(("activity_id" = IdText<'_>, Path), ("sku_id" = IdText<'_>, Path)),
    request_body = SkuBody<'_>,
    responses(
        (status = 201, description = "It was made.", body = SkuView),
        (status = 200, description = "It was there; price and limit are now as given.", body = SkuView),
        (status = 404, description = "`not_found`: there is no such activity.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`conflict`: it is there with another stock or other buckets.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn put(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let key = ids.new_sku()?;
    let sku = payload.parse::<SkuBody<'_>>()?.into_sku(key.clone())?;
    let engine = state.engine.clone();
    let put = detached(async move { catalogue::put_sku(&engine, sku).await }).await?;
    let found = catalogue::sku(&state.engine, &key).await?;
    Ok(json(status_of(&put), &SkuView::from(&found)))
}

/// Adjusts the stock of record. Admission follows a moment later.
#[utoipa::path(
    post, path = "/v1/activities/{activity_id}/skus/{sku_id}/stock-adjustments", tag = "flash sale",
    operation_id = "adjust_stock",
    params(
        ("activity_id" = IdText<'_>, Path), ("sku_id" = IdText<'_>, Path),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, pattern = "^[\\x21-\\x7e]{1,255}$",
            description = "Names this request: a repeat with the same body gets the first answer again."),
    ),
    request_body = AdjustBody<'_>,
    responses(
        (status = 201, description = "The SKU after the adjustment.", body = SkuView,
            headers(("Idempotency-Replayed" = String, description = "`true` where this is the first answer again."))),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`insufficient_stock`: more than is free; `idempotency_in_progress`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, `idempotency_key_reused`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn adjust(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Problem> {
    let sku = ids.sku()?;
    // Who sends no key hears of that first, whatever the body is.
    idempotency::key(&headers)?;
    let adjustment = payload.parse::<AdjustBody<'_>>()?.into_adjustment()?;
    let operation = format!("POST /v1/activities/{}/skus/{}/stock-adjustments", sku.activity, sku.sku);
    let once = Once { caller: &caller, operation: &operation, status: StatusCode::CREATED };
    let (idempotent, running) = once.begin::<Found, SkuView>(&state, &headers, &adjustment)?;
    let Adjustment { delta, reason } = adjustment;
    let adjust = AdjustStock { key: sku, delta, reason, actor: caller.0, idempotent };
    carry_out(running, async move { catalogue::adjust_stock(&state.engine, adjust).await }).await
}
