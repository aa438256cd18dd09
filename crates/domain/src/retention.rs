//! Retention: records that nobody needs any more after a while (design.md §7).
//!
//! Purpose: what grows with every request and is neither a business fact nor what recognises a repeat is forgotten by age.
//! Invariants: a window is longer than any redelivery, so that what is forgotten is not asked for by a repeat that is on its
//! way; the answer of an effect is lasting, and is not listed among what may go. Deliberately absent: purchases, money, stock
//! and credits, which are never forgotten. Read next: [`crate::decide::forget`].

use std::sync::Arc;

use uuid::Uuid;

use crate::catalogue::Stock;
use crate::id::NoticeId;
use crate::time::{Millis, Timestamp};

/// One day.
pub const DAY: Millis = Millis(86_400_000);
/// How long records are kept where nobody says otherwise.
pub const WINDOW: Millis = Millis(30 * DAY.0);
/// The shortest window. Brokers keep a message for days, and providers repeat a callback for days: a window must outlast both.
pub const WINDOW_MIN: Millis = Millis(7 * DAY.0);

/// Whether a gate outside of the store may let go of what it keeps of a SKU (FS-14): its sale ended a window ago, and no order of it
/// can still lose its units for want of payment. From then on the store answers what the gate did: who asks again is told
/// what became of their request, and the counters are the stock of record. Whether all that the gate let in has had its end, the
/// gate itself knows.
///
/// ```
/// use onceward_domain::{catalogue::Stock, retention::{WINDOW, is_past}, time::Timestamp};
/// let ended = Timestamp(1_000);
/// let sold = Stock { initial: 5, available: 2, occupied: 0, sold: 3 };
/// assert!(is_past(ended, &sold, WINDOW, ended.plus(WINDOW)));
/// assert!(!is_past(ended, &sold, WINDOW, Timestamp(ended.plus(WINDOW).0 - 1)));
/// let unpaid = Stock { available: 1, occupied: 1, ..sold };
/// assert!(!is_past(ended, &unpaid, WINDOW, ended.plus(WINDOW)));
/// ```
#[must_use]
pub fn is_past(ended_at: Timestamp, stock: &Stock, window: Millis, now: Timestamp) -> bool {
    is_over(ended_at, window, now) && stock.occupied == 0
}

/// Whether a window is over that begins at this moment.
#[must_use]
pub fn is_over(since: Timestamp, window: Millis, now: Timestamp) -> bool {
    since.plus(window) <= now
}

/// What kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// First answers that refused a request, by when they were given.
    Answer,
    /// Callbacks of providers, by when they came.
    Callback,
    /// Notices, by their last change.
    Notice,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Answer, Self::Callback, Self::Notice];

    /// The kind's name in metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Callback => "callback",
            Self::Notice => "notice",
        }
    }
}

/// Which record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Record {
    /// The answer under a key.
    Answer(Arc<str>),
    /// A provider's callback, by provider and event.
    Callback(Arc<str>, Arc<str>),
    /// A notice.
    Notice(NoticeId),
}

impl Record {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Answer(_) => RecordKind::Answer,
            Self::Callback(..) => RecordKind::Callback,
            Self::Notice(_) => RecordKind::Notice,
        }
    }
}

/// A record and its age; also a place in the list of its kind, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Aged {
    /// What its age is counted from.
    pub at: Timestamp,
    /// Which.
    pub record: Record,
}

impl Aged {
    /// The place before every record of a kind.
    ///
    /// ```
    /// use onceward_domain::{retention::{Aged, Record, RecordKind}, time::Timestamp};
    /// let oldest = Aged { at: Timestamp(0), record: Record::Answer("k".into()) };
    /// assert!(Aged::before_all(RecordKind::Answer) < oldest);
    /// ```
    #[must_use]
    pub fn before_all(kind: RecordKind) -> Self {
        let nothing: Arc<str> = Arc::from("");
        let record = match kind {
            RecordKind::Answer => Record::Answer(nothing),
            RecordKind::Callback => Record::Callback(Arc::clone(&nothing), nothing),
            RecordKind::Notice => Record::Notice(NoticeId(Uuid::nil())),
        };
        Self { at: Timestamp(i64::MIN), record }
    }
}
