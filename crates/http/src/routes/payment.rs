//! Paying and giving back: `/v1/orders/{order_id}/payments`, `…/refunds`, `/v1/webhooks/{provider}`, `/v1/ops/anomalies`.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use onceward_domain::id::OrderId;
use onceward_domain::payment::{Payment, Refund};
use onceward_domain::ports::provider::RawCallback;
use onceward_domain::ports::store::PageRequest;
use uuid::Uuid;

use super::json;
use crate::auth::Caller;
use crate::body::Payload;
use crate::check::Faults;
use crate::dto::Page;
use crate::dto::payment::{CaseView, PaymentBody, PaymentView, ReceiptView, RefundBody, RefundView};
use crate::first_answer::{Once, carry_out};
use crate::operation::detached;
use crate::params::{BAD_CURSOR, PathIds, Query, cursor};
use crate::problem::{self, Problem, ProblemBody};
use crate::raw_body::RawBody;
use crate::state::AppState;
use crate::values::Id;
use onceward::operations::payment::{self, Ask, Recorded, Start};

/// Starts a payment. While an attempt is open, that one is the answer.
#[utoipa::path(
    post, path = "/v1/orders/{order_id}/payments", tag = "payments", operation_id = "start_payment",
    params(
        ("order_id" = Id, Path),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, pattern = "^[\\x21-\\x7e]{1,255}$",
            description = "Names this request: a repeat with the same body gets the first answer again."),
    ),
    request_body = PaymentBody<'_>,
    responses(
        (status = 201, description = "The attempt.", body = PaymentView,
            headers(("Idempotency-Replayed" = String, description = "`true` where this is the first answer again."))),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`order_not_payable` (with `order_status`), `idempotency_in_progress`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, `idempotency_key_reused`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn start(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Problem> {
    let order = order_id(&ids)?;
    let is_known = |name: &str| state.engine.provider(name).is_some();
    let terms = payload.parse::<PaymentBody<'_>>()?.into_terms(is_known)?;
    let operation = format!("POST /v1/orders/{order}/payments");
    let once = Once { caller: &caller, operation: &operation, status: StatusCode::CREATED };
    let (idempotent, running) = once.begin::<Payment, PaymentView>(&state, &headers, &terms)?;
    let start = Start { order, provider: terms.provider, actor: caller.0, idempotent };
    carry_out(running, async move { payment::start(&state.engine, start).await }).await
}

/// Asks for money back.
#[utoipa::path(
    post, path = "/v1/orders/{order_id}/refunds", tag = "payments", operation_id = "refund_order",
    params(
        ("order_id" = Id, Path),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, pattern = "^[\\x21-\\x7e]{1,255}$",
            description = "Names this request: a repeat with the same body gets the first answer again."),
    ),
    request_body = RefundBody<'_>,
    responses(
        (status = 201, description = "The refund.", body = RefundView,
            headers(("Idempotency-Replayed" = String, description = "`true` where this is the first answer again."))),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`order_not_refundable` (with `order_status`), `idempotency_in_progress`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, `refund_exceeds_paid`, `idempotency_key_reused`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn refund(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Problem> {
    let order = order_id(&ids)?;
    let terms = payload.parse::<RefundBody<'_>>()?.into_terms()?;
    let operation = format!("POST /v1/orders/{order}/refunds");
    let once = Once { caller: &caller, operation: &operation, status: StatusCode::CREATED };
    let (idempotent, running) = once.begin::<Refund, RefundView>(&state, &headers, &terms)?;
    let ask = Ask { order, amount: terms.amount, reason: terms.reason, actor: caller.0, idempotent };
    carry_out(running, async move { payment::ask_refund(&state.engine, ask).await }).await
}

/// Lists the refunds of an order, newest first.
#[utoipa::path(
    get, path = "/v1/orders/{order_id}/refunds", tag = "payments", operation_id = "list_refunds",
    params(
        ("order_id" = Id, Path),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<Id>, Query, description = "`next` of the page before: the id of its last refund."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<RefundView>),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn refunds(
    State(state): State<AppState>,
    ids: PathIds,
    query: Query,
) -> Result<Response, Problem> {
    let order = order_id(&ids)?;
    let mut faults = Faults::default();
    let limit = query.limit(&mut faults);
    let after = query.get("after").map(str::parse::<Uuid>).transpose();
    let after = faults.keep("/after", after.map_err(|_| BAD_CURSOR));
    let (limit, after) = faults.finish(limit.zip(after))?;
    // An order has few refunds, all of which come with it: the page is cut here.
    let mut found = payment::refunds(&state.engine, order).await?;
    found.reverse();
    if let Some(after) = after {
        let Some(place) = found.iter().position(|refund| refund.id.0 == after) else {
            return Err(Problem::of(&problem::INVALID).at("/after", BAD_CURSOR));
        };
        found.drain(..=place);
    }
    let page = Page::of(found, limit, |refund| refund.id.to_string(), |refund| Ok(RefundView::from(refund)))?;
    Ok(json(StatusCode::OK, &page))
}

/// Takes a provider's callback, in the provider's own format and with its signature.
#[utoipa::path(
    post, path = "/v1/webhooks/{provider}", tag = "payments", operation_id = "take_callback",
    params(("provider" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The raw body."),
    responses(
        (status = 200, description = "It is recorded, now or before.", body = ReceiptView),
        (status = 202, description = "It is kept: its payment is not known yet.", body = ReceiptView),
        (status = 401, description = "`bad_signature`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "`unknown_provider`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`: signed, but not readable.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(()),
)]
pub(super) async fn webhook(
    State(state): State<AppState>,
    ids: PathIds,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Response, Problem> {
    let provider = ids.text("provider").to_owned();
    // A header that is no text cannot be part of a signature that holds.
    let headers: Vec<(String, String)> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let taken = detached(async move {
        let raw = RawCallback { headers: &headers, body: &body, now: state.clock.now() };
        payment::callback(&state.engine, &provider, &raw).await
    });
    Ok(match taken.await? {
        Recorded::Heard => json(StatusCode::OK, &ReceiptView { result: "recorded" }),
        Recorded::Kept => json(StatusCode::ACCEPTED, &ReceiptView { result: "kept" }),
    })
}

/// Lists cases for a person, newest first.
#[utoipa::path(
    get, path = "/v1/ops/anomalies", tag = "operations", operation_id = "list_anomalies",
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, pattern = "^c1[0-9a-f]{16}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<CaseView>),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn anomalies(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let mut faults = Faults::default();
    let page = query.page(&mut faults);
    let page = faults.finish(page)?;
    let found = state.engine.store().list_cases(PageRequest { limit: page.limit + 1, ..page }).await?;
    let page = Page::of(found, page.limit, |row| cursor(row.0), |row| Ok(CaseView::from(&row.1)))?;
    Ok(json(StatusCode::OK, &page))
}

fn order_id(ids: &PathIds) -> Result<OrderId, Problem> {
    ids.uuid("order_id").map(OrderId)
}
