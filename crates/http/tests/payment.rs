//! Payments over HTTP against a bank with a truth of its own, from the first attempt to the last refund.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;
mod shop;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use house::{Answer, House, NOON, SKU};
use onceward_domain::id::{OrderId, PaymentId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::time::{Millis, Timestamp};
use onceward_ground::{Mode, in_every_mode};
use onceward_providers::sandbox::Signer;
use serde_json::json;
use shop::{SECRET, Shop, money};

in_every_mode! {
    ot_03_ot_08_pay_and_be_paid_by_callback,
    ot_03_bodies_of_payments_and_refunds,
    ot_08_doubled_callbacks_pay_once_and_dropped_ones_are_found_at_expiry,
    ot_08_a_wrong_amount_is_a_case_and_never_pays,
    ot_08_c_42_a_callback_that_overtakes_its_order_is_kept_and_pays_later,
    se_02_webhooks_refuse_what_is_not_signed_known_or_readable,
    ot_09_refunds_whole_in_parts_and_too_much,
    ot_09_c_51_of_a_hundred_refunds_of_more_than_half_one_succeeds,
    ot_09_dr_02_c_55_a_refund_whose_answer_was_lost_is_one_refund,
    ot_09_a_refund_that_fails_at_once_or_days_later_frees_its_amount_once,
    ot_05_dr_01_a_cancel_waits_for_the_banks_word,
    ot_07_money_after_the_close_is_found_by_the_second_confirmation_and_given_back_once,
    ot_07_late_money_reinstates_the_order_or_is_a_case,
    ot_04_a_buyer_who_starts_to_pay_and_vanishes_does_not_hold_the_stock,
    ot_03_a_declined_attempt_leaves_room_for_another,
    ot_08_a_frozen_order_keeps_its_money_in_a_case,
    the_sandbox_is_there_only_where_it_is_enabled_and_judges_what_it_is_told,
}

async fn ot_03_ot_08_pay_and_be_paid_by_callback(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let started = shop.start(&order, "k").await;
    let id = started.body["payment_id"].as_str().unwrap().to_owned();
    let expected = json!({
        "payment_id": id, "order_id": order.rsplit('/').next().unwrap(), "provider": "sandbox",
        "status": "PENDING", "amount": money(1999), "client": { "pay_url": format!("/sandbox/payments/{id}") },
    });
    assert_eq!((started.status, &started.body), (201, &expected));
    assert_eq!(shop.status(&order).await, "PAYING");
    let again = shop.start(&order, "k").await;
    assert_eq!((again.bytes, again.headers.contains_key("idempotency-replayed")), (started.bytes, true));
    assert_eq!(shop.start(&order, "other").await.body["payment_id"], id, "the open attempt is the answer");
    let payment = format!("/sandbox/payments/{id}");
    assert_eq!(shop.get(&payment).await.body["status"], "OPEN");

    shop.succeed(&payment, json!({ "callback": "send" })).await;
    shop.deliver().await;
    let paid = shop.get(&order).await.body;
    assert_eq!((&paid["status"], &paid["paid"]), (&json!("PAID"), &money(1999)));
    assert_eq!(paid["paid_at"], "2026-11-11T00:00:00.000Z");
    let refused = shop.start(&order, "k3").await;
    assert_eq!((refused.status, refused.code()), (409, "order_not_payable"));
    assert_eq!(refused.body["order_status"], "PAID");
    refused.assert_problem();
    let late = shop.post(&format!("{order}/cancel"), &json!({ "reason": "no" })).await;
    assert_eq!((late.status, late.code()), (409, "order_not_cancellable"));
    let stock = &shop.get(SKU).await.body["stock"];
    assert_eq!(*stock, json!({ "initial": 5, "available": 4, "occupied": 0, "sold": 1 }));
    shop.assert_invariants().await;
}

async fn ot_03_bodies_of_payments_and_refunds(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payments = format!("{order}/payments");
    let refunds = format!("{order}/refunds");
    let nowhere = "/v1/orders/0190a5c4-0000-7000-8000-000000000000/payments".to_owned();
    let table = [
        (&payments, json!({ "provider": "nobody" }), 422, "invalid", "/provider"),
        (&payments, json!({ "provider": 1 }), 400, "malformed", "/provider"),
        (&payments, json!({}), 400, "malformed", "/provider"),
        (&nowhere, json!({ "provider": "sandbox" }), 404, "not_found", ""),
        (&refunds, json!({ "reason": "" }), 422, "invalid", "/reason"),
        (&refunds, json!({ "amount": money(0), "reason": "x" }), 422, "invalid", "/amount/amount"),
        (&refunds, json!({ "amount": null, "reason": "x" }), 400, "malformed", "/amount"),
        (&refunds, json!({ "amount": money(1), "reason": "x", "to": "me" }), 400, "malformed", "/to"),
        (&refunds, json!({ "reason": "x" }), 409, "order_not_refundable", ""),
    ];
    for (number, (path, body, status, code, pointer)) in table.into_iter().enumerate() {
        let answer = shop.post_with_key(path, &format!("k{number}"), &body).await;
        assert_eq!(
            (answer.status, answer.code(), answer.pointer()),
            (status, code, pointer),
            "{path} {body}"
        );
        answer.assert_problem();
    }
    assert_eq!(
        shop.post(&payments, &json!({ "provider": "sandbox" })).await.code(),
        "idempotency_key_required"
    );
    assert_eq!(shop.post(&refunds, &json!({ "reason": "x" })).await.code(), "idempotency_key_required");
    assert_eq!(shop.status(&order).await, "CREATED");
}

async fn ot_08_doubled_callbacks_pay_once_and_dropped_ones_are_found_at_expiry(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let doubled = shop.order("u1").await;
    let payment = shop.started(&doubled).await;
    shop.succeed(&payment, json!({ "callback": "duplicate" })).await;
    shop.deliver().await;
    assert_eq!(shop.get(&doubled).await.body["paid"], money(1999));
    shop.succeed(&payment, json!({ "callback": "send" })).await;
    shop.deliver().await;
    assert_eq!(shop.get(&doubled).await.body["paid"], money(1999), "told again under another event id");

    let dropped = shop.order("u2").await;
    let payment = shop.started(&dropped).await;
    shop.succeed(&payment, json!({ "callback": "drop" })).await;
    shop.deliver().await;
    assert_eq!(shop.status(&dropped).await, "PAYING");
    shop.pass(1_300_000).await;
    assert_eq!(shop.status(&dropped).await, "PAID", "the bank was asked before the order could end");
    shop.assert_invariants().await;
}

async fn ot_08_a_wrong_amount_is_a_case_and_never_pays(mode: Mode) {
    let shop = Shop::selling(mode).await;
    for (user, amount) in [("u1", money(1998)), ("u2", json!({ "amount": 1999, "currency": "USD" }))] {
        let order = shop.order(user).await;
        let payment = shop.started(&order).await;
        shop.succeed(&payment, json!({ "callback": "send", "amount": amount })).await;
        shop.deliver().await;
        assert_eq!(shop.status(&order).await, "MANUAL_REVIEW");
        shop.pass(2_000_000).await;
        assert_eq!(shop.status(&order).await, "MANUAL_REVIEW", "no timer touches it");
        shop.clock.set(Timestamp(NOON));
    }
    assert_eq!(shop.cases().await, ["AMOUNT_MISMATCH"; 2]);
}

async fn ot_08_c_42_a_callback_that_overtakes_its_order_is_kept_and_pays_later(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let purchase = OrderId(order.rsplit('/').next().unwrap().parse().unwrap()).purchase().unwrap();
    // The id that the payment will have: the key with its caller and operation.
    let key = format!("dev\nPOST {order}/payments\nk");
    let payment: PaymentId = shop.engine.keys().payment(purchase, &key);
    shop.bank.announce(payment, Money::new(1999, Currency::CNY).unwrap()).await.unwrap();
    let act = json!({ "callback": "drop" });
    shop.succeed(&format!("/sandbox/payments/{payment}"), act).await;
    let transaction = shop.bank.find(payment).await.unwrap().unwrap().transaction.unwrap();
    let body = json!({
        "event_id": "evt-early", "type": "payment.succeeded", "payment_id": payment.to_string(),
        "transaction_id": &*transaction, "amount": money(1999),
    });
    let early = webhook(&shop, "evt-early", &body.to_string()).await;
    assert_eq!((early.status, &early.body), (202, &json!({ "result": "kept" })));
    assert_eq!(webhook(&shop, "evt-early", &body.to_string()).await.status, 200, "a repeat is recorded");
    shop.rest().await;
    assert_eq!(shop.start(&order, "k").await.body["payment_id"], payment.to_string());
    shop.pass(60_000).await;
    assert_eq!(shop.status(&order).await, "PAID");
}

async fn webhook(shop: &Shop, event: &str, body: &str) -> Answer {
    let mut request = Request::post("/v1/webhooks/sandbox");
    for (name, value) in Signer::new(SECRET).headers(event, Timestamp(NOON), body.as_bytes()) {
        request = request.header(name, value);
    }
    shop.ask(request.body(Body::from(body.to_owned())).unwrap()).await
}

async fn se_02_webhooks_refuse_what_is_not_signed_known_or_readable(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let bare = shop.ask(Request::post("/v1/webhooks/sandbox").body(Body::from("{}")).unwrap()).await;
    assert_eq!((bare.status, bare.code()), (401, "bad_signature"));
    bare.assert_problem();
    let nobody = shop.ask(Request::post("/v1/webhooks/nobody").body(Body::empty()).unwrap()).await;
    assert_eq!((nobody.status, nobody.code()), (404, "unknown_provider"));
    nobody.assert_problem();
    let unreadable = webhook(&shop, "evt", "not json").await;
    assert_eq!((unreadable.status, unreadable.code()), (422, "invalid"));
    let body =
        r#"{"event_id":"evt","type":"payment.failed","payment_id":"0190a5c4-0000-7000-8000-000000000000"}"#;
    assert_eq!(webhook(&shop, "evt", body).await.status, 202);
    shop.clock.advance(Millis(300_001));
    assert_eq!(webhook(&shop, "evt", body).await.status, 401, "played again too late");
    let large =
        shop.ask(Request::post("/v1/webhooks/sandbox").body(Body::from(vec![b' '; 70_000])).unwrap()).await;
    assert_eq!((large.status, large.code()), (413, "too_large"));
}

async fn ot_09_refunds_whole_in_parts_and_too_much(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (order, payment) = shop.paid("u1").await;
    let whole = shop.refund(&order, "k", &json!({ "reason": "broken" })).await;
    assert_eq!((whole.status, &whole.body["status"]), (201, &json!("PENDING")), "{}", whole.body);
    assert_eq!((&whole.body["amount"], &whole.body["reason"]), (&money(1999), &json!("broken")));
    shop.rest().await;
    let refunded = shop.get(&order).await.body;
    assert_eq!((&refunded["status"], &refunded["refunded"]), (&json!("REFUNDED"), &money(1999)));
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1999));
    let again = shop.refund(&order, "k", &json!({ "reason": "broken" })).await;
    assert_eq!((&again.bytes, again.header("idempotency-replayed")), (&whole.bytes, "true"));
    let more = shop.refund(&order, "k2", &json!({ "reason": "more" })).await;
    assert_eq!(
        (more.status, more.code(), &more.body["order_status"]),
        (409, "order_not_refundable", &json!("REFUNDED"))
    );

    let (order, _) = shop.paid("u2").await;
    for (key, amount, status, code) in [
        ("a", 2000, 422, "refund_exceeds_paid"),
        ("b", 1000, 201, ""),
        ("c", 1000, 422, "refund_exceeds_paid"),
        ("d", 999, 201, ""),
        ("e", 1, 409, "order_not_refundable"),
    ] {
        let body = json!({ "amount": money(amount), "reason": "part" });
        let answer = shop.refund(&order, key, &body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{key}");
    }
    shop.rest().await;
    assert_eq!(shop.status(&order).await, "REFUNDED");
    let list = shop.get(&format!("{order}/refunds")).await.body;
    let amounts: Vec<i64> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["amount"]["amount"].as_i64().unwrap())
        .collect();
    assert_eq!(amounts.iter().sum::<i64>(), 1999);
    shop.assert_invariants().await;
}

