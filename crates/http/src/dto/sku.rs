//! SKUs, their stock, and adjustments of it on the wire.

use std::sync::Arc;

use onceward_domain::catalogue::{Bucket, STOCK_LIMIT, Sku, Stock};
use onceward_domain::id::SkuKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::money::{MoneyBody, MoneyView};
use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Object, Text, Whole};
use onceward::operations::catalogue::{NewSku, SkuView as Found};

/// Most admission buckets of one SKU.
const BUCKETS_LIMIT: i64 = 64;
/// Most characters of a reason.
pub(crate) const REASON_LIMIT: usize = 500;

/// A SKU to be put on sale. `price` and `per_user_limit` may change later; `stock` may not, and `buckets` may not.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = SkuTerms)]
pub(crate) struct SkuBody<'a> {
    /// Units to sell.
    #[schema(value_type = i64, minimum = 0, maximum = 1_000_000_000)]
    stock: Whole,
    /// Price of one unit.
    #[serde(borrow)]
    #[schema(value_type = MoneyBody<'_>)]
    price: Object<MoneyBody<'a>>,
    /// Most units one buyer may hold.
    #[serde(default = "one")]
    #[schema(value_type = i64, minimum = 1, maximum = 4_294_967_295_i64, default = 1)]
    per_user_limit: Whole,
    /// How many admission buckets share the stock.
    #[serde(default = "one")]
    #[schema(value_type = i64, minimum = 1, maximum = 64, default = 1)]
    buckets: Whole,
}

fn one() -> Whole {
    Whole(1)
}

impl SkuBody<'_> {
    /// The SKU, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_sku(self, key: SkuKey) -> Result<NewSku, Problem> {
        let mut faults = Faults::default();
        let stock = faults.within("/stock", self.stock, 0..=STOCK_LIMIT);
        let price = MoneyBody::judge(&self.price, "/price", &mut faults);
        let per_user_limit = faults.count("/per_user_limit", self.per_user_limit, 1);
        let buckets = faults.within("/buckets", self.buckets, 1..=BUCKETS_LIMIT);
        let buckets = buckets.and_then(|count| u16::try_from(count).ok());
        let sku = (|| {
            Some(NewSku {
                key,
                stock: stock?,
                price: price?,
                per_user_limit: per_user_limit?,
                buckets: buckets?,
            })
        })();
        faults.finish(sku)
    }
}

/// A correction of the stock of record.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = StockAdjustment)]
pub(crate) struct AdjustBody<'a> {
    /// Units to add, or with a minus sign to take away; not 0.
    #[schema(value_type = i64, minimum = -1_000_000_000, maximum = 1_000_000_000)]
    delta: Whole,
    /// Why.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    reason: Text<'a>,
}

/// The values of an adjustment, in the form that its fingerprint is taken of.
#[derive(Debug, Serialize)]
pub(crate) struct Adjustment {
    pub(crate) delta: i64,
    #[serde(serialize_with = "as_text")]
    pub(crate) reason: Arc<str>,
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

impl AdjustBody<'_> {
    /// The adjustment, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_adjustment(self) -> Result<Adjustment, Problem> {
        let mut faults = Faults::default();
        let delta = faults.within("/delta", self.delta, -STOCK_LIMIT..=STOCK_LIMIT);
        if delta == Some(0) {
            faults.add("/delta", "must not be 0");
        }
        let reason = faults.words("/reason", &self.reason, REASON_LIMIT);
        faults.finish(delta.zip(reason).map(|(delta, reason)| Adjustment { delta, reason }))
    }
}

/// The stock of record, in units: `initial = available + occupied + sold`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stock)]
pub(crate) struct StockView {
    initial: i64,
    available: i64,
    occupied: i64,
    sold: i64,
}

impl From<Stock> for StockView {
    fn from(stock: Stock) -> Self {
        let Stock { initial, available, occupied, sold } = stock;
        Self { initial, available, occupied, sold }
    }
}

/// Admission's counters, in units.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Admission)]
pub(crate) struct AdmissionView {
    /// Below 0 for as long as a direct order or an adjustment overtook open reservations.
    available: i64,
    open_reserved: i64,
    committed: i64,
}

impl From<&Bucket> for AdmissionView {
    fn from(bucket: &Bucket) -> Self {
        let Bucket { available, open_reserved, committed, .. } = *bucket;
        Self { available, open_reserved, committed }
    }
}

/// A SKU as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sku)]
pub(crate) struct SkuView {
    activity_id: String,
    sku_id: String,
    price: MoneyView,
    #[schema(value_type = i64, minimum = 1)]
    per_user_limit: u32,
    #[schema(value_type = i64, minimum = 1)]
    buckets: u16,
    stock: StockView,
    /// `null` until the SKU's counters are installed.
    #[schema(required = true)]
    admission: Option<AdmissionView>,
}

impl From<&Found> for SkuView {
    fn from(found: &Found) -> Self {
        Self::new(&found.sku, found.bucket.as_ref())
    }
}

impl SkuView {
    fn new(sku: &Sku, bucket: Option<&Bucket>) -> Self {
        Self {
            activity_id: sku.key.activity.as_str().to_owned(),
            sku_id: sku.key.sku.as_str().to_owned(),
            price: sku.price.into(),
            per_user_limit: sku.per_user_limit,
            buckets: sku.buckets,
            stock: sku.stock.into(),
            admission: bucket.map(AdmissionView::from),
        }
    }
}
