//! A circle to test group orders in: an engine over the model store, a bank, and wallets that are filled by hand.

use std::sync::Arc;

use onceward::execute::execute;
use onceward::operations::group::{
    self, GroupOrder, GroupTerms, GroupTransition, GroupView, Join, Leave, Participant, Put, PutGroup,
    SettleByHand,
};
use onceward::operations::once::StoredAnswer;
use onceward::operations::operate;
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Credits, Entry};
use onceward_domain::decide::credit::{Grant, grant};
use onceward_domain::due::{DueChange, Lane};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::group::WALLET;
use onceward_domain::id::{AccountId, GroupId, UserId};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::machine::group_charge::GroupCharge;
use onceward_domain::money::{Currency, Money};
use onceward_domain::notice::{NoticeKind, Recipient};
use onceward_domain::ports::provider::Provider;
use onceward_domain::ports::store::{PageRequest, Store, Work};
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::bank::Bank;
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::ModelStore;

use super::keys;
use super::shop::rendered;

/// When the group `g` closes.
pub(crate) const DEADLINE: Timestamp = Timestamp(60_000);
/// A page that holds everything.
const ALL: PageRequest = PageRequest { limit: 200_000, before: None };

pub(crate) struct Circle {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bank: Arc<Bank>,
    pub(crate) engine: Engine,
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::trusted(name)
}

pub(crate) fn g() -> GroupId {
    GroupId::trusted("g")
}

pub(crate) fn cny(amount: i64) -> Money {
    Money::new(amount, Currency::CNY).unwrap()
}

pub(crate) fn terms(charge_via: &str, min_participants: u32) -> GroupTerms {
    GroupTerms {
        id: g(),
        leader: user("lea"),
        deadline: DEADLINE,
        charge_via: Arc::from(charge_via),
        currency: Currency::CNY,
        min_participants,
    }
}

