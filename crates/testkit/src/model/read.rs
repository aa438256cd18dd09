//! Lists and sums over the model's rows.
//!
//! Deliberately absent: any verdict; stores add up, the domain's audit judges.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceward_domain::catalogue::Sku;
use onceward_domain::changes::Transition;
use onceward_domain::due::Lane;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::journal;
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::{Order as OrderStatus, OrderEvent};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest};
use onceward_domain::purchase::{InboxResult, Order, Purchase};
use onceward_domain::tally::{Group, SkuTally, Tally};
use onceward_domain::time::Timestamp;

use super::rows::Rows;

impl Rows {
    /// SKUs by their ids.
    pub(super) fn list_skus(&self, limit: u32, after: Option<&SkuKey>) -> Vec<Sku> {
        let later = self.skus.iter().filter(|(key, _)| after.is_none_or(|after| *key > after));
        let mut found: Vec<Sku> = later.map(|(_, sku)| sku.clone()).collect();
        found.sort_by(|one, other| one.key.cmp(&other.key));
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        found
    }

    /// Orders, newest first.
    pub(super) fn list_orders(&self, filter: &OrderFilter, page: PageRequest) -> Vec<Purchase> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let shown = |purchase: &&Purchase| shows(filter, purchase);
        self.by_handle
            .range(..page.before.unwrap_or(i64::MAX))
            .rev()
            .filter_map(|(_, id)| self.purchases.get(id))
            .filter(shown)
            .take(limit)
            .cloned()
            .collect()
    }

    /// Orders that expire unless something happens first, earliest first.
    pub(crate) fn expiries(&self, limit: u32, after: Option<Expiring>) -> Vec<Expiring> {
        let may_expire = |order: &Order| order.status.next(OrderEvent::Expire).is_some();
        let mut found: Vec<Expiring> = self
            .purchases
            .iter()
            .filter_map(|(_, purchase)| {
                let order = purchase.order.as_ref().filter(|order| may_expire(order))?;
                let (due_at, handle) = (order.cancel_due_at, purchase.handle);
                Some(Expiring { due_at, handle, purchase: purchase.id })
            })
            .filter(|one| after.is_none_or(|after| *one > after))
            .collect();
        found.sort_unstable();
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        found
    }

    /// The history of a purchase, oldest first.
    pub(crate) fn history(&self, id: PurchaseId) -> Vec<Transition> {
        let rows = self.transitions.range((id, i64::MIN)..=(id, i64::MAX));
        rows.map(|(_, transition)| transition.clone()).collect()
    }

    /// Sums over everything.
    pub(crate) fn tally(&self, now: Timestamp) -> Tally {
        let purchases = || self.purchases.iter().map(|(_, purchase)| purchase);
        let count = |wanted: &dyn Fn(&Purchase) -> bool| {
            u64::try_from(purchases().filter(|purchase| wanted(purchase)).count()).expect("memory is smaller")
        };
        let tasks = self.compensations.iter();
        let stray = tasks.filter(|(id, _)| self.purchases.get(id).is_none_or(|row| !needs_task(row))).count();
        Tally {
            now,
            skus: self.skus.iter().map(|(_, sku)| self.tally_sku(sku)).collect(),
            rejections_without_task: count(&|row| is_refused(row) && !self.compensations.contains(&row.id)),
            tasks_without_rejection: u64::try_from(stray).expect("memory is smaller"),
            inbox_contradictions: count(&contradicts_inbox),
            cancels_without_release: count(&|row| !self.is_released_once(row)),
            money_contradictions: count(&|row| self.contradicts_money(row)),
            group_orders: self.tally_groups(),
            credit: self.tally_credit(),
            cases: u64::try_from(self.cases.len()).expect("memory is smaller"),
            quarantined: u64::try_from(self.quarantined.len()).expect("memory is smaller"),
            bytes: 0,
            about: Arc::from("model store: sorted maps in memory"),
        }
    }

    fn tally_sku(&self, sku: &Sku) -> SkuTally {
        let frees = self.activities.get(&sku.key.activity).is_some_and(|row| row.cancelled_frees_limit);
        let mut groups: BTreeMap<_, (u64, i64)> = BTreeMap::new();
        let mut held: BTreeMap<UserId, (i64, Option<Timestamp>)> = BTreeMap::new();
        for (_, purchase) in self.purchases.iter() {
            let units = i64::from(purchase.units_of(&sku.key));
            if units == 0 {
                continue;
            }
            let order = purchase.order.as_ref().map(|order| order.status);
            let group = groups.entry((purchase.admission, purchase.reservation, order)).or_default();
            *group = (group.0 + 1, group.1 + units);
            if purchase.holds_a_place(frees) {
                let (so_far, latest) = held.entry(purchase.user.clone()).or_default();
                *so_far += units;
                *latest = purchase.order.as_ref().map(|order| order.created_at).max(*latest);
            }
        }
        let is_over = |(units, latest): &&(i64, Option<Timestamp>)| {
            *units > i64::from(sku.per_user_limit) && *latest > Some(sku.limit_since)
        };
        let over = held.values().filter(is_over).count();
        let group = |((admission, reservation, order), (purchases, units))| Group {
            admission,
            reservation,
            order,
            purchases,
            units,
        };
        SkuTally {
            sku: sku.clone(),
            bucket: self.buckets.get(&sku.key).cloned(),
            groups: groups.into_iter().map(group).collect(),
            buyers_over_limit: u64::try_from(over).expect("memory is smaller"),
            journaled: self.journaled(&sku.key),
            ledger_available: self.ledger_available(&sku.key),
        }
    }

    /// Reservations that only the journal holds.
    pub(crate) fn journal(&self) -> Vec<OrderCreateRequested> {
        let entries = self.due.iter().filter(|((lane, _), _)| lane.as_str() == Lane::JOURNAL);
        entries
            .flat_map(|(_, entry)| journal::unpack(&entry.body).expect("the journal is whole"))
            .filter(|one| !self.purchases.contains(&one.purchase))
            .collect()
    }

    fn journaled(&self, key: &SkuKey) -> i64 {
        self.journal().iter().filter(|one| one.key == *key).map(|one| i64::from(one.quantity)).sum()
    }

    fn ledger_available(&self, key: &SkuKey) -> i64 {
        self.entries.iter().filter(|(_, entry)| entry.key == *key).map(|(_, entry)| entry.available).sum()
    }

    /// Whether a cancelled order has exactly one release per line; any other purchase passes.
    fn is_released_once(&self, purchase: &Purchase) -> bool {
        if purchase.order.as_ref().is_none_or(|order| order.status != OrderStatus::Cancelled) {
            return true;
        }
        let row = OrderStatus::CancelPending.next(OrderEvent::Cancel).expect("the table has the row");
        purchase.lines.iter().all(|line| {
            let releases = self.entries.iter().filter(|(_, entry)| {
                entry.purchase == Some(purchase.id) && entry.key == line.key && entry.cause == row.label
            });
            releases.count() == 1
        })
    }
}

