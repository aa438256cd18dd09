//! Arbitrary input at every route: never a 5xx, always a problem document, and a refusal changes nothing (SE-04).
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use axum::body::Body;
use axum::http::Request;
use house::{Answer, House};
use onceward_ground::Mode;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

const CASES: u32 = 512;
const FIELDS: [&str; 20] = [
    "user_id",
    "request_id",
    "quantity",
    "name",
    "starts_at",
    "ends_at",
    "payment_window_ms",
    "late_payment",
    "cancelled_frees_limit",
    "stock",
    "price",
    "per_user_limit",
    "buckets",
    "delta",
    "reason",
    "lines",
    "activity_id",
    "sku_id",
    "amount",
    "currency",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![0, 1, 2, 64, 65, 1_000_000_000, i64::from(u32::MAX) + 1])
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[A-Za-z0-9._~:-]{1,66}".prop_map(Value::from),
        prop::sample::select(vec![
            "sale",
            "cup",
            "CNY",
            "JPY",
            "refund",
            "2026-11-11T00:00:00Z",
            "2027-01-01T00:00:00+08:00",
            "\0"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let key = prop_oneof![8 => prop::sample::select(FIELDS.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<String, Value>>())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..64),
        6 => json_value().prop_map(|value| value.to_string().into_bytes()),
    ]
}

fn operations() -> Vec<(String, String)> {
    let document = serde_json::to_value(onceward_http::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap().clone();
    let each = |(path, operations): (String, Value)| {
        let methods: Vec<String> = operations.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.into_iter().flat_map(each).collect()
}

/// Text for a path segment: an id that exists, one that could, or bytes in percent form.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("sale".to_owned()),
        Just("cup".to_owned()),
        Just("0190a5c4-0000-8000-8000-000000000000".to_owned()),
        "[A-Za-z0-9._~:-]{1,70}",
        prop::collection::vec(any::<u8>(), 1..8)
            .prop_map(|bytes| bytes.iter().map(|byte| format!("%{byte:02x}")).collect()),
    ]
}

fn query() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        1 => "\\?(limit|after|wait_ms|status|user_id|activity_id|x)=[A-Za-z0-9%+]{0,12}(&limit=[0-9]{1,3})?",
        1 => "\\?[!-~&&[^#<>\"`{}|\\\\^]]{0,24}",
    ]
}

fn judge(before: &str, after: &str, answer: &Answer, about: &str) {
    assert!(answer.status < 500, "{about}: {}", answer.body);
    if answer.status >= 400 {
        answer.assert_problem();
        assert_eq!(before, after, "{about}: a refusal changed something");
    }
}

#[test]
fn se_04_any_input_at_any_route_is_answered_and_refusals_change_nothing() {
    let runtime = Runtime::new().unwrap();
    let house = runtime.block_on(House::selling(Mode::Embedded, 1_000, 2));
    let input = (prop::sample::select(operations()), segment(), segment(), query(), body(), any::<bool>());
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let result = runner.run(&input, |((method, template), one, two, query, body, is_json)| {
        let path = template
            .replace("{activity_id}", &one)
            .replace("{sku_id}", &two)
            .replace("{order_id}", &one)
            .replace("{reservation_id}", &one)
            .replace("{id}", &one);
        let uri = format!("{path}{query}");
        let media_type = if is_json { "application/json" } else { "text/plain" };
        let request = Request::builder()
            .method(method.as_str())
            .uri(&uri)
            .header("content-type", media_type)
            .header("idempotency-key", format!("{}", body.len()))
            .body(Body::from(body.clone()));
        let Ok(request) = request else { return Ok(()) };
        runtime.block_on(async {
            let before = house.stored().await;
            let answer = house.ask(request).await;
            let after = house.stored().await;
            judge(&before, &after, &answer, &format!("{method} {uri} {}", String::from_utf8_lossy(&body)));
        });
        Ok(())
    });
    result.unwrap();
    let invariants = runtime.block_on(house.get("/v1/ops/invariants")).body;
    assert_eq!(invariants["holds"], true, "{invariants}");
}

#[test]
fn se_04_bodies_that_are_nearly_right() {
    let runtime = Runtime::new().unwrap();
    let house = runtime.block_on(House::selling(Mode::Embedded, 1_000, 2));
    let good = [
        ("PUT", "/v1/activities/other", house::activity()),
        ("PUT", house::SKU, house::sku(1_000, 2)),
        ("POST", house::RESERVE, house::buyer("u", "r")),
        ("POST", house::ADJUST, json!({ "delta": 1, "reason": "x" })),
        (
            "POST",
            "/v1/orders",
            json!({ "user_id": "u", "request_id": "r", "lines": [{ "activity_id": "sale", "sku_id": "cup" }] }),
        ),
    ];
    let input = (prop::sample::select(good.to_vec()), prop::sample::select(FIELDS.to_vec()), json_value());
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let result = runner.run(&input, |((method, path, mut body), field, value)| {
        body[field] = value;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("idempotency-key", "k")
            .body(Body::from(body.to_string()))
            .unwrap();
        runtime.block_on(async {
            let before = house.stored().await;
            let answer = house.ask(request).await;
            let after = house.stored().await;
            judge(&before, &after, &answer, &format!("{method} {path} {body}"));
        });
        Ok(())
    });
    result.unwrap();
}
