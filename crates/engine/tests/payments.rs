//! Payment against cancellation, requirement by requirement (requirements.md §3; scenarios 5.2 and 5.3).

mod house;

use std::sync::Arc;

use house::shop::{PRICE, Shop, rendered};
use house::{key, usual_activity};
use onceward::operations::payment;
use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::decide::pay::{Heard, hear};
use onceward_domain::error::Code;
use onceward_domain::facts::Need;
use onceward_domain::id::{PaymentId, PurchaseId, UserId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{CaseKind, Payment, Word};
use onceward_domain::time::Millis;
use onceward_testkit::bank::{Mood, Standing};
use onceward_testkit::block_on::block_on;

#[test]
fn ot_03_starting_a_payment_moves_the_order_at_once_and_once() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    assert_eq!(shop.state(id).status, OrderStatus::Paying);
    assert_eq!(shop.bank.account(attempt).expect("the bank knows").standing, Standing::Open);
    let repeat = shop.try_start(id, "pay-1").expect("it repeats");
    assert!(repeat.replayed);
    let second = shop.try_start(id, "pay-2").expect("it answers");
    assert_eq!(second.body, attempt.to_string().into_bytes(), "C47: while one is open, a second is that one");
    let nobody = payment::Start { provider: Arc::from("nobody"), ..start_of(id) };
    let error = block_on(payment::start(&shop.house.engine, nobody)).expect_err("there is no such provider");
    assert_eq!(error.code(), Code::UnknownProvider);
}

fn start_of(id: PurchaseId) -> payment::Start {
    payment::Start {
        order: id.order(),
        provider: Arc::from("sandbox"),
        actor: Arc::from("buyer"),
        idempotent: rendered("other", |payment: &Payment| payment.id.to_string()),
    }
}

#[test]
fn ot_08_c_45_c_46_a_success_told_three_ways_pays_once() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    assert_eq!(shop.tell(id, &Word::Processing { payment: attempt }), Heard::Nothing, "C40");
    assert_eq!(shop.tell(id, &word), Heard::Applied);
    for _ in 0..3 {
        assert_eq!(shop.tell(id, &word), Heard::Nothing);
    }
    assert_eq!(shop.tell(id, &Word::Failed { payment: attempt }), Heard::Nothing, "out of order");
    let order = shop.state(id);
    assert_eq!((order.status, order.paid), (OrderStatus::Paid, PRICE));
    shop.house.rest();
    assert_eq!(shop.house.figures(), ([2, 0, 1], [2, 0, 1]));
    shop.assert_agrees(PRICE);
}

#[test]
fn c_50_a_declined_payment_may_be_tried_again() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.decline(attempt).expect("it declines");
    shop.tell(id, &word);
    assert_eq!(shop.state(id).status, OrderStatus::Paying);
    let second = shop.try_start(id, "pay-2").expect("it starts");
    assert_ne!(second.body, attempt.to_string().into_bytes());
}

#[test]
fn ot_04_dr_01_a_payment_inside_the_grace_wins_and_after_the_cancel_is_given_back() {
    for late in [false, true] {
        let shop = Shop::new();
        let id = shop.order("u1");
        let attempt = shop.start(id);
        let due = shop.state(id).cancel_due_at;
        if late {
            shop.house.clock.set(due);
            shop.house.rest();
            assert_eq!(shop.state(id).status, OrderStatus::Cancelled, "every attempt was proved closed");
            assert_eq!(shop.bank.account(attempt).expect("known").standing, Standing::Closed);
        } else {
            shop.house.clock.set(due.minus(Millis(1)));
            shop.house.rest();
        }
        let word = shop.bank.pay(attempt, true).expect("money moves");
        let heard = shop.tell(id, &word);
        shop.house.rest();
        if late {
            assert_eq!(heard, Heard::Unwanted);
            assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
            assert_eq!(shop.house.figures(), ([3, 0, 0], [3, 0, 0]));
            shop.assert_agrees(0);
        } else {
            assert_eq!(shop.state(id).status, OrderStatus::Paid);
            shop.assert_agrees(PRICE);
        }
    }
}

