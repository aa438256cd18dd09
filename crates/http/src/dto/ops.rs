//! What operators see, on the wire.

use onceward_domain::due::LaneStatus;
use onceward_domain::machine::Machine;
use onceward_domain::tally::{Group, SkuTally};
use serde::Serialize;
use utoipa::ToSchema;

use super::queue::QueueView;
use super::sku::{AdmissionView, StockView};
use crate::when::Time;
use onceward::operations::operate::{Check, Overview};

/// The verdict on all invariants, computed just now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invariants)]
pub(crate) struct InvariantsView {
    /// Whether every check holds.
    holds: bool,
    checks: Vec<CheckView>,
}

/// The verdict on one invariant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvariantCheck)]
pub(crate) struct CheckView {
    name: String,
    holds: bool,
    detail: String,
}

impl From<Vec<Check>> for InvariantsView {
    fn from(checks: Vec<Check>) -> Self {
        let view = |check: Check| CheckView {
            name: check.name.to_owned(),
            holds: check.holds,
            detail: check.detail,
        };
        let checks: Vec<CheckView> = checks.into_iter().map(view).collect();
        Self { holds: checks.iter().all(|check| check.holds), checks }
    }
}

/// The whole at a glance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Overview)]
pub(crate) struct OverviewView {
    /// The store's time.
    now: Time,
    queues: Vec<QueueView>,
    skus: Vec<SkuOverview>,
    /// Messages set aside.
    quarantined: u64,
    store: StoreView,
}

/// The store of record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoreOverview)]
pub(crate) struct StoreView {
    /// Size on disk; 0 where it is unknown.
    bytes: u64,
    /// What it says of itself.
    about: String,
}

/// One SKU with its purchases.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkuOverview {
    activity_id: String,
    sku_id: String,
    stock: StockView,
    #[schema(required = true)]
    admission: Option<AdmissionView>,
    /// Buyers whose live orders hold more than they may: 0.
    buyers_over_limit: u64,
    purchases: Vec<PurchaseGroup>,
}

/// Purchases that share their states.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PurchaseGroup {
    admission: &'static str,
    #[schema(required = true)]
    reservation: Option<&'static str>,
    #[schema(required = true)]
    order: Option<&'static str>,
    purchases: u64,
    units: i64,
}

impl From<&Group> for PurchaseGroup {
    fn from(group: &Group) -> Self {
        Self {
            admission: group.admission.name(),
            reservation: group.reservation.map(Machine::name),
            order: group.order.map(Machine::name),
            purchases: group.purchases,
            units: group.units,
        }
    }
}

impl From<&SkuTally> for SkuOverview {
    fn from(tally: &SkuTally) -> Self {
        Self {
            activity_id: tally.sku.key.activity.as_str().to_owned(),
            sku_id: tally.sku.key.sku.as_str().to_owned(),
            stock: tally.sku.stock.into(),
            admission: tally.bucket.as_ref().map(AdmissionView::from),
            buyers_over_limit: tally.buyers_over_limit,
            purchases: tally.groups.iter().map(PurchaseGroup::from).collect(),
        }
    }
}

impl From<&Overview> for OverviewView {
    fn from(overview: &Overview) -> Self {
        let queue = |lane: &LaneStatus| {
            let dead = lane.lane.dead_letters();
            let exhausted = overview.lanes.iter().find(|one| one.lane == dead).map_or(0, |one| one.size);
            QueueView::of(overview.now, lane, exhausted)
        };
        Self {
            now: Time(overview.now),
            queues: overview.lanes.iter().map(queue).collect(),
            skus: overview.tally.skus.iter().map(SkuOverview::from).collect(),
            quarantined: overview.tally.quarantined,
            store: StoreView { bytes: overview.tally.bytes, about: overview.tally.about.to_string() },
        }
    }
}
