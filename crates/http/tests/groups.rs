//! Group orders over HTTP: the contract of api.md, with the sandbox bank behind it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;
mod shop;

use axum::body::Body;
use axum::http::{Method, Request};
use house::Answer;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};
use shop::{Shop, money};

const GROUP: &str = "/v1/groups/g";

fn terms(via: &str, least: i64) -> Value {
    json!({
        "leader_user_id": "lea", "deadline": "2026-11-11T00:01:00Z", "charge_via": via, "currency": "CNY",
        "min_participants": least,
    })
}

async fn join(shop: &Shop, user: &str, amount: i64) -> Answer {
    shop.put(&format!("{GROUP}/participants/{user}"), &json!({ "amount": money(amount) })).await
}

async fn leave(shop: &Shop, user: &str) -> Answer {
    let path = format!("{GROUP}/participants/{user}");
    shop.ask(Request::builder().method(Method::DELETE).uri(path).body(Body::empty()).unwrap()).await
}

async fn gathered(mode: Mode, via: &str, users: &[&str]) -> Shop {
    let shop = Shop::selling(mode).await;
    assert_eq!(shop.put(GROUP, &terms(via, 1)).await.status, 201);
    for user in users {
        assert_eq!(join(&shop, user, 10).await.status, 201);
    }
    shop
}

fn charges(group: &Value) -> Vec<&str> {
    let rows = group["participants"].as_array().unwrap().iter();
    rows.map(|row| row["charge"].as_str().unwrap()).collect()
}

in_every_mode! {
    gs_01_a_group_order_from_its_making_to_its_settlement,
    gs_06_a_failed_group_is_settled_by_hand_and_by_nobody_else,
    gs_05_declined_and_unknown_are_shown,
    se_04_bad_group_orders_are_refused_with_every_fault,
}

