//! What the buyers saw: receipts, refusals, and everything that should not have happened.
//!
//! Invariants: a receipt is what the server acknowledged, never what it should have; what contradicts the promise is
//! kept as a sentence, and one is enough to fail the run. Read next: `audit`, which holds it against the server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sentences about contradictions that are kept; the rest is counted.
const SENTENCES_MAX: usize = 20;

/// A reservation or a direct order that the server acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The SKU.
    pub(crate) sku: &'static str,
    /// The buyer.
    pub(crate) user: String,
    /// The request.
    pub(crate) request: String,
    /// What was acknowledged: a reservation id, or an order id where it was a direct order.
    pub(crate) id: String,
    /// Whether the buyer cancelled the order, and was told so.
    pub(crate) is_cancelled: bool,
}

/// An order with the attempt by which its buyer paid, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payment {
    /// The order.
    pub(crate) order: String,
    /// The attempt.
    pub(crate) id: String,
}

/// What was seen, so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Reservations acknowledged.
    pub(crate) reservations: Vec<Receipt>,
    /// Direct orders acknowledged.
    pub(crate) direct_orders: Vec<Receipt>,
    /// Payments started.
    pub(crate) payments: Vec<Payment>,
    /// Who joined which group order, in this order.
    pub(crate) joined: Vec<(&'static str, String)>,
    /// Refusals by code.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Requests that were sent a second time on purpose.
    pub(crate) repeats: u64,
    /// Requests in all.
    pub(crate) requests: u64,
    /// What contradicts the promise.
    pub(crate) contradictions: Vec<String>,
    /// How many contradictions there were.
    pub(crate) contradiction_count: u64,
}

/// Shared by all buyers.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Seen>);

impl Tally {
    /// Looks at it, or writes into it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Counts a refusal.
    pub(crate) fn refuse(&mut self, code: &str) {
        *self.refused.entry(code.to_owned()).or_default() += 1;
    }

    /// Keeps a contradiction.
    pub(crate) fn contradict(&mut self, sentence: String) {
        self.contradiction_count += 1;
        if self.contradictions.len() < SENTENCES_MAX {
            self.contradictions.push(sentence);
        }
    }
}
