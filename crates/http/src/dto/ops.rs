//! What operators see, on the wire.

use onceward_domain::due::{LaneStatus, Waiting};
use onceward_domain::machine::Machine;
use onceward_domain::tally::{Group, SkuTally};
use serde::Serialize;
use utoipa::ToSchema;

use super::sku::{AdmissionView, StockView};
use crate::when::Time;
use onceward::operations::operate::{Check, Overview};

/// Most bytes of a dead letter's body that are shown.
const BODY_SHOWN: usize = 256;

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

/// One queue at a glance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    name: String,
    /// Members in it.
    size: u64,
    /// Members under a lease.
    leased: u64,
    /// Earliest due-time, or lease end.
    #[schema(required = true)]
    next_due_at: Option<Time>,
    /// When the oldest member was put in.
    #[schema(required = true)]
    oldest_at: Option<Time>,
}

impl From<&LaneStatus> for QueueView {
    fn from(lane: &LaneStatus) -> Self {
        Self {
            name: lane.lane.as_str().to_owned(),
            size: lane.size,
            leased: lane.leased,
            next_due_at: lane.next_due.map(Time),
            oldest_at: lane.oldest.map(Time),
        }
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
        Self {
            now: Time(overview.now),
            queues: overview.lanes.iter().map(QueueView::from).collect(),
            skus: overview.tally.skus.iter().map(SkuOverview::from).collect(),
            quarantined: overview.tally.quarantined,
            store: StoreView { bytes: overview.tally.bytes, about: overview.tally.about.to_string() },
        }
    }
}

/// Work whose tries are used up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterView {
    /// Names it for a replay.
    id: String,
    /// The queue it came from, with the prefix `dead/`.
    queue: String,
    created_at: Time,
    #[schema(value_type = i64, minimum = 0)]
    attempts: u32,
    /// Size of what the worker needs.
    body_bytes: usize,
    /// Its beginning, in hexadecimal digits.
    body_hex: String,
}

impl From<&Waiting> for DeadLetterView {
    fn from(letter: &Waiting) -> Self {
        let shown = &letter.body[..letter.body.len().min(BODY_SHOWN)];
        Self {
            id: letter.member.to_string(),
            queue: letter.lane.as_str().to_owned(),
            created_at: Time(letter.created_at),
            attempts: letter.attempts,
            body_bytes: letter.body.len(),
            body_hex: shown.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}
