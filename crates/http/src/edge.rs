//! The edge: the one layer around all routes.
//!
//! Purpose: request id, access, rate, query names, time limit, panics, problem documents, metrics and the span, in
//! one pass. One layer is one allocation a request; eight stacked ones would cost more than the answer.
//! Invariants: every answer carries `X-Request-Id` and is counted once; every refusal is a problem document; a
//! panic is answered and never ends the process. Order: overload, access, query, handler. Deliberately absent:
//! queueing. What is above a limit is refused at once. Read next: [`crate::route`], then [`crate::routes`].

use std::any::Any;
use std::convert::Infallible;
use std::error::Error as _;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service};
use tracing::{Instrument, Span, debug_span, error, field, warn};

use crate::body;
use crate::limit::Place;
use crate::params;
use crate::problem::{self, Problem};
use crate::request_id;
use crate::route::Route;
use crate::state::AppState;

const CHALLENGE: &str = "Bearer";
const TRACE_PARENT: &str = "traceparent";

/// Puts the edge around a service.
#[derive(Clone)]
pub(crate) struct Edge(pub(crate) AppState);

impl<S> Layer<S> for Edge {
    type Service = EdgeService<S>;

    fn layer(&self, inner: S) -> EdgeService<S> {
        EdgeService { state: self.0.clone(), inner }
    }
}

/// A service with the edge around it.
#[derive(Clone)]
pub(crate) struct EdgeService<S> {
    state: AppState,
    inner: S,
}

impl<S> Service<Request> for EdgeService<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        let state = self.state.clone();
        Box::pin(async move { Ok(answer(&state, ready, request).await) })
    }
}

async fn answer<S>(state: &AppState, inner: S, mut request: Request) -> Response
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    let started = Instant::now();
    let id = state.request_ids.of(request.headers());
    request_id::put(request.headers_mut(), &id);
    let path = request.extensions().get::<MatchedPath>();
    let route = path.and_then(|path| Route::find(request.method(), path.as_str()));
    let is_head = request.method() == axum::http::Method::HEAD;
    let span = span(&request, route, &id);
    let outcome = admitted(state, inner, request, route, started).instrument(span).await;
    let mut response = match outcome {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    if response.status().as_u16() >= 400 {
        write_problem(&mut response, &id, is_head);
    }
    state.route_metrics.record(route, response.status(), started.elapsed());
    response.headers_mut().insert(request_id::HEADER, id);
    response
}

/// Checks what can be checked before the handler, and runs it.
async fn admitted<S>(
    state: &AppState,
    mut inner: S,
    mut request: Request,
    route: Option<&'static Route>,
    started: Instant,
) -> Result<Response, Problem>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    let _place = match checked(state, &mut request, route) {
        Ok(place) => place,
        Err(problem) => return Err(body::unread(problem, request).await),
    };
    let is_read = route.is_none_or(Route::is_read);
    let handled = Guarded(pin!(inner.call(request)));
    let deadline = tokio::time::Instant::from_std(started + state.settings.request_timeout);
    match tokio::time::timeout_at(deadline, handled).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(panic)) => {
            error!(panic = panic_text(&*panic), "a handler panicked");
            Err(Problem::of(&problem::BUG))
        }
        Err(_) if is_read => Err(Problem::of(&problem::SLOW_READ)),
        Err(_) => Err(Problem::of(&problem::SLOW_WRITE)),
    }
}

/// A place among the requests that are answered, for one that may be asked.
fn checked<'a>(
    state: &'a AppState,
    request: &mut Request,
    route: Option<&Route>,
) -> Result<Place<'a>, Problem> {
    let place = state.in_flight.enter().ok_or_else(|| Problem::of(&problem::OVERLOAD))?;
    // Without a scope it is open to all, or no operation at all: the router's own 404 and 405.
    if let Some(scope) = route.and_then(|route| route.scope) {
        let caller = state.access.admit(request.headers(), scope)?;
        request.extensions_mut().insert(caller);
    }
    if let (Some(query), Some(route)) = (request.uri().query(), route) {
        params::check_names(query, route.query)?;
    }
    Ok(place)
}

/// A future whose panic is an answer.
struct Guarded<'a, F>(Pin<&'a mut F>);

impl<F: Future<Output = Result<Response, Infallible>>> Future for Guarded<'_, F> {
    type Output = Result<Response, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is dropped unpolled, so what it left half done is never looked at.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(response))) => Poll::Ready(Ok(response)),
            Ok(Poll::Ready(Err(never))) => match never {},
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

