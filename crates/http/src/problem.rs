//! Refusals: RFC 9457 problem documents, and the one table from codes to statuses.
//!
//! Invariants: every refusal that leaves the server is one of the kinds below; what the caller reads never holds
//! the operator's text (style: two fields); the document is written once, at the edge, where the request id is
//! known. Read next: [`crate::edge`].

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use onceward_domain::error::{Class, Code, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};
use utoipa::ToSchema;

use crate::values::Id;

/// Media type of a refusal.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";
/// What a caller should wait before the same request, in seconds, where nothing better is known.
pub(crate) const RETRY_AFTER_S: u32 = 1;
const TYPE_PREFIX: &str = "urn:onceward:problem:";

/// What is the same in all refusals of one code.
#[derive(Debug)]
pub(crate) struct Kind {
    /// HTTP status.
    pub(crate) status: StatusCode,
    /// The stable code.
    pub(crate) code: &'static str,
    /// Short text.
    pub(crate) title: &'static str,
    /// What the caller is told where the case has no text of its own.
    pub(crate) detail: &'static str,
}

macro_rules! kinds {
    ($($name:ident $status:ident $code:literal $title:literal $detail:literal;)*) => {
        $(#[doc = concat!("`", $code, "`")] pub(crate) const $name: Kind = Kind {
            status: StatusCode::$status, code: $code, title: $title, detail: $detail,
        };)*
        /// The kinds that have no counterpart in the domain.
        #[cfg(test)]
        pub(crate) const HTTP_ONLY: &[Kind] = &[$($name,)*];
    };
}

kinds! {
    MALFORMED BAD_REQUEST "malformed" "Malformed request" "The request does not have the form that is asked for.";
    KEY_REQUIRED BAD_REQUEST "idempotency_key_required" "Idempotency key required" "This request needs an Idempotency-Key header of 1 to 255 visible ASCII characters.";
    UNAUTHENTICATED UNAUTHORIZED "unauthenticated" "Not authenticated" "A known API key is needed: Authorization: Bearer <key>.";
    FORBIDDEN FORBIDDEN "forbidden" "Forbidden" "This API key may not do that.";
    NO_ROUTE NOT_FOUND "not_found" "Not found" "There is nothing under this path.";
    METHOD METHOD_NOT_ALLOWED "method_not_allowed" "Method not allowed" "This path exists, but not with this method; see the Allow header.";
    SLOW_BODY REQUEST_TIMEOUT "request_timeout" "Request time-out" "The body did not arrive in time; nothing was changed.";
    TOO_LARGE PAYLOAD_TOO_LARGE "too_large" "Body too large" "The body has more than 65536 bytes.";
    MEDIA UNSUPPORTED_MEDIA_TYPE "unsupported_media_type" "Unsupported media type" "The body must be application/json in UTF-8.";
    INVALID UNPROCESSABLE_ENTITY "invalid" "Invalid value" "A value is outside what is allowed.";
    RATE_LIMITED TOO_MANY_REQUESTS "rate_limited" "Too many requests" "This API key asks more often than it may.";
    OVERLOAD SERVICE_UNAVAILABLE "backlog" "Backlog" "Too many requests are being answered; nothing was changed.";
    SLOW_READ SERVICE_UNAVAILABLE "unavailable" "Unavailable" "The answer took too long.";
    SLOW_WRITE SERVICE_UNAVAILABLE "outcome_unknown" "Outcome unknown" "The answer took too long and the work goes on: read it back, or repeat the request with the same ids.";
    BUG INTERNAL_SERVER_ERROR "needs_operator" "Needs an operator" "The request met a defect; it was logged under this request id.";
}

