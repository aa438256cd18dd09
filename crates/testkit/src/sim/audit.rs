//! The auditor: looks at the model's rows after every step and judges them by itself.
//!
//! **Purpose.** A second opinion. Nothing here calls the domain's audit or its effect tables for sums; the figures
//! are added up again from the purchases, so that one wrong row in a table cannot hide behind itself.
//!
//! **Invariants checked.** Stock and counters equal what the purchases say, at every moment; nobody passes the
//! limit; an order and a rejection never meet; states only move along their tables; what was said to a buyer stays
//! true; units come back once.

use std::collections::BTreeMap;
use std::fmt::Debug;

use onceward_domain::catalogue::{Bucket, Sku, Stock};
use onceward_domain::decide::cancel::EXPIRED;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::compensation::Compensation;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::purchase::{InboxResult, Order, Purchase, Reason, Route};
use onceward_domain::time::Timestamp;

use super::group_audit::Clerk;
use super::job_audit::Bookkeeper;
use super::money::Treasurer;
use super::queues::QueueAuditor;
use super::world::World;
use crate::model::rows::Rows;

/// What the auditor remembers of earlier looks.
#[derive(Default)]
pub(crate) struct Auditor {
    seen: BTreeMap<PurchaseId, Purchase>,
    promised: BTreeMap<PurchaseId, &'static str>,
    version: u64,
    /// How many promises there were at the last look.
    kept: usize,
    /// Whether tries may be used up here, so that something may end frozen, for a person.
    is_weary: bool,
    treasurer: Treasurer,
    queues: QueueAuditor,
    clerk: Clerk,
    bookkeeper: Bookkeeper,
}

/// Units of one SKU, added up from the purchases.
#[derive(Debug, Default)]
struct Units {
    occupied: i64,
    sold: i64,
    open_reserved: i64,
    committed: i64,
    by_user: BTreeMap<UserId, i64>,
}

impl Auditor {
    /// An auditor of a run in which tries may be used up, or not.
    pub(crate) fn new(is_weary: bool) -> Self {
        Self { is_weary, ..Self::default() }
    }

    /// Looks at the rows, if they changed since the last look.
    pub(crate) fn look(&mut self, world: &World) {
        let rows = world.store.rows();
        self.promised.extend(world.take_promises());
        if rows.version == self.version && self.kept == self.promised.len() {
            return;
        }
        let journal = rows.journal();
        self.version = rows.version;
        for (key, sku) in rows.skus.iter() {
            check_sku(world, &rows, &journal, key, sku);
        }
        for (id, purchase) in rows.purchases.iter() {
            let before = self.seen.get(id);
            if before == Some(purchase) {
                continue;
            }
            self.check_purchase(world, &rows, purchase);
            if let Some(before) = before {
                check_move(world, before, purchase);
            }
            count_cases(world, before, purchase);
            self.seen.insert(*id, purchase.clone());
        }
        self.treasurer.look(world, &rows);
        self.queues.look(world, &rows);
        self.clerk.look(world, &rows);
        self.bookkeeper.look(world, &rows);
        if rows.purchases.len() != self.seen.len() {
            world.violated("a purchase vanished".to_owned());
        }
        self.kept = self.promised.len();
        for (id, what) in &self.promised {
            if !rows.purchases.contains(id) && !journal.iter().any(|one| one.purchase == *id) {
                world.violated(format!("a buyer was told {what} for {id:?}, which does not exist"));
            }
        }
    }

