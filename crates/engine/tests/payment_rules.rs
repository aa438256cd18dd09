//! Rules of payments, cancels and refunds, one test per rule that no longer story shows.

mod house;

use std::sync::Arc;

use house::shop::{PRICE, Shop};
use house::{key, keys, usual_activity};
use onceward::execute::execute;
use onceward::operations::order;
use onceward::operations::payment as operations;
use onceward::workers::Worker;
use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::decide::cancel::expire;
use onceward_domain::decide::pay::{self, Heard, StartPayment};
use onceward_domain::decide::refund::{self, AskRefund};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::{PaymentId, PurchaseId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{CaseKind, Payment, Refund, Word, refund_of_unwanted};
use onceward_domain::time::Millis;
use onceward_testkit::bank::Mood;
use onceward_testkit::block_on::block_on;

fn cny(amount: i64) -> Money {
    Money::new(amount, Currency::CNY).expect("it is an amount")
}

/// An order that was paid, and its attempt.
fn paid(shop: &Shop, user: &str) -> (PurchaseId, PaymentId) {
    let id = shop.order(user);
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    assert_eq!(shop.tell(id, &word), Heard::Applied);
    (id, attempt)
}

/// Starts by the rule itself, past the first answers that are kept by key.
fn start_again(shop: &Shop, id: PurchaseId, idempotency_key: &str) -> Result<Payment, Error> {
    let command = StartPayment {
        id: keys().payment(id, idempotency_key),
        purchase: id,
        provider: Arc::from("sandbox"),
        actor: Arc::from("buyer"),
    };
    let need = Need { purchases: vec![id], attempts: vec![id], ..Need::default() };
    block_on(execute(&shop.house.engine, "start_payment", need, move |facts| pay::start(facts, &command)))
}

/// The same for refunds.
fn refund_again(shop: &Shop, id: PurchaseId, key: &str, amount: Option<Money>) -> Result<Refund, Error> {
    let command = AskRefund {
        id: keys().refund(id, key),
        purchase: id,
        amount,
        reason: Arc::from("mind"),
        actor: Arc::from("ann"),
    };
    let need = Need { purchases: vec![id], attempts: vec![id], ..Need::default() };
    block_on(execute(&shop.house.engine, "ask_refund", need, move |facts| refund::ask(facts, &command)))
}

#[test]
fn ot_03_dr_04_a_start_that_is_known_answers_its_attempt_whatever_became_of_it() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let first = start_again(&shop, id, "k").expect("it starts");
    shop.tell(id, &Word::Failed { payment: first.id });
    let again = start_again(&shop, id, "k").expect("it is known");
    assert_eq!((again.id, again.status), (first.id, PaymentStatus::Failed));
}

#[test]
fn ot_03_only_an_unpaid_order_in_time_can_be_paid_for() {
    let shop = Shop::new();
    let (id, _) = paid(&shop, "u1");
    let refused = start_again(&shop, id, "another").expect_err("it is paid");
    assert_eq!(refused.code(), Code::OrderNotPayable);
    let late = shop.order("u2");
    shop.house.clock.set(shop.state(late).expires_at);
    let refused = start_again(&shop, late, "late").expect_err("its time is up");
    assert_eq!(refused.code(), Code::OrderNotPayable);
}

#[test]
fn ot_08_c_40_a_payment_in_progress_is_neither_started_again_nor_cancelled_without_proof() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    assert_eq!(shop.tell(id, &Word::Processing { payment: attempt }), Heard::Nothing);
    assert_eq!(shop.state(id).status, OrderStatus::Paying);
    assert_eq!(start_again(&shop, id, "another").expect("it answers").id, attempt, "no second payment");
    assert_eq!(shop.cancel(id), OrderStatus::CancelPending, "no cancel before the bank's word");
    let word = shop.bank.pay(attempt, false).expect("it pays");
    assert_eq!(shop.tell(id, &word), Heard::Applied);
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
}

#[test]
fn ot_08_c_41_an_attempt_nobody_ever_answers_about_stays_unknown() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.bank.when_asked(Mood::Silent, Mood::Silent);
    shop.house.clock.set(shop.state(id).cancel_due_at);
    // Far more rounds than any limit of tries.
    shop.house.pass(20 * 3_600_000);
    assert_eq!(shop.payment(id, attempt).status, PaymentStatus::Unknown);
    assert_eq!(shop.state(id).status, OrderStatus::CancelPending);
    assert_eq!(shop.house.lane("cancellation"), 1, "it is asked about for ever");
}

