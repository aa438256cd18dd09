//! Retention (design.md §7): what is forgotten by age, and that a repeat after it still lands once.

mod house;

use std::sync::Arc;

use house::shop::{PRICE, Shop, rendered};
use house::{House, keys};
use onceward::operations::credit::{self, Entry, Grant};
use onceward::workers::{Next, Worker, retention};
use onceward::{Engine, Ports, Settings};
use onceward_domain::credit::Credits;
use onceward_domain::facts::Need;
use onceward_domain::id::{AccountId, PurchaseId};
use onceward_domain::retention::{Aged, RecordKind, WINDOW};
use onceward_domain::time::Millis;
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

fn count(house: &House, kind: RecordKind) -> usize {
    block_on(house.store.aged(1_000, Aged::before_all(kind))).expect("it lists").len()
}

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
fn se_04_dr_04_a_repeat_after_the_window_finds_its_effect_by_id() {
    let shop = Shop::new();
    let id = refunded(&shop);
    let first = shop.try_start(id, "pay-1").expect("it repeats");
    assert!(first.replayed);
    assert_eq!(count(&shop.house, RecordKind::Answer), 2);
    shop.house.clock.advance(Millis(WINDOW.0 - 1));
    shop.house.rest();
    assert_eq!(count(&shop.house, RecordKind::Answer), 2, "a millisecond early");
    shop.house.clock.advance(Millis(1));
    shop.house.rest();
    assert_eq!(count(&shop.house, RecordKind::Answer), 0);
    for _ in 0..2 {
        let again = shop.try_start(id, "pay-1").expect("it answers");
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        shop.refund(id, Some(60), "back-1");
        shop.house.rest();
    }
    assert_eq!(shop.refunds(id).len(), 1);
    shop.assert_agrees(PRICE - 60);
}

#[test]
fn cl_01_a_grant_that_only_its_answer_knows_is_repeated_for_ever() {
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

#[test]
fn records_are_kept_for_ever_where_nobody_set_a_window() {
    let mut shop = Shop::new();
    let ports = Ports::embedded(shop.house.store.clone(), Arc::new(CountingIds::new("shop")));
    let settings = Settings { retention: None, ..Settings::default() };
    shop.house.engine = Engine::new(ports.with_providers(vec![shop.bank.clone()]), keys(), settings);
    refunded(&shop);
    shop.house.clock.advance(Millis(WINDOW.0 * 12));
    assert_eq!(shop.house.step(Worker::Retention).expect("it steps"), Next::Wait(None));
    assert_eq!(count(&shop.house, RecordKind::Answer), 2);
}

#[test]
fn it_works_on_while_there_is_something_and_then_looks_once_an_hour() {
    let shop = Shop::new();
    refunded(&shop);
    let step = || shop.house.step(Worker::Retention).expect("it steps");
    assert_eq!(step(), Next::Wait(Some(retention::INTERVAL)));
    shop.house.clock.advance(WINDOW);
    assert_eq!(step(), Next::Again);
    assert_eq!(step(), Next::Wait(Some(retention::INTERVAL)));
}
