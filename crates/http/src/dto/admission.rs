//! How the gate stands, on the wire.

use onceward::operations::admission::GateView as Found;
use serde::Serialize;
use utoipa::ToSchema;

use super::sku::{AdmissionView, StockView};

/// How the gate stands for one SKU.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Gate)]
pub(crate) struct GateView {
    activity_id: String,
    sku_id: String,
    /// Whether it lets buyers in; the sale's hours and a backlog are another matter.
    open: bool,
    /// Whether its counters are rows of the store of record: then there is nothing to be made anew.
    in_store: bool,
    /// Whether the gate has let go of it, long after the sale: then the counters are the stock of record.
    retired: bool,
    #[schema(value_type = i64, minimum = 1)]
    buckets: u16,
    /// Buckets that were never opened, or have lost writes: they are rebuilt when the next buyer comes.
    #[schema(value_type = i64, minimum = 0)]
    closed_buckets: u16,
    /// Counts the openings; 0 where it lives in the store.
    #[schema(minimum = 0)]
    epoch: i64,
    stock: StockView,
    /// Sums over the buckets that are there; `null` where none is.
    #[schema(required = true)]
    admission: Option<AdmissionView>,
}

impl From<&Found> for GateView {
    fn from(found: &Found) -> Self {
        let standing = found.standing.as_ref();
        Self {
            activity_id: found.sku.key.activity.as_str().to_owned(),
            sku_id: found.sku.key.sku.as_str().to_owned(),
            open: found.is_open(),
            in_store: found.in_store,
            retired: found.is_retired(),
            buckets: standing.map_or(found.sku.buckets, |one| one.buckets),
            closed_buckets: standing.map_or(found.sku.buckets, |one| one.closed),
            epoch: standing.map_or(0, |one| one.epoch),
            stock: found.sku.stock.into(),
            admission: standing.and_then(|one| one.counters.as_ref()).map(AdmissionView::from),
        }
    }
}