async fn ot_09_c_51_of_a_hundred_refunds_of_more_than_half_one_succeeds(mode: Mode) {
    let shop = Arc::new(Shop::selling(mode).await);
    let (order, payment) = shop.paid("u").await;
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (shop, order) = (shop.clone(), order.clone());
        asked.spawn(async move {
            let body = json!({ "amount": money(1200), "reason": "all at once" });
            shop.refund(&order, &format!("k{number}"), &body).await.status
        });
    }
    let statuses = asked.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 422].contains(status)), "{statuses:?}");
    shop.rest().await;
    assert_eq!(shop.get(&order).await.body["refunded"], money(1200));
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1200));
}

async fn ot_09_dr_02_c_55_a_refund_whose_answer_was_lost_is_one_refund(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (order, payment) = shop.paid("u").await;
    shop.mode(json!({ "refund": "timeout_after_effect" })).await;
    assert_eq!(shop.refund(&order, "k", &json!({ "amount": money(500), "reason": "x" })).await.status, 201);
    shop.rest().await;
    let open = shop.get(&format!("{order}/refunds")).await.body;
    assert_eq!(open["data"][0]["status"], "UNKNOWN");
    assert_eq!(shop.get(&payment).await.body["refunded"], money(500), "it happened");
    shop.mode(json!({ "refund": "ok" })).await;
    shop.pass(60_000).await;
    assert_eq!(shop.get(&payment).await.body["refunded"], money(500), "once");
    let order = shop.get(&order).await.body;
    assert_eq!((&order["status"], &order["refunded"]), (&json!("PAID"), &money(500)));
    let csv = String::from_utf8(shop.get("/sandbox/statement").await.bytes).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(
        csv.starts_with("at,kind,payment_id,refund_id,transaction_id,amount,currency,charge_id\n"),
        "{csv}"
    );
    assert!(csv.contains("2026-11-11T00:00:00.000Z,refund,") && csv.contains(",500,CNY,\n"), "{csv}");
}

