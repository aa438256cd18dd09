//! Buyers at the bank: who start to pay, pay in time, late or by force, are declined, vanish, and want money back.
//!
//! Invariants checked here, from outside: a repeated key gives the first answer (C47, C57). What they do is drawn on the way,
//! close around the moment at which the order's time is up.

use std::sync::Arc;

use onceward::Engine;
use onceward::operations::once::{Idempotent, StoredAnswer};
use onceward::operations::payment::{self, Payment, Refund};
use onceward_domain::error::Error;
use onceward_domain::id::{PaymentId, PurchaseId};
use onceward_domain::money::Money;
use onceward_domain::payment::Word;
use onceward_domain::ports::provider::{PaymentOrder, Provider};
use onceward_domain::purchase::Order;
use onceward_domain::time::{Millis, Timestamp};

use super::courier;
use super::money;
use super::net::Net;
use super::node;
use super::people;
use crate::bank::Standing;
use crate::block_on::block_on;

/// How a good answer is written down.
const CREATED: u16 = 201;
/// How a refusal is.
const REFUSED: u16 = 409;
/// An order whose time is up later than this is not waited for.
const PATIENCE: Millis = Millis(6 * 60_000);

struct Payer {
    net: Net,
    purchase: PurchaseId,
}

/// Pays for an order, or not.
pub(crate) async fn pay(net: &Net, purchase: PurchaseId) {
    let payer = Payer { net: net.clone(), purchase };
    payer.rest(4_000).await;
    // Few keys, so that two who pay for one order meet.
    let key = payer.draw(2);
    if payer.chance(80) {
        payer.be_early(key);
    }
    let Some(attempt) = payer.start(key).await else { return };
    if payer.chance(250) {
        payer.aside(|payer| async move {
            let _ = payer.start(payer.draw(4)).await;
        });
    }
    if payer.chance(250) {
        payer.aside(|payer| async move {
            payer.wait_for_moment().await;
            people::cancel(&payer.net, payer.purchase).await;
        });
    }
    payer.visit_bank(attempt).await;
    for number in 0..payer.draw(4) {
        payer.aside(move |payer| async move { payer.want_back(number).await });
    }
    if payer.chance(150) {
        payer.aside(|payer| async move { payer.get_it_returned().await });
    }
}

impl Payer {
    fn draw(&self, bound: u64) -> u64 {
        self.net.world.draw(|rng| rng.below(bound))
    }

    fn chance(&self, permille: u32) -> bool {
        self.net.world.draw(|rng| rng.chance(permille))
    }

    async fn rest(&self, most: i64) {
        let length = self.net.world.draw(|rng| rng.between(0, most));
        self.net.world.sleep(Millis(length)).await;
    }

    /// Does something at the same time.
    fn aside<F>(&self, run: impl FnOnce(Self) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.net.send_out(run(Self { net: self.net.clone(), purchase: self.purchase }));
    }

    fn order(&self) -> Option<Order> {
        let rows = self.net.world.store.rows();
        rows.purchases.get(&self.purchase).and_then(|purchase| purchase.order.clone())
    }

    /// Waits: a little, or until about when the order's time is up, or until well after it.
    async fn wait_for_moment(&self) {
        let now = self.net.world.now();
        let due = self.order().map(|order| order.cancel_due_at).filter(|due| due.since(now) < PATIENCE);
        let (base, spread) = match (due, self.draw(5)) {
            (Some(due), 0 | 1) => (due.minus(Millis(3_000)), 6_000),
            (Some(due), 2) => (due, 90_000),
            (_, 3) => (now, 60_000),
            _ => (now, 5_000),
        };
        self.wait_until(base).await;
        self.rest(spread).await;
    }

    async fn wait_until(&self, time: Timestamp) {
        self.net.world.sleep(Millis(time.since(self.net.world.now()).0.max(0))).await;
    }

    fn key(&self, number: u64) -> Arc<str> {
        Arc::from(format!("pay-{number} {}", self.purchase.order()))
    }