    fn check_purchase(&self, world: &World, rows: &Rows, purchase: &Purchase) {
        let is_frozen = needs_person(purchase);
        let holds_case = purchase.order.as_ref().is_some_and(|one| one.status == OrderStatus::ManualReview);
        let mut rules = vec![("nothing needs a person", self.is_weary || !is_frozen || holds_case)];
        if holds_case {
            rules.push(("only an order with attempts is frozen", has_attempts(rows, purchase.id)));
        } else if is_frozen {
            rules.push(("only a refusal is frozen", purchase.order.is_none() && purchase.reason.is_some()));
        } else {
            rules.extend([
                (
                    "an order and a refusal met",
                    !(purchase.order.is_some() && is_refused(purchase.reservation)),
                ),
                ("an order stands exactly where the store says so", order_agrees(purchase)),
                ("a refusal has a task and a reason", refusal_agrees(rows, purchase)),
                ("units went back only after a durable rejection (DR-03)", release_is_authorized(purchase)),
                ("COMPENSATED is said only after the gate released", conclusion_agrees(rows, purchase)),
                ("the gate commits only what has an order", commitment_agrees(purchase)),
                ("the inbox agrees with the reservation", inbox_agrees(purchase)),
            ]);
        }
        for (rule, holds) in rules {
            if !holds {
                world.violated(format!("broken: {rule}: {}", describe(purchase)));
            }
        }
    }

    /// Every deadline has passed: no reservation may wait any longer (FS-15).
    pub(crate) fn look_for_undecided(&self, world: &World) {
        for one in world.store.rows().journal() {
            world.violated(format!("FS-15: its deadline passed unseen in the journal: {one:?}"));
        }
        for (_, purchase) in world.store.rows().purchases.iter() {
            if purchase.route == Route::Flash && purchase.reservation.is_none() {
                world.violated(format!("FS-15: its deadline passed unseen: {}", describe(purchase)));
            }
        }
    }

    /// Looks at the rows after everything has settled.
    pub(crate) fn look_at_the_end(&self, world: &World) {
        self.treasurer.look_at_the_end(world);
        self.clerk.look_at_the_end(world);
        let rows = world.store.rows();
        self.queues.look_at_the_end(world, &rows);
        if rows.quarantined.len() > 0 {
            world.sometimes("quarantined");
        }
        let mut frozen: BTreeMap<SkuKey, i64> = BTreeMap::new();
        for (_, purchase) in rows.purchases.iter() {
            if needs_person(purchase) {
                world.sometimes("frozen");
                if purchase.admission == Admission::Reserved {
                    let line = &purchase.lines[0];
                    *frozen.entry(line.key.clone()).or_default() += i64::from(line.quantity);
                }
            } else if !is_settled(purchase) {
                world.violated(format!("never settled: {}", describe(purchase)));
            } else if is_overdue(purchase, world.now()) {
                world.violated(format!("OT-04: its time passed unseen: {}", describe(purchase)));
            }
        }
        for (key, sku) in rows.skus.iter() {
            let bucket = rows.buckets.get(key).expect("every SKU here has a bucket");
            let (stock, frozen) = (&sku.stock, frozen.get(key).copied().unwrap_or(0));
            let agrees = bucket.open_reserved == frozen
                && bucket.committed == stock.occupied + stock.sold
                && bucket.available + frozen == stock.available
                && bucket.initial == stock.initial;
            if !agrees {
                world.violated(format!("{key}: at rest the gate says {bucket:?}, the store {stock:?}"));
            }
        }
        for (id, task) in rows.compensations.iter() {
            let is_done = task.status == Compensation::Applied;
            if !(is_done || self.is_weary && task.status == Compensation::Manual) {
                world.violated(format!("task of {id:?} rests in {:?}", task.status));
            }
        }
    }
}

fn check_sku(world: &World, rows: &Rows, journal: &[OrderCreateRequested], key: &SkuKey, sku: &Sku) {
    let frees = rows.activities.get(&key.activity).is_some_and(|activity| activity.cancelled_frees_limit);
    let mut units = Units::default();
    for (_, purchase) in rows.purchases.iter() {
        add_units(&mut units, key, purchase, frees);
    }
    let journaled = journal.iter().filter(|one| one.key == *key).map(|one| i64::from(one.quantity));
    units.open_reserved += journaled.sum::<i64>();
    let Units { occupied, sold, open_reserved, committed, by_user } = units;
    let initial = sku.stock.initial;
    let stock = Stock { initial, available: initial - occupied - sold, occupied, sold };
    if sku.stock != stock {
        world.violated(format!("{key}: stock is {:?}, the orders say {stock:?}", sku.stock));
    }
    if stock.available < 0 {
        world.violated(format!("{key}: oversold, {stock:?}"));
    }
    let over = by_user.iter().find(|(_, held)| **held > i64::from(sku.per_user_limit));
    if let Some((user, held)) = over {
        world.violated(format!("{key}: {user} holds {held}, the limit is {}", sku.per_user_limit));
    }
    let Some(bucket) = rows.buckets.get(key) else { return };
    let initial = bucket.initial;
    let expected =
        Bucket { available: initial - open_reserved - committed, open_reserved, committed, ..bucket.clone() };
    if *bucket != expected {
        world.violated(format!("{key}: counters are {bucket:?}, the purchases say {expected:?}"));
    }
    check_adjustments(world, rows, sku, bucket);
}

