//! What callers are shown of orders whose money went its own way, and what a first refusal says.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;
mod shop;

use house::{ADJUST, House};
use onceward_domain::money::AMOUNT_LIMIT;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};
use shop::{Shop, money};

in_every_mode! {
    se_04_an_order_paid_twice_is_shown_above_the_limit_of_one_amount,
    a_first_refusal_under_a_key_has_one_request_id,
    ot_09_the_refunds_of_an_order_come_in_pages_newest_first,
}

async fn se_04_an_order_paid_twice_is_shown_above_the_limit_of_one_amount(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let dear = json!({ "stock": 5, "price": money(AMOUNT_LIMIT), "per_user_limit": 1 });
    assert_eq!(shop.put("/v1/activities/sale/skus/palace", &dear).await.status, 201);
    let lines = json!([{ "activity_id": "sale", "sku_id": "palace" }]);
    let placed = shop.post("/v1/orders", &json!({ "user_id": "u", "request_id": "r", "lines": lines })).await;
    let order = format!("/v1/orders/{}", placed.body["order_id"].as_str().unwrap());
    let first = shop.started(&order).await;
    assert_eq!(shop.post(&format!("{first}/fail"), &json!({ "callback": "send" })).await.status, 200);
    shop.deliver().await;
    let second = shop.start(&order, "second").await;
    let second = format!("/sandbox/payments/{}", second.body["payment_id"].as_str().unwrap());
    for payment in [&second, &first] {
        shop.succeed(payment, json!({ "callback": "send", "force": true })).await;
        shop.deliver().await;
    }
    let paid = shop.get(&order).await;
    assert_eq!((paid.status, &paid.body["paid"]), (200, &money(2 * AMOUNT_LIMIT)), "{}", paid.body);
    let list = shop.get("/v1/orders?user_id=u").await;
    assert_eq!((list.status, &list.body["data"][0]["paid"]), (200, &money(2 * AMOUNT_LIMIT)));
    shop.rest().await;
    assert_eq!(shop.get(&order).await.status, 200);
}

async fn a_first_refusal_under_a_key_has_one_request_id(mode: Mode) {
    let house = House::selling(mode, 1, 1).await;
    let less = json!({ "delta": -5, "reason": "broken" });
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let (refund, reason) = (format!("{order}/refunds"), json!({ "reason": "x" }));
    for (house, path, body) in [(&house, ADJUST, &less), (&shop.house, refund.as_str(), &reason)] {
        let first = house.post_with_key(path, "k", body).await;
        assert_eq!(first.status, 409, "{}", first.body);
        assert_eq!(first.body["request_id"], first.header("x-request-id"), "{path}");
        let again = house.post_with_key(path, "k", body).await;
        assert_eq!(again.bytes, first.bytes, "a repeat is the first answer, with its id");
    }
}

async fn ot_09_the_refunds_of_an_order_come_in_pages_newest_first(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (order, _) = shop.paid("u").await;
    let path = format!("{order}/refunds");
    let mut ids: Vec<Value> = Vec::new();
    for number in 1..=5 {
        shop.pass(10_000).await;
        let body = json!({ "amount": money(number), "reason": "part" });
        let asked = shop.refund(&order, &format!("k{number}"), &body).await;
        ids.insert(0, asked.body["refund_id"].clone());
    }
    let mut seen = Vec::new();
    let mut next = String::new();
    for rows in [2, 2, 1] {
        let page = shop.get(&format!("{path}?limit=2{next}")).await.body;
        let data = page["data"].as_array().unwrap();
        assert_eq!(data.len(), rows, "{page}");
        seen.extend(data.iter().map(|row| row["refund_id"].clone()));
        assert_eq!(page["next"].is_null(), rows == 1, "{page}");
        next = format!("&after={}", page["next"].as_str().unwrap_or_default());
    }
    assert_eq!(seen, ids);
    assert_eq!(shop.get(&path).await.body["next"], Value::Null);
    for (query, pointer) in [
        ("limit=0", "/limit"),
        ("limit=201", "/limit"),
        ("after=x", "/after"),
        ("after=0190a5c4-0000-7000-8000-000000000000", "/after"),
    ] {
        let refused = shop.get(&format!("{path}?{query}")).await;
        assert_eq!((refused.status, refused.pointer()), (422, pointer), "{query}");
    }
}