#[test]
fn ot_04_no_order_is_cancelled_before_its_due_time() {
    let shop = Shop::new();
    let id = shop.order("u1");
    shop.house.clock.set(shop.state(id).cancel_due_at.minus(Millis(1)));
    shop.house.rest();
    // A trigger that tells early is heard, and nothing comes of it (OT-10).
    let need = Need { purchases: vec![id], attempts: vec![id], skus: vec![key("cup")], ..Need::default() };
    let told_early = execute(&shop.house.engine, "expire_orders", need, move |facts| expire(facts, &[id]));
    assert_eq!(block_on(told_early).expect("it is heard").early, [(id, Millis(1))]);
    assert_eq!(shop.state(id).status, OrderStatus::Created);
    shop.house.clock.advance(Millis(1));
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
}

#[test]
fn ot_12_a_paid_order_cannot_be_cancelled() {
    let shop = Shop::new();
    let (id, _) = paid(&shop, "u1");
    let cancel = order::cancel(&shop.house.engine, id.order(), Arc::from("mind"), Arc::from("buyer"));
    assert_eq!(block_on(cancel).expect_err("it is paid").code(), Code::OrderNotCancellable);
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
}

#[test]
fn ot_07_a_silent_second_confirmation_is_asked_again() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    shop.house.rest();
    shop.bank.pay(attempt, true).expect("money moves although it was closed");
    shop.bank.when_asked(Mood::Silent, Mood::Silent);
    shop.house.pass(usual_activity().confirm_after_cancel.0 * 4);
    assert_eq!(shop.refunds(id), [], "nobody knows");
    shop.bank.when_asked(Mood::Ok, Mood::Ok);
    shop.house.pass(usual_activity().confirm_after_cancel.0 * 4);
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
    shop.assert_agrees(0);
}

#[test]
fn ot_07_late_money_does_not_bring_back_an_order_above_the_limit() {
    let shop = Shop::with(Activity { late_payment: LatePayment::Reinstate, ..usual_activity() });
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    shop.house.rest();
    shop.house.reserve("u1", "again", 1);
    shop.house.rest();
    let word = shop.bank.pay(attempt, true).expect("money moves");
    assert_eq!(shop.tell(id, &word), Heard::Unwanted, "the buyer's one unit is another one now");
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
    shop.assert_agrees(0);
}

#[test]
fn ot_07_dr_04_unwanted_money_goes_back_under_an_id_that_follows_from_its_payment() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    shop.house.rest();
    let word = shop.bank.pay(attempt, true).expect("money moves");
    shop.tell(id, &word);
    let refunds = block_on(operations::refunds(&shop.house.engine, id.order())).expect("it reads");
    assert_eq!(refunds.iter().map(|one| one.id).collect::<Vec<_>>(), [refund_of_unwanted(attempt)]);
}

#[test]
fn ot_07_a_refused_refund_of_unwanted_money_is_a_case() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    shop.house.rest();
    let word = shop.bank.pay(attempt, true).expect("money moves");
    shop.bank.when_refunding(Mood::Ok, true);
    shop.tell(id, &word);
    shop.house.rest();
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Failed)]);
    assert_eq!(shop.cases(), [CaseKind::RefundFailed], "money of somebody else is here: a person must look");
}

#[test]
fn ot_08_right_money_for_a_frozen_order_is_a_case() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let first = shop.start(id);
    let declined = shop.bank.decline(first).expect("it declines");
    shop.tell(id, &declined);
    let second = start_again(&shop, id, "second").expect("it starts").id;
    let wrong = Word::Succeeded { payment: second, transaction: Arc::from("t"), amount: cny(1) };
    assert_eq!(shop.tell(id, &wrong), Heard::Contradiction);
    assert_eq!(shop.state(id).status, OrderStatus::ManualReview);
    let word = shop.bank.pay(first, true).expect("the bank corrects itself");
    assert_eq!(shop.tell(id, &word), Heard::Unwanted);
    assert!(shop.cases().contains(&CaseKind::PaymentWhileFrozen), "{:?}", shop.cases());
    assert_eq!(shop.state(id).paid, PRICE, "and it is not forgotten");
}

#[test]
fn ot_09_c_57_a_refund_that_is_known_is_answered() {
    let shop = Shop::new();
    let (id, _) = paid(&shop, "u1");
    let first = refund_again(&shop, id, "k", Some(cny(392))).expect("it opens");
    let again = refund_again(&shop, id, "k", Some(cny(392))).expect("it is known");
    assert_eq!(again.id, first.id);
    shop.house.rest();
    assert_eq!(shop.refunds(id), [(392, RefundStatus::Succeeded)]);
    shop.assert_agrees(PRICE - 392);
}

