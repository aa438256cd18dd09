//! The edge: access, request ids, overload, time limits and panics.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use house::{House, RESERVE, buyer};
use onceward_ground::Mode;
use onceward_http::{Access, ApiKey, Scope, Settings};
use sha2::{Digest, Sha256};

fn keys() -> Access {
    let key = |name: &str, scopes: &[Scope]| ApiKey {
        name: Arc::from(name),
        sha256: Sha256::digest(format!("secret-of-{name}")).into(),
        scopes: scopes.to_vec(),
    };
    Access::keys(vec![
        key("reader", &[Scope::Read]),
        key("shop", &[Scope::Read, Scope::Write]),
        key("admin", &[Scope::Ops]),
    ])
}

#[tokio::test]
async fn se_01_every_route_asks_for_its_scope() {
    let house = House::with(Mode::Embedded, keys(), Settings::default()).await;
    let document = house.get("/openapi.json").await.body;
    let mut walked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            let method = method.to_uppercase();
            // A callback's signature is its key.
            let is_signed = path == "/v1/webhooks/{provider}";
            let is_open = is_signed || !(path.starts_with("/v1/") || path.starts_with("/sandbox/"));
            let is_for_operators = path.starts_with("/v1/ops/")
                || matches!(
                    (method.as_str(), path.as_str()),
                    ("PUT", "/v1/accounts/{account_id}")
                        | ("POST", "/v1/accounts/{account_id}/adjustments" | "/v1/groups/{group_id}/settle")
                );
            let allowed = match (is_open, is_for_operators, method.as_str()) {
                (true, _, _) => vec!["", "reader", "shop", "admin"],
                (false, true, _) => vec!["admin"],
                (false, false, "GET") => vec!["reader", "shop"],
                (false, false, _) => vec!["shop"],
            };
            for name in ["", "reader", "shop", "admin"] {
                let mut request =
                    Request::builder().method(method.as_str()).uri(path.replace(['{', '}'], "x"));
                if !name.is_empty() {
                    request = request.header("authorization", format!("Bearer secret-of-{name}"));
                }
                let answer = house.ask(request.body(Body::empty()).unwrap()).await;
                let refused = if name.is_empty() { 401 } else { 403 };
                let is_refused = answer.status == refused;
                assert_eq!(
                    is_refused,
                    !allowed.contains(&name),
                    "{method} {path} as {name:?}: {}",
                    answer.body
                );
                assert_eq!(answer.header("www-authenticate") == "Bearer", answer.status == 401);
                walked += 1;
            }
        }
    }
    assert_eq!(walked, 58 * 4);
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let house = House::empty(Mode::Embedded).await;
    let with_id = Request::get("/livez").header("x-request-id", "mine-1").body(Body::empty()).unwrap();
    assert_eq!(house.ask(with_id).await.header("x-request-id"), "mine-1");
    let refused = Request::get("/nowhere").header("x-request-id", "mine-2").body(Body::empty()).unwrap();
    assert_eq!(house.ask(refused).await.body["request_id"], "mine-2");
    let unfair = Request::get("/livez").header("x-request-id", "a b").body(Body::empty()).unwrap();
    assert_eq!(house.ask(unfair).await.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn se_03_above_the_limit_the_answer_is_backlog_at_once() {
    let settings = Settings { in_flight_limit: 0, ..Settings::default() };
    let house = House::with(Mode::Embedded, Access::open(), settings).await;
    let answer = house.get("/v1/orders").await;
    assert_eq!((answer.status, answer.code()), (503, "backlog"));
    answer.assert_problem();
}

#[tokio::test]
async fn se_03_a_key_above_its_rate_is_refused() {
    let settings = Settings { rate_per_second: NonZeroU32::new(1), ..Settings::default() };
    let house = House::with(Mode::Embedded, Access::open(), settings).await;
    assert_eq!(house.get("/v1/orders").await.status, 200);
    let answer = house.get("/v1/orders").await;
    assert_eq!((answer.status, answer.code()), (429, "rate_limited"));
    answer.assert_problem();
    assert_eq!(house.get("/livez").await.status, 200);
}

#[tokio::test]
async fn se_03_a_body_that_trickles_is_let_go() {
    let settings = Settings { body_timeout: Duration::from_millis(50), ..Settings::default() };
    let house = House::with(Mode::Embedded, Access::open(), settings).await;
    let never = Body::new(Silent);
    let request = Request::post(RESERVE).header("content-type", "application/json").body(never).unwrap();
    let answer = house.ask(request).await;
    assert_eq!((answer.status, answer.code()), (408, "request_timeout"));
    answer.assert_problem();
}

#[tokio::test]
async fn se_03_an_answer_that_takes_too_long_is_unavailable() {
    let settings = Settings { request_timeout: Duration::from_millis(50), ..Settings::default() };
    let house = House::with(Mode::Embedded, Access::open(), settings).await;
    house.put("/v1/activities/sale", &house::activity()).await;
    house.put(house::SKU, &house::sku(1, 1)).await;
    let receipt = house.post(RESERVE, &buyer("u", "r")).await;
    let path = format!("/v1/reservations/{}?wait_ms=5000", receipt.body["reservation_id"].as_str().unwrap());
    let answer = house.get(&path).await;
    assert_eq!((answer.status, answer.code()), (503, "unavailable"), "{}", answer.body);
    answer.assert_problem();
}

/// A body that never comes.
struct Silent;

impl hyper::body::Body for Silent {
    type Data = axum::body::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_head_is_a_get_without_its_body() {
    let house = House::empty(Mode::Embedded).await;
    let head = |path: &str| Request::head(path).body(Body::empty()).unwrap();
    let answer = house.ask(head("/livez")).await;
    assert_eq!((answer.status, answer.bytes.len()), (200, 0));
    let answer = house.ask(head("/v1/activities/none")).await;
    assert_eq!((answer.status, answer.bytes.len()), (404, 0));
}