/// The text of a panic, where it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// Turns a refusal into its document: ours by what it says, a bare one of the framework by its status.
fn write_problem(response: &mut Response, id: &HeaderValue, is_head: bool) {
    let status = response.status();
    let headers = response.headers();
    let is_written = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == problem::MEDIA_TYPE);
    let ours = response.extensions_mut().remove::<Problem>();
    if is_written && ours.is_none() {
        return;
    }
    let problem = ours.unwrap_or_else(|| bare(status));
    log(&problem, id);
    let document = problem.document(request_id::text(id));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(problem::MEDIA_TYPE));
    headers.remove(CONTENT_LENGTH);
    if let Some(seconds) = problem.wait_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.status() == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    }
    if problem.is_last() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    *response.status_mut() = problem.status();
    *response.body_mut() = if is_head { Body::empty() } else { Body::from(document) };
}

/// What a refusal without a document means.
fn bare(status: StatusCode) -> Problem {
    let kind = match status {
        StatusCode::NOT_FOUND => &problem::NO_ROUTE,
        StatusCode::METHOD_NOT_ALLOWED => &problem::METHOD,
        StatusCode::PAYLOAD_TOO_LARGE => &problem::TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => &problem::MEDIA,
        _ if status.is_client_error() => &problem::MALFORMED,
        _ => &problem::BUG,
    };
    Problem::of(kind)
}

/// Logs the whole chain, once, for refusals that concern an operator.
fn log(problem: &Problem, id: &HeaderValue) {
    let Some(cause) = problem.cause() else { return };
    let mut chain = cause.to_string();
    let mut link = cause.source();
    while let Some(deeper) = link {
        chain.push_str(": ");
        chain.push_str(&deeper.to_string());
        link = deeper.source();
    }
    let (request_id, code) = (request_id::text(id), problem.code_text());
    if problem.status() == StatusCode::INTERNAL_SERVER_ERROR {
        error!(request_id, code, error_class = ?cause.class(), chain, "request failed");
    } else {
        warn!(request_id, code, error_class = ?cause.class(), chain, "request not answered");
    }
}

fn span(request: &Request, route: Option<&Route>, id: &HeaderValue) -> Span {
    let span = debug_span!(
        "http",
        method = %request.method(),
        route = route.map(|route| route.path),
        request_id = request_id::text(id),
        traceparent = field::Empty,
    );
    if let (false, Some(parent)) = (span.is_disabled(), trace_parent(request.headers())) {
        span.record("traceparent", parent);
    }
    span
}

/// The caller's trace (W3C), where it looks like one.
fn trace_parent(headers: &HeaderMap) -> Option<&str> {
    const LENGTH: usize = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01".len();
    let text = headers.get(TRACE_PARENT)?.to_str().ok()?;
    let is_plain = text.len() == LENGTH && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_plain.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_04_a_panic_is_an_answer() {
        let handled = async {
            assert!(std::env::args().count() == 0, "the handler met a defect");
            Ok(StatusCode::OK.into_response())
        };
        let mut guarded = Guarded(pin!(handled));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Err(panic)) = Pin::new(&mut guarded).poll(&mut context) else {
            panic!("the panic was lost")
        };
        assert_eq!(panic_text(&*panic), "the handler met a defect");
    }

    #[test]
    fn se_04_a_bare_refusal_of_the_framework_becomes_a_document() {
        let table = [
            (404, "not_found"),
            (405, "method_not_allowed"),
            (413, "too_large"),
            (415, "unsupported_media_type"),
        ];
        let others = [(400, "malformed"), (431, "malformed"), (500, "needs_operator")];
        for (status, code) in table.into_iter().chain(others) {
            let mut response = StatusCode::from_u16(status).unwrap().into_response();
            write_problem(&mut response, &HeaderValue::from_static("r-1"), false);
            assert_eq!(bare(StatusCode::from_u16(status).unwrap()).code_text(), code);
            assert_eq!(response.headers()[CONTENT_TYPE], problem::MEDIA_TYPE);
        }
    }

    #[test]
    fn a_trace_parent_is_taken_where_it_looks_like_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (sent, taken) in [(good, Some(good)), ("00-abc", None), (&good.replace('4', "x"), None)] {
            let mut headers = HeaderMap::new();
            headers.insert(TRACE_PARENT, sent.parse().unwrap());
            assert_eq!(trace_parent(&headers), taken);
        }
    }
}
