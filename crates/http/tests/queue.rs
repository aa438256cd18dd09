//! Due work over HTTP: queues, pauses, dead letters and notices, as an operator sees them (LQ-05, LQ-06).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::sync::Arc;

use house::{House, RESERVE, buyer};
use onceward_domain::due::{ClaimRequest, Lane, Sequence};
use onceward_domain::ports::due_queue::{ClaimWork, Due, NewWork};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Millis;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

const NOTHING: &str = "";

async fn queue(house: &House, name: &str) -> Value {
    let all = house.get("/v1/ops/queues").await.body;
    let found = all["data"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("{name} is not in {all}"))
}

async fn post(house: &House, path: &str) -> u16 {
    let request = axum::http::Request::post(path).body(axum::body::Body::from(NOTHING)).unwrap();
    house.ask(request).await.status
}

in_every_mode! {
    lq_06_a_paused_queue_is_shown_keeps_its_work_and_goes_on_where_it_stopped,
    lq_06_a_name_with_slashes_is_paused_too,
    lq_05_an_exhaustion_is_a_dead_letter_with_one_notice_and_is_replayed_by_a_person,
}

async fn lq_06_a_paused_queue_is_shown_keeps_its_work_and_goes_on_where_it_stopped(mode: Mode) {
    let house = House::selling(mode, 5, 1).await;
    assert_eq!(queue(&house, "send_due").await["size"], 0, "a queue is listed also while it is empty");
    for _twice in 0..2 {
        assert_eq!(post(&house, "/v1/ops/queues/send_due/pause").await, 204);
    }
    assert_eq!(house.post(RESERVE, &buyer("u1", "r1")).await.status, 202);
    house.rest().await;
    let paused = queue(&house, "send_due").await;
    assert_eq!((&paused["paused"], &paused["size"], &paused["leased"]), (&json!(true), &json!(1), &json!(0)));
    assert_eq!(paused["last_claim_at"], Value::Null);
    for _twice in 0..2 {
        assert_eq!(post(&house, "/v1/ops/queues/send_due/resume").await, 204);
    }
    house.clock.advance(Millis(10));
    house.rest().await;
    let running = queue(&house, "send_due").await;
    assert_eq!((&running["paused"], &running["size"]), (&json!(false), &json!(0)));
    let bus = queue(&house, "bus/onceward-order-create/order-consumer").await;
    assert_eq!(bus["size"], 0, "its work was done");
}

async fn lq_06_a_name_with_slashes_is_paused_too(mode: Mode) {
    let house = House::empty(mode).await;
    let name = "bus/onceward-events/projector";
    let path = format!("/v1/ops/queues/{}/pause", name.replace('/', "%2F"));
    assert_eq!(post(&house, &path).await, 204);
    assert_eq!(queue(&house, name).await["paused"], true);
}

async fn lq_05_an_exhaustion_is_a_dead_letter_with_one_notice_and_is_replayed_by_a_person(mode: Mode) {
    let house = House::empty(mode).await;
    let queue_port = house.engine.queue();
    let lane = Lane::new("own-work");
    let work = NewWork { member: Arc::from("m1"), due: Due::After(Millis(0)), body: b"\x01\x02".to_vec() };
    queue_port.put(lane.clone(), vec![work]).await.unwrap();
    let once = RetryPolicy { attempts: Some(1), ..RetryPolicy::default() };
    for expected in [1, 0] {
        let request = ClaimWork { lane: lane.clone(), limit: 5, lease: Millis(1_000), policy: once };
        assert_eq!(queue_port.claim(request).await.unwrap().len(), expected);
        house.clock.advance(Millis(1_000));
    }
    let shown = queue(&house, "own-work").await;
    assert_eq!((&shown["size"], &shown["exhausted"]), (&json!(0), &json!(1)));
    let letters = house.get("/v1/ops/dead-letters").await.body;
    assert_eq!(letters["data"][0]["id"], "m1");
    assert_eq!(letters["data"][0]["queue"], "dead/own-work");
    assert_eq!(letters["data"][0]["body_hex"], "0102");
    let notices = house.get("/v1/ops/notices").await.body;
    assert_eq!((notices["data"].as_array().unwrap().len(), &notices["next"]), (1, &Value::Null));
    let notice = &notices["data"][0];
    assert_eq!((&notice["kind"], &notice["status"]), (&json!("work.exhausted"), &json!("PENDING")));
    assert_eq!((&notice["subject"], &notice["user_id"]), (&json!("own-work|m1"), &Value::Null));
    assert_eq!(post(&house, "/v1/ops/dead-letters/m1/replay").await, 204);
    assert_eq!(post(&house, "/v1/ops/dead-letters/m1/replay").await, 404, "an exhaustion is replayed once");
    let request = ClaimRequest { lane, limit: 5, lease: Millis(1_000), sequence: Sequence::ByDue };
    let claims = house.store.claim_due(request).await.unwrap();
    assert_eq!((claims.len(), claims[0].attempts), (1, 1), "tries are fresh");
    assert_eq!(house.get("/v1/ops/notices").await.body, notices, "a replay tells nobody");
}