async fn ot_09_a_refund_that_fails_at_once_or_days_later_frees_its_amount_once(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (order, _) = shop.paid("u").await;
    shop.mode(json!({ "refund": "decline" })).await;
    let body = json!({ "reason": "x" });
    assert_eq!(shop.refund(&order, "k1", &body).await.status, 201);
    shop.rest().await;
    assert_eq!(shop.status(&order).await, "PAID");
    shop.mode(json!({ "refund": "ok" })).await;
    let second = shop.refund(&order, "k2", &body).await;
    shop.rest().await;
    assert_eq!(shop.status(&order).await, "REFUNDED");
    let id = onceward_domain::id::RefundId(second.body["refund_id"].as_str().unwrap().parse().unwrap());
    shop.bank.return_refund(id, onceward_domain::ports::sandbox::Calling::Duplicate).await.unwrap();
    shop.clock.advance(Millis(3 * 86_400_000));
    shop.deliver().await;
    let order = shop.get(&order).await.body;
    assert_eq!((&order["status"], &order["refunded"]), (&json!("PAID"), &money(0)));
    shop.assert_invariants().await;
}

async fn ot_05_dr_01_a_cancel_waits_for_the_banks_word(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.mode(json!({ "query": "timeout" })).await;
    let reason = json!({ "reason": "changed my mind" });
    let cancelled = shop.post(&format!("{order}/cancel"), &reason).await;
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("CANCEL_PENDING")));
    shop.pass(200_000).await;
    assert_eq!(shop.status(&order).await, "CANCEL_PENDING", "silence proves nothing");
    assert_eq!(shop.start(&order, "again").await.body["order_status"], "CANCEL_PENDING");
    shop.mode(json!({ "query": "error" })).await;
    shop.pass(200_000).await;
    assert_eq!(shop.status(&order).await, "CANCEL_PENDING");
    shop.mode(json!({ "query": "ok" })).await;
    shop.pass(60_000).await;
    assert_eq!(shop.status(&order).await, "CANCELLED");
    assert_eq!(shop.get(&payment).await.body["status"], "CLOSED");
    let again = shop.post(&format!("{order}/cancel"), &reason).await;
    assert_eq!((again.status, &again.body["status"]), (200, &json!("CANCELLED")));
    let stock = &shop.get(SKU).await.body["stock"];
    assert_eq!(*stock, json!({ "initial": 5, "available": 5, "occupied": 0, "sold": 0 }));
    shop.assert_invariants().await;
}