impl Circle {
    /// Nobody is there yet.
    pub(crate) fn empty() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(10_000)));
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock.clone()));
        let bank = Bank::new();
        let engine = Self::engine_over(store.clone(), bank.clone());
        Self { clock, store, bank, engine }
    }

    /// Another process, or the next life of a killed one.
    pub(crate) fn engine_over(store: Arc<dyn Store>, provider: Arc<dyn Provider>) -> Engine {
        let ports = Ports::store_backed(store, Arc::new(CountingIds::new("circle")));
        Engine::new(ports.with_providers(vec![provider]), keys(), Settings::default())
    }

    /// The group `g`, with these users taking part for 10 each.
    pub(crate) fn with(charge_via: &str, min_participants: u32, users: &[&str]) -> Self {
        let circle = Self::empty();
        circle.put(terms(charge_via, min_participants)).unwrap();
        for name in users {
            circle.join(name, 10).unwrap();
        }
        circle
    }

    /// The same with wallets that hold this much each.
    pub(crate) fn with_wallets(users: &[(&str, i64)]) -> Self {
        let names: Vec<&str> = users.iter().map(|(name, _)| *name).collect();
        let circle = Self::with(WALLET, 1, &names);
        for (name, amount) in users.iter().filter(|(_, amount)| *amount > 0) {
            circle.give(name, *amount);
        }
        circle
    }

    /// A group that so many take part in, written in one go.
    pub(crate) fn of_many(charge_via: &str, count: u32) -> Self {
        let circle = Self::empty();
        let participants = (0..count).map(|number| Participant {
            group: g(),
            user: user(&format!("u{number:05}")),
            amount: cny(10),
            charge: GroupCharge::None,
            transaction: None,
            joined_at: Timestamp(10_000),
            updated_at: Timestamp(10_000),
            revision: 0,
        });
        let group =
            GroupOrder { participants: count, ..GroupOrder::new(terms(charge_via, 1), Timestamp(10_000)) };
        let changes = ChangeSet {
            new_groups: vec![group],
            new_participants: participants.collect(),
            due: vec![DueChange::Put {
                lane: Lane::new(Lane::SETTLEMENT),
                member: Arc::from("g"),
                due_at: DEADLINE,
                body: Vec::new(),
            }],
            ..ChangeSet::default()
        };
        let decide = Arc::new(move |_: &mut _| Ok(changes.clone()));
        block_on(circle.store.transact(Work { name: "test", need: Need::default(), decide })).unwrap();
        circle
    }

    pub(crate) fn put(&self, terms: GroupTerms) -> Result<(Put, GroupOrder), Code> {
        let command = PutGroup { terms, actor: Arc::from("lea") };
        block_on(group::put(&self.engine, command)).map_err(|error| error.code())
    }

    pub(crate) fn join(&self, name: &str, amount: i64) -> Result<Put, Code> {
        let join = Join { group: g(), user: user(name), amount: cny(amount) };
        block_on(group::join(&self.engine, join)).map(|(put, _)| put).map_err(|error| error.code())
    }

    pub(crate) fn leave(&self, name: &str) -> Result<(), Code> {
        let leave = Leave { group: g(), user: user(name) };
        block_on(group::leave(&self.engine, leave)).map_err(|error| error.code())
    }

    pub(crate) fn settle_by_hand(&self, key: &str) -> StoredAnswer {
        let idempotent = rendered(key, |group: &GroupOrder| format!("{:?}", group.status));
        let command = SettleByHand { group: g(), actor: Arc::from("ops-ann"), idempotent };
        block_on(group::settle_by_hand(&self.engine, command)).unwrap()
    }

    pub(crate) fn give(&self, name: &str, amount: i64) {
        let account = AccountId::trusted(name);
        let command = Grant {
            account: account.clone(),
            amount: Credits::new(amount).unwrap(),
            reference: Arc::from("gift"),
            actor: Arc::from("giver"),
        };
        let need = Need { accounts: vec![account], ..Need::default() };
        block_on(execute(&self.engine, "test.grant", need, move |facts| grant(facts, &command))).unwrap();
    }

    /// Entries of a wallet, oldest first.
    pub(crate) fn entries(&self, name: &str) -> Vec<Entry> {
        let mut found = block_on(self.store.list_entries(AccountId::trusted(name), ALL)).unwrap();
        found.reverse();
        found
    }

    pub(crate) fn balance(&self, name: &str) -> i64 {
        self.entries(name).last().map_or(0, |entry| entry.balance_after)
    }

    pub(crate) fn view(&self) -> GroupView {
        block_on(group::get(&self.engine, &g())).unwrap()
    }

    pub(crate) fn group(&self) -> GroupOrder {
        self.view().group
    }

    pub(crate) fn status(&self) -> GroupStatus {
        self.group().status
    }

    /// Charges by user.
    pub(crate) fn charges(&self) -> Vec<(String, GroupCharge)> {
        let mut charges: Vec<_> =
            self.view().participants.into_iter().map(|one| (one.user.to_string(), one.charge)).collect();
        charges.sort_by(|left, right| left.0.cmp(&right.0));
        charges
    }

    pub(crate) fn timeline(&self) -> Vec<GroupTransition> {
        block_on(group::timeline(&self.engine, &g())).unwrap()
    }

    /// Notices of this kind, by who is told.
    pub(crate) fn told(&self, kind: NoticeKind) -> Vec<String> {
        let found = block_on(self.store.list_notices(ALL)).unwrap();
        let whom = |to: &Recipient| match to {
            Recipient::Administrators => "administrators".to_owned(),
            Recipient::User(user) => user.to_string(),
        };
        let mut told: Vec<String> = found
            .iter()
            .filter(|(_, notice)| notice.kind == kind)
            .map(|(_, notice)| whom(&notice.recipient))
            .collect();
        told.sort();
        told
    }

    /// One step of the worker.
    pub(crate) fn step(&self) -> Result<Next, Error> {
        block_on(Worker::Settler.step(&self.engine))
    }

    /// Steps until nothing is due.
    pub(crate) fn rest(&self) {
        const STEPS_LIMIT: u32 = 1_000;
        for _ in 0..STEPS_LIMIT {
            if matches!(self.step(), Ok(Next::Wait(_))) {
                return;
            }
        }
        panic!("the settler never comes to rest");
    }

    /// Goes to a moment and works off what is due.
    pub(crate) fn at(&self, time: Timestamp) {
        self.clock.set(time);
        self.rest();
    }

    /// How often the bank took money from each customer.
    pub(crate) fn taken(&self) -> Vec<(String, u32)> {
        self.bank.charges().values().map(|one| (one.customer.to_string(), one.times)).collect()
    }

    pub(crate) fn assert_invariants(&self) {
        for check in block_on(operate::invariants(&self.engine)).unwrap() {
            assert!(check.holds, "{}: {}", check.name, check.detail);
        }
    }

    pub(crate) fn wait(&self, length: i64) {
        self.clock.advance(Millis(length));
    }
}