#[test]
fn ot_05_a_silent_provider_keeps_the_order_pending_however_long() {
    for mood in [Mood::Away, Mood::Silent] {
        let shop = Shop::new();
        let id = shop.order("u1");
        let attempt = shop.start(id);
        shop.bank.when_asked(mood, mood);
        shop.house.clock.set(shop.state(id).cancel_due_at);
        shop.house.pass(3_600_000);
        assert_eq!(shop.state(id).status, OrderStatus::CancelPending);
        assert_eq!(shop.house.figures().0, [2, 1, 0], "its stock stays locked");
        shop.bank.when_asked(Mood::Ok, Mood::Ok);
        shop.house.pass(3_600_000);
        assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
        assert_eq!(shop.payment(id, attempt).status, PaymentStatus::Closed);
        shop.assert_agrees(0);
    }
}

#[test]
fn ot_05_dr_02_a_lost_answer_to_the_close_is_asked_about_not_assumed() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.bank.when_asked(Mood::Ok, Mood::SilentAfterEffect);
    shop.house.clock.set(shop.state(id).cancel_due_at);
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled, "the query after the close told");
    assert_eq!(shop.bank.account(attempt).expect("known").standing, Standing::Closed);
}

#[test]
fn dr_01_money_found_while_cancelling_pays_the_order_though_no_callback_came() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.bank.pay(attempt, false).expect("it pays; the callback is lost");
    assert_eq!(shop.cancel(id), OrderStatus::CancelPending);
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    assert_eq!(shop.house.lane("cancellation"), 0, "nothing is left to cancel");
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_07_c_30_money_forced_after_the_close_is_found_by_the_second_confirmation_and_given_back_once() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    assert_eq!(shop.cancel(id), OrderStatus::CancelPending);
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
    let word = shop.bank.pay(attempt, true).expect("money moves although it was closed");
    shop.house.pass(usual_activity().confirm_after_cancel.0 * 2);
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
    assert_eq!(shop.tell(id, &word), Heard::Nothing, "C35: the callback that comes at last finds it done");
    shop.house.rest();
    let order = shop.state(id);
    assert_eq!((order.status, order.paid, order.refunded), (OrderStatus::Cancelled, PRICE, PRICE));
    shop.assert_agrees(0);
}

#[test]
fn ot_07_c_31_c_32_late_money_follows_the_activitys_rule() {
    let table = [
        (LatePayment::Refund, true, OrderStatus::Cancelled, 0),
        (LatePayment::Reinstate, true, OrderStatus::Paid, PRICE),
        (LatePayment::Reinstate, false, OrderStatus::Cancelled, 0),
        (LatePayment::Manual, true, OrderStatus::Cancelled, PRICE),
    ];
    for (rule, has_stock, status, kept) in table {
        let shop = Shop::with(Activity { late_payment: rule, ..usual_activity() });
        let id = shop.order("u1");
        let attempt = shop.start(id);
        shop.cancel(id);
        shop.house.rest();
        if !has_stock {
            for user in ["a", "b", "c"] {
                shop.order(user);
            }
        }
        let word = shop.bank.pay(attempt, true).expect("money moves");
        shop.tell(id, &word);
        shop.house.rest();
        assert_eq!(shop.state(id).status, status, "{rule:?} {has_stock}");
        assert_eq!(shop.cases().contains(&CaseKind::LatePayment), rule == LatePayment::Manual);
        let expected =
            if status == OrderStatus::Paid { ([2, 0, 1], [2, 0, 1]) } else { shop.house.figures() };
        assert_eq!(shop.house.figures(), expected);
        shop.assert_agrees(kept);
    }
}

