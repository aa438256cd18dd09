//! `/sandbox`: playing the bank, where it is enabled; elsewhere there is nothing under these paths.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use onceward_domain::id::{PaymentId, UserId};
use onceward_domain::ports::sandbox::Sandbox;
use onceward_domain::time::{LATEST, Timestamp};

use super::{bytes_as, json};
use crate::body::Payload;
use crate::check::Faults;
use crate::dto::Data;
use crate::dto::sandbox::{ActBody, BankPaymentView, ChargeView, ModeBody, ModeView, Role, statement as csv};
use crate::operation::detached;
use crate::params::{PathIds, Query};
use crate::problem::{self, Problem, ProblemBody};
use crate::state::AppState;
use crate::values::{Id, IdText};
use crate::when;

/// Pays, at the bank.
#[utoipa::path(
    post, path = "/sandbox/payments/{payment_id}/succeed", tag = "sandbox", operation_id = "sandbox_succeed",
    params(("payment_id" = Id, Path)),
    request_body = ActBody<'_>,
    responses(
        (status = 200, description = "The payment as the bank knows it now.", body = BankPaymentView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`conflict`: its state does not allow that; see `force`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn succeed(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    play(&state, &ids, &payload, Role::Succeed).await
}

/// Is declined, at the bank.
#[utoipa::path(
    post, path = "/sandbox/payments/{payment_id}/fail", tag = "sandbox", operation_id = "sandbox_fail",
    params(("payment_id" = Id, Path)),
    request_body = ActBody<'_>,
    responses(
        (status = 200, description = "The payment as the bank knows it now.", body = BankPaymentView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`conflict`: its state does not allow that.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn fail(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    play(&state, &ids, &payload, Role::Fail).await
}

async fn play(state: &AppState, ids: &PathIds, payload: &Payload, role: Role) -> Result<Response, Problem> {
    let bank = bank(state)?;
    let id = payment_id(ids)?;
    let act = payload.parse::<ActBody<'_>>()?.into_act(role)?;
    let known = detached(async move { bank.play(id, act).await }).await?;
    Ok(json(StatusCode::OK, &BankPaymentView::from(&known)))
}

/// Shows a payment as the bank knows it.
#[utoipa::path(
    get, path = "/sandbox/payments/{payment_id}", tag = "sandbox", operation_id = "sandbox_payment",
    params(("payment_id" = Id, Path)),
    responses(
        (status = 200, description = "The payment.", body = BankPaymentView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn payment(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let known = bank(&state)?.payment(payment_id(&ids)?).await?;
    Ok(json(StatusCode::OK, &BankPaymentView::from(&known)))
}

/// Changes how the bank answers.
#[utoipa::path(
    put, path = "/sandbox/mode", tag = "sandbox", operation_id = "sandbox_mode",
    request_body = ModeBody<'_>,
    responses(
        (status = 200, description = "How it answers now.", body = ModeView),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn mode(State(state): State<AppState>, payload: Payload) -> Result<Response, Problem> {
    let bank = bank(&state)?;
    let change = payload.parse::<ModeBody<'_>>()?.into_change()?;
    let moods = detached(async move { bank.set_moods(change).await }).await?;
    Ok(json(StatusCode::OK, &ModeView::from(moods)))
}

/// Gives the bank's statement as CSV.
#[utoipa::path(
    get, path = "/sandbox/statement", tag = "sandbox", operation_id = "sandbox_statement",
    params(
        ("from" = Option<when::Time>, Query, description = "Only what moved then or later."),
        ("to" = Option<when::Time>, Query, description = "Only what moved before."),
    ),
    responses(
        (status = 200, description = "at, kind, payment_id, refund_id, transaction_id, amount, currency, charge_id.", body = String, content_type = "text/csv"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn statement(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    let bank = bank(&state)?;
    let mut faults = Faults::default();
    let mut time = |name: &str, default: Timestamp| match query.get(name) {
        None => Some(default),
        Some(text) => faults.keep(&format!("/{name}"), when::parse(text)),
    };
    let (from, to) = (time("from", Timestamp(0)), time("to", LATEST));
    let (from, to) = faults.finish(from.zip(to))?;
    let lines = bank.statement(from, to).await?;
    Ok(bytes_as(StatusCode::OK, "text/csv; charset=utf-8", csv(&lines)))
}

/// Lists the off-session charges of a customer that were really taken.
#[utoipa::path(
    get, path = "/sandbox/customers/{user_id}/charges", tag = "sandbox", operation_id = "sandbox_charges",
    params(("user_id" = IdText<'_>, Path)),
    responses(
        (status = 200, description = "The charges, oldest first.", body = Data<ChargeView>),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn charges(State(state): State<AppState>, ids: PathIds) -> Result<Response, Problem> {
    let bank = bank(&state)?;
    let user = UserId::new(ids.text("user_id")).map_err(|_| Problem::of(&problem::NO_ROUTE))?;
    let found = bank.charges(user).await?;
    Ok(json(StatusCode::OK, &Data { data: found.iter().map(ChargeView::from).collect() }))
}

fn bank(state: &AppState) -> Result<Arc<dyn Sandbox>, Problem> {
    state.sandbox.clone().ok_or_else(|| Problem::of(&problem::NO_ROUTE))
}

fn payment_id(ids: &PathIds) -> Result<PaymentId, Problem> {
    ids.uuid("payment_id").map(PaymentId)
}
