//! The gate as an operator sees it, over HTTP (FS-18). A gate that can lose something is asked in `crates/cli/tests/redis_loss.rs`.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use house::{House, RESERVE, buyer};
use onceward_ground::Mode;
use serde_json::{Value, json};

const GATES: &str = "/v1/ops/admission";

async fn rebuild(house: &House, sku: &str) -> house::Answer {
    house.post(&format!("{GATES}/{sku}/rebuild"), &json!({})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fs_18_a_gate_that_lives_in_the_store_is_shown_and_has_nothing_to_rebuild() {
    let house = House::selling(Mode::Embedded, 5, 1).await;
    assert_eq!(house.post(RESERVE, &buyer("u1", "r1")).await.status, 202);
    let sku = house::SKU.strip_prefix("/v1/activities/").unwrap().replace("/skus", "");
    let shown = house.get(&format!("{GATES}/{sku}")).await;
    let expected = json!({
        "activity_id": "sale", "sku_id": sku.rsplit('/').next(), "open": true, "in_store": true, "buckets": 1,
        "closed_buckets": 0, "epoch": 0, "retired": false, "stock": { "initial": 5, "available": 5, "occupied": 0, "sold": 0 },
        "admission": { "available": 4, "open_reserved": 1, "committed": 0 },
    });
    assert_eq!((shown.status, &shown.body), (200, &expected));
    for _twice in 0..2 {
        let rebuilt = rebuild(&house, &sku).await;
        assert_eq!((rebuilt.status, &rebuilt.body), (200, &expected));
    }
    for absent in [house.get(&format!("{GATES}/sale/none")).await, rebuild(&house, "none/none").await] {
        assert_eq!((absent.status, absent.code()), (404, "not_found"));
        absent.assert_problem();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fs_18_gates_are_listed_page_by_page() {
    let house = House::empty(Mode::Embedded).await;
    assert_eq!(house.put("/v1/activities/sale", &house::activity()).await.status, 201);
    for sku in ["b", "a", "c"] {
        let path = format!("/v1/activities/sale/skus/{sku}");
        assert_eq!(house.put(&path, &house::sku(1, 1)).await.status, 201);
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = house.get(&format!("{GATES}?limit=2{after}")).await.body;
        found.extend(page["data"].as_array().unwrap().iter().map(|one| one["sku_id"].clone()));
        let Value::String(next) = &page["next"] else { break };
        after = format!("&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(found, ["a", "b", "c"]);
    let strange = house.get(&format!("{GATES}?after=nonsense")).await;
    assert_eq!((strange.status, strange.code()), (422, "invalid"));
}