fn add_units(units: &mut Units, key: &SkuKey, purchase: &Purchase, frees: bool) {
    let count = i64::from(purchase.units_of(key));
    if count == 0 {
        return;
    }
    match purchase.admission {
        Admission::Reserved => units.open_reserved += count,
        Admission::OrderCreated | Admission::Reinstated => units.committed += count,
        Admission::Absent | Admission::Compensated | Admission::Cancelled => {}
    }
    let Some(order) = &purchase.order else { return };
    let is_live = match order.status {
        OrderStatus::Created | OrderStatus::Paying | OrderStatus::CancelPending => {
            units.occupied += count;
            true
        }
        // Its units stay where they were when it was frozen.
        OrderStatus::ManualReview => {
            let place = if order.paid_at.is_some() { &mut units.sold } else { &mut units.occupied };
            *place += count;
            true
        }
        OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded => {
            units.sold += count;
            true
        }
        OrderStatus::Cancelled => !frees,
    };
    if is_live {
        *units.by_user.entry(purchase.user.clone()).or_default() += count;
    }
}

/// Figures only change by adjustments that are in the ledger; the gate has seen the first so many of them.
fn check_adjustments(world: &World, rows: &Rows, sku: &Sku, bucket: &Bucket) {
    let deltas: Vec<i64> = rows
        .entries
        .iter()
        .filter(|(_, entry)| entry.adjustment.is_some() && entry.key == sku.key)
        .map(|(_, entry)| entry.available)
        .collect();
    let projected = usize::try_from(bucket.adjustments).expect("few adjustments");
    let missing: i64 = deltas.iter().skip(projected).sum();
    if sku.stock.initial - bucket.initial != missing || deltas.len() < projected {
        world.violated(format!("{}: adjustments {deltas:?} do not explain {bucket:?}", sku.key));
    }
}

fn is_refused(reservation: Option<Status>) -> bool {
    matches!(reservation, Some(Status::OrderRejected | Status::Compensating | Status::Compensated))
}

fn order_agrees(purchase: &Purchase) -> bool {
    let status = purchase.order.as_ref().map(|order| order.status);
    match (purchase.route, purchase.reservation) {
        (Route::Direct, reservation) => status.is_some() && reservation.is_none(),
        (Route::Flash, Some(Status::OrderCreated)) => {
            status.is_some_and(|status| status != OrderStatus::Cancelled)
        }
        (Route::Flash, Some(Status::Cancelled)) => status == Some(OrderStatus::Cancelled),
        (Route::Flash, _) => status.is_none(),
    }
}

fn refusal_agrees(rows: &Rows, purchase: &Purchase) -> bool {
    !is_refused(purchase.reservation)
        || (rows.compensations.contains(&purchase.id) && purchase.reason.is_some())
}

fn release_is_authorized(purchase: &Purchase) -> bool {
    let authorized = matches!(purchase.reservation, Some(Status::Compensating | Status::Compensated));
    let marker = purchase.compensation == Some(purchase.id.compensation());
    match purchase.admission {
        Admission::Compensated => authorized && marker,
        Admission::Absent
        | Admission::Reserved
        | Admission::OrderCreated
        | Admission::Cancelled
        | Admission::Reinstated => purchase.compensation.is_none(),
    }
}

fn conclusion_agrees(rows: &Rows, purchase: &Purchase) -> bool {
    purchase.reservation != Some(Status::Compensated)
        || (purchase.admission == Admission::Compensated
            && rows.compensations.get(&purchase.id).is_some_and(|task| task.status == Compensation::Applied))
}