/// The kind of a domain code: the one table from codes to statuses.
pub(crate) fn kind_of(code: Code) -> Kind {
    let (status, title) = match code {
        Code::NotFound => (StatusCode::NOT_FOUND, "Not found"),
        Code::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid value"),
        Code::SoldOut => (StatusCode::CONFLICT, "Sold out"),
        Code::LimitReached => (StatusCode::CONFLICT, "Limit reached"),
        Code::NotOpen => (StatusCode::CONFLICT, "Not open"),
        Code::RequestConflict => (StatusCode::CONFLICT, "Request conflict"),
        Code::Differs => (StatusCode::CONFLICT, "Conflict"),
        Code::InsufficientStock => (StatusCode::CONFLICT, "Insufficient stock"),
        Code::OrderNotCancellable => (StatusCode::CONFLICT, "Order not cancellable"),
        Code::OrderNotPayable => (StatusCode::CONFLICT, "Order not payable"),
        Code::OrderNotRefundable => (StatusCode::CONFLICT, "Order not refundable"),
        Code::RefundExceedsPaid => (StatusCode::UNPROCESSABLE_ENTITY, "Refund exceeds paid"),
        Code::GroupClosed => (StatusCode::CONFLICT, "Group closed"),
        Code::GroupFull => (StatusCode::CONFLICT, "Group full"),
        Code::GroupNotRetryable => (StatusCode::CONFLICT, "Group not retryable"),
        Code::UnknownProvider => (StatusCode::NOT_FOUND, "Unknown provider"),
        Code::BadSignature => (StatusCode::UNAUTHORIZED, "Bad signature"),
        Code::IdempotencyKeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "Idempotency key reused"),
        Code::IdempotencyInProgress => (StatusCode::CONFLICT, "Idempotent request in progress"),
        Code::GuardLost => (StatusCode::CONFLICT, "Guard lost"),
        Code::Backlog => (StatusCode::SERVICE_UNAVAILABLE, "Backlog"),
        Code::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Unavailable"),
        Code::OutcomeUnknown => (StatusCode::SERVICE_UNAVAILABLE, "Outcome unknown"),
        Code::LeaseLost => (StatusCode::CONFLICT, "Lease lost"),
        Code::InsufficientCredit => (StatusCode::CONFLICT, "Not enough credit"),
        Code::ConstraintViolated => (StatusCode::INTERNAL_SERVER_ERROR, "Needs an operator"),
    };
    Kind { status, code: code.as_str(), title, detail: code.caller_text() }
}

/// Where a request is at fault.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// JSON pointer into the body, or `/` and the name of a path or query parameter.
    pub(crate) pointer: String,
    /// What is expected there.
    pub(crate) detail: String,
}

/// The member that names the state which stands in the way.
fn state_member(code: Code) -> &'static str {
    let is_of_group = matches!(code, Code::GroupClosed | Code::GroupNotRetryable);
    if is_of_group { "group_status" } else { "order_status" }
}

/// A refusal on its way to the edge.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    members: Vec<(&'static str, String)>,
    retry_after: Option<u32>,
    cause: Option<Arc<Error>>,
    is_last: bool,
}

impl Problem {
    /// A refusal of this kind.
    pub(crate) fn of(kind: &Kind) -> Self {
        let retry_after = match kind.status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Some(RETRY_AFTER_S),
            _ => None,
        };
        Self(Box::new(Parts {
            status: kind.status,
            code: kind.code,
            title: kind.title,
            detail: Cow::Borrowed(kind.detail),
            errors: Vec::new(),
            members: Vec::new(),
            retry_after,
            cause: None,
            is_last: false,
        }))
    }

    /// A refusal with a domain code.
    pub(crate) fn code(code: Code) -> Self {
        Self::of(&kind_of(code))
    }

    /// What an error of the domain says to a caller.
    pub(crate) fn refusal(error: &Error) -> Self {
        let problem = Self::code(error.code());
        match error.state() {
            Some(state) => problem.with_member(state_member(error.code()), state.to_owned()),
            None => problem,
        }
    }

    /// What the caller is told instead of the kind's own text.
    pub(crate) fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// Fields at fault.
    pub(crate) fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.0.errors = errors;
        self
    }

    /// One field at fault.
    pub(crate) fn at(self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.with_errors(vec![FieldError { pointer: pointer.into(), detail: detail.into() }])
    }

    /// A member beside the standard ones.
    pub(crate) fn with_member(mut self, name: &'static str, value: String) -> Self {
        self.0.members.push((name, value));
        self
    }

    /// When to come back.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// The last answer of its connection: what is left of the request is not read.
    pub(crate) fn closing(mut self) -> Self {
        self.0.is_last = true;
        self
    }

    /// Whether the connection ends with it.
    pub(crate) fn is_last(&self) -> bool {
        self.0.is_last
    }

    /// Whether it has this code of the domain.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.0.code == code.as_str()
    }

    /// HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The stable code.
    pub(crate) fn code_text(&self) -> &'static str {
        self.0.code
    }

    /// Seconds for `Retry-After`.
    pub(crate) fn wait_seconds(&self) -> Option<u32> {
        self.0.retry_after
    }

    /// What the log should tell an operator, with its whole chain.
    pub(crate) fn cause(&self) -> Option<&Arc<Error>> {
        self.0.cause.as_ref()
    }

    /// The document, for one request.
    pub(crate) fn document(&self, request_id: &str) -> Vec<u8> {
        let document = Document { parts: &self.0, request_id };
        serde_json::to_vec(&document).expect("texts and numbers are always JSON")
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut problem = Self::refusal(&error);
        if let Some(wait) = error.wait() {
            problem = problem
                .retry_after(u32::try_from(wait.0.max(1).unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX));
        }
        let concerns_operator = match error.class() {
            Class::Rejected | Class::Conflict => false,
            Class::Retryable | Class::UnknownOutcome | Class::Manual => true,
        };
        problem.0.cause = concerns_operator.then(|| Arc::new(error));
        problem
    }
}

