//! A buyer's order, as the buyer saw it: what the books are held against.
//!
//! Invariant: it says what was answered, never what should have come of it. Read next: `lane`, which writes it; `books`.

use onceward_domain::time::Timestamp;

use super::plan::Course;

/// A buyer's order, and what was seen of it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// What the buyer does.
    pub(super) course: Course,
    /// Its number.
    pub(super) number: usize,
    /// Empty while a reservation has no order.
    pub(super) order: String,
    pub(super) reservation: String,
    pub(super) due: Timestamp,
    /// Attempts, oldest first.
    pub(super) payments: Vec<String>,
    /// Whether the payment was made within [`AROUND`](super::plan::AROUND) of the due-time.
    pub(super) is_near: bool,
    /// Whether the bank took the money (again, for a second telling).
    pub(super) is_taken: bool,
    /// Whether the money's callback was sent after all.
    pub(super) is_told_again: bool,
    /// Refunds that were accepted, in minor units.
    pub(super) back: i64,
    /// Refunds that were refused because too much was asked for.
    pub(super) too_much: u32,
}
