//! What the edge counts (OB-01): requests by route and class of status, and how long they took.
//!
//! Invariants: handles are made once, so that a request costs two atomic additions and no formatting; labels are
//! route templates and classes, both from fixed lists. Deliberately absent: ids in labels.

use onceward::observe;
use std::time::Duration;

use axum::http::StatusCode;
use metrics::{Counter, Histogram, counter, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

use crate::route::{ROUTES, Route};

/// Counter of answers, by `route` and `status_class`.
pub const REQUESTS_TOTAL: &str = "onceward_http_requests_total";
/// Histogram of answer times in seconds, by `route`.
pub const REQUEST_SECONDS: &str = "onceward_http_request_duration_seconds";
/// Bounds of the histogram, in seconds: a refusal takes well under a millisecond, a waiting read up to 10 s.
pub const SECONDS_BUCKETS: [f64; 12] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

/// Bounds of the histograms of tries: the first is health.
const ATTEMPT_BUCKETS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const NO_ROUTE: &str = "none";

/// A builder of the Prometheus recorder that knows the buckets of this crate's histograms. What it builds keeps
/// its samples until they are read: somebody must call `run_upkeep` now and then, as [`crate::serve()`] does.
///
/// # Errors
/// Never for the bounds above; the signature is the exporter's.
pub fn recorder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(REQUEST_SECONDS.to_owned()), &SECONDS_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(observe::SEND_ATTEMPTS.to_owned()), &ATTEMPT_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(observe::OUTBOX_ATTEMPTS.to_owned()), &ATTEMPT_BUCKETS)
}

/// Handles for every route.
pub(crate) struct RouteMetrics {
    of_routes: Vec<Handles>,
    of_none: Handles,
}

struct Handles {
    by_class: [Counter; CLASSES.len()],
    seconds: Histogram,
}

impl Handles {
    fn new(route: &str) -> Self {
        let route = route.to_owned();
        let by_class =
            CLASSES.map(|class| counter!(REQUESTS_TOTAL, "route" => route.clone(), "status_class" => class));
        Self { by_class, seconds: histogram!(REQUEST_SECONDS, "route" => route) }
    }
}

impl RouteMetrics {
    /// Handles from the recorder that is installed now.
    pub(crate) fn new() -> Self {
        let of_routes = ROUTES.iter().map(|route| Handles::new(&format!("{} {}", route.method, route.path)));
        Self { of_routes: of_routes.collect(), of_none: Handles::new(NO_ROUTE) }
    }

    /// Counts one answer.
    pub(crate) fn record(&self, route: Option<&'static Route>, status: StatusCode, took: Duration) {
        let handles = route.and_then(|route| self.of_routes.get(route.index())).unwrap_or(&self.of_none);
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        handles.by_class[class.min(CLASSES.len() - 1)].increment(1);
        handles.seconds.record(took);
    }
}