#[test]
fn ot_09_c_52_refunds_that_are_refused() {
    let shop = Shop::new();
    let (id, _) = paid(&shop, "u1");
    let yen = Money::new(100, Currency::JPY).expect("it is an amount");
    let table = [
        ("another currency", Some(yen), Code::Invalid),
        ("nothing", Some(cny(0)), Code::Invalid),
        ("more than was paid", Some(cny(PRICE + 1)), Code::RefundExceedsPaid),
    ];
    for (what, amount, code) in table {
        let refused = refund_again(&shop, id, what, amount).expect_err(what);
        assert_eq!(refused.code(), code, "{what}");
    }
    refund_again(&shop, id, "all", None).expect("all of it");
    for when in ["while it is on its way", "when it is back"] {
        let refused = refund_again(&shop, id, when, None).expect_err("nothing is left");
        assert_eq!(refused.code(), Code::OrderNotRefundable, "{when}");
        shop.house.rest();
    }
    shop.assert_agrees(0);
}

#[test]
fn ot_09_only_a_paid_order_gives_money_back_on_request() {
    let shop = Shop::with(Activity { late_payment: LatePayment::Manual, ..usual_activity() });
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    shop.house.rest();
    let word = shop.bank.pay(attempt, true).expect("money moves");
    shop.tell(id, &word);
    let refused = refund_again(&shop, id, "k", None).expect_err("a person decides on it");
    assert_eq!(refused.code(), Code::OrderNotRefundable);
}

#[test]
fn ot_09_only_money_that_was_taken_goes_back() {
    // Whichever of two attempts comes first by id: the declined one is never asked for.
    for user in ["u1", "u2", "u3"] {
        let shop = Shop::new();
        let id = shop.order(user);
        let declined = shop.bank.decline(shop.start(id)).expect("it declines");
        shop.tell(id, &declined);
        for number in 0..4 {
            let attempt = start_again(&shop, id, &format!("k{number}")).expect("it starts").id;
            shop.tell(id, &Word::Failed { payment: attempt });
        }
        let last = shop.start_under(id, "last");
        let word = shop.bank.pay(last, false).expect("it pays");
        shop.tell(id, &word);
        let refund = refund_again(&shop, id, "all", None).expect("it opens");
        assert_eq!((refund.payment, refund.amount), (last, cny(PRICE)));
    }
}

#[test]
fn ot_09_a_refund_that_failed_can_be_asked_for_again() {
    let shop = Shop::new();
    let (id, _) = paid(&shop, "u1");
    shop.bank.when_refunding(Mood::Ok, true);
    refund_again(&shop, id, "first", None).expect("it opens");
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    shop.bank.when_refunding(Mood::Ok, false);
    refund_again(&shop, id, "second", None).expect("its amount is free again");
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Refunded);
    shop.assert_agrees(0);
}

#[test]
fn ot_09_an_order_is_being_refunded_until_its_last_refund_has_ended() {
    let shop = Shop::new();
    let (id, _) = paid(&shop, "u1");
    let [first, second] =
        ["a", "b"].map(|key| refund_again(&shop, id, key, Some(cny(10))).expect("it opens"));
    shop.tell(id, &Word::Refunded { refund: first.id });
    assert_eq!(shop.state(id).status, OrderStatus::Refunding);
    shop.tell(id, &Word::RefundFailed { refund: second.id });
    let order = shop.state(id);
    assert_eq!((order.status, order.refunded), (OrderStatus::Paid, 10));
}

#[test]
fn ot_03_ot_05_an_attempt_that_was_never_announced_is_closed_before_the_cancel() {
    let shop = Shop::new();
    let id = shop.order("u1");
    // The rule alone: the process died before it told the bank.
    let attempt = start_again(&shop, id, "k").expect("it starts").id;
    assert_eq!(shop.cancel(id), OrderStatus::CancelPending);
    shop.house.step(Worker::Canceller).expect("it asks");
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
    shop.house.pass(usual_activity().confirm_after_cancel.0 * 2);
    assert_eq!(shop.bank.pay(attempt, false), None, "its late announcement opens nothing");
    assert!(block_on(shop.house.store.view(Need { skus: vec![key("cup")], ..Need::default() })).is_ok());
    shop.assert_agrees(0);
}