/// Leaves writing to the edge, which knows the request id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

struct Document<'a> {
    parts: &'a Parts,
    request_id: &'a str,
}

struct TypeUri(&'static str);

impl Serialize for TypeUri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&[TYPE_PREFIX, self.0].concat())
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.parts;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &TypeUri(parts.code))?;
        map.serialize_entry("title", parts.title)?;
        map.serialize_entry("status", &parts.status.as_u16())?;
        map.serialize_entry("detail", &parts.detail)?;
        map.serialize_entry("code", parts.code)?;
        map.serialize_entry("request_id", self.request_id)?;
        for (name, value) in &parts.members {
            map.serialize_entry(name, value)?;
        }
        if !parts.errors.is_empty() {
            map.serialize_entry("errors", &parts.errors)?;
        }
        map.end()
    }
}

/// A refusal (RFC 9457). Some codes add members, as their operation says.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; `Document` writes it")]
pub(crate) struct ProblemBody {
    /// `urn:onceward:problem:` and the code.
    r#type: String,
    /// Short text, the same for all refusals with this code.
    title: String,
    /// The HTTP status again.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What the caller should know.
    detail: String,
    /// Stable code to branch on.
    code: String,
    /// The request's id, for the log.
    request_id: String,
    /// Fields at fault, where fields are.
    #[schema(required = false)]
    errors: Vec<FieldError>,
    /// With `limit_reached`, where the limit is 1: the live reservation.
    #[schema(required = false, value_type = Id)]
    reservation_id: String,
    /// With `group_closed` and `group_not_retryable`: the state that stands in the way.
    #[schema(required = false)]
    group_status: String,
    /// With `order_not_cancellable`, `order_not_payable` and `order_not_refundable`: the state that stands in the way.
    #[schema(required = false)]
    order_status: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_04_every_domain_code_has_its_status() {
        let table = [
            (Code::NotFound, 404),
            (Code::Invalid, 422),
            (Code::SoldOut, 409),
            (Code::LimitReached, 409),
            (Code::NotOpen, 409),
            (Code::RequestConflict, 409),
            (Code::Differs, 409),
            (Code::InsufficientStock, 409),
            (Code::OrderNotCancellable, 409),
            (Code::OrderNotPayable, 409),
            (Code::OrderNotRefundable, 409),
            (Code::RefundExceedsPaid, 422),
            (Code::GroupClosed, 409),
            (Code::GroupFull, 409),
            (Code::GroupNotRetryable, 409),
            (Code::InsufficientCredit, 409),
            (Code::LeaseLost, 409),
            (Code::UnknownProvider, 404),
            (Code::BadSignature, 401),
            (Code::IdempotencyKeyReused, 422),
            (Code::IdempotencyInProgress, 409),
            (Code::GuardLost, 409),
            (Code::Backlog, 503),
            (Code::Unavailable, 503),
            (Code::OutcomeUnknown, 503),
            (Code::ConstraintViolated, 500),
        ];
        assert_eq!(table.len(), Code::ALL.len(), "a new code needs its row here");
        for (code, status) in table {
            let problem = Problem::from(Error::new(code, "a secret of the house"));
            assert_eq!(problem.status().as_u16(), status, "{code:?}");
            assert_eq!(problem.wait_seconds().is_some(), status == 503, "{code:?}");
            let document = String::from_utf8(problem.document("r-1")).unwrap();
            assert!(document.contains(&format!("\"code\":\"{}\"", code.as_str())), "{document}");
            assert!(document.contains("\"request_id\":\"r-1\""), "{document}");
            assert!(!document.contains("secret"), "operator text reached a caller: {document}");
            assert_eq!(problem.cause().is_some(), status >= 500, "{code:?}");
        }
    }

    #[test]
    fn codes_that_exist_twice_agree_in_status() {
        for kind in HTTP_ONLY {
            let twin = Code::ALL.iter().find(|code| code.as_str() == kind.code);
            if let Some(code) = twin {
                assert_eq!(kind_of(*code).status, kind.status, "{}", kind.code);
            }
        }
    }
}
