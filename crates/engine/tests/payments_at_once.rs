//! Two rules about money decided on the same facts, by nodes that do not see each other: the store lets one through.
//!
//! A store that reads first and writes under guards is allowed; so whatever a rule relies on must be guarded by a row that
//! it writes.

mod house;

use std::sync::Arc;

use house::shop::{PRICE, Shop};
use house::{key, keys};
use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::cancel::{self, CancelRequest};
use onceward_domain::decide::pay::{self, StartPayment, hear};
use onceward_domain::decide::refund::{self, AskRefund};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::RefundId;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::Word;
use onceward_domain::ports::store::Work;
use onceward_testkit::block_on::block_on;

type Rule = Box<dyn Fn(&mut Facts) -> Result<ChangeSet, Error>>;

/// Decisions made on the same facts, by nodes that do not see each other; answers which of them the store let through.
fn decided_at_once<const N: usize>(shop: &Shop, need: Need, rules: [Rule; N]) -> [bool; N] {
    let mut seen = block_on(shop.house.store.view(need)).expect("it reads");
    let fresh = seen.clone();
    rules.map(|rule| {
        let mut changes = rule(&mut seen).expect("the rule allows it");
        // The engine would put them into its outbox.
        changes.events.clear();
        seen = fresh.clone();
        let decide = Arc::new(move |_: &mut Facts| Ok(changes.clone()));
        let work = Work { name: "at_once", need: Need::default(), decide };
        match block_on(shop.house.store.transact(work)) {
            Ok(()) => true,
            Err(error) if error.code() == Code::GuardLost => false,
            Err(error) => panic!("{error:?}"),
        }
    })
}

#[test]
fn ot_09_c_51_two_refunds_decided_on_the_same_sums_are_one() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let attempt = shop.start(id);
    let word = shop.bank.pay(attempt, false).expect("it pays");
    shop.tell(id, &word);
    shop.refund(id, Some(1), "first");
    let rule = |key: &'static str| -> Rule {
        let ask = AskRefund {
            id: keys().refund(id, key),
            purchase: id,
            amount: Some(Money::new(1_500, Currency::CNY).expect("it is an amount")),
            reason: Arc::from("mind"),
            actor: Arc::from("ann"),
        };
        Box::new(move |facts| refund::ask(facts, &ask).map(|(changes, _)| changes))
    };
    let need = Need { purchases: vec![id], attempts: vec![id], ..Need::default() };
    assert_eq!(decided_at_once(&shop, need, [rule("a"), rule("b")]), [true, false]);
    shop.house.rest();
    shop.assert_agrees(PRICE - 1_501);
}

#[test]
fn c_47_ot_03_a_start_and_a_cancel_or_two_starts_decided_on_the_same_facts_are_one() {
    for is_cancel in [false, true] {
        let shop = Shop::new();
        let id = shop.order("u1");
        let word = shop.bank.decline(shop.start(id)).expect("it declines");
        shop.tell(id, &word);
        let start = |key: &'static str| -> Rule {
            let provider = Arc::from("sandbox");
            let start =
                StartPayment { id: keys().payment(id, key), purchase: id, provider, actor: Arc::from("b") };
            Box::new(move |facts| pay::start(facts, &start).map(|(changes, _)| changes))
        };
        let request = CancelRequest { purchase: id, reason: Arc::from("mind"), actor: Arc::from("buyer") };
        let cancel: Rule = Box::new(move |facts| cancel::cancel(facts, &request).map(|(changes, _)| changes));
        let second = if is_cancel { cancel } else { start("b") };
        let need =
            Need { purchases: vec![id], attempts: vec![id], skus: vec![key("cup")], ..Need::default() };
        assert_eq!(decided_at_once(&shop, need, [start("a"), second]), [true, false], "{is_cancel}");
    }
}

#[test]
fn ot_09_two_refunds_that_end_on_the_same_facts_do_not_leave_the_order_refunding() {
    let shop = Shop::new();
    let id = shop.order("u1");
    let word = shop.bank.pay(shop.start(id), false).expect("it pays");
    shop.tell(id, &word);
    let [first, second] = ["a", "b"].map(|key| {
        shop.refund(id, Some(10), key);
        keys().refund(id, key)
    });
    let fail = |refund: RefundId| -> Rule {
        let word = Word::RefundFailed { refund };
        Box::new(move |facts| hear(facts, &word, &Arc::from("callback")).map(|(changes, _)| changes))
    };
    let need = Need { purchases: vec![id], attempts: vec![id], ..Need::default() };
    assert_eq!(decided_at_once(&shop, need, [fail(first), fail(second)]), [true, false]);
    shop.tell(id, &Word::RefundFailed { refund: second });
    assert_eq!(shop.state(id).status, OrderStatus::Paid);
}
