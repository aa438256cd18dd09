//! What machines ask: is it alive, is it ready, what has it counted, what can it do.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use utoipa::ToSchema;

use super::{bytes_as, json};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use onceward::operations::operate;

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Well.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`
    status: &'static str,
}

const WELL: Health = Health { status: "ok" };

/// Says that the process answers.
#[utoipa::path(
    get, path = "/livez", tag = "health", operation_id = "livez", security(()),
    responses((status = 200, description = "It does.", body = Health)),
)]
pub(super) async fn livez() -> Response {
    json(StatusCode::OK, &WELL)
}

/// Says whether the store answers.
#[utoipa::path(
    get, path = "/readyz", tag = "health", operation_id = "readyz", security(()),
    responses(
        (status = 200, description = "It does.", body = Health),
        (status = 503, description = "`unavailable`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Response, Problem> {
    operate::ready(&state.engine).await?;
    Ok(json(StatusCode::OK, &WELL))
}

/// Shows the metrics, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "health", operation_id = "metrics", security(()),
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics(State(state): State<AppState>) -> Response {
    let text = state.metrics.as_ref().map(PrometheusHandle::render).unwrap_or_default();
    bytes_as(StatusCode::OK, METRICS_TYPE, text)
}

/// Shows this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "health", operation_id = "openapi", security(()),
    responses((status = 200, description = "An OpenAPI 3.1 document.", body = serde_json::Value)),
)]
pub(super) async fn openapi_json() -> Response {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
        let document = crate::openapi().to_json().expect("the document is made of texts and lists");
        Bytes::from(document)
    });
    bytes_as(StatusCode::OK, "application/json", DOCUMENT.clone())
}
