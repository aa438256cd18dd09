//! What is on sale: activities, SKUs and the stock of record; and the admission bucket in front of it.
//!
//! Invariants: `Stock::initial = available + occupied + sold`; `Bucket::initial = available + open_reserved +
//! committed`. Stock never goes below zero; a bucket's `available` may, for as long as a direct order or an
//! adjustment overtook reservations that are still open. Read next: [`crate::purchase`].

use std::sync::Arc;

use crate::id::{ActivityId, SkuKey};
use crate::machine::admission::CounterEffect;
use crate::machine::order::StockEffect;
use crate::money::Money;
use crate::time::{Millis, Timestamp};

/// Most units a SKU may have.
pub const STOCK_LIMIT: i64 = 1_000_000_000;

/// What to do with money found on a cancelled order (OT-07).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatePayment {
    /// Give it back.
    Refund,
    /// Lock stock again if there is some, else give it back.
    Reinstate,
    /// A person decides.
    Manual,
}

impl LatePayment {
    /// Every rule; the position is the code that stores keep.
    pub const ALL: [Self; 3] = [Self::Refund, Self::Reinstate, Self::Manual];

    /// The rule's name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Reinstate => "reinstate",
            Self::Manual => "manual",
        }
    }
}

/// A sale and its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Its id.
    pub id: ActivityId,
    /// A name for people.
    pub name: Arc<str>,
    /// First moment at which reservations are taken.
    pub starts_at: Timestamp,
    /// First moment at which they no longer are.
    pub ends_at: Timestamp,
    /// How long a buyer may take to pay.
    pub payment_window: Millis,
    /// How long after that a payment still wins (OT-04).
    pub cancel_grace: Millis,
    /// How long a reservation may wait for its order (FS-15).
    pub reservation_deadline: Millis,
    /// When, after a cancel, the provider is asked once more (OT-07).
    pub confirm_after_cancel: Millis,
    /// What to do with late money.
    pub late_payment: LatePayment,
    /// Whether a cancelled order frees the buyer's place (FS-20).
    pub cancelled_frees_limit: bool,
}

impl Activity {
    /// Whether reservations are taken at this moment: `starts_at <= now < ends_at` (C82, D13).
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.starts_at <= now && now < self.ends_at
    }
}

/// The stock of record of one SKU, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock {
    /// All there ever was, with adjustments.
    pub initial: i64,
    /// Free.
    pub available: i64,
    /// Locked by unpaid orders.
    pub occupied: i64,
    /// In paid orders.
    pub sold: i64,
}

impl Stock {
    /// Everything free.
    #[must_use]
    pub fn full(initial: i64) -> Self {
        Self { initial, available: initial, occupied: 0, sold: 0 }
    }

    /// The stock after `quantity` units made a move.
    #[must_use]
    pub fn moved(self, effect: StockEffect, quantity: u32) -> Self {
        let units = |per_unit: i8| i64::from(per_unit) * i64::from(quantity);
        Self {
            initial: self.initial,
            available: self.available + units(effect.available),
            occupied: self.occupied + units(effect.occupied),
            sold: self.sold + units(effect.sold),
        }
    }

    /// Whether the conservation law holds and nothing is below zero.
    #[must_use]
    pub fn holds(&self) -> bool {
        let parts = [self.available, self.occupied, self.sold];
        parts.iter().all(|part| *part >= 0) && self.initial == parts.iter().sum::<i64>()
    }
}

/// A SKU on sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sku {
    /// Activity and SKU.
    pub key: SkuKey,
    /// Price of one unit.
    pub price: Money,
    /// Most units one buyer may hold.
    pub per_user_limit: u32,
    /// Since when that is the limit. What buyers held before, they keep.
    pub limit_since: Timestamp,
    /// How many admission buckets share the stock.
    pub buckets: u16,
    /// Units at its first PUT, before any adjustment: what a repeat of that PUT says.
    pub opening: i64,
    /// The stock of record.
    pub stock: Stock,
    /// How many adjustments were made; numbers their events.
    pub adjustments: u32,
    /// Counts every change; guards the next one.
    pub revision: i64,
}

/// Admission's counters for one SKU, in units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Activity and SKU.
    pub key: SkuKey,
    /// All there ever was, with projected adjustments.
    pub initial: i64,
    /// Can be reserved.
    pub available: i64,
    /// Reserved, no order yet.
    pub open_reserved: i64,
    /// Behind an order.
    pub committed: i64,
    /// Number of the last adjustment that was projected.
    pub adjustments: u32,
    /// Counts every change; guards the next one.
    pub revision: i64,
}

impl Bucket {
    /// A bucket with everything free.
    #[must_use]
    pub fn full(key: SkuKey, initial: i64) -> Self {
        Self { key, initial, available: initial, open_reserved: 0, committed: 0, adjustments: 0, revision: 0 }
    }

    /// What a gate would count that everything the store has decided was projected onto: units of orders are committed, and nobody
    /// is between reservation and order.
    #[must_use]
    pub fn settled(sku: &Sku) -> Self {
        Self {
            available: sku.stock.available,
            committed: sku.stock.occupied + sku.stock.sold,
            adjustments: sku.adjustments,
            ..Self::full(sku.key.clone(), sku.stock.initial)
        }
    }

    /// Moves `quantity` units.
    pub fn shift(&mut self, effect: CounterEffect, quantity: u32) {
        let units = |per_unit: i8| i64::from(per_unit) * i64::from(quantity);
        self.available += units(effect.available);
        self.open_reserved += units(effect.open_reserved);
        self.committed += units(effect.committed);
    }

    /// Whether the conservation law holds (reference 003 §13.4).
    #[must_use]
    pub fn holds(&self) -> bool {
        self.open_reserved >= 0
            && self.committed >= 0
            && self.initial == self.available + self.open_reserved + self.committed
    }
}