#[test]
fn ot_07_a_reinstated_order_keeps_its_units_whatever_is_projected_again() {
    let shop = Shop::with(Activity { late_payment: LatePayment::Reinstate, ..usual_activity() });
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    let word = shop.bank.pay(attempt, true);
    shop.house.step(onceward::workers::Worker::Canceller).expect("it asks");
    if let Some(word) = word {
        shop.tell(id, &word);
    }
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    assert_eq!(shop.house.figures(), ([2, 0, 1], [2, 0, 1]));
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_08_c_105_a_wrong_amount_or_currency_never_pays() {
    for wrong in [Money::new(PRICE - 1, Currency::CNY), Money::new(PRICE, Currency::JPY)] {
        let shop = Shop::new();
        let id = shop.order("u1");
        let attempt = shop.start(id);
        let amount = wrong.expect("it is an amount");
        let word = Word::Succeeded { payment: attempt, transaction: Arc::from("t"), amount };
        for _ in 0..2 {
            assert_eq!(shop.tell(id, &word), Heard::Contradiction);
        }
        assert_eq!(shop.state(id).status, OrderStatus::ManualReview);
        assert_eq!(shop.cases(), [CaseKind::AmountMismatch], "one case, however often it is told");
        shop.house.pass(10_000_000);
        assert_eq!(shop.state(id).status, OrderStatus::ManualReview, "frozen: no cancel touches it");
        assert_eq!(shop.house.figures().0, [2, 1, 0]);
    }
}

#[test]
fn ot_08_one_transaction_never_pays_two_orders() {
    let shop = Shop::new();
    let (first, second) = (shop.order("u1"), shop.order("u2"));
    let amount = Money::new(PRICE, Currency::CNY).expect("it is an amount");
    let word = |payment| Word::Succeeded { payment, transaction: Arc::from("same"), amount };
    shop.tell(first, &word(shop.start(first)));
    let attempt = shop.start(second);
    let purchase = shop.house.purchase(second).expect("it exists");
    let need = Need {
        purchases: vec![second],
        attempts: vec![second],
        skus: vec![key("cup")],
        buyers: vec![(key("cup"), purchase.user)],
        ..Need::default()
    };
    let told = word(attempt);
    let decide = move |facts: &mut _| hear(facts, &told, &Arc::from("callback"));
    let error = block_on(onceward::execute::execute(&shop.house.engine, "callback.heard", need, decide));
    assert_eq!(error.expect_err("the store refuses").code(), Code::ConstraintViolated);
    assert_eq!(shop.state(second).status, OrderStatus::Paying);
}

#[test]
fn ot_09_c_51_c_52_c_57_refunds_never_pass_what_was_paid() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    assert_eq!(shop.refund(id, None, "early").body, b"order_not_refundable");
    let word = shop.bank.pay(attempt, false).expect("it pays");
    shop.tell(id, &word);
    assert_eq!(shop.refund(id, Some(0), "zero").body, b"invalid");
    assert_eq!(shop.refund(id, Some(PRICE + 1), "more").body, b"refund_exceeds_paid");
    let first = shop.refund(id, Some(1_200), "k1");
    assert_eq!(first.status, 201);
    assert_eq!(shop.refund(id, Some(1_200), "k2").body, b"refund_exceeds_paid", "one is on its way");
    assert!(shop.refund(id, Some(1_200), "k1").replayed, "C57: the same key is the same refund");
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Paid, "a partial refund leaves a paid order");
    assert_eq!(shop.refund(id, None, "rest").status, 201);
    shop.house.rest();
    let order = shop.state(id);
    assert_eq!((order.status, order.refunded), (OrderStatus::Refunded, PRICE));
    assert_eq!(shop.refund(id, None, "again").body, b"order_not_refundable");
    shop.assert_agrees(0);
}

#[test]
fn ot_09_c_55_a_refund_whose_answer_was_lost_is_one_refund() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    shop.tell(id, &word);
    shop.bank.when_refunding(Mood::SilentAfterEffect, false);
    shop.refund(id, Some(1_000), "k1");
    shop.house.pass(100_000);
    assert_eq!(shop.refunds(id), [(1_000, RefundStatus::Unknown)], "C41: unknown is not failed");
    shop.bank.when_refunding(Mood::Ok, false);
    shop.house.pass(100_000);
    assert_eq!(shop.refunds(id), [(1_000, RefundStatus::Succeeded)]);
    shop.assert_agrees(PRICE - 1_000);
}