    /// The bank is quicker than our own start: its word comes for a payment that nobody here knows yet (C42).
    fn be_early(&self, key: u64) {
        let Some(order) = self.order() else { return };
        let id = node::keys().payment(self.purchase, &self.key(key));
        let announced = PaymentOrder { payment: id, amount: order.total };
        if block_on(self.net.world.bank.create(announced)).is_ok() {
            courier::bring(&self.net, Word::Processing { payment: id });
        }
    }

    /// Starts to pay, perhaps twice under one key.
    async fn start(&self, number: u64) -> Option<PaymentId> {
        let start = payment::Start {
            order: self.purchase.order(),
            provider: Arc::from("sandbox"),
            actor: Arc::from("buyer"),
            idempotent: Idempotent {
                key: self.key(number),
                fingerprint: [3; 32],
                render: Arc::new(|outcome: Result<&Payment, &Error>| write_down(outcome.map(|one| one.id.0))),
            },
        };
        let wish = move |engine: Engine| {
            let start = start.clone();
            async move { payment::start(&engine, start).await }
        };
        let answer = self.net.ask(wish.clone()).await?;
        if self.chance(300) {
            let again = self.net.ask(wish).await?;
            self.compare("payment", &answer, &again);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(code) => {
                self.net.world.violated(format!("starting a payment heard {code:?}"));
                return None;
            }
        };
        if answer.status != CREATED {
            self.net.world.sometimes("payment_refused");
            return None;
        }
        let id = PaymentId(String::from_utf8(answer.body).ok()?.parse().ok()?);
        let own = node::keys().payment(self.purchase, &self.key(number));
        self.net.world.sometimes(if id == own { "payment_started" } else { "payment_shared" });
        Some(id)
    }

    fn compare(
        &self,
        what: &str,
        first: &Result<StoredAnswer, onceward_domain::error::Code>,
        again: &Result<StoredAnswer, onceward_domain::error::Code>,
    ) {
        let body = |answer: &Result<StoredAnswer, _>| answer.clone().map(|one| (one.status, one.body));
        if body(first) != body(again) {
            self.net.world.violated(format!("a repeated {what} heard {first:?}, then {again:?}"));
        }
    }

    /// What comes of an attempt at the bank.
    async fn visit_bank(&self, attempt: PaymentId) {
        let look = move |engine: Engine| async move { payment::client_data(&engine, attempt).await };
        if let Some(Err(code)) = self.net.ask(look).await {
            return self.net.world.violated(format!("a known payment's client data: {code:?}"));
        }
        self.wait_for_moment().await;
        match self.draw(20) {
            0..=9 => self.put_money(attempt, false),
            10..=12 => self.be_declined(attempt).await,
            13 | 14 => self.net.world.sometimes("buyer_vanished"),
            15..=18 => {
                self.wait_for_close(attempt).await;
                self.put_money(attempt, true);
            }
            _ => self.put_wrong_money(attempt),
        }
    }

    /// Money moves, if the bank lets it, or by force.
    fn put_money(&self, attempt: PaymentId, by_force: bool) {
        let world = &self.net.world;
        let before = world.bank.account(attempt).map(|account| account.standing);
        let Some(word) = world.bank.pay(attempt, by_force) else {
            return world.sometimes("bank_took_nothing");
        };
        world.trace("money moved", u64::from(by_force));
        world.sometimes(match before {
            Some(Standing::Closed) => "forced_after_close",
            Some(Standing::Failed) => "forced_after_decline",
            Some(Standing::Open | Standing::Succeeded) | None => "paid_at_the_bank",
        });
        if before != Some(Standing::Succeeded) {
            courier::send(&self.net, attempt, &word);
        }
    }

    fn put_wrong_money(&self, attempt: PaymentId) {
        let world = &self.net.world;
        let Some(total) = self.order().map(|order| order.total) else { return };
        let Ok(wrong) = Money::new(total.amount() - 1, total.currency()) else { return };
        if let Some(word) = world.bank.pay_wrongly(attempt, wrong) {
            world.trace("wrong money moved", 0);
            world.sometimes("paid_a_wrong_amount");
            courier::send(&self.net, attempt, &word);
        }
    }

