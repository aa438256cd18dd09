//! The flash sale and orders over HTTP, from the first PUT to the cancelled order.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use house::{House, RESERVE, SKU, activity, buyer, sku};
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

in_every_mode! {
    puts_are_idempotent_and_say_what_differs,
    fs_01_fs_02_reservations_are_answered_in_the_order_of_the_checks,
    ot_01_ot_12_a_reservation_becomes_an_order_that_can_be_cancelled,
    ot_02_direct_orders_are_keyed_by_user_and_request,
    lists_are_paged_newest_first_and_stable,
    operators_and_machines_are_answered,
}

async fn puts_are_idempotent_and_say_what_differs(mode: Mode) {
    let house = House::empty(mode).await;
    assert_eq!(house.put(SKU, &sku(5, 1)).await.code(), "not_found");
    let made = house.put("/v1/activities/sale", &activity()).await;
    assert_eq!(made.status, 201);
    let expected = json!({
        "activity_id": "sale", "name": "Sale",
        "starts_at": "2026-11-10T00:00:00.000Z", "ends_at": "2026-11-12T00:00:00.000Z",
        "payment_window_ms": 900_000, "cancel_grace_ms": 300_000, "reservation_deadline_ms": 300_000,
        "confirm_after_cancel_ms": 45_000, "late_payment": "refund", "cancelled_frees_limit": true,
    });
    assert_eq!(made.body, expected);
    let mut same = activity();
    same["starts_at"] = json!("2026-11-10T08:00:00+08:00");
    same["late_payment"] = json!("refund");
    assert_eq!(house.put("/v1/activities/sale", &same).await.status, 200);
    same["name"] = json!("Other");
    let other = house.put("/v1/activities/sale", &same).await;
    assert_eq!((other.status, other.code()), (409, "conflict"));
    assert_eq!(house.get("/v1/activities/sale").await.body, expected);

    assert_eq!(house.put(SKU, &sku(5, 1)).await.status, 201);
    assert_eq!(house.put(SKU, &sku(5, 1)).await.status, 200);
    let changed = house.put(SKU, &sku(5, 3)).await;
    assert_eq!((changed.status, &changed.body["per_user_limit"]), (200, &json!(3)));
    assert_eq!(house.put(SKU, &sku(6, 3)).await.code(), "conflict");
    let expected = json!({
        "activity_id": "sale", "sku_id": "cup", "price": { "amount": 1999, "currency": "CNY" },
        "per_user_limit": 3, "buckets": 1,
        "stock": { "initial": 5, "available": 5, "occupied": 0, "sold": 0 },
        "admission": { "available": 5, "open_reserved": 0, "committed": 0 },
    });
    assert_eq!(house.get(SKU).await.body, expected);
}

async fn fs_01_fs_02_reservations_are_answered_in_the_order_of_the_checks(mode: Mode) {
    let house = House::selling(mode, 2, 1).await;
    let first = house.post(RESERVE, &buyer("u1", "r1")).await;
    assert_eq!((first.status, first.code(), &first.body["status"]), (202, "QUEUED", &json!("RESERVED")));
    let again = house.post(RESERVE, &buyer("u1", "r1")).await;
    assert_eq!((again.status, again.code()), (200, "QUEUED"));
    assert_eq!(again.body["reservation_id"], first.body["reservation_id"]);

    let conflict = json!({ "user_id": "u1", "request_id": "r1", "quantity": 2 });
    assert_eq!(house.post(RESERVE, &conflict).await.code(), "request_conflict");
    let second = house.post(RESERVE, &buyer("u1", "r2")).await;
    assert_eq!((second.status, second.code()), (409, "limit_reached"));
    assert_eq!(second.body["reservation_id"], first.body["reservation_id"]);
    assert_eq!(house.post(RESERVE, &json!({ "user_id": "u2", "request_id": "r" })).await.status, 202);
    let late = house.post(RESERVE, &buyer("u3", "r")).await;
    assert_eq!((late.status, late.code()), (409, "sold_out"));
    late.assert_problem();
    let nowhere = house.post("/v1/activities/sale/skus/none/reservations", &buyer("u", "r")).await;
    assert_eq!(nowhere.code(), "not_found");

    house.clock.set(onceward_domain::time::Timestamp(house::NOON + 86_400_000));
    assert_eq!(house.post(RESERVE, &buyer("u4", "r")).await.code(), "not_open");
    assert_eq!(house.post(RESERVE, &buyer("u1", "r1")).await.status, 200, "a repeat is known after the end");
}

fn without(mut body: Value, fields: &[&str]) -> Value {
    for field in fields {
        body.as_object_mut().unwrap().remove(*field);
    }
    body
}

