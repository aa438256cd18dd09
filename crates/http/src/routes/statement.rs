//! `/v1/ops/statements`: an operator brings a provider's statement.

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use onceward::operations::statement;

use super::json;
use crate::body;
use crate::check::Faults;
use crate::dto::statement::{ReadingView, parse};
use crate::operation::detached;
use crate::params::Query;
use crate::problem::{self, Problem, ProblemBody};
use crate::state::AppState;

/// Most bytes of a statement: some 30,000 lines. A longer one is sent in parts; each is read for itself.
const STATEMENT_LIMIT: usize = 4 * 1024 * 1024;

/// The bytes of a statement.
pub(super) struct StatementBody(Bytes);

impl FromRequest<AppState> for StatementBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        if body::is_json(request.headers()) {
            return Err(body::unread(Problem::of(&problem::MEDIA), request).await);
        }
        let arrived =
            tokio::time::timeout(state.settings.body_timeout, to_bytes(request.into_body(), STATEMENT_LIMIT));
        let read = arrived.await.map_err(|_| Problem::of(&problem::SLOW_BODY).closing())?;
        read.map(Self).map_err(|_| Problem::of(&problem::TOO_LARGE).closing())
    }
}

/// Reads a provider's statement: what it knows and we do not is heard as if the provider had called back.
#[utoipa::path(
    post, path = "/v1/ops/statements", tag = "operations", operation_id = "read_statement",
    params(("provider" = String, Query, description = "Whose statement it is.")),
    request_body(
        content = String, content_type = "text/csv",
        description = "CSV with a header; the columns `kind` (`payment`, `refund`, `refund_returned`), `payment_id`, `refund_id`, \
            `transaction_id`, `amount` (minor units) and `currency` are read, in any order. Lines of other kinds are counted only."
    ),
    responses(
        (status = 200, description = "What it came to. Reading it again is harmless.", body = ReadingView),
        (status = 413, description = "`too_large`: send it in parts.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`: it is CSV, not JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`: nothing was heard; `errors` name the lines.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn read(
    State(state): State<AppState>,
    query: Query,
    StatementBody(body): StatementBody,
) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let provider = query.get("provider").filter(|name| state.engine.provider(name).is_some());
    if provider.is_none() {
        faults.add("/provider", "must name a payment provider of this server");
    }
    let provider = faults.finish(provider)?.to_owned();
    let statement = parse(&body)?;
    let (other, named) = (statement.other, provider.clone());
    let reading =
        detached(async move { statement::read(&state.engine, &provider, &statement.lines).await }).await?;
    Ok(json(StatusCode::OK, &ReadingView::new(named, other, &reading)))
}
