//! First answers: how a POST with an `Idempotency-Key` is written down, and given again.
//!
//! Invariants: the first answer, also a refusal, is rendered once, in the engine's transaction, with the request id of
//! the request that it first went to; a repeat is the same bytes with `Idempotency-Replayed: true`. Read next:
//! [`crate::idempotency`].

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use onceward::operations::once::{Idempotent, Render, StoredAnswer};
use onceward_domain::error::Error;
use serde::Serialize;

use crate::auth::Caller;
use crate::idempotency::{self, Running};
use crate::operation::detached;
use crate::problem::{self, Problem};
use crate::request_id;
use crate::routes::bytes_as;
use crate::state::AppState;

/// What names a POST and how its first answer looks.
pub(crate) struct Once<'a> {
    /// Who asks.
    pub(crate) caller: &'a Caller,
    /// Method and path.
    pub(crate) operation: &'a str,
    /// Status of a first answer that is no refusal.
    pub(crate) status: StatusCode,
}

impl Once<'_> {
    /// Marks the key as running and makes what the engine needs.
    ///
    /// # Errors
    /// 400 without a fair key; 409 while its first request is running.
    pub(crate) fn begin<T: 'static, V: Serialize + for<'a> From<&'a T> + 'static>(
        &self,
        state: &AppState,
        headers: &HeaderMap,
        body: &impl Serialize,
    ) -> Result<(Idempotent<T>, Running), Problem> {
        let key = idempotency::scoped(self.caller, self.operation, idempotency::key(headers)?);
        let running = state.in_progress.begin(&key)?;
        let fingerprint = idempotency::fingerprint(self.operation, body);
        let (id, status) = (state.request_ids.of(headers), self.status.as_u16());
        let render: Render<T> = Arc::new(move |result: Result<&T, &Error>| match result {
            Ok(outcome) => {
                let bytes = serde_json::to_vec(&V::from(outcome)).expect("an answer is texts and numbers");
                (status, bytes)
            }
            Err(error) => {
                let problem = Problem::refusal(error);
                (problem.status().as_u16(), problem.document(request_id::text(&id)))
            }
        });
        Ok((Idempotent { key, fingerprint, render }, running))
    }
}

/// Carries the request out, also where the caller hangs up, and lets its twins go on when it has an answer.
pub(crate) async fn carry_out(
    running: Running,
    operation: impl Future<Output = Result<StoredAnswer, Error>> + Send + 'static,
) -> Result<Response, Problem> {
    let answer = detached(async move {
        let answer = operation.await;
        drop(running);
        answer
    });
    answer.await.map(answered)
}

/// The answer, first or again.
fn answered(answer: StoredAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = if status.is_success() { "application/json" } else { problem::MEDIA_TYPE };
    let mut response = bytes_as(status, media_type, answer.body);
    if answer.replayed {
        response.headers_mut().insert(idempotency::REPLAYED_HEADER, HeaderValue::from_static("true"));
    }
    response
}
