//! The HTTP API of Onceward.
//!
//! **Purpose.** Translate between HTTP and the engine: bodies, routes, refusals, limits, access, and the OpenAPI
//! document that is derived from the same code.
//!
//! **Invariants.** Every refusal is `application/problem+json` with a stable code; no input reaches a panic or a 5xx;
//! a client that hangs up cancels nothing that may have begun; what is not in the OpenAPI document is not served.
//!
//! **Deliberately absent.** Business rules: they are the domain's, and the engine runs them. Routes that nothing stands
//! behind. TLS, which belongs to the proxy in front.
//!
//! **Read next.** [`router`] → `route` (the table) → `edge` (the one layer) → `routes/reservation` (the hot path) →
//! `problem` (codes and statuses).

mod routes;

mod edge;
mod problem;
mod route;

mod auth;
mod body;
mod check;
mod dto;
mod first_answer;
mod idempotency;
mod limit;
mod metrics;
mod openapi;
mod operation;
mod params;
mod raw_body;
mod raw_json;
mod request_id;
mod serve;
mod state;
mod values;
mod when;

pub use auth::{Access, ApiKey, DEV_CALLER, Scope};
pub use body::BODY_LIMIT;
pub use metrics::{REQUEST_SECONDS, REQUESTS_TOTAL, SECONDS_BUCKETS, recorder};
pub use openapi::openapi;
pub use routes::router;
pub use serve::{Limits, serve};
pub use state::{AppState, Parts, Settings};