#[test]
fn ot_07_money_for_a_declined_attempt_is_found_after_a_cancel_that_had_nothing_to_ask() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.decline(attempt).expect("it declines");
    shop.tell(id, &word);
    assert_eq!(shop.cancel(id), OrderStatus::Cancelled, "every attempt has its last word");
    shop.bank.pay(attempt, true).expect("the bank corrects itself; the callback is lost");
    shop.house.pass(usual_activity().confirm_after_cancel.0 * 2);
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
    shop.assert_agrees(0);
}

#[test]
fn ot_09_c_56_money_that_came_again_after_a_full_refund_and_a_silent_bank_leave_the_order_refunded() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let first = shop.start(id);
    let declined = shop.bank.decline(first).expect("it declines");
    shop.tell(id, &declined);
    let second = shop.try_start(id, "pay-2").expect("it starts");
    let text = String::from_utf8(second.body).expect("an id is text");
    let word = shop.bank.pay(PaymentId(text.parse().expect("an id is a UUID")), false).expect("it pays");
    shop.tell(id, &word);
    shop.refund(id, None, "all");
    shop.house.rest();
    shop.bank.when_refunding(Mood::Silent, false);
    let again = shop.bank.pay(first, true).expect("the bank corrects itself");
    shop.tell(id, &again);
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Refunded, "a silent bank took nothing back (DR-02)");
    shop.bank.when_refunding(Mood::Ok, false);
    shop.house.pass(100_000);
    let order = shop.state(id);
    assert_eq!((order.status, order.paid, order.refunded), (OrderStatus::Refunded, 2 * PRICE, 2 * PRICE));
    shop.assert_agrees(0);
}

#[test]
fn ot_09_a_refund_that_fails_days_later_frees_its_amount_once() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    shop.tell(id, &word);
    shop.refund(id, None, "k1");
    shop.house.rest();
    assert_eq!(shop.state(id).status, OrderStatus::Refunded);
    let refunds = block_on(payment::refunds(&shop.house.engine, id.order())).expect("it reads");
    for expected in [Heard::Applied, Heard::Nothing] {
        assert_eq!(shop.tell(id, &Word::RefundFailed { refund: refunds[0].id }), expected);
    }
    let order = shop.state(id);
    assert_eq!((order.status, order.refunded), (OrderStatus::Paid, 0));
    shop.house.assert_invariants();
}

#[test]
fn c_56_money_that_came_twice_goes_back_once() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let first = shop.start(id);
    let declined = shop.bank.decline(first).expect("it declines");
    shop.tell(id, &declined);
    let second = shop.try_start(id, "pay-2").expect("it starts");
    let text = String::from_utf8(second.body).expect("an id is text");
    let second = PaymentId(text.parse().expect("an id is a UUID"));
    for attempt in [second, first] {
        let word = shop.bank.pay(attempt, true).expect("money moves");
        shop.tell(id, &word);
    }
    shop.house.rest();
    let order = shop.state(id);
    assert_eq!((order.status, order.paid, order.refunded), (OrderStatus::Paid, 2 * PRICE, PRICE));
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_12_a_buyer_who_starts_paying_and_vanishes_does_not_block_expiry() {
    let shop = Shop::new();
    let id = shop.order("u1");
    shop.start(id);
    shop.house.clock.set(shop.state(id).cancel_due_at);
    shop.house.pass(600_000);
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
    assert_eq!(shop.house.figures(), ([3, 0, 0], [3, 0, 0]));
    let again = shop.house.reserve("u1", "r2", 1);
    assert!(matches!(again, onceward_domain::ports::admission::ReserveAnswer::Queued { .. }), "{again:?}");
    let user = UserId::trusted("u1");
    assert!(
        block_on(shop.house.store.view(Need { buyers: vec![(key("cup"), user)], ..Need::default() })).is_ok()
    );
}

#[test]
fn ot_08_a_new_store_knows_no_payment() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let unknown =
        PaymentId(PurchaseId::from_digest([3; 16], 1).with_kind(onceward_domain::id::IdKind::Payment));
    assert_eq!(shop.tell(id, &Word::Failed { payment: unknown }), Heard::UnknownPayment);
}

#[test]
fn c_50_a_declined_payment_whose_word_was_lost_does_not_block_the_buyer() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.bank.decline(attempt).expect("it declines; the callback is lost");
    let second = shop.try_start(id, "pay-2").expect("it starts");
    assert_ne!(second.body, attempt.to_string().into_bytes());
    assert_eq!(shop.payment(id, attempt).status, PaymentStatus::Failed);
}

