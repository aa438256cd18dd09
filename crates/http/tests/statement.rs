//! A provider's statement: what nobody told of is found in it, heard once, and never mended by guessing (OT-07, C117).
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;
mod shop;

use axum::body::Body;
use axum::http::Request;
use house::Answer;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};
use shop::{Shop, money};

const HEAD: &str = "at,kind,payment_id,refund_id,transaction_id,amount,currency\n";
const AT: &str = "2026-11-11T00:00:00.000Z";
const NOBODY: &str = "0190a5c4-0000-8000-8000-000000000000";

async fn bring(shop: &Shop, path: &str, body: impl Into<Body>) -> Answer {
    let request = Request::post(path).header("content-type", "text/csv; charset=utf-8");
    shop.ask(request.body(body.into()).unwrap()).await
}

async fn read(shop: &Shop, statement: &str) -> Value {
    let answer = bring(shop, "/v1/ops/statements?provider=sandbox", statement.to_owned()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// The bank's own statement, as an operator fetches it.
async fn fetched(shop: &Shop) -> String {
    let answer = shop.get("/sandbox/statement").await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.bytes).unwrap()
}

/// `[matched, newly_heard, unknown, mismatched, other]`.
fn counts(reading: &Value) -> [u64; 5] {
    ["matched", "newly_heard", "unknown", "mismatched", "other"].map(|name| reading[name].as_u64().unwrap())
}

fn id_of(payment: &str) -> &str {
    payment.rsplit('/').next().unwrap()
}

in_every_mode! {
    ot_07_money_forced_after_the_second_confirmation_is_found_in_the_statement_and_given_back_once,
    ot_07_readings_at_once_give_back_once,
    ot_08_a_statement_pays_an_order_whose_callback_was_lost,
    ot_08_a_wrong_amount_or_currency_in_a_statement_is_a_case_and_never_pays,
    c_117_a_gap_is_flagged_by_its_component_and_not_mended,
    ot_09_a_refund_that_came_back_is_heard_from_the_statement_once,
    ot_08_a_transaction_of_another_payment_is_a_case_and_holds_up_no_other_line,
    se_04_statements_that_cannot_be_read_change_nothing_and_name_the_line,
    rc_03_money_of_which_our_book_knows_nothing_is_a_case_with_its_amount_and_the_providers_name_for_it,
    ot_07_a_long_statement_is_read_in_parts,
}

async fn ot_07_money_forced_after_the_second_confirmation_is_found_in_the_statement_and_given_back_once(
    mode: Mode,
) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.pass(1_300_000).await;
    assert_eq!(shop.status(&order).await, "CANCELLED");
    shop.pass(600_000).await;
    // Long after the last time that the engine asks by itself, the bank moves the money and tells nobody.
    shop.succeed(&payment, json!({ "callback": "drop", "force": true })).await;
    shop.deliver().await;
    shop.pass(24 * 3_600_000).await;
    assert_eq!(shop.get(&payment).await.body["refunded"], money(0), "nobody asks any more");

    let statement = fetched(&shop).await;
    let reading = read(&shop, &statement).await;
    assert_eq!(counts(&reading), [0, 1, 0, 0, 0], "{reading}");
    assert_eq!(
        reading["findings"],
        json!([{ "line": 2, "verdict": "newly_heard", "payment_id": id_of(&payment), "refund_id": null, "amount": money(1999) }])
    );
    shop.rest().await;
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1999));
    assert_eq!(shop.status(&order).await, "CANCELLED");

    for _ in 0..3 {
        assert_eq!(counts(&read(&shop, &statement).await), [1, 0, 0, 0, 0], "a repeat is harmless");
        shop.rest().await;
    }
    let later = fetched(&shop).await;
    assert_eq!(counts(&read(&shop, &later).await), [2, 0, 0, 0, 0], "the refund is in both books: {later}");
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1999), "given back once");
    let stock = &shop.get(house::SKU).await.body["stock"];
    assert_eq!(*stock, json!({ "initial": 5, "available": 5, "occupied": 0, "sold": 0 }));
    shop.assert_invariants().await;
}

async fn ot_07_readings_at_once_give_back_once(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.pass(2_000_000).await;
    shop.succeed(&payment, json!({ "callback": "drop", "force": true })).await;
    let statement = fetched(&shop).await;
    let one = || read(&shop, &statement);
    let readings: [Value; 6] = tokio::join!(one(), one(), one(), one(), one(), one()).into();
    for reading in readings {
        let [matched, newly, unknown, mismatched, _] = counts(&reading);
        assert_eq!((matched + newly, unknown, mismatched), (1, 0, 0), "{reading}");
    }
    shop.rest().await;
    assert_eq!(shop.get(&payment).await.body["refunded"], money(1999));
    let refunds = shop.get(&format!("{order}/refunds")).await.body;
    assert_eq!(refunds["data"].as_array().unwrap().len(), 1);
}