fn commitment_agrees(purchase: &Purchase) -> bool {
    let status = purchase.order.as_ref().map(|order| order.status);
    match purchase.admission {
        Admission::OrderCreated => status.is_some(),
        // Its reinstatement may still be on its way.
        Admission::Cancelled => matches!(
            status,
            Some(
                OrderStatus::Cancelled
                    | OrderStatus::Paid
                    | OrderStatus::Refunding
                    | OrderStatus::Refunded
                    | OrderStatus::ManualReview
            )
        ),
        Admission::Reinstated => status.is_some_and(|status| status != OrderStatus::Cancelled),
        Admission::Absent => purchase.route == Route::Direct,
        Admission::Reserved | Admission::Compensated => purchase.route == Route::Flash,
    }
}

fn inbox_agrees(purchase: &Purchase) -> bool {
    match purchase.inbox.map(|inbox| inbox.result) {
        None => purchase.route == Route::Direct || purchase.order.is_none(),
        Some(InboxResult::OrderCreated) => purchase.order.is_some(),
        Some(InboxResult::OrderRejected) => is_refused(purchase.reservation),
        Some(InboxResult::LateRejected) => is_refused(purchase.reservation),
    }
}

fn has_attempts(rows: &Rows, id: PurchaseId) -> bool {
    rows.payments.iter().any(|(_, payment)| payment.purchase == id)
}

fn needs_person(purchase: &Purchase) -> bool {
    purchase.reservation == Some(Status::ManualReview)
        || purchase.order.as_ref().is_some_and(|order| order.status == OrderStatus::ManualReview)
}

fn check_move(world: &World, before: &Purchase, after: &Purchase) {
    let mut rules = vec![
        ("time is named as the reason only when it is up", !is_hasty(before, after)),
        ("the revision grew", after.revision > before.revision),
        ("the gate's state moved along its table", reaches(before.admission, after.admission)),
        ("an inbox entry is final", before.inbox.is_none() || before.inbox == after.inbox),
        ("a reason is final", before.reason.is_none() || before.reason == after.reason),
        (
            "a release marker is final",
            before.compensation.is_none() || before.compensation == after.compensation,
        ),
        ("what was bought is final", lines_agree(before, after)),
        ("who bought it is final", before.user == after.user && before.request == after.request),
    ];
    let from = before.reservation.unwrap_or(Status::Reserved);
    let to = after.reservation.unwrap_or(Status::Reserved);
    rules.push(("the reservation moved along its table", reaches(from, to)));
    if let Some(order) = &before.order {
        let same = after.order.as_ref().is_some_and(|after| {
            reaches(order.status, after.status)
                && (order.paid == 0 || after.status != OrderStatus::Cancelled || order.status == after.status)
                && order.paid <= after.paid
                && (order.total, order.created_at, order.cancel_due_at)
                    == (after.total, after.created_at, after.cancel_due_at)
        });
        rules.push(("the order moved along its table", same));
    }
    for (rule, holds) in rules {
        if !holds {
            world.violated(format!("broken: {rule}: {} became {}", describe(before), describe(after)));
        }
    }
}

fn lines_agree(before: &Purchase, after: &Purchase) -> bool {
    before.lines.len() == after.lines.len()
        && before
            .lines
            .iter()
            .zip(&after.lines)
            .all(|(left, right)| left.key == right.key && left.quantity == right.quantity)
}

/// Whether a state is the same, or can be reached by rows of the table.
pub(crate) fn reaches<M: Machine>(from: M, to: M) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(state) = reached.get(next).copied() {
        if state == to {
            return true;
        }
        for row in M::ROWS.iter().filter(|row| row.from == state) {
            if !reached.contains(&row.to) {
                reached.push(row.to);
            }
        }
        next += 1;
    }
    false
}

