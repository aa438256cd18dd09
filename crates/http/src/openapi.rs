//! The OpenAPI document, derived from the routes.
//!
//! Invariants: paths and schemas come from the handlers' own attributes; what holds for all operations (the
//! default refusal, the bearer key) is added here, once.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Ref, RefOr, ResponseBuilder};

use crate::problem::MEDIA_TYPE;
use crate::routes;

const KEY: &str = "api_key";
const DEFAULT: &str = "default";
const ABOUT: &str = "An order engine: whatever runs twice takes effect once. Every refusal is \
`application/problem+json`; branch on its `code`. Whole numbers are written without fraction or exponent: `1.0` is refused. 400 `malformed`, 401 `unauthenticated`, 403 `forbidden`, \
404 `not_found`, 405 `method_not_allowed`, 408 `request_timeout`, 413 `too_large`, 415 `unsupported_media_type`, \
422 `invalid`, 429 `rate_limited` and 503 `backlog`, `unavailable` or `outcome_unknown` may come from every \
operation; an operation lists its own.";

/// The document of everything that [`crate::router`] serves.
///
/// ```
/// let document = onceward_http::openapi();
/// assert!(document.paths.paths.contains_key("/v1/orders/{order_id}"));
/// ```
#[must_use]
pub fn openapi() -> OpenApi {
    let (_router, mut document) = routes::documented().split_for_parts();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        finish(operation);
    }
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme(KEY, scheme);
    document
}

/// The document before there are routes.
pub(crate) fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Onceward")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(utoipa::openapi::License::new("MIT OR Apache-2.0")))
        .build();
    OpenApiBuilder::new().info(info).build()
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let of_methods = [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch];
    of_methods.into_iter().flatten()
}

fn finish(operation: &mut Operation) {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    let refusal =
        ResponseBuilder::new().description("Any other refusal.").content(MEDIA_TYPE, content).build();
    operation.responses.responses.insert(DEFAULT.to_owned(), RefOr::T(refusal));
    let needs_no_key = operation.security.is_some();
    if !needs_no_key {
        operation.security = Some(vec![SecurityRequirement::new(KEY, Vec::<String>::new())]);
    }
}
