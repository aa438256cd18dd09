//! The most dangerous race of the field: money that arrives at the moment of the cancel (requirements.md §3).
//!
//! Ten thousand orders in this process, with time moved by hand; and fewer against real servers that are killed.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;
mod till;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use house::{Folder, PATIENCE, Server, finish, onceward, stderr};
use onceward::operations::order;
use onceward_domain::catalogue::LatePayment;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PaymentId, PurchaseId, RefundId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::sandbox::{Act, Calling, Deed, MoveKind, Sandbox, StatementLine};
use onceward_domain::time::{LATEST, Millis, Timestamp};
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};
use till::{CONFIRM_AFTER, PRICE, Till, key};
use tokio::task::JoinSet;

/// Orders of the test without kills, in the embedded mode.
const ORDERS: usize = 10_000;
/// The same over servers, where each of an order's twenty steps is some hundred times slower.
const ORDERS_OVER_SERVERS: usize = 1_000;
/// How far from its due-time an order is paid, either way.
const AROUND: i64 = 150;
/// Orders that are made at one moment; the next ones are due a millisecond later.
const AT_ONCE: usize = 8;
/// Workers may be this far behind the clock before it waits for them.
const BEHIND: Millis = Millis(60);

/// A buyer, its order, and what it does. Everything follows from its number.
#[derive(Debug, Clone, Copy)]
struct Buyer {
    purchase: PurchaseId,
    payment: PaymentId,
    pays_at: Timestamp,
    by_force: bool,
    calling: Calling,
    delay: Millis,
    cancels: bool,
}

fn rule(number: usize) -> LatePayment {
    if number.is_multiple_of(2) { LatePayment::Refund } else { LatePayment::Reinstate }
}

impl Buyer {
    fn new(number: usize, purchase: PurchaseId, payment: PaymentId, due: Timestamp) -> Self {
        // Steps that share no factor with the figures they step over meet every combination.
        let offset = i64::try_from(number * 97 % 301).unwrap() - AROUND;
        Self {
            purchase,
            payment,
            pays_at: due.plus(Millis(offset)),
            by_force: !number.is_multiple_of(3),
            calling: [Calling::Send, Calling::Drop, Calling::Duplicate, Calling::Drop][number / 2 % 4],
            delay: Millis([0, 40, 400, 60_000][number / 8 % 4]),
            cancels: number.is_multiple_of(7),
        }
    }

    async fn pay(self, bank: &impl Sandbox) {
        let deed = Deed::Succeed { amount: None, force: self.by_force };
        // Refused where the attempt was closed before: that buyer has not paid.
        drop(bank.play(self.payment, Act { deed, calling: self.calling, delay: self.delay }).await);
    }
}

async fn make_orders(till: &Till, count: usize) -> Vec<Buyer> {
    let mut buyers = Vec::with_capacity(count);
    for first in (0..count).step_by(AT_ONCE) {
        let mut making = JoinSet::new();
        for number in first..(first + AT_ONCE).min(count) {
            let engine = till.engine.clone();
            making.spawn(async move {
                let (purchase, payment) = Till::order(&engine, rule(number), format!("u{number}")).await;
                (number, purchase, payment)
            });
        }
        for (number, purchase, payment) in making.join_all().await {
            let found = order::get(&till.engine, purchase.order()).await.unwrap();
            let due = found.order.unwrap().cancel_due_at;
            buyers.push(Buyer::new(number, purchase, payment, due));
        }
        till.clock.advance(Millis(1));
    }
    buyers.sort_by_key(|buyer| buyer.pays_at);
    buyers
}

/// Lets time pass a millisecond at a time, and at each everybody pays whose time has come.
async fn pay_at_their_time(till: &Till, buyers: &[Buyer]) {
    let mut left = buyers;
    till.clock.set(buyers[0].pays_at.minus(Millis(1)));
    while let Some(first) = left.first() {
        if till.is_behind(BEHIND).await {
            tokio::task::yield_now().await;
            continue;
        }
        till.clock.set(first.pays_at.max(till.clock.now()));
        let due = left.partition_point(|buyer| buyer.pays_at <= till.clock.now());
        let mut paying = JoinSet::new();
        for buyer in left[..due].iter().copied() {
            let (bank, engine) = (till.bank.clone(), till.engine.clone());
            paying.spawn(async move {
                if buyer.cancels {
                    let (id, why) = (buyer.purchase.order(), Arc::from("mind"));
                    drop(order::cancel(&engine, id, why, Arc::from("buyer")).await);
                }
                buyer.pay(&bank).await;
            });
        }
        paying.join_all().await;
        left = &left[due..];
    }
}

