//! A shop to test payments in: the house, and a bank with a truth of its own.

use std::sync::Arc;

use onceward::operations::once::{Idempotent, StoredAnswer};
use onceward::operations::{order, payment};
use onceward::{Engine, Ports, Settings};
use onceward_domain::catalogue::Activity;
use onceward_domain::decide::pay::{Heard, hear};
use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::{PaymentId, PurchaseId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{CaseKind, Payment, Word};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::purchase::Order;
use onceward_testkit::bank::Bank;
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

use super::{House, key, keys, usual_activity};

/// A shop: a house with a bank.
pub(crate) struct Shop {
    pub(crate) house: House,
    pub(crate) bank: Arc<Bank>,
}

impl Shop {
    pub(crate) fn with(activity: Activity) -> Self {
        let mut house = House::with(3, 1, activity);
        let bank = Bank::new();
        let ports = Ports::embedded(house.store.clone(), Arc::new(CountingIds::new("shop")));
        house.engine = Engine::new(ports.with_providers(vec![bank.clone()]), keys(), Settings::default());
        Self { house, bank }
    }

    pub(crate) fn new() -> Self {
        Self::with(usual_activity())
    }

    /// An order of this buyer, not yet paid.
    pub(crate) fn order(&self, user: &str) -> PurchaseId {
        self.house.reserve(user, "r", 1);
        self.house.rest();
        self.house.id(user, "r")
    }

    pub(crate) fn try_start(&self, id: PurchaseId, idempotency_key: &str) -> Result<StoredAnswer, Error> {
        let start = payment::Start {
            order: id.order(),
            provider: Arc::from("sandbox"),
            actor: Arc::from("buyer"),
            idempotent: rendered(&format!("{idempotency_key} of {id:?}"), |payment: &Payment| {
                payment.id.to_string()
            }),
        };
        block_on(payment::start(&self.house.engine, start))
    }

    /// A payment attempt that the bank knows of.
    pub(crate) fn start(&self, id: PurchaseId) -> PaymentId {
        self.start_under(id, "pay-1")
    }

    /// The same under another idempotency key, so that it is another attempt.
    pub(crate) fn start_under(&self, id: PurchaseId, idempotency_key: &str) -> PaymentId {
        let answer = self.try_start(id, idempotency_key).expect("it starts");
        let text = String::from_utf8(answer.body).expect("an id is text");
        PaymentId(text.parse().expect("an id is a UUID"))
    }

    /// A word reaches the engine, as a callback or an answer would bring it.
    pub(crate) fn tell(&self, id: PurchaseId, word: &Word) -> Heard {
        let purchase = self.house.purchase(id).expect("the order exists");
        let need = Need {
            purchases: vec![id],
            attempts: vec![id],
            skus: vec![key("cup")],
            buyers: vec![(key("cup"), purchase.user)],
            ..Need::default()
        };
        let word = word.clone();
        let decide = move |facts: &mut _| hear(facts, &word, &Arc::from("callback"));
        block_on(onceward::execute::execute(&self.house.engine, "callback.heard", need, decide))
            .expect("it hears")
    }

    pub(crate) fn refund(&self, id: PurchaseId, amount: Option<i64>, idempotency_key: &str) -> StoredAnswer {
        let ask = payment::Ask {
            order: id.order(),
            amount: amount.map(|amount| Money::new(amount, Currency::CNY).expect("it is an amount")),
            reason: Arc::from("mind"),
            actor: Arc::from("ann"),
            idempotent: rendered(idempotency_key, |refund: &payment::Refund| refund.id.to_string()),
        };
        block_on(payment::ask_refund(&self.house.engine, ask)).expect("it answers")
    }

    pub(crate) fn state(&self, id: PurchaseId) -> Order {
        self.house.purchase(id).expect("it exists").order.expect("it is an order")
    }

    pub(crate) fn cancel(&self, id: PurchaseId) -> OrderStatus {
        let cancel = order::cancel(&self.house.engine, id.order(), Arc::from("mind"), Arc::from("buyer"));
        block_on(cancel).expect("it cancels").order.expect("it is an order").status
    }

    pub(crate) fn cases(&self) -> Vec<CaseKind> {
        let page = PageRequest { limit: 200, before: None };
        block_on(self.house.store.list_cases(page))
            .expect("it lists")
            .into_iter()
            .map(|(_, case)| case.kind)
            .collect()
    }

    pub(crate) fn payment(&self, id: PurchaseId, payment: PaymentId) -> Payment {
        let need = Need { attempts: vec![id], ..Need::default() };
        block_on(self.house.store.view(need)).expect("it reads").payments[&payment].clone()
    }

    pub(crate) fn refunds(&self, id: PurchaseId) -> Vec<(i64, RefundStatus)> {
        let refunds = block_on(payment::refunds(&self.house.engine, id.order())).expect("it reads");
        refunds.into_iter().map(|one| (one.amount.amount(), one.status)).collect()
    }

    /// At rest the shop and the bank agree to the unit.
    pub(crate) fn assert_agrees(&self, kept: i64) {
        assert_eq!(self.bank.kept(), kept, "what the bank keeps");
        self.house.assert_invariants();
    }
}

pub(crate) fn rendered<T: 'static>(key: &str, show: fn(&T) -> String) -> Idempotent<T> {
    Idempotent {
        key: Arc::from(key),
        fingerprint: [1; 32],
        render: Arc::new(move |outcome| match outcome {
            Ok(value) => (201, show(value).into_bytes()),
            Err(error) => (409, error.code().as_str().as_bytes().to_vec()),
        }),
    }
}

/// What one unit costs.
pub(crate) const PRICE: i64 = 1999;
