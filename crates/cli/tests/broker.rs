//! `onceward serve` over a real RocketMQ broker (EM-02, OT-10).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use house::{Folder, Server, comes_true, onceward};
use onceward_testkit::services;
use serde_json::{Value, json};

fn serve(folder: &Folder, broker: &str) -> Server {
    let mut command = onceward();
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--deadline-trigger", "broker", "--data"]);
    command.arg(folder.path()).env("ONCEWARD_BROKER_URL", broker);
    Server::spawn(&mut command).unwrap_or_else(|said| panic!("it did not start: {said:?}"))
}

fn open_sale(server: &Server, activity: &str, window_ms: i64) {
    let sale = json!({
        "name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2040-01-01T00:00:00Z",
        "payment_window_ms": window_ms, "cancel_grace_ms": 0,
    });
    assert_eq!(server.put(&format!("/v1/activities/{activity}"), &sale).0, 201);
    let sku = json!({ "stock": 5, "price": { "amount": 1999, "currency": "CNY" }, "per_user_limit": 1 });
    assert_eq!(server.put(&format!("/v1/activities/{activity}/skus/cup"), &sku).0, 201);
}

#[test]
fn em_02_ot_10_a_reservation_becomes_an_order_and_expires_over_a_real_broker() {
    let broker = services::address("rocketmq", "ONCEWARD_TEST_BROKER_URL");
    let folder = Folder::new("broker");
    let server = serve(&folder, &broker);
    assert!(server.said.iter().any(|line| line.starts_with("broker: RocketMQ at ")), "{:?}", server.said);
    open_sale(&server, "sale", 5_000);
    let wish = json!({ "user_id": "u1", "request_id": "r1", "quantity": 1 });
    let (status, receipt) = server.post("/v1/activities/sale/skus/cup/reservations", &wish);
    assert_eq!(status, 202, "{receipt}");
    let reservation =
        format!("/v1/reservations/{}?wait_ms=5000", receipt["reservation_id"].as_str().unwrap());
    let mut order = Value::Null;
    comes_true("the order is made", || {
        order = server.get(&reservation).1["order_id"].clone();
        order.is_string()
    });
    let order = format!("/v1/orders/{}", order.as_str().unwrap());
    comes_true("the order expires", || server.get(&order).1["status"] == "CANCELLED");
    comes_true("all is projected", || {
        let sku = server.get("/v1/activities/sale/skus/cup").1;
        sku["admission"] == json!({ "available": 5, "open_reserved": 0, "committed": 0 })
    });
    assert_eq!(server.get("/v1/ops/invariants").1["holds"], true);
}