/// An order that is cancelled, and paid afterwards although its payment is closed; nobody is told.
async fn paid_after_close(shop: &Shop) -> (String, String) {
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.post(&format!("{order}/cancel"), &json!({ "reason": "no" })).await;
    shop.rest().await;
    assert_eq!(shop.status(&order).await, "CANCELLED");
    let refused = shop.post(&format!("{payment}/succeed"), &json!({ "callback": "drop" })).await;
    assert_eq!((refused.status, refused.code()), (409, "conflict"));
    shop.succeed(&payment, json!({ "callback": "drop", "force": true })).await;
    (order, payment)
}

async fn ot_07_money_after_the_close_is_found_by_the_second_confirmation_and_given_back_once(mode: Mode) {
    let shop = Shop::open(mode, 5, &json!({ "confirm_after_cancel_ms": 2_000 })).await;
    let (order, payment) = paid_after_close(&shop).await;
    shop.pass(60_000).await;
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1999));
    let late = shop.get(&order).await.body;
    assert_eq!((&late["status"], &late["refunded"]), (&json!("CANCELLED"), &money(1999)));
    shop.succeed(&payment, json!({ "callback": "duplicate" })).await;
    shop.deliver().await;
    shop.pass(60_000).await;
    let refunds = shop.get(&format!("{order}/refunds")).await.body;
    assert_eq!(refunds["data"].as_array().unwrap().len(), 1, "{refunds}");
    assert_eq!(refunds["data"][0]["cause"], "late_payment");
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1999));
    shop.assert_invariants().await;
}

