//! What every request can reach: engine, gate, keys, limits, metrics.
//!
//! Invariants: built once, then shared and never changed; a clone is one pointer. Keys are held as hashes.

use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::sandbox::Sandbox;

use crate::auth::Access;
use crate::idempotency::InProgress;
use crate::limit::InFlight;
use crate::metrics::RouteMetrics;
use crate::request_id::RequestIds;
use onceward::Engine;
use onceward::gate::Gate;
use onceward::ledger::Ledger;

/// Limits of the server. [`Settings::default`] gives every one of them its usual value.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Requests that are answered at the same time; one more is refused with `backlog`. Waiting reads count.
    pub in_flight_limit: u32,
    /// How long an answer may take; must be longer than the longest `wait_ms`.
    pub request_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Requests per second that one API key may make, with bursts of one second's worth; `None` is no limit.
    pub rate_per_second: Option<NonZeroU32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // A waiting request costs some kilobytes; this many cost some tens of megabytes.
            in_flight_limit: 4_096,
            // The longest wait_ms is 10 s.
            request_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(10),
            rate_per_second: None,
        }
    }
}

/// What [`AppState::new`] takes.
pub struct Parts {
    /// The engine.
    pub engine: Engine,
    /// The gate in front of it.
    pub gate: Gate,
    /// The front of the credit ledger.
    pub ledger: Ledger,
    /// Who may ask.
    pub access: Access,
    /// Limits.
    pub settings: Settings,
    /// What `/metrics` shows; `None` shows nothing.
    pub metrics: Option<PrometheusHandle>,
    /// Wall-clock time, for request ids and for the signatures of callbacks.
    pub clock: Arc<dyn Clock>,
    /// The bank to play with, where it is enabled.
    pub sandbox: Option<Arc<dyn Sandbox>>,
}

/// Shared by all requests.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

/// What [`AppState`] points to; its fields are for this crate.
pub struct Shared {
    pub(crate) engine: Engine,
    pub(crate) gate: Gate,
    pub(crate) ledger: Ledger,
    pub(crate) access: Access,
    pub(crate) settings: Settings,
    pub(crate) metrics: Option<PrometheusHandle>,
    pub(crate) request_ids: RequestIds,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) in_flight: InFlight,
    pub(crate) in_progress: InProgress,
    pub(crate) route_metrics: RouteMetrics,
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
}

impl AppState {
    /// Builds the state; metric handles are taken from the recorder that is installed at this moment.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Shared {
            engine: parts.engine,
            gate: parts.gate,
            ledger: parts.ledger,
            access: parts.access.limited(parts.settings.rate_per_second),
            in_flight: InFlight::new(parts.settings.in_flight_limit),
            settings: parts.settings,
            metrics: parts.metrics,
            request_ids: RequestIds::new(parts.clock.clone()),
            clock: parts.clock,
            in_progress: InProgress::default(),
            route_metrics: RouteMetrics::new(),
            sandbox: parts.sandbox,
        }))
    }
}

impl Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