async fn gs_01_a_group_order_from_its_making_to_its_settlement(mode: Mode) {
    let shop = gathered(mode, "sandbox", &["ann", "bob"]).await;
    assert_eq!(shop.put(GROUP, &terms("sandbox", 1)).await.status, 200);
    let other = shop.put(GROUP, &terms("sandbox", 2)).await;
    assert_eq!((other.status, other.code()), (409, "conflict"));
    assert_eq!(join(&shop, "ann", 10).await.status, 200);
    assert_eq!(
        (join(&shop, "ann", 11).await.code().to_owned(), leave(&shop, "cid").await.status),
        ("conflict".to_owned(), 404)
    );
    join(&shop, "cid", 3).await;
    assert_eq!(leave(&shop, "cid").await.status, 204);
    let open = shop.get(GROUP).await.body;
    assert_eq!((&open["status"], &open["deadline"]), (&json!("OPEN"), &json!("2026-11-11T00:01:00.000Z")));
    assert_eq!(
        (&open["attempts"], &open["next_attempt_at"], &open["last_error"]),
        (&json!(0), &Value::Null, &Value::Null)
    );
    assert_eq!(charges(&open), ["NONE", "NONE"]);
    shop.pass(60_000).await;
    let settled = shop.get(GROUP).await.body;
    assert_eq!((&settled["status"], charges(&settled)), (&json!("SETTLED"), vec!["CHARGED", "CHARGED"]));
    let taken = shop.get("/sandbox/customers/ann/charges").await.body;
    assert_eq!(taken["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&taken["data"][0]["charge_id"], &taken["data"][0]["amount"]),
        (&json!("settle:g:ann"), &money(10))
    );
    for answer in [join(&shop, "dan", 1).await, leave(&shop, "ann").await] {
        answer.assert_problem();
        assert_eq!((answer.status, answer.code()), (409, "group_closed"));
        assert_eq!(answer.body["group_status"], "SETTLED");
    }
    let timeline = shop.get("/v1/groups/g/timeline").await.body;
    let causes: Vec<&str> =
        timeline["data"].as_array().unwrap().iter().map(|line| line["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["made", "closed", "settled"]);
    let listed = shop.get("/v1/groups?status=SETTLED").await.body;
    assert_eq!(
        (&listed["data"][0]["group_id"], &listed["data"][0]["participant_count"]),
        (&json!("g"), &json!(2))
    );
    shop.assert_invariants().await;
}

async fn gs_06_a_failed_group_is_settled_by_hand_and_by_nobody_else(mode: Mode) {
    let shop = gathered(mode, "sandbox", &["ann"]).await;
    let early = shop.post_with_key(&format!("{GROUP}/settle"), "early", &json!({})).await;
    assert_eq!(
        (early.status, early.code(), &early.body["group_status"]),
        (409, "group_not_retryable", &json!("OPEN"))
    );
    shop.mode(json!({ "charge": "error" })).await;
    shop.pass(60_000).await;
    let waiting = shop.get(GROUP).await.body;
    assert_eq!((&waiting["status"], charges(&waiting)), (&json!("CLOSED"), vec!["PENDING"]));
    assert_eq!(waiting["next_attempt_at"], "2026-11-11T00:01:01.000Z");
    assert!(waiting["last_error"].is_string());
    for _ in 0..40 {
        shop.pass(1_000).await;
    }
    assert_eq!(shop.get(GROUP).await.body["status"], "FAILED");
    shop.mode(json!({ "charge": "timeout_after_effect" })).await;
    let path = format!("{GROUP}/settle");
    assert_eq!(shop.post(&path, &json!({})).await.code(), "idempotency_key_required");
    let first = shop.post_with_key(&path, "k", &json!({})).await;
    assert_eq!((first.status, &first.body["status"]), (202, &json!("CLOSED")));
    let again = shop.post_with_key(&path, "k", &json!({})).await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed"), &again.bytes),
        (202, "true", &first.bytes)
    );
    shop.rest().await;
    let settled = shop.get(GROUP).await.body;
    assert_eq!((&settled["status"], charges(&settled)), (&json!("SETTLED"), vec!["CHARGED"]));
    assert_eq!(shop.get("/sandbox/customers/ann/charges").await.body["data"].as_array().unwrap().len(), 1);
}

async fn gs_05_declined_and_unknown_are_shown(mode: Mode) {
    let shop = gathered(mode, "sandbox", &["ann"]).await;
    shop.mode(json!({ "charge": "timeout", "query": "timeout" })).await;
    shop.pass(60_000).await;
    assert_eq!(charges(&shop.get(GROUP).await.body), ["UNKNOWN"]);
    shop.mode(json!({ "charge": "decline", "query": "ok" })).await;
    shop.pass(1_000).await;
    let settled = shop.get(GROUP).await.body;
    assert_eq!((&settled["status"], charges(&settled)), (&json!("SETTLED"), vec!["DECLINED"]));
    assert_eq!(shop.get("/sandbox/customers/ann/charges").await.body, json!({ "data": [] }));
}

async fn se_04_bad_group_orders_are_refused_with_every_fault(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let with = |name: &str, value: Value| {
        let mut body = terms("sandbox", 1);
        body[name] = value;
        body
    };
    let table = [
        (with("deadline", json!("tomorrow")), 422, "/deadline"),
        (with("deadline", json!("2026-11-11T00:00:00Z")), 422, "/deadline"),
        (with("charge_via", json!("nobody")), 422, "/charge_via"),
        (with("currency", json!("XXQ")), 422, "/currency"),
        (with("min_participants", json!(0)), 422, "/min_participants"),
        (with("min_participants", json!(5_001)), 422, "/min_participants"),
        (with("leader_user_id", json!("no spaces")), 422, "/leader_user_id"),
        (with("leader_user_id", json!(7)), 400, "/leader_user_id"),
        (with("more", json!(1)), 400, "/more"),
    ];
    for (body, status, pointer) in table {
        let answer = shop.put(GROUP, &body).await;
        assert_eq!((answer.status, answer.pointer()), (status, pointer), "{body}: {}", answer.body);
    }
    assert_eq!(shop.get(GROUP).await.status, 404, "nothing was made");
    assert_eq!(join(&shop, "ann", 1).await.status, 404);
    assert_eq!(shop.put(GROUP, &terms("wallet", 1)).await.status, 201);
    let wrong = json!({ "amount": { "amount": 1, "currency": "KWD" } });
    assert_eq!(shop.put(&format!("{GROUP}/participants/ann"), &wrong).await.pointer(), "/amount/currency");
    assert_eq!(join(&shop, "ann", 0).await.pointer(), "/amount/amount");
    assert_eq!(join(&shop, "no%20spaces", 1).await.pointer(), "/user_id");
    assert_eq!(shop.get("/v1/groups?status=DONE").await.pointer(), "/status");
    assert_eq!(shop.get("/v1/groups/none/timeline").await.status, 404);
}
