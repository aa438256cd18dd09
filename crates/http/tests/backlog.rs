//! Closed admission over HTTP: what buyers hear, and what whoever watches sees (FS-16).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use house::{House, RESERVE, buyer};
use onceward::workers::Worker;
use onceward_domain::time::Millis;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

async fn look(house: &House) -> Value {
    Worker::Governor.step(&house.engine).await.unwrap();
    let ready = house.get("/readyz").await;
    assert_eq!((ready.status, &ready.body["status"]), (200, &json!("ok")), "everything else is answered");
    ready.body["admission"].clone()
}

async fn post(house: &House, path: &str) {
    assert_eq!(house.post(path, &json!({})).await.status, 204);
}

in_every_mode! {
    fs_16_closed_admission_is_backlog_with_a_time_to_come_back_and_readyz_says_why,
}

async fn fs_16_closed_admission_is_backlog_with_a_time_to_come_back_and_readyz_says_why(mode: Mode) {
    let house = House::selling(mode, 5, 1).await;
    let open = json!({ "open": true, "reason": null, "unsent": 0, "oldest_unsent_ms": 0, "undecided": 0, "drain_ms": 0, "rebuilding": 0 });
    assert_eq!(look(&house).await, open);
    post(&house, "/v1/ops/queues/send_due/pause").await;
    assert_eq!(house.post(RESERVE, &buyer("u1", "r1")).await.status, 202);
    house.clock.advance(Millis(15_001));
    let closed = look(&house).await;
    let expected = json!({ "open": false, "reason": "outage", "unsent": 1, "oldest_unsent_ms": 15_001, "undecided": 1, "drain_ms": null, "rebuilding": 0 });
    assert_eq!(closed, expected);

    let refused = house.post(RESERVE, &buyer("u2", "r2")).await;
    assert_eq!((refused.status, refused.code(), refused.header("retry-after")), (503, "backlog", "5"));
    refused.assert_problem();
    let known = house.post(RESERVE, &buyer("u1", "r1")).await;
    assert_eq!(known.status, 200, "who was let in is known: {}", known.body);
    let conflict = house.post(RESERVE, &json!({ "user_id": "u1", "request_id": "r1", "quantity": 2 })).await;
    assert_eq!((conflict.status, conflict.code()), (409, "request_conflict"));

    post(&house, "/v1/ops/queues/send_due/resume").await;
    house.pass(10_000).await;
    assert_eq!(look(&house).await["open"], true);
    assert_eq!(house.post(RESERVE, &buyer("u2", "r2")).await.status, 202);
}
