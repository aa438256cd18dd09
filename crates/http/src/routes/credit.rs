//! `/v1/accounts/{account_id}`.

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ACCEPT, LINK};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use onceward_domain::credit::Entry;
use onceward_domain::id::AccountId;
use onceward_domain::ports::store::PageRequest;

use super::{bytes_as, json};
use crate::auth::Caller;
use crate::body::Payload;
use crate::check::Faults;
use crate::dto::Page;
use crate::dto::credit::{
    AccountBody, AccountTermsView, AccountView, AdjustCreditBody, EntryView, GrantBody, csv,
};
use crate::first_answer::{Once, carry_out};
use crate::idempotency;
use crate::operation::detached;
use crate::params::{PathIds, Query, cursor};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::values::IdText;
use crate::when;
use onceward::operations::credit::{self, Put};

/// Opens an account, or says anew how far it may be overdrawn.
#[utoipa::path(
    put, path = "/v1/accounts/{account_id}", tag = "credits", operation_id = "put_account",
    params(("account_id" = IdText<'_>, Path)),
    request_body = AccountBody,
    responses(
        (status = 201, description = "It was opened.", body = AccountTermsView),
        (status = 200, description = "It was there; its terms are now as given.", body = AccountTermsView),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn put(
    State(state): State<AppState>,
    ids: PathIds,
    payload: Payload,
) -> Result<Response, Problem> {
    let terms = payload.parse::<AccountBody>()?.into_put(ids.owned_new("account_id", AccountId::new)?)?;
    let put = detached(async move { credit::put(&state.engine, terms).await }).await?;
    Ok(match put {
        Put::Opened(account) => json(StatusCode::CREATED, &AccountTermsView::from(&account)),
        Put::Known(account) => json(StatusCode::OK, &AccountTermsView::from(&account)),
    })
}

/// Shows an account, now or at a moment.
#[utoipa::path(
    get, path = "/v1/accounts/{account_id}", tag = "credits", operation_id = "get_account",
    params(
        ("account_id" = IdText<'_>, Path),
        ("at" = Option<when::Time>, Query, description = "The moment; one that is yet to come is now."),
    ),
    responses(
        (status = 200, description = "The account.", body = AccountView),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn view(
    State(state): State<AppState>,
    ids: PathIds,
    query: Query,
) -> Result<Response, Problem> {
    let account = ids.owned("account_id", AccountId::new)?;
    let mut faults = Faults::default();
    let at = faults.keep("/at", query.get("at").map(when::parse).transpose());
    let at = faults.finish(at)?;
    let standing = credit::standing(&state.engine, account.clone(), at).await?;
    Ok(json(StatusCode::OK, &AccountView::of(&account, standing)))
}

/// Lists the entries of an account, newest first.
#[utoipa::path(
    get, path = "/v1/accounts/{account_id}/entries", tag = "credits", operation_id = "list_credit_entries",
    params(
        ("account_id" = IdText<'_>, Path),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, pattern = "^c1[0-9a-f]{16}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", body = Page<EntryView>),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn entries(
    State(state): State<AppState>,
    ids: PathIds,
    query: Query,
) -> Result<Response, Problem> {
    let account = ids.owned("account_id", AccountId::new)?;
    let page = page_of(&query)?;
    let more = PageRequest { limit: page.limit + 1, ..page };
    let found = credit::entries(&state.engine, account, more).await?;
    Ok(json(StatusCode::OK, &paged(found, page.limit)?))
}

/// Gives an account's statement, oldest entry first, in pages that can be replayed one after another. With
/// `Accept: text/csv` it is CSV, and the next page is in the `Link` header.
#[utoipa::path(
    get, path = "/v1/accounts/{account_id}/statement", tag = "credits", operation_id = "get_statement",
    params(
        ("account_id" = IdText<'_>, Path),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, description = "Rows of the page; 50 where it is not given."),
        ("after" = Option<String>, Query, pattern = "^c1[0-9a-f]{16}$", description = "`next` of the page before."),
    ),
    responses(
        (status = 200, description = "One page.", content((Page<EntryView> = "application/json"), (String = "text/csv"))),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn statement(
    State(state): State<AppState>,
    ids: PathIds,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, Problem> {
    let account = ids.owned("account_id", AccountId::new)?;
    let page = page_of(&query)?;
    let after = page.before.unwrap_or(0).max(0);
    let mut found = credit::statement(&state.engine, account.clone(), after, page.limit + 1).await?;
    if !wants_csv(&headers) {
        return Ok(json(StatusCode::OK, &paged(found, page.limit)?));
    }
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let has_more = found.len() > limit;
    found.truncate(limit);
    let mut response = bytes_as(StatusCode::OK, "text/csv; charset=utf-8", csv(&found));
    if let Some(last) = found.last().filter(|_| has_more) {
        let next = cursor(last.number);
        let link =
            format!("</v1/accounts/{account}/statement?limit={}&after={next}>; rel=\"next\"", page.limit);
        let link = HeaderValue::from_str(&link).expect("ids and cursors are plain characters");
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

fn wants_csv(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.split(',').any(|one| one.trim().starts_with("text/csv")))
}

fn page_of(query: &Query) -> Result<PageRequest, Problem> {
    let mut faults = Faults::default();
    let page = query.page(&mut faults);
    faults.finish(page)
}

fn paged(found: Vec<Entry>, limit: u32) -> Result<Page<EntryView>, Problem> {
    Page::of(found, limit, |entry| cursor(entry.number), |entry| Ok(EntryView::from(entry)))
}

/// Gives credits; the first gift opens the account.
#[utoipa::path(
    post, path = "/v1/accounts/{account_id}/grants", tag = "credits", operation_id = "grant_credits",
    params(
        ("account_id" = IdText<'_>, Path),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, pattern = "^[\\x21-\\x7e]{1,255}$",
            description = "Names this request: a repeat with the same body gets the first answer again."),
    ),
    request_body = GrantBody<'_>,
    responses(
        (status = 201, description = "The entry.", body = EntryView,
            headers(("Idempotency-Replayed" = String, description = "`true` where this is the first answer again."))),
        (status = 409, description = "`idempotency_in_progress`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, `idempotency_key_reused`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn grant(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Problem> {
    let account = ids.owned_new("account_id", AccountId::new)?;
    idempotency::key(&headers)?;
    let operation = format!("POST /v1/accounts/{account}/grants");
    let (gift, rule) = payload.parse::<GrantBody<'_>>()?.into_grant(account, caller.0.clone())?;
    let once = Once { caller: &caller, operation: &operation, status: StatusCode::CREATED };
    let (idempotent, running) = once.begin::<Entry, EntryView>(&state, &headers, &gift)?;
    carry_out(running, async move { credit::grant(&state.engine, rule, idempotent).await }).await
}

/// Sets a balance right; it is recorded who did and why.
#[utoipa::path(
    post, path = "/v1/accounts/{account_id}/adjustments", tag = "credits", operation_id = "adjust_credits",
    params(
        ("account_id" = IdText<'_>, Path),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, pattern = "^[\\x21-\\x7e]{1,255}$",
            description = "Names this request: a repeat with the same body gets the first answer again."),
    ),
    request_body = AdjustCreditBody<'_>,
    responses(
        (status = 201, description = "The entry.", body = EntryView,
            headers(("Idempotency-Replayed" = String, description = "`true` where this is the first answer again."))),
        (status = 404, description = "`not_found`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`insufficient_credit`, `idempotency_in_progress`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "`invalid`, `idempotency_key_reused`", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn adjust(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Problem> {
    let account = ids.owned("account_id", AccountId::new)?;
    idempotency::key(&headers)?;
    let operation = format!("POST /v1/accounts/{account}/adjustments");
    let body = payload.parse::<AdjustCreditBody<'_>>()?;
    let (correction, rule) = body.into_adjust(account, caller.0.clone())?;
    let once = Once { caller: &caller, operation: &operation, status: StatusCode::CREATED };
    let (idempotent, running) = once.begin::<Entry, EntryView>(&state, &headers, &correction)?;
    carry_out(running, async move { credit::adjust(&state.engine, rule, idempotent).await }).await
}