async fn ot_08_a_statement_pays_an_order_whose_callback_was_lost(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    shop.succeed(&payment, json!({ "callback": "drop" })).await;
    assert_eq!(shop.status(&order).await, "PAYING");
    assert_eq!(counts(&read(&shop, &fetched(&shop).await).await), [0, 1, 0, 0, 0]);
    assert_eq!(shop.status(&order).await, "PAID");
    shop.assert_invariants().await;
}

async fn ot_08_a_wrong_amount_or_currency_in_a_statement_is_a_case_and_never_pays(mode: Mode) {
    let shop = Shop::selling(mode).await;
    for (user, amount, currency) in [("u1", 1998, "CNY"), ("u2", 1999, "USD")] {
        let order = shop.order(user).await;
        let payment = shop.started(&order).await;
        let line = format!("{HEAD}{AT},payment,{},,tx-{user},{amount},{currency}\n", id_of(&payment));
        for _ in 0..2 {
            let reading = read(&shop, &line).await;
            assert_eq!(counts(&reading), [0, 0, 0, 1, 0], "{reading}");
        }
        assert_eq!(shop.status(&order).await, "MANUAL_REVIEW");
        assert_eq!(shop.get(&order).await.body["paid"], money(0));
    }
    assert_eq!(shop.cases().await, ["AMOUNT_MISMATCH"; 2], "once each");
}

async fn c_117_a_gap_is_flagged_by_its_component_and_not_mended(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (order, payment) = shop.paid("u").await;
    let refund = shop.refund(&order, "k", &json!({ "reason": "x", "amount": money(500) })).await;
    let refund_id = refund.body["refund_id"].as_str().unwrap().to_owned();
    shop.rest().await;
    let before = shop.get(&order).await.bytes;
    // Net sums agree with nothing: the statement leaves 50 of the refund out, and has a column that says otherwise.
    let statement = format!(
        "at,kind,payment_id,refund_id,transaction_id,amount,currency,net\n\
         {AT},refund,{id},{refund_id},,450,CNY,-500\n\
         {AT},refund,{id},{NOBODY},,50,CNY,-50\n\
         {AT},refund_returned,{NOBODY},{refund_id},,500,CNY,500\n\
         {AT},fee,,,,12,CNY,-12\n",
        id = id_of(&payment)
    );
    for _ in 0..2 {
        let reading = read(&shop, &statement).await;
        assert_eq!(counts(&reading), [0, 0, 2, 1, 1], "{reading}");
        assert_eq!(reading["findings"][0]["verdict"], "mismatched");
    }
    assert_eq!(shop.get(&order).await.bytes, before, "nothing was mended");
    let mut cases = shop.cases().await;
    cases.sort();
    assert_eq!(cases, ["AMOUNT_MISMATCH", "STATEMENT_UNKNOWN", "STATEMENT_UNKNOWN"]);
    shop.assert_invariants().await;
}

async fn rc_03_money_of_which_our_book_knows_nothing_is_a_case_with_its_amount_and_the_providers_name_for_it(
    mode: Mode,
) {
    let shop = Shop::selling(mode).await;
    let lines: String =
        (0..3).map(|number| format!("{AT},payment,{NOBODY},,tx-{number},{}99,CNY\n", number + 1)).collect();
    for _ in 0..2 {
        assert_eq!(counts(&read(&shop, &format!("{HEAD}{lines}")).await), [0, 0, 3, 0, 0]);
    }
    let anomalies = shop.get("/v1/ops/anomalies").await.body;
    let anomalies = anomalies["data"].as_array().unwrap();
    assert_eq!(anomalies.len(), 3, "each once, however often it is read");
    for (number, one) in anomalies.iter().rev().enumerate() {
        let text = one.to_string();
        assert!(
            text.contains("STATEMENT_UNKNOWN") && text.contains(&format!("sandbox:tx-{number}")),
            "{text}"
        );
        assert!(text.contains(&format!("{}99", number + 1)) && text.contains(NOBODY), "{text}");
    }
}