fn is_settled(purchase: &Purchase) -> bool {
    let reservation = match purchase.route {
        Route::Direct => purchase.order.is_some(),
        Route::Flash => matches!(
            purchase.reservation,
            Some(Status::OrderCreated | Status::Cancelled | Status::Compensated)
        ),
    };
    let cancelled = purchase.order.as_ref().map(|order| order.status == OrderStatus::Cancelled);
    let gate = match purchase.admission {
        Admission::OrderCreated | Admission::Reinstated => cancelled == Some(false),
        Admission::Cancelled => cancelled == Some(true),
        Admission::Compensated => cancelled.is_none(),
        Admission::Absent | Admission::Reserved => false,
    };
    reservation && gate
}

/// Whether an unpaid order lives longer than it may.
fn is_overdue(purchase: &Purchase, now: Timestamp) -> bool {
    let unpaid = |order: &&Order| matches!(order.status, OrderStatus::Created | OrderStatus::Paying);
    purchase.order.as_ref().filter(unpaid).is_some_and(|order| order.cancel_due_at < now)
}

/// Whether time was named as the reason before it was up, by the clock of the store (FS-15, OT-04).
fn is_hasty(before: &Purchase, after: &Purchase) -> bool {
    let deadline = before.reason.is_none() && after.reason == Some(Reason::BusinessDeadlineExceeded);
    let expired = |row: &Purchase| {
        row.order.as_ref().filter(|order| order.cancel_reason.as_deref() == Some(EXPIRED)).is_some()
    };
    let due_at = after.order.as_ref().map(|order| order.cancel_due_at);
    (deadline && after.updated_at < after.business_deadline)
        || (!expired(before) && expired(after) && due_at.is_some_and(|due| after.updated_at < due))
}

/// Counts cases that a good set of seeds must meet.
fn count_cases(world: &World, before: Option<&Purchase>, after: &Purchase) {
    let was = before.and_then(|row| Some(row.order.as_ref()?.status));
    let is = after.order.as_ref().map(|order| order.status);
    if let (Some(was), Some(OrderStatus::Paid)) = (was, is) {
        match was {
            OrderStatus::CancelPending => world.sometimes("payment_won_the_race"),
            OrderStatus::Cancelled => world.sometimes("late_payment_reinstated"),
            OrderStatus::Created | OrderStatus::Paying => world.sometimes("order_paid"),
            OrderStatus::Refunded => world.sometimes("refund_reopened"),
            OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::ManualReview => {}
        }
    }
    let is_new = |holds: &dyn Fn(&Purchase) -> bool| holds(after) && !before.is_some_and(holds);
    let late = |row: &Purchase| row.inbox.is_some_and(|inbox| inbox.result == InboxResult::LateRejected);
    let refused_for = |row: &Purchase, reason: Reason| row.reason == Some(reason);
    let cases: [(&'static str, bool); 7] = [
        ("late_rejected", is_new(&late)),
        ("deadline_rejected", is_new(&|row| refused_for(row, Reason::BusinessDeadlineExceeded))),
        ("stock_short", is_new(&|row| refused_for(row, Reason::StockShort))),
        ("user_limit", is_new(&|row| refused_for(row, Reason::UserLimit))),
        ("compensated", is_new(&|row| row.reservation == Some(Status::Compensated))),
        ("order_cancelled", is_new(&|row| row.admission == Admission::Cancelled)),
        ("order_created", is_new(&|row| row.order.is_some())),
    ];
    for (case, happened) in cases {
        if happened {
            world.sometimes(case);
        }
    }
    let expired = |row: &Purchase| {
        row.order.as_ref().is_some_and(|order| order.cancel_reason.as_deref() == Some(EXPIRED))
    };
    if is_new(&expired) {
        world.sometimes("order_expired");
    }
}

fn describe(purchase: &Purchase) -> String {
    let order: Option<&dyn Debug> = purchase.order.as_ref().map(|order| &order.status as &dyn Debug);
    format!(
        "{} of {} ({:?}, gate {:?}, store {:?}, order {order:?}, inbox {:?}, reason {:?})",
        purchase.id.reservation(),
        purchase.user,
        purchase.route,
        purchase.admission,
        purchase.reservation,
        purchase.inbox.map(|inbox| inbox.result),
        purchase.reason,
    )
}
