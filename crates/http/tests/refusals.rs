//! Bad input: always a problem document with the right code and pointer, never a 5xx, never a change (SE-04).
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use axum::body::Body;
use axum::http::{Method, Request};
use house::{ADJUST, House, RESERVE, SKU, activity, buyer, sku};
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

/// One row: body, status, code, pointer.
type Row<'a> = (&'a str, u16, &'a str, &'a str);

async fn walk(house: &House, method: Method, path: &str, rows: &[Row<'_>]) {
    let before = house.stored().await;
    for (body, status, code, pointer) in rows {
        let answer = house.send(method.clone(), path, (*body).to_owned()).await;
        let found = (answer.status, answer.code(), answer.pointer());
        assert_eq!(found, (*status, *code, *pointer), "{method} {path} {body}: {}", answer.body);
        answer.assert_problem();
    }
    assert_eq!(house.stored().await, before, "a refusal changed something");
}

in_every_mode! {
    se_04_bodies_of_reservations,
    se_04_a_number_for_an_id_is_refused_with_a_hint_and_nothing_sent_is_repeated,
    se_04_invalid_utf_8_depth_and_size,
    se_04_bodies_of_activities,
    se_04_all_faults_are_told_together,
    se_04_c_112_bodies_of_skus,
    se_04_bodies_of_direct_orders,
    se_04_media_types,
    se_04_paths_methods_and_parameters,
    se_04_c_101_idempotency_keys,
    se_04_bodies_of_adjustments_and_cancels,
}

async fn se_04_bodies_of_reservations(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let long = format!(r#"{{"user_id":"{}","request_id":"r"}}"#, "x".repeat(65));
    let big_name = format!(r#"{{"user_id":"u","request_id":"r","{}":1}}"#, "k".repeat(300));
    let big_pointer = format!("/{}", "k".repeat(64));
    let rows: &[Row<'_>] = &[
        ("", 400, "malformed", ""),
        ("{", 400, "malformed", ""),
        ("null", 400, "malformed", ""),
        ("[]", 400, "malformed", ""),
        (r#"["u","r",1]"#, 400, "malformed", ""),
        (r#""u""#, 400, "malformed", ""),
        ("{}", 400, "malformed", "/user_id"),
        (r#"{"user_id":"u"}"#, 400, "malformed", "/request_id"),
        (r#"{"user_id":"u","request_id":"r"} x"#, 400, "malformed", ""),
        (r#"{"user_id":"u","request_id":"r","color":1}"#, 400, "malformed", "/color"),
        (r#"{"user_id":"u","request_id":"r","a/b~c":1}"#, 400, "malformed", "/a~1b~0c"),
        (&big_name, 400, "malformed", &big_pointer),
        (r#"{"user_id":"u","user_id":"v","request_id":"r"}"#, 400, "malformed", "/user_id"),
        (r#"{"user_id":7,"request_id":"r"}"#, 400, "malformed", "/user_id"),
        (r#"{"user_id":null,"request_id":"r"}"#, 400, "malformed", "/user_id"),
        (r#"{"user_id":["u"],"request_id":"r"}"#, 400, "malformed", "/user_id"),
        (r#"{"user_id":{"a":{"b":[]}},"request_id":"r"}"#, 400, "malformed", "/user_id"),
        (r#"{"user_id":"","request_id":"r"}"#, 422, "invalid", "/user_id"),
        (r#"{"user_id":"a b","request_id":"r"}"#, 422, "invalid", "/user_id"),
        (r#"{"user_id":"u\u0000","request_id":"r"}"#, 422, "invalid", "/user_id"),
        (r#"{"user_id":"🛒","request_id":"r"}"#, 422, "invalid", "/user_id"),
        (r#"{"user_id":"u|v","request_id":"r"}"#, 422, "invalid", "/user_id"),
        (&long, 422, "invalid", "/user_id"),
        (r#"{"user_id":"u","request_id":"r","quantity":0}"#, 422, "invalid", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":-1}"#, 422, "invalid", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":4294967296}"#, 422, "invalid", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":9223372036854775808}"#, 422, "invalid", "/quantity"),
        (
            r#"{"user_id":"u","request_id":"r","quantity":18446744073709551616}"#,
            400,
            "malformed",
            "/quantity",
        ),
        (r#"{"user_id":"u","request_id":"r","quantity":1e400}"#, 400, "malformed", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":1.0}"#, 400, "malformed", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":1e0}"#, 400, "malformed", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":"1"}"#, 400, "malformed", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":null}"#, 400, "malformed", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":true}"#, 400, "malformed", "/quantity"),
        (r#"{"user_id":"u","request_id":"r","quantity":NaN}"#, 400, "malformed", "/quantity"),
    ];
    walk(&house, Method::POST, RESERVE, rows).await;
}

async fn se_04_a_number_for_an_id_is_refused_with_a_hint_and_nothing_sent_is_repeated(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let answer = house.send(Method::POST, RESERVE, r#"{"user_id":42,"request_id":"r"}"#).await;
    assert!(answer.body["errors"][0]["detail"].as_str().unwrap().contains("quotes"), "{}", answer.body);
    let body = r#"{"user_id":"u","request_id":"r","quantity":"a private word"}"#;
    let answer = house.send(Method::POST, RESERVE, body).await;
    assert!(!answer.body.to_string().contains("private"), "{}", answer.body);
}

async fn se_04_invalid_utf_8_depth_and_size(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let broken = b"{\"user_id\":\"\xff\xfe\",\"request_id\":\"r\"}".to_vec();
    let deep = format!(r#"{{"user_id":{}1{},"request_id":"r"}}"#, "[".repeat(20_000), "]".repeat(20_000));
    let big = format!(r#"{{"user_id":"u","request_id":"{}"}}"#, "r".repeat(70_000));
    let bom = b"\xef\xbb\xbf{\"user_id\":\"u\",\"request_id\":\"r\"}".to_vec();
    let rows: [(Vec<u8>, u16, &str); 4] = [
        (broken, 400, "malformed"),
        (deep.into_bytes(), 400, "malformed"),
        (big.into_bytes(), 413, "too_large"),
        (bom, 400, "malformed"),
    ];
    for (body, status, code) in rows {
        let answer = house.send(Method::POST, RESERVE, body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{}", answer.body);
        answer.assert_problem();
    }
}

async fn se_04_bodies_of_activities(mode: Mode) {
    let house = House::empty(mode).await;
    let with = |field: &str, value: Value| {
        let mut body = activity();
        body[field] = value;
        body.to_string()
    };
    let rows = [
        (with("name", json!("")), 422, "invalid", "/name"),
        (with("name", json!("n".repeat(201))), 422, "invalid", "/name"),
        (with("name", json!("a\u{0}b")), 422, "invalid", "/name"),
        (with("name", json!("a\u{85}b")), 422, "invalid", "/name"),
        (with("name", json!(1)), 400, "malformed", "/name"),
        (with("starts_at", json!("yesterday")), 422, "invalid", "/starts_at"),
        (with("starts_at", json!(1_762_819_200)), 400, "malformed", "/starts_at"),
        (with("ends_at", json!("2026-11-10T00:00:00Z")), 422, "invalid", "/ends_at"),
        (with("ends_at", json!("9999-12-31T23:59:59Z")), 422, "invalid", "/ends_at"),
        (with("payment_window_ms", json!(-1)), 422, "invalid", "/payment_window_ms"),
        (with("payment_window_ms", json!(316_224_000_001_i64)), 422, "invalid", "/payment_window_ms"),
        (with("cancel_grace_ms", json!(1.5)), 400, "malformed", "/cancel_grace_ms"),
        (with("reservation_deadline_ms", json!(u64::MAX)), 422, "invalid", "/reservation_deadline_ms"),
        (with("confirm_after_cancel_ms", Value::Null), 400, "malformed", "/confirm_after_cancel_ms"),
        (with("late_payment", json!("keep")), 422, "invalid", "/late_payment"),
        (with("late_payment", json!({ "refund": null })), 400, "malformed", "/late_payment"),
        (with("cancelled_frees_limit", json!(1)), 400, "malformed", "/cancelled_frees_limit"),
        (with("id", json!("x")), 400, "malformed", "/id"),
    ];
    let rows: Vec<Row<'_>> =
        rows.iter().map(|(body, status, code, pointer)| (body.as_str(), *status, *code, *pointer)).collect();
    walk(&house, Method::PUT, "/v1/activities/a", &rows).await;
}

async fn se_04_all_faults_are_told_together(mode: Mode) {
    let house = House::empty(mode).await;
    let mut body = activity();
    body["name"] = json!("");
    body["late_payment"] = json!("keep");
    body["cancel_grace_ms"] = json!(-1);
    let answer = house.put("/v1/activities/a", &body).await;
    let pointers: Vec<&str> = answer.body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/name", "/cancel_grace_ms", "/late_payment"]);
}

async fn se_04_c_112_bodies_of_skus(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let with = |field: &str, value: Value| {
        let mut body = sku(5, 2);
        body[field] = value;
        body.to_string()
    };
    let price =
        |amount: Value, currency: Value| with("price", json!({ "amount": amount, "currency": currency }));
    let rows = [
        (with("stock", json!(-1)), 422, "invalid", "/stock"),
        (with("stock", json!(1_000_000_001)), 422, "invalid", "/stock"),
        (with("stock", json!(9_223_372_036_854_775_808_u64)), 422, "invalid", "/stock"),
        (with("per_user_limit", json!(0)), 422, "invalid", "/per_user_limit"),
        (with("buckets", json!(0)), 422, "invalid", "/buckets"),
        (with("buckets", json!(65)), 422, "invalid", "/buckets"),
        (price(json!(-1), json!("CNY")), 422, "invalid", "/price/amount"),
        (price(json!(1_000_000_000_000_001_i64), json!("CNY")), 422, "invalid", "/price/amount"),
        (price(json!(19.99), json!("CNY")), 400, "malformed", "/price/amount"),
        (price(json!("1999"), json!("CNY")), 400, "malformed", "/price/amount"),
        (price(json!(1999), json!("XXQ")), 422, "invalid", "/price/currency"),
        (price(json!(1999), json!("cny")), 422, "invalid", "/price/currency"),
        (price(json!(1999), json!(156)), 400, "malformed", "/price/currency"),
        (with("price", json!([1999, "CNY"])), 400, "malformed", "/price"),
        (with("price", json!({ "amount": 1 })), 400, "malformed", "/price/currency"),
        (with("price", json!({ "amount": 1, "currency": "CNY", "tax": 0 })), 400, "malformed", "/price/tax"),
        (with("stock", json!(6)), 409, "conflict", ""),
        (with("buckets", json!(2)), 409, "conflict", ""),
    ];
    let rows: Vec<Row<'_>> =
        rows.iter().map(|(body, status, code, pointer)| (body.as_str(), *status, *code, *pointer)).collect();
    walk(&house, Method::PUT, SKU, &rows).await;
}

async fn se_04_bodies_of_direct_orders(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let order = |lines: Value| json!({ "user_id": "u", "request_id": "r", "lines": lines }).to_string();
    let line =
        |sku: &str, quantity: i64| json!({ "activity_id": "sale", "sku_id": sku, "quantity": quantity });
    let many: Vec<Value> = (0..51).map(|number| line(&format!("s{number}"), 1)).collect();
    let rows = [
        (order(json!([])), 422, "invalid", "/lines"),
        (order(json!(many)), 422, "invalid", "/lines"),
        (order(json!({})), 400, "malformed", "/lines"),
        (order(json!([["sale", "cup", 1]])), 400, "malformed", "/lines/0"),
        (order(json!([line("cup", 0)])), 422, "invalid", "/lines/0/quantity"),
        (order(json!([line("cup", 1), line("a b", 1)])), 422, "invalid", "/lines/1/sku_id"),
        (order(json!([line("cup", 1), line("cup", 1)])), 422, "invalid", "/lines/1/sku_id"),
        (order(json!([{ "activity_id": 1, "sku_id": "cup" }])), 400, "malformed", "/lines/0/activity_id"),
        (order(json!([{ "sku_id": "cup" }])), 400, "malformed", "/lines/0/activity_id"),
        (order(json!([line("cup", 6)])), 409, "limit_reached", ""),
        (order(json!([line("none", 1)])), 404, "not_found", ""),
    ];
    let rows: Vec<Row<'_>> =
        rows.iter().map(|(body, status, code, pointer)| (body.as_str(), *status, *code, *pointer)).collect();
    walk(&house, Method::POST, "/v1/orders", &rows).await;
}

async fn se_04_media_types(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let table: [(&[&str], u16); 10] = [
        (&["application/json"], 202),
        (&["application/json; charset=utf-8"], 202),
        (&["Application/JSON;charset=\"UTF-8\""], 202),
        (&["application/json; charset=latin1"], 415),
        (&["application/json; version=1"], 415),
        (&["application/problem+json"], 415),
        (&["text/plain"], 415),
        (&["application/x-www-form-urlencoded"], 415),
        (&["application/json", "text/plain"], 415),
        (&[], 415),
    ];
    for (number, (types, status)) in table.iter().enumerate() {
        let mut request = Request::post(RESERVE);
        for value in *types {
            request = request.header("content-type", *value);
        }
        let body = buyer(&format!("u{number}"), "r").to_string();
        let answer = house.ask(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, *status, "{types:?}: {}", answer.body);
        if *status == 415 {
            answer.assert_problem();
            assert_eq!(answer.code(), "unsupported_media_type");
        }
    }
}

async fn se_04_paths_methods_and_parameters(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let id = "0190a5c4-0000-7000-8000-000000000000";
    let table = [
        (Method::GET, "/".to_owned(), 404, "not_found"),
        (Method::GET, "/v2/orders".to_owned(), 404, "not_found"),
        (Method::GET, "/v1/orders/".to_owned(), 404, "not_found"),
        (Method::DELETE, "/v1/orders".to_owned(), 405, "method_not_allowed"),
        (Method::PATCH, SKU.to_owned(), 405, "method_not_allowed"),
        (Method::GET, RESERVE.to_owned(), 405, "method_not_allowed"),
        (Method::OPTIONS, "/livez".to_owned(), 405, "method_not_allowed"),
        (Method::GET, format!("/v1/orders/{id}"), 404, "not_found"),
        (Method::GET, format!("/v1/orders/{id}/timeline"), 404, "not_found"),
        (Method::GET, format!("/v1/reservations/{id}"), 404, "not_found"),
        (Method::GET, "/v1/orders/7".to_owned(), 404, "not_found"),
        (Method::GET, format!("/v1/orders/%7B{id}%7D"), 404, "not_found"),
        (Method::GET, "/v1/orders/%ff".to_owned(), 404, "not_found"),
        (Method::GET, "/v1/activities/a%00b".to_owned(), 404, "not_found"),
        (Method::GET, "/v1/activities/none".to_owned(), 404, "not_found"),
        (Method::GET, "/v1/activities/sale/skus/none".to_owned(), 404, "not_found"),
        (Method::GET, format!("/v1/reservations/{id}?wait_ms=10001"), 422, "invalid"),
        (Method::GET, format!("/v1/reservations/{id}?wait_ms=-1"), 422, "invalid"),
        (Method::GET, format!("/v1/reservations/{id}?wait_ms="), 422, "invalid"),
        (Method::GET, format!("/v1/reservations/{id}?wait_ms=99999999999999999999"), 422, "invalid"),
        (Method::GET, format!("/v1/reservations/{id}?wait=1"), 400, "malformed"),
        (Method::GET, "/v1/orders?limit=0".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?limit=201".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?limit=+1".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?after=x".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?user_id=a%20b".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?user_id=%ff".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?status=created".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/orders?limit=1&limit=2".to_owned(), 400, "malformed"),
        (Method::GET, "/v1/orders?page=2".to_owned(), 400, "malformed"),
        (Method::GET, "/livez?x=1".to_owned(), 400, "malformed"),
        (Method::GET, "/v1/ops/dead-letters?after=x".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/ops/dead-letters?after=send_due%7Cx".to_owned(), 422, "invalid"),
        (Method::POST, "/v1/ops/dead-letters/none/replay".to_owned(), 404, "not_found"),
        (Method::POST, "/v1/ops/queues/none/pause".to_owned(), 404, "not_found"),
        (Method::POST, "/v1/ops/queues/dead%2Foutbox/resume".to_owned(), 404, "not_found"),
        (Method::POST, "/v1/ops/queues/%00/resume".to_owned(), 404, "not_found"),
        (Method::GET, "/v1/ops/queues/outbox/pause".to_owned(), 405, "method_not_allowed"),
        (Method::GET, "/v1/ops/notices?after=x".to_owned(), 422, "invalid"),
        (Method::GET, "/v1/ops/notices?limit=0".to_owned(), 422, "invalid"),
    ];
    for (method, path, status, code) in table {
        let answer = house
            .ask(Request::builder().method(method.clone()).uri(&path).body(Body::empty()).unwrap())
            .await;
        assert_eq!((answer.status, answer.code()), (status, code), "{method} {path}: {}", answer.body);
        answer.assert_problem();
        assert_eq!(answer.header("allow").is_empty(), status != 405, "{method} {path}");
    }
    let put = house.put("/v1/activities/a%20b", &activity()).await;
    assert_eq!((put.status, put.code(), put.pointer()), (422, "invalid", "/activity_id"));
    let post = house.post("/v1/activities/a%20b/skus/cup/reservations", &buyer("u", "r")).await;
    assert_eq!((post.status, post.code()), (404, "not_found"));
}

async fn se_04_c_101_idempotency_keys(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let body = json!({ "delta": 3, "reason": "found more" });
    assert_eq!(house.post(ADJUST, &body).await.code(), "idempotency_key_required");
    assert_eq!(house.post_with_key(ADJUST, "two words", &body).await.code(), "idempotency_key_required");

    let first = house.post_with_key(ADJUST, "k-1", &body).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (201, ""), "{}", first.body);
    assert_eq!(first.body["stock"]["initial"], 8);
    let same = json!({ "reason": "found more", "delta": 3 });
    let again = house.post_with_key(ADJUST, "k-1", &same).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, "true"));
    assert_eq!(again.bytes, first.bytes);
    let other = house.post_with_key(ADJUST, "k-1", &json!({ "delta": 4, "reason": "found more" })).await;
    assert_eq!((other.status, other.code()), (422, "idempotency_key_reused"));
    other.assert_problem();

    let refused = house.post_with_key(ADJUST, "k-2", &json!({ "delta": -9, "reason": "lost" })).await;
    assert_eq!((refused.status, refused.code()), (409, "insufficient_stock"));
    refused.assert_problem();
    let replayed = house.post_with_key(ADJUST, "k-2", &json!({ "delta": -9, "reason": "lost" })).await;
    assert_eq!((replayed.bytes.clone(), replayed.header("idempotency-replayed")), (refused.bytes, "true"));
    replayed.assert_problem();
    assert_eq!(house.get(SKU).await.body["stock"]["initial"], 8);
}

async fn se_04_bodies_of_adjustments_and_cancels(mode: Mode) {
    let house = House::selling(mode, 5, 2).await;
    let table = [
        (json!({ "delta": 0, "reason": "x" }), 422, "/delta"),
        (json!({ "delta": 1_000_000_001, "reason": "x" }), 422, "/delta"),
        (json!({ "delta": 1, "reason": "" }), 422, "/reason"),
        (json!({ "delta": 1, "reason": "x".repeat(501) }), 422, "/reason"),
        (json!({ "delta": 1 }), 400, "/reason"),
        (json!({ "delta": "1", "reason": "x" }), 400, "/delta"),
    ];
    for (number, (body, status, pointer)) in table.iter().enumerate() {
        let answer = house.post_with_key(ADJUST, &format!("k-{number}"), body).await;
        assert_eq!((answer.status, answer.pointer()), (*status, *pointer), "{body}");
    }
    let path = "/v1/orders/0190a5c4-0000-7000-8000-000000000000/cancel";
    assert_eq!(house.post(path, &json!({})).await.pointer(), "/reason");
    assert_eq!(house.post(path, &json!({ "reason": "a\nb" })).await.pointer(), "/reason");
    assert_eq!(house.post(path, &json!({ "reason": "x" })).await.status, 404);
}