/// Lets time pass until nothing is on its way any more.
async fn come_to_rest(till: &Till) {
    let last_callback = till.clock.now().plus(Millis(60_000)).plus(CONFIRM_AFTER);
    let patience = Instant::now() + 4 * PATIENCE;
    loop {
        let busy = till.busy().await;
        if busy.is_empty() && till.clock.now() > last_callback {
            return;
        }
        assert!(Instant::now() < patience, "it never comes to rest: {busy:?}");
        till.clock.advance(Millis(50));
        tokio::task::yield_now().await;
    }
}

/// The bank's moves of one payment's money.
#[derive(Debug, Default)]
struct Account {
    taken: Vec<Timestamp>,
    given: Vec<(RefundId, i64)>,
}

fn accounts(lines: &[StatementLine]) -> BTreeMap<PaymentId, Account> {
    let mut accounts: BTreeMap<PaymentId, Account> = BTreeMap::new();
    for line in lines {
        let account = accounts.entry(line.payment.unwrap()).or_default();
        match line.kind {
            MoveKind::Payment => account.taken.push(line.at),
            MoveKind::Refund => account.given.push((line.refund.unwrap(), line.amount.amount())),
            MoveKind::Charge => panic!("nobody was charged off-session: {line:?}"),
            MoveKind::RefundReturned => panic!("nobody took a refund back: {line:?}"),
        }
    }
    accounts
}

/// Order and bank agree: paid and kept, not paid, or given back exactly once. Answers which.
fn verdict(buyer: &Buyer, facts: &Facts, account: &Account) -> &'static str {
    let order = facts.purchases[&buyer.purchase].order.as_ref().unwrap();
    let taken = PRICE * i64::try_from(account.taken.len()).unwrap();
    let given: i64 = account.given.iter().map(|(_, amount)| amount).sum();
    assert_eq!((order.paid, order.refunded), (taken, given), "{buyer:?} {order:?} {account:?}");
    let was_cancelling = order.cancel_reason.is_some();
    match (order.status, account.taken.len(), account.given.len()) {
        (OrderStatus::Paid, 1, 0) if was_cancelling => "paid_while_cancelling",
        (OrderStatus::Paid, 1, 0) if account.taken[0] > order.cancel_due_at => "paid_after_its_due_time",
        (OrderStatus::Paid, 1, 0) => "paid_in_time",
        (OrderStatus::Cancelled, 0, 0) => "not_paid",
        (OrderStatus::Cancelled, 1, 1) if given == PRICE => "given_back_once",
        _ => panic!("order and bank disagree: {buyer:?} {order:?} {account:?}"),
    }
}

async fn compare(till: &Till, buyers: &[Buyer]) -> BTreeMap<&'static str, u64> {
    let lines = till.bank.statement(Timestamp(0), LATEST).await.unwrap();
    let mut accounts = accounts(&lines);
    let (mut sometimes, mut refunds) = (BTreeMap::new(), BTreeSet::new());
    let mut met = |case: &'static str| *sometimes.entry(case).or_insert(0) += 1;
    for some in buyers.chunks(200) {
        let ids: Vec<PurchaseId> = some.iter().map(|buyer| buyer.purchase).collect();
        let need = Need { purchases: ids, ..Need::default() };
        let facts = till.engine.store().view(need).await.unwrap();
        for buyer in some {
            let account = accounts.remove(&buyer.payment).unwrap_or_default();
            let found = verdict(buyer, &facts, &account);
            met(found);
            let order = facts.purchases[&buyer.purchase].order.as_ref().unwrap();
            for at in &account.taken {
                assert!(at.0.abs_diff(order.cancel_due_at.0) <= AROUND.unsigned_abs(), "{buyer:?} {at:?}");
            }
            for (refund, _) in &account.given {
                assert!(refunds.insert(*refund), "{refund} twice");
                if buyer.calling == Calling::Drop {
                    met("late_money_found_by_the_second_confirmation");
                }
            }
            if found.starts_with("paid") && buyer.calling == Calling::Drop {
                met("paid_without_a_callback");
            }
        }
    }
    assert!(accounts.is_empty(), "money of nobody: {accounts:?}");
    sometimes
}

in_every_mode! {
    ot_03_ot_07_ten_thousand_orders_paid_around_their_due_time_agree_with_the_bank,
}

