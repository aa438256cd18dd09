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
use onceward::governor::View;
use onceward::observe;
use onceward::operations::operate;
use onceward_domain::governor::Passage;
use onceward_domain::ports::admission::Rebuilds;
use onceward_domain::time::LONGEST;

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

/// Whether buyers are let in, and what waits behind the gate.
#[derive(Serialize, ToSchema)]
pub(super) struct AdmissionHealth {
    open: bool,
    /// Why it is closed: `unsent`, `outage` or `backlog`.
    #[schema(required = true)]
    reason: Option<&'static str>,
    /// Reservations whose message was not sent; beyond the bound that closes admission they are not counted on.
    unsent: u64,
    oldest_unsent_ms: i64,
    /// Units that were let in here and wait for a decision.
    undecided: u64,
    /// How long those will take; `null` where it cannot be said.
    #[schema(required = true)]
    drain_ms: Option<i64>,
    /// Parts of the gate that have lost writes and that this node is making anew: until then nobody is let in there.
    rebuilding: u64,
}

/// Ready.
#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    /// `ok`
    status: &'static str,
    admission: AdmissionHealth,
}

impl AdmissionHealth {
    fn of(view: View, rebuilds: Rebuilds) -> Self {
        let reason = match view.passage {
            Passage::Open => None,
            Passage::Closed(trouble) => Some(trouble.name()),
        };
        let drain = view.sight.and_then(|sight| sight.drain()).filter(|drain| *drain < LONGEST);
        Self {
            open: reason.is_none(),
            reason,
            unsent: view.sight.map_or(0, |sight| sight.unsent),
            oldest_unsent_ms: view.sight.map_or(0, |sight| sight.oldest_unsent.0),
            undecided: view.sight.map_or(0, |sight| sight.undecided),
            drain_ms: drain.map(|drain| drain.0),
            rebuilding: rebuilds.running,
        }
    }
}

/// Says whether the store answers. Closed admission is no reason to send nobody here: everything else is answered.
#[utoipa::path(
    get, path = "/readyz", tag = "health", operation_id = "readyz", security(()),
    responses(
        (status = 200, description = "It does.", body = Readiness),
        (status = 503, description = "`unavailable`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Response, Problem> {
    operate::ready(&state.engine).await?;
    let admission = AdmissionHealth::of(state.engine.governor().view(), state.engine.admission().rebuilds());
    Ok(json(StatusCode::OK, &Readiness { status: "ok", admission }))
}

/// Shows the metrics, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "health", operation_id = "metrics", security(()),
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics(State(state): State<AppState>) -> Response {
    observe::rebuilds(state.engine.admission().rebuilds());
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
