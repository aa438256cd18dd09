//! Retention (design.md §7): what is forgotten by age, and that a repeat of an effect still lands once.

mod house;

use std::sync::Arc;

use house::shop::{PRICE, Shop, rendered};
use house::{House, keys};
use onceward::operations::credit::{self, Entry, Grant};
use onceward::workers::{Next, Worker, retention};
use onceward::{Engine, Ports, Settings};
use onceward_domain::changes::{Answered, ChangeSet};
use onceward_domain::credit::Credits;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{AccountId, PurchaseId};
use onceward_domain::ports::store::Work;
use onceward_domain::retention::{RecordKind, WINDOW};
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

/// An order that was paid, and of which a part went back.
fn refunded(shop: &Shop) -> PurchaseId {
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    shop.tell(id, &word);
    shop.refund(id, Some(60), "back-1");
    shop.house.rest();
    id
}

#[test]
fn se_04_dr_04_the_answer_of_an_effect_is_repeated_for_ever() {
    let shop = Shop::new();
    let id = refunded(&shop);
    let first = shop.try_start(id, "pay-1").expect("it repeats");
    let back = shop.refund(id, Some(60), "back-1");
    shop.house.clock.advance(Millis(WINDOW.0 * 12));
    shop.house.rest();
    assert_eq!(shop.try_start(id, "pay-1").expect("it repeats"), first);
    assert_eq!(shop.refund(id, Some(60), "back-1"), back);
    assert!(first.replayed && back.replayed);
    assert_eq!(shop.refunds(id).len(), 1);
    shop.assert_agrees(PRICE - 60);
}

#[test]
fn se_04_a_refusal_is_repeated_within_its_window_and_decided_anew_after_it() {
    let shop = Shop::new();
    let id = refunded(&shop);
    let refused = shop.try_start(id, "pay-2").expect("it answers");
    assert_eq!((refused.replayed, refused.body.as_slice()), (false, b"order_not_payable".as_slice()));
    shop.house.clock.advance(Millis(WINDOW.0 - 1));
    shop.house.rest();
    assert!(shop.try_start(id, "pay-2").expect("it repeats").replayed, "a millisecond early");
    assert_eq!(shop.house.aged(RecordKind::Answer), 1);
    shop.house.clock.advance(Millis(1));
    shop.house.rest();
    assert_eq!(shop.house.aged(RecordKind::Answer), 0);
    assert_eq!(shop.try_start(id, "pay-2").expect("it answers"), refused);
}

#[test]
fn cl_01_a_grant_is_made_once_however_late_it_is_repeated() {
    let house = House::new(1);
    let account = AccountId::trusted("a");
    let grant = || {
        let rule = Grant {
            account: account.clone(),
            amount: Credits::new(100).expect("it is an amount"),
            reference: Arc::from("welcome"),
            actor: Arc::from("ann"),
        };
        let show = rendered("grant-1", |entry: &Entry| entry.amount.to_string());
        block_on(credit::grant(&house.engine, rule, show)).expect("it answers")
    };
    assert!(!grant().replayed);
    house.clock.advance(Millis(WINDOW.0 * 12));
    house.rest();
    assert!(grant().replayed);
    let need = Need { accounts: vec![account.clone()], ..Need::default() };
    let known = block_on(house.store.view(need)).expect("it reads");
    assert_eq!(known.accounts[&account].balance, 100);
}

/// Puts in so many refusals, each of an age of its own.
fn refuse(house: &House, count: usize) {
    let answers = (0..count).map(|number| Answered {
        key: Arc::from(format!("caller\nPOST /x\nk{number}")),
        fingerprint: [1; 32],
        status: 409,
        body: Vec::new(),
        at: Timestamp(i64::try_from(number).expect("it is small")),
        lasting: false,
    });
    let changes = ChangeSet { answers: answers.collect(), ..ChangeSet::default() };
    let decide = Arc::new(move |_: &mut Facts| Ok(changes.clone()));
    block_on(house.store.transact(Work { name: "refuse", need: Need::default(), decide }))
        .expect("it writes");
}

#[test]
fn it_rests_after_every_batch_and_then_looks_once_an_hour() {
    let house = House::new(1);
    refuse(&house, 450);
    let step = || house.step(Worker::Retention).expect("it steps");
    assert_eq!(step(), Next::Wait(Some(retention::INTERVAL)));
    house.clock.advance(WINDOW);
    for left in [250, 50, 0] {
        assert_eq!(step(), Next::Wait(Some(retention::REST)));
        assert_eq!(house.aged(RecordKind::Answer), left);
    }
    assert_eq!(step(), Next::Wait(Some(retention::INTERVAL)));
}

#[test]
fn records_are_kept_for_ever_where_nobody_set_a_window() {
    let mut house = House::new(1);
    let ports = Ports::embedded(house.store.clone(), Arc::new(CountingIds::new("shop")));
    house.engine = Engine::new(ports, keys(), Settings { retention: None, ..Settings::default() });
    refuse(&house, 2);
    house.clock.advance(Millis(WINDOW.0 * 12));
    assert_eq!(house.step(Worker::Retention).expect("it steps"), Next::Wait(None));
    assert_eq!(house.aged(RecordKind::Answer), 2);
}