async fn ot_09_a_refund_that_came_back_is_heard_from_the_statement_once(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (order, _) = shop.paid("u").await;
    let refund = shop.refund(&order, "k", &json!({ "reason": "x" })).await;
    let refund_id = refund.body["refund_id"].as_str().unwrap().to_owned();
    shop.rest().await;
    assert_eq!(shop.status(&order).await, "REFUNDED");
    let id = onceward_domain::id::RefundId(refund_id.parse().unwrap());
    shop.bank.return_refund(id, onceward_domain::ports::sandbox::Calling::Drop).await.unwrap();
    let statement = fetched(&shop).await;
    // Payment, refund, and the refund that came back.
    assert_eq!(counts(&read(&shop, &statement).await), [2, 1, 0, 0, 0], "{statement}");
    let order_now = shop.get(&order).await.body;
    assert_eq!((&order_now["status"], &order_now["refunded"]), (&json!("PAID"), &money(0)));
    assert_eq!(counts(&read(&shop, &statement).await), [3, 0, 0, 0, 0], "{statement}");
    // A statement that ends before it came back says what our book no longer says.
    let half = statement.lines().filter(|line| !line.contains("refund_returned"));
    let half: String = half.map(|line| format!("{line}\n")).collect();
    assert_eq!(counts(&read(&shop, &half).await), [1, 0, 0, 1, 0], "{half}");
    assert_eq!(shop.cases().await, ["AMOUNT_MISMATCH"]);
    shop.assert_invariants().await;
}

async fn ot_08_a_transaction_of_another_payment_is_a_case_and_holds_up_no_other_line(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let (first, second) = (shop.order("u1").await, shop.order("u2").await);
    let (one, two) = (shop.started(&first).await, shop.started(&second).await);
    let statement = format!(
        "{HEAD}{AT},payment,{},,tx-1,1999,CNY\n{AT},payment,{},,tx-1,1999,CNY\n",
        id_of(&one),
        id_of(&two)
    );
    let reading = read(&shop, &statement).await;
    assert_eq!(counts(&reading), [0, 1, 0, 1, 0], "{reading}");
    let statuses = [shop.status(&first).await, shop.status(&second).await];
    assert_eq!(statuses, ["PAID", "PAYING"]);
    assert_eq!(shop.cases().await, ["TRANSACTION_REUSED"]);
}

async fn se_04_statements_that_cannot_be_read_change_nothing_and_name_the_line(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    let good = format!("{AT},payment,{},,tx,1999,CNY\n", id_of(&payment));
    let bad = format!("{HEAD}{good}{AT},payment,{NOBODY},,tx,19.99,CNY\n");
    let sandbox = "/v1/ops/statements?provider=sandbox";
    let refused = bring(&shop, sandbox, bad).await;
    assert_eq!((refused.status, refused.code(), refused.pointer()), (422, "invalid", "/3/amount"));
    assert!(refused.body["errors"][0]["detail"].as_str().unwrap().starts_with("line 3: amount"));
    refused.assert_problem();
    assert_eq!(shop.status(&order).await, "PAYING", "the good line was not heard either");
    let table = [
        ("/v1/ops/statements", 422, "invalid", "/provider"),
        ("/v1/ops/statements?provider=nobody", 422, "invalid", "/provider"),
        ("/v1/ops/statements?provider=sandbox&to=1", 400, "malformed", "/?"),
    ];
    for (path, status, code, pointer) in table {
        let refused = bring(&shop, path, format!("{HEAD}{good}")).await;
        assert_eq!((refused.status, refused.code(), refused.pointer()), (status, code, pointer), "{path}");
        refused.assert_problem();
    }
    let large = bring(&shop, sandbox, vec![b'x'; 4 * 1024 * 1024 + 1]).await;
    assert_eq!((large.status, large.code()), (413, "too_large"));
    let as_json = shop.post(sandbox, &json!({})).await;
    assert_eq!((as_json.status, as_json.code()), (415, "unsupported_media_type"));
    assert_eq!(shop.get(sandbox).await.status, 405);
    assert_eq!(shop.status(&order).await, "PAYING");
}

async fn ot_07_a_long_statement_is_read_in_parts(mode: Mode) {
    let shop = Shop::selling(mode).await;
    let order = shop.order("u").await;
    let payment = shop.started(&order).await;
    let mut statement = HEAD.to_owned();
    for number in 0..2_500 {
        let stranger = uuid_of(number);
        statement.push_str(&format!("{AT},payment,{stranger},,tx-{number},5,CNY\n"));
    }
    statement.push_str(&format!("{AT},payment,{},,tx,1999,CNY\n", id_of(&payment)));
    let reading = read(&shop, &statement).await;
    assert_eq!(counts(&reading), [0, 1, 2_500, 0, 0]);
    assert_eq!(reading["findings"].as_array().unwrap().len(), 1_000, "a report has its limit");
    assert_eq!(shop.status(&order).await, "PAID");
}

fn uuid_of(number: u32) -> String {
    format!("0190a5c4-0000-8000-8000-{number:012}")
}