    /// Declined; tries again with another attempt, and perhaps the first takes the money after all.
    async fn be_declined(&self, attempt: PaymentId) {
        let Some(word) = self.net.world.bank.decline(attempt) else { return };
        self.net.world.trace("declined", 0);
        self.net.world.sometimes("declined");
        courier::send(&self.net, attempt, &word);
        if self.chance(600) {
            self.aside(move |payer| async move {
                payer.wait_for_moment().await;
                payer.put_money(attempt, true);
            });
        }
        self.rest(4_000).await;
        let Some(second) = self.start(10 + self.draw(2)).await else { return };
        let look = move |engine: Engine| async move { payment::client_data(&engine, second).await };
        drop(self.net.ask(look).await);
        self.wait_for_moment().await;
        self.put_money(second, false);
    }

    /// Waits for the bank to close the attempt, and then somewhat longer; not for ever.
    async fn wait_for_close(&self, attempt: PaymentId) {
        const LOOKS: u32 = 30;
        for _ in 0..LOOKS {
            let open = self.net.world.bank.account(attempt).is_some_and(|one| one.standing == Standing::Open);
            if !open {
                break;
            }
            self.rest(20_000).await;
        }
        self.rest(20_000).await;
    }

    /// Asks for money back: some of it or all, perhaps twice under one key, perhaps while others ask.
    async fn want_back(&self, number: u64) {
        const LOOKS: u32 = 8;
        for _ in 0..LOOKS {
            if money::was_taken(&self.net.world, self.purchase) {
                break;
            }
            self.rest(20_000).await;
        }
        self.rest(if self.chance(600) { 1_500 } else { 60_000 }).await;
        let Some(total) = self.order().map(|order| order.total) else { return };
        let amount = self.net.world.draw(|rng| rng.between(1, total.amount()));
        let all = self.chance(400);
        let amount = Money::new(amount, total.currency()).ok().filter(|_| !all);
        let ask = payment::Ask {
            order: self.purchase.order(),
            amount,
            reason: Arc::from("it does not fit"),
            actor: Arc::from("buyer"),
            idempotent: Idempotent {
                key: Arc::from(format!("refund-{number}-{amount:?} {}", self.purchase.order())),
                fingerprint: [4; 32],
                render: Arc::new(|outcome: Result<&Refund, &Error>| write_down(outcome.map(|one| one.id.0))),
            },
        };
        let wish = move |engine: Engine| {
            let ask = ask.clone();
            async move { payment::ask_refund(&engine, ask).await }
        };
        let Some(answer) = self.net.ask(wish.clone()).await else { return };
        if self.chance(400)
            && let Some(again) = self.net.ask(wish).await
        {
            self.compare("refund", &answer, &again);
        }
        match answer {
            Ok(answer) if answer.status == CREATED => self.net.world.sometimes("refund_asked"),
            Ok(_) => self.net.world.sometimes("refund_refused"),
            Err(code) => self.net.world.violated(format!("asking for a refund heard {code:?}")),
        }
    }

    /// A refund that went out comes back: the account was closed, the card had expired.
    async fn get_it_returned(&self) {
        self.rest(200_000).await;
        let world = &self.net.world;
        let refunds: Vec<_> = {
            let rows = world.store.rows();
            let own = rows.refunds.iter().filter(|(_, refund)| refund.purchase == self.purchase);
            own.map(|(id, _)| *id).collect()
        };
        if let Some(word) = refunds.into_iter().find_map(|refund| world.bank.take_back(refund)) {
            world.trace("refund came back", 0);
            world.sometimes("refund_came_back");
            courier::bring(&self.net, word);
        }
    }
}

fn write_down(outcome: Result<impl std::fmt::Display, &Error>) -> (u16, Vec<u8>) {
    match outcome {
        Ok(id) => (CREATED, id.to_string().into_bytes()),
        Err(error) => (REFUSED, error.code().as_str().as_bytes().to_vec()),
    }
}
