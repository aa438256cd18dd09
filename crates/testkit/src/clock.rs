//! A clock that stands still until it is told otherwise.
//!
//! Invariant: it never moves by itself, so a test says what time it is. It may be set back, as real ones are.

use std::sync::atomic::{AtomicI64, Ordering};

use onceward_domain::ports::clock::Clock;
use onceward_domain::time::{Millis, Timestamp};

/// A hand-moved clock.
///
/// ```
/// use onceward_domain::{ports::clock::Clock, time::{Millis, Timestamp}};
/// use onceward_testkit::clock::ManualClock;
/// let clock = ManualClock::new(Timestamp(5));
/// clock.advance(Millis(7));
/// assert_eq!(clock.now(), Timestamp(12));
/// ```
#[derive(Debug)]
pub struct ManualClock {
    millis: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self { millis: AtomicI64::new(start.0) }
    }

    /// Moves it on by `length` (back, where it is negative).
    pub fn advance(&self, length: Millis) {
        self.millis.fetch_add(length.0, Ordering::SeqCst);
    }

    /// Sets it.
    pub fn set(&self, now: Timestamp) {
        self.millis.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.millis.load(Ordering::SeqCst))
    }
}
