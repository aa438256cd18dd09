//! Bodies that are judged by their bytes: callbacks, whose signatures hold over what came and not over what a parser
//! makes of it.
//!
//! Invariants: any media type, at most [`BODY_LIMIT`] bytes, within the time that bodies have; nothing is looked into.

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};

use crate::body::BODY_LIMIT;
use crate::problem::{self, Problem};
use crate::state::AppState;

/// The bytes of a body.
pub(crate) struct RawBody(pub(crate) Bytes);

impl FromRequest<AppState> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let arrived =
            tokio::time::timeout(state.settings.body_timeout, to_bytes(request.into_body(), BODY_LIMIT));
        let read = arrived.await.map_err(|_| Problem::of(&problem::SLOW_BODY).closing())?;
        read.map(Self).map_err(|_| Problem::of(&problem::TOO_LARGE).closing())
    }
}