async fn ot_07_late_money_reinstates_the_order_or_is_a_case(mode: Mode) {
    let rules = json!({ "confirm_after_cancel_ms": 2_000, "late_payment": "reinstate" });
    let shop = Shop::open(mode, 5, &rules).await;
    let (order, payment) = paid_after_close(&shop).await;
    shop.pass(60_000).await;
    let kept = shop.get(&order).await.body;
    assert_eq!(
        (&kept["status"], &kept["paid"], &kept["refunded"]),
        (&json!("PAID"), &money(1999), &money(0))
    );
    assert_eq!(shop.get(&payment).await.body["refunded"], money(0));
    shop.assert_invariants().await;

    let rules = json!({ "confirm_after_cancel_ms": 2_000, "late_payment": "manual" });
    let shop = Shop::open(mode, 5, &rules).await;
    let (order, _) = paid_after_close(&shop).await;
    shop.pass(60_000).await;
    assert_eq!(shop.status(&order).await, "CANCELLED");
    assert_eq!(shop.cases().await, ["LATE_PAYMENT"]);
}

async fn ot_04_a_buyer_who_starts_to_pay_and_vanishes_does_not_hold_the_stock(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.pass(1_300_000).await;
    assert_eq!(shop.status(&order).await, "CANCELLED");
    assert_eq!(shop.get(&payment).await.body["status"], "CLOSED");
    assert_eq!(shop.get(SKU).await.body["stock"]["available"], 5);
}

