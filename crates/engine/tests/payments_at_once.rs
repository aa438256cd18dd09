//! Two rules about money decided on the same facts, by nodes that do not see each other: the store lets one through.
//!
//! A store that reads first and writes under guards is allowed; so whatever a rule relies on must be guarded by a row that
//! it writes.

mod house;

use std::sync::Arc;

use house::keys;
use house::shop::{PRICE, Shop};
use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::refund::{self, AskRefund};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::money::{Currency, Money};
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
