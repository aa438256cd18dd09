//! The routes, registered together with their documentation.
//!
//! Invariants: a route is added by `routes!` only, so that it cannot be served without being in the document; its
//! access is a row of [`crate::route::ROUTES`]. Read next: [`reservation`], the hot path.

mod activity;
mod admission;
mod credit;
mod group;
mod health;
mod job;
mod ops;
mod order;
mod payment;
mod queue;
mod reservation;
mod sandbox;
mod sku;
mod statement;

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body;
use crate::edge::Edge;
use crate::openapi;
use crate::problem::{self, Problem};
use crate::state::AppState;

/// The whole API as one service.
///
/// ```no_run
/// # fn example(state: onceward_http::AppState) {
/// let router: axum::Router = onceward_http::router(state);
/// # }
/// ```
pub fn router(state: AppState) -> Router {
    let (router, _document) = documented().split_for_parts();
    router
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(Edge(state.clone()))
        .with_state(state)
}

async fn no_route(request: Request) -> Problem {
    body::unread(Problem::of(&problem::NO_ROUTE), request).await
}

async fn no_method(request: Request) -> Problem {
    body::unread(Problem::of(&problem::METHOD), request).await
}

/// Routes and documentation in one.
pub(crate) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(openapi::head())
        .routes(routes!(activity::get, activity::put))
        .routes(routes!(sku::get, sku::put))
        .routes(routes!(sku::adjust))
        .routes(routes!(reservation::reserve))
        .routes(routes!(reservation::view))
        .routes(routes!(order::list, order::place))
        .routes(routes!(order::view))
        .routes(routes!(order::timeline))
        .routes(routes!(order::cancel))
        .routes(routes!(payment::start))
        .routes(routes!(payment::refunds, payment::refund))
        .routes(routes!(payment::webhook))
        .routes(routes!(payment::anomalies))
        .routes(routes!(statement::read))
        .routes(routes!(group::list))
        .routes(routes!(group::view, group::put))
        .routes(routes!(group::timeline))
        .routes(routes!(group::join, group::leave))
        .routes(routes!(group::settle))
        .routes(routes!(sandbox::succeed))
        .routes(routes!(sandbox::fail))
        .routes(routes!(sandbox::payment))
        .routes(routes!(sandbox::mode))
        .routes(routes!(sandbox::statement))
        .routes(routes!(sandbox::charges))
        .routes(routes!(credit::view, credit::put))
        .routes(routes!(credit::entries))
        .routes(routes!(credit::statement))
        .routes(routes!(credit::grant))
        .routes(routes!(credit::adjust))
        .routes(routes!(job::view, job::put))
        .routes(routes!(job::fail))
        .routes(routes!(job::succeed))
        .routes(routes!(job::claim))
        .routes(routes!(job::extend))
        .routes(routes!(ops::overview))
        .routes(routes!(ops::invariants))
        .routes(routes!(admission::list))
        .routes(routes!(admission::view))
        .routes(routes!(admission::rebuild))
        .routes(routes!(queue::queues))
        .routes(routes!(queue::pause))
        .routes(routes!(queue::resume))
        .routes(routes!(queue::dead_letters))
        .routes(routes!(queue::replay_dead_letter))
        .routes(routes!(queue::notices))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(health::openapi_json))
}

/// A JSON answer.
fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec(body).expect("an answer is made of texts, numbers and lists");
    bytes_as(status, "application/json", bytes)
}

/// An answer whose bytes are ready.
pub(crate) fn bytes_as(
    status: StatusCode,
    media_type: &'static str,
    bytes: impl Into<axum::body::Bytes>,
) -> Response {
    let mut response = bytes.into().into_response();
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