async fn ot_01_ot_12_a_reservation_becomes_an_order_that_can_be_cancelled(mode: Mode) {
    let house = House::selling(mode, 2, 1).await;
    let receipt = house.post(RESERVE, &buyer("u1", "r1")).await;
    let reservation = receipt.body["reservation_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/reservations/{reservation}");
    let open = house.get(&path).await;
    assert_eq!(open.body["status"], "RESERVED");
    assert_eq!((&open.body["order_id"], &open.body["reason_code"]), (&Value::Null, &Value::Null));
    assert_eq!(open.body["reserved_at"], "2026-11-11T00:00:00.000Z");
    assert_eq!(open.body["business_deadline"], "2026-11-11T00:05:00.000Z");

    house.rest().await;
    let created = house.get(&format!("{path}?wait_ms=10000")).await;
    assert_eq!(created.body["status"], "ORDER_CREATED");
    let order_path = format!("/v1/orders/{}", created.body["order_id"].as_str().unwrap());
    let order = house.get(&order_path).await;
    let expected = json!({
        "user_id": "u1", "request_id": "r1", "reservation_id": reservation, "status": "CREATED",
        "lines": [{ "activity_id": "sale", "sku_id": "cup", "quantity": 1,
            "unit_price": { "amount": 1999, "currency": "CNY" } }],
        "total": { "amount": 1999, "currency": "CNY" }, "paid": { "amount": 0, "currency": "CNY" },
        "refunded": { "amount": 0, "currency": "CNY" },
        "expires_at": "2026-11-11T00:15:00.000Z", "cancel_due_at": "2026-11-11T00:20:00.000Z",
        "created_at": "2026-11-11T00:00:00.000Z",
        "paid_at": null, "cancelled_at": null, "cancel_reason": null,
    });
    assert_eq!(without(order.body.clone(), &["order_id", "updated_at"]), expected);
    let timeline = house.get(&format!("{order_path}/timeline")).await;
    let first = &timeline.body["data"][0];
    for field in ["at", "kind", "from", "to", "cause", "actor", "ref"] {
        assert!(first.get(field).is_some(), "{field} is missing in {first}");
    }

    let cancel = format!("{order_path}/cancel");
    let cancelled = house.post(&cancel, &json!({ "reason": "changed my mind" })).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    assert!(["CANCEL_PENDING", "CANCELLED"].contains(&cancelled.body["status"].as_str().unwrap()));
    house.rest().await;
    let again = house.post(&cancel, &json!({ "reason": "changed my mind" })).await;
    assert_eq!((again.status, &again.body["status"]), (200, &json!("CANCELLED")));
    assert_eq!(again.body["cancel_reason"], "changed my mind");
    let stock = &house.get(SKU).await.body["stock"];
    assert_eq!(*stock, json!({ "initial": 2, "available": 2, "occupied": 0, "sold": 0 }));
    assert_eq!(house.get("/v1/ops/invariants").await.body["holds"], true);
}

async fn ot_02_direct_orders_are_keyed_by_user_and_request(mode: Mode) {
    let house = House::selling(mode, 5, 3).await;
    let order = |quantity: i64| {
        let lines = json!([{ "activity_id": "sale", "sku_id": "cup", "quantity": quantity }]);
        json!({ "user_id": "u", "request_id": "r", "lines": lines })
    };
    let first = house.post("/v1/orders", &order(2)).await;
    assert_eq!((first.status, &first.body["reservation_id"]), (201, &Value::Null), "{}", first.body);
    assert_eq!(first.body["total"]["amount"], 3998);
    let again = house.post("/v1/orders", &order(2)).await;
    assert_eq!((again.status, &again.body["order_id"]), (200, &first.body["order_id"]));
    assert_eq!(house.post("/v1/orders", &order(1)).await.code(), "request_conflict");
}

async fn lists_are_paged_newest_first_and_stable(mode: Mode) {
    let house = House::selling(mode, 9, 1).await;
    let place = async |user: &str| {
        let lines = json!([{ "activity_id": "sale", "sku_id": "cup" }]);
        let body = json!({ "user_id": user, "request_id": "r", "lines": lines });
        assert_eq!(house.post("/v1/orders", &body).await.status, 201);
    };
    for user in ["u1", "u2", "u3", "u4", "u5"] {
        place(user).await;
    }
    let users = |page: &Value| -> Vec<String> {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["user_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = house.get("/v1/orders?limit=2&activity_id=sale").await.body;
    assert_eq!(users(&first), ["u5", "u4"]);
    place("u6").await;
    let second =
        house.get(&format!("/v1/orders?limit=2&after={}", first["next"].as_str().unwrap())).await.body;
    assert_eq!(users(&second), ["u3", "u2"]);
    let last =
        house.get(&format!("/v1/orders?limit=2&after={}", second["next"].as_str().unwrap())).await.body;
    assert_eq!((users(&last), &last["next"]), (vec!["u1".to_owned()], &Value::Null));
    let all = house.get("/v1/orders?limit=6").await.body;
    assert_eq!(all["next"], Value::Null, "exactly as many rows as the page holds are the last page");
    assert_eq!(users(&house.get("/v1/orders?user_id=u3&status=CREATED").await.body), ["u3"]);
    assert_eq!(users(&house.get("/v1/orders?status=PAID").await.body), [""; 0]);
}

async fn operators_and_machines_are_answered(mode: Mode) {
    let house = House::selling(mode, 2, 1).await;
    house.post(RESERVE, &buyer("u", "r")).await;
    assert_eq!(house.get("/livez").await.body, json!({ "status": "ok" }));
    assert_eq!(house.get("/readyz").await.status, 200);
    assert_eq!(
        house.get("/metrics").await.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert_eq!(house.get("/openapi.json").await.body["openapi"], "3.1.0");
    let overview = house.get("/v1/ops/overview").await.body;
    assert_eq!(overview["now"], "2026-11-11T00:00:00.000Z");
    assert_eq!(overview["skus"][0]["admission"]["open_reserved"], 1);
    let queues = house.get("/v1/ops/queues").await.body;
    assert!(queues["data"].as_array().unwrap().iter().any(|queue| queue["name"] == "send_due"), "{queues}");
    assert_eq!(house.get("/v1/ops/dead-letters").await.body, json!({ "data": [], "next": null }));
    let invariants = house.get("/v1/ops/invariants").await.body;
    assert!(
        invariants["checks"].as_array().unwrap().iter().all(|check| check["holds"] == true),
        "{invariants}"
    );
}
