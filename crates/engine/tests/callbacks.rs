//! Callbacks as they come in: kept first, answered, then heard (OT-08).

mod house;

use std::sync::Arc;

use house::shop::{PRICE, Shop};
use house::{key, keys, usual_activity};
use onceward::operations::payment::{self, Recorded};
use onceward::workers::Worker;
use onceward::{Engine, Ports, Settings, wire};
use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ChargeId, PaymentId, PurchaseId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{CaseKind, ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};
use onceward_domain::retention::{RecordKind, WINDOW};
use onceward_domain::time::Millis;
use onceward_testkit::bank::Bank;
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

/// The bank, with callbacks that name their event in a header and carry a word; signatures are the real adapters' affair.
struct CallingBank(Arc<Bank>);

impl Provider for CallingBank {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        self.0.create(order)
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        self.0.query(payment)
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        self.0.close(payment)
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        self.0.refund(order)
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        self.0.charge(order)
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        self.0.query_charge(charge)
    }

    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error> {
        let (_, event) =
            callback.headers.first().ok_or_else(|| Error::new(Code::BadSignature, "no event"))?;
        Ok(Verified { event: Arc::from(event.as_str()), word: wire::decode_word(callback.body)? })
    }
}

fn shop() -> Shop {
    let mut shop = Shop::new();
    let ports = Ports::store_backed(shop.house.store.clone(), Arc::new(CountingIds::new("shop")));
    let ports = ports.with_providers(vec![Arc::new(CallingBank(shop.bank.clone()))]);
    shop.house.engine = Engine::new(ports, keys(), Settings::default());
    shop
}

fn call(shop: &Shop, event: &str, word: &Word) -> Recorded {
    let headers = [("event".to_owned(), event.to_owned())];
    let body = wire::encode_word(word);
    let now = block_on(shop.house.store.now()).expect("it reads");
    let raw = RawCallback { headers: &headers, body: &body, now };
    block_on(payment::callback(&shop.house.engine, "sandbox", &raw)).expect("it is recorded")
}

#[test]
fn ot_08_c_42_a_callback_before_its_order_is_kept_and_pays_later() {
    let shop = shop();
    let id: PurchaseId = shop.house.id("u1", "r");
    let attempt = keys().payment(id, &format!("pay-1 of {id:?}"));
    let amount = Money::new(PRICE, Currency::CNY).expect("it is an amount");
    let word = Word::Succeeded { payment: attempt, transaction: Arc::from("t"), amount };
    for _ in 0..2 {
        call(&shop, "e1", &word);
    }
    assert_eq!(shop.house.lane("callback"), 1, "kept, once");
    shop.house.pass(2_000);
    assert_eq!(shop.house.lane("callback"), 1, "and tried again");
    assert_eq!(shop.order("u1"), id);
    assert_eq!(shop.start(id), attempt);
    shop.house.pass(60_000);
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
    assert_eq!(shop.house.lane("callback"), 0);
    assert_eq!(call(&shop, "e1", &word), Recorded::Heard, "a redelivery is harmless");
    shop.house.assert_invariants();
}

#[test]
fn ot_08_a_callback_that_was_forgotten_and_comes_again_changes_nothing() {
    let shop = shop();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    call(&shop, "e1", &word);
    shop.house.rest();
    assert_eq!(shop.house.aged(RecordKind::Callback), 1);
    shop.house.clock.advance(WINDOW);
    shop.house.rest();
    assert_eq!(shop.house.aged(RecordKind::Callback), 0, "its window is over");
    let before = shop.state(id);
    call(&shop, "e1", &word);
    shop.house.rest();
    assert_eq!((shop.state(id), shop.house.lane("callback")), (before, 0));
    shop.assert_agrees(PRICE);
}

#[test]
fn ot_08_c_42_a_callback_that_waits_is_never_forgotten() {
    let shop = shop();
    let stranger = keys().payment(shop.house.id("u1", "r"), "pay-1");
    call(&shop, "e1", &Word::Processing { payment: stranger });
    let kept_after = |length: Millis| {
        shop.house.clock.advance(length);
        shop.house.step(Worker::Retention).expect("it steps");
        shop.house.aged(RecordKind::Callback)
    };
    assert_eq!((kept_after(WINDOW), shop.house.lane("callback")), (1, 1));
    let tries = Settings::default().attempts_limit;
    for _ in 0..=tries {
        shop.house.clock.advance(Millis(60_000));
        shop.house.step(Worker::Teller).expect("it steps");
    }
    assert_eq!((kept_after(WINDOW), shop.house.lane("dead/callback")), (1, 1), "a person must look at it");
}

#[test]
fn ot_08_c_91_one_event_with_two_bodies_is_a_case_and_the_second_is_not_applied() {
    let shop = shop();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    call(&shop, "e1", &Word::Processing { payment: attempt });
    let word = shop.bank.pay(attempt, false).expect("it pays");
    call(&shop, "e1", &word);
    assert_eq!(shop.state(id).status, OrderStatus::Paying, "never applied");
    assert_eq!(shop.cases(), [CaseKind::EventReused], "and never dropped");
    call(&shop, "e2", &word);
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
}

#[test]
fn ot_07_c_35_a_callback_for_a_cancelled_order_is_answered_and_its_money_goes_back() {
    let shop = shop();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    shop.cancel(id);
    shop.house.rest();
    let word = shop.bank.pay(attempt, true).expect("money moves although it was closed");
    assert_eq!(call(&shop, "e1", &word), Recorded::Heard);
    assert_eq!(shop.house.lane("refund"), 1, "a durable row stands for it");
    assert_eq!(call(&shop, "e1", &word), Recorded::Heard);
    assert_eq!(call(&shop, "e2", &word), Recorded::Heard, "the same news under another event");
    shop.house.pass(usual_activity().confirm_after_cancel.0 * 2);
    assert_eq!(shop.refunds(id).len(), 1);
    assert_eq!(shop.state(id).status, OrderStatus::Cancelled);
    shop.assert_agrees(0);
}

#[test]
fn c_45_a_browser_and_two_callbacks_at_once_pay_once() {
    let shop = shop();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    call(&shop, "e1", &word);
    // The browser comes back and wants to pay: it hears of its attempt, or that there is nothing to pay.
    let answer = shop.try_start(id, "browser").expect("it answers");
    assert_eq!(answer.body, b"order_not_payable");
    call(&shop, "e2", &word);
    shop.house.rest();
    assert_eq!((shop.state(id).paid, shop.house.figures().0), (PRICE, [2, 0, 1]));
    let need = onceward_domain::facts::Need { skus: vec![key("cup")], ..Default::default() };
    assert_eq!(block_on(shop.house.store.view(need)).expect("it reads").skus[&key("cup")].stock.sold, 1);
    shop.house.clock.advance(Millis(1));
    shop.assert_agrees(PRICE);
}