async fn ot_03_ot_07_ten_thousand_orders_paid_around_their_due_time_agree_with_the_bank(mode: Mode) {
    let orders = if mode.is_embedded() { ORDERS } else { ORDERS_OVER_SERVERS };
    let stock = i64::try_from(orders).unwrap();
    let rules = [LatePayment::Refund, LatePayment::Reinstate];
    let till = Till::open(mode, &rules, stock).await;
    let buyers = make_orders(&till, orders).await;
    pay_at_their_time(&till, &buyers).await;
    come_to_rest(&till).await;
    let sometimes = compare(&till, &buyers).await;
    for case in [
        "paid_in_time",
        "paid_while_cancelling",
        "not_paid",
        "given_back_once",
        "late_money_found_by_the_second_confirmation",
        "paid_without_a_callback",
    ] {
        assert!(sometimes.contains_key(case), "{case} never came about: {sometimes:?}");
    }
    till.assert_invariants().await;
    let need = Need { skus: rules.map(key).to_vec(), ..Need::default() };
    let facts = till.engine.store().view(need).await.unwrap();
    let figures = |of: fn(&onceward_domain::catalogue::Stock) -> i64| -> i64 {
        facts.skus.values().map(|sku| of(&sku.stock)).sum()
    };
    let paid: u64 = sometimes
        .iter()
        .filter(|(case, _)| {
            ["paid_in_time", "paid_while_cancelling", "paid_after_its_due_time"].contains(case)
        })
        .map(|(_, count)| count)
        .sum();
    assert_eq!(figures(|stock| stock.occupied), 0);
    assert_eq!(figures(|stock| stock.sold), i64::try_from(paid).unwrap());
    assert_eq!(figures(|stock| stock.available), 2 * stock - i64::try_from(paid).unwrap());
    till.close().await;
}

/// `cancel_due_at` is created + window + grace wherever the server stands (C36): a zone has no place in it.
#[test]
fn c_36_no_order_is_due_before_its_limit_in_any_zone() {
    for zone in ["Etc/GMT-14", "Etc/GMT+12", "Europe/Berlin"] {
        let folder = Folder::new("zone");
        let mut command = onceward();
        command
            .args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.path())
            .env("TZ", zone);
        let server = Server::spawn(&mut command).unwrap();
        let terms = json!({
            "name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
            "payment_window_ms": 900_000, "cancel_grace_ms": 300_000,
        });
        assert_eq!(server.put("/v1/activities/sale", &terms).0, 201);
        let price = json!({"amount": 1999, "currency": "CNY"});
        let sku = json!({"stock": 1, "price": price, "per_user_limit": 1});
        assert_eq!(server.put("/v1/activities/sale/skus/a", &sku).0, 201);
        let lines = json!([{"activity_id": "sale", "sku_id": "a", "quantity": 1}]);
        let body = json!({"user_id": "u", "request_id": "r", "lines": lines});
        let (status, order) = server.post("/v1/orders", &body);
        assert_eq!((status, &order["status"]), (201, &Value::from("CREATED")), "{zone}: {order}");
        let at = |name: &str| -> jiff::Timestamp { order[name].as_str().unwrap().parse().unwrap() };
        let length = |from: &str, to: &str| at(to).as_millisecond() - at(from).as_millisecond();
        assert_eq!(length("created_at", "expires_at"), 900_000, "{zone}");
        assert_eq!(length("expires_at", "cancel_due_at"), 300_000, "{zone}");
    }
}

#[test]
fn ot_03_ot_07_orders_paid_around_their_due_time_agree_with_the_bank_though_the_server_is_killed() {
    let mut command = onceward();
    command.args([
        "torture",
        "--scenario",
        "pay-cancel",
        "--crash",
        "--orders",
        "1000",
        "--seed",
        "3",
        "--json",
    ]);
    let output = finish(&mut command);
    let said = stderr(&output);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|cause| panic!("{cause}: {said}"));
    assert!(output.status.success(), "{report:#} {said}");
    assert_eq!((&report["violations"], &report["scenario"]), (&Value::from(0), &Value::from("pay-cancel")));
    let count = |name: &str| report[name].as_u64().unwrap_or(0);
    assert!(count("orders") >= 1_000 && count("kills") >= 10, "{report:#}");
    for case in [
        "answer_lost",
        "callback_doubled",
        "declined",
        "found_without_a_callback",
        "given_back_after_the_cancel",
        "not_paid_and_cancelled",
        "paid_and_kept",
        "paid_while_cancelling",
        "refund_asked",
    ] {
        assert!(report["sometimes"][case].as_u64() > Some(0), "{case} never came about: {report:#}");
    }
}