#[test]
fn ot_08_a_second_transaction_of_one_payment_is_a_case() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    assert_eq!(shop.tell(id, &word), Heard::Applied);
    let amount = Money::new(PRICE, Currency::CNY).expect("it is an amount");
    let second = Word::Succeeded { payment: attempt, transaction: Arc::from("another"), amount };
    for _ in 0..2 {
        assert_eq!(shop.tell(id, &second), Heard::Contradiction);
    }
    assert_eq!(shop.cases(), [CaseKind::SecondTransaction]);
    assert_eq!(shop.state(id).paid, PRICE);
}

/// An order of which the bank declined the first attempt, with a second one under way.
fn declined_and_tried_again(shop: &Shop) -> (PurchaseId, PaymentId, PaymentId) {
    let id = shop.order("u1");
    let first = shop.start(id);
    let word = shop.bank.decline(first).expect("it declines");
    shop.tell(id, &word);
    (id, first, shop.start_under(id, "pay-2"))
}

/// An order of which the bank declined the first attempt, corrected itself, and took its money, while a second one is open.
fn paid_with_another_open(shop: &Shop) -> (PurchaseId, PaymentId) {
    let (id, first, second) = declined_and_tried_again(shop);
    let word = shop.bank.pay(first, true).expect("it has taken the money after all");
    assert_eq!(shop.tell(id, &word), Heard::Applied);
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    assert!(shop.payment(id, second).is_open());
    (id, second)
}

#[test]
fn ot_07_c_47_an_attempt_left_open_on_a_paid_order_is_closed_and_money_that_came_twice_goes_back_once() {
    let shop = Shop::new();
    let (id, second) = paid_with_another_open(&shop);
    shop.house.rest();
    assert_eq!(shop.bank.account(second).expect("known").standing, Standing::Closed);
    assert_eq!(shop.payment(id, second).status, PaymentStatus::Closed);
    assert_eq!(shop.refunds(id), []);
    shop.assert_agrees(PRICE);
    // The bank moves the money of the closed attempt all the same, and tells nobody.
    shop.bank.pay(second, true).expect("money moves");
    shop.house.pass(120_000);
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    shop.house.pass(3_600_000);
    assert_eq!(shop.refunds(id).len(), 1);
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_07_dr_01_money_of_the_other_attempt_that_nobody_told_of_is_found_and_given_back_once() {
    let shop = Shop::new();
    let (id, second) = paid_with_another_open(&shop);
    shop.bank.pay(second, false).expect("the buyer pays twice; the callback is lost");
    shop.house.rest();
    assert_eq!(shop.payment(id, second).status, PaymentStatus::Succeeded);
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
    shop.house.pass(3_600_000);
    assert_eq!((shop.refunds(id).len(), shop.state(id).status), (1, OrderStatus::Paid));
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_07_dr_02_a_silent_provider_is_asked_until_the_other_attempt_is_closed() {
    let shop = Shop::new();
    let (id, second) = paid_with_another_open(&shop);
    shop.bank.when_asked(Mood::Away, Mood::Silent);
    shop.house.pass(3_600_000);
    assert!(shop.payment(id, second).is_open(), "silence closes nothing");
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    shop.bank.when_asked(Mood::Ok, Mood::Ok);
    shop.house.pass(120_000);
    assert_eq!(shop.payment(id, second).status, PaymentStatus::Closed);
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_07_money_for_a_declined_attempt_of_an_order_that_another_paid_is_asked_about_once_more() {
    let shop = Shop::new();
    let (id, first, second) = declined_and_tried_again(&shop);
    let word = shop.bank.pay(second, false).expect("it pays");
    assert_eq!(shop.tell(id, &word), Heard::Applied);
    shop.bank.pay(first, true).expect("the bank corrects itself, and tells nobody");
    shop.house.pass(120_000);
    assert_eq!(shop.refunds(id), [(PRICE, RefundStatus::Succeeded)]);
    shop.assert_agrees(PRICE);
}