fn shows(filter: &OrderFilter, purchase: &Purchase) -> bool {
    let Some(order) = &purchase.order else { return false };
    filter.user.as_ref().is_none_or(|user| *user == purchase.user)
        && filter.status.is_none_or(|status| status == order.status)
        && filter
            .activity
            .as_ref()
            .is_none_or(|id| purchase.lines.iter().any(|line| line.key.activity == *id))
}

/// Refused, and not yet given back.
fn is_refused(purchase: &Purchase) -> bool {
    matches!(purchase.reservation, Some(Status::OrderRejected | Status::Compensating))
}

/// In a state that a compensation task belongs to.
fn needs_task(purchase: &Purchase) -> bool {
    is_refused(purchase) || matches!(purchase.reservation, Some(Status::Compensated | Status::ManualReview))
}

fn contradicts_inbox(purchase: &Purchase) -> bool {
    match purchase.inbox.map(|inbox| inbox.result) {
        None => false,
        Some(InboxResult::OrderCreated) => purchase.order.is_none(),
        Some(InboxResult::OrderRejected) => purchase.order.is_some() || !needs_task(purchase),
        Some(InboxResult::LateRejected) => {
            let refuses = purchase.reservation.is_some_and(Status::refuses_late_messages);
            !refuses && purchase.reservation != Some(Status::ManualReview)
        }
    }
}