async fn ot_03_a_declined_attempt_leaves_room_for_another(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    let failed = shop.post(&format!("{payment}/fail"), &json!({ "callback": "send" })).await;
    assert_eq!(failed.body["status"], "FAILED");
    shop.deliver().await;
    let second = shop.start(&order, "second").await;
    assert_eq!((second.status, &second.body["status"]), (201, &json!("PENDING")));
    let path = format!("/sandbox/payments/{}", second.body["payment_id"].as_str().unwrap());
    assert_ne!(path, payment);
    shop.succeed(&path, json!({})).await;
    shop.deliver().await;
    assert_eq!(shop.status(&order).await, "PAID");
}

async fn ot_08_a_frozen_order_keeps_its_money_in_a_case(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.succeed(&payment, json!({ "amount": money(1) })).await;
    shop.deliver().await;
    let refused = shop.start(&order, "again").await;
    assert_eq!((refused.status, refused.code()), (409, "order_not_payable"), "nobody is sent to pay for it");
    assert_eq!(refused.body["order_status"], "MANUAL_REVIEW");
    assert_eq!(shop.refund(&order, "k", &json!({ "reason": "x" })).await.code(), "order_not_refundable");
    assert_eq!(shop.cases().await, ["AMOUNT_MISMATCH"]);
}

async fn the_sandbox_is_there_only_where_it_is_enabled_and_judges_what_it_is_told(mode: Mode) {
    let house = House::empty(mode).await;
    let id = "0190a5c4-0000-7000-8000-000000000000";
    assert_eq!(house.get("/sandbox/statement").await.code(), "not_found");
    assert_eq!(house.post(&format!("/sandbox/payments/{id}/succeed"), &json!({})).await.status, 404);
    assert_eq!(house.put("/sandbox/mode", &json!({})).await.status, 404);

    let shop = Shop::selling(mode).await;
    assert_eq!(shop.get(&format!("/sandbox/payments/{id}")).await.code(), "not_found");
    let modes = json!({ "query": "ok", "close": "ok", "charge": "ok", "refund": "ok" });
    assert_eq!(shop.put("/sandbox/mode", &json!({})).await.body, modes);
    assert_eq!(shop.get("/sandbox/customers/u/charges").await.body, json!({ "data": [] }));
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    let table = [
        (json!({ "callback": "maybe" }), 422, "/callback"),
        (json!({ "delay_ms": -1 }), 422, "/delay_ms"),
        (json!({ "amount": { "amount": 1, "currency": "XXQ" } }), 422, "/amount/currency"),
        (json!({ "force": 1 }), 400, "/force"),
        (json!({ "forced": true }), 400, "/forced"),
    ];
    for (body, status, pointer) in table {
        let answer = shop.post(&format!("{payment}/succeed"), &body).await;
        assert_eq!((answer.status, answer.pointer()), (status, pointer), "{body}");
    }
    for (body, pointer) in [
        (json!({ "query": "decline" }), "/query"),
        (json!({ "close": "timeout_after_effect" }), "/close"),
        (json!({ "refund": "no" }), "/refund"),
    ] {
        assert_eq!(shop.put("/sandbox/mode", &body).await.pointer(), pointer);
    }
    assert_eq!(shop.get("/sandbox/statement?from=yesterday").await.pointer(), "/from");
}
