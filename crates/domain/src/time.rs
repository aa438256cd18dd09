//! Points in time and lengths of time, in whole milliseconds.
//!
//! Invariants: values are plain numbers; a sum that leaves the range saturates instead of wrapping, so a
//! far-away due-time stays far away (D8: delays past 2^31 ms). Deliberately absent: reading a clock — `now`
//! always comes from the store that judges (DR-06).

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// Latest time that is accepted: 9999-12-31T23:59:59.999Z.
pub const LATEST: Timestamp = Timestamp(253_402_300_799_999);

/// Longest length that is accepted from a caller: ten years of 366 days.
pub const LONGEST: Millis = Millis(10 * 366 * 24 * 60 * 60 * 1000);

impl Timestamp {
    /// The time this much later.
    ///
    /// ```
    /// use onceward_domain::time::{Millis, Timestamp};
    /// assert_eq!(Timestamp(5).plus(Millis(7)), Timestamp(12));
    /// assert_eq!(Timestamp(i64::MAX).plus(Millis(1)), Timestamp(i64::MAX));
    /// ```
    #[must_use]
    pub fn plus(self, length: Millis) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// The time this much earlier.
    #[must_use]
    pub fn minus(self, length: Millis) -> Self {
        Self(self.0.saturating_sub(length.0))
    }

    /// How long ago `earlier` was; zero where it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0))
    }
}

/// Exponential back-off: `base · 2^(attempt − 1)`, never above `cap`.
///
/// ```
/// use onceward_domain::time::{back_off, Millis};
/// let waits: Vec<i64> = (1..=6).map(|n| back_off(n, Millis(1000), Millis(16_000)).0).collect();
/// assert_eq!(waits, [1000, 2000, 4000, 8000, 16_000, 16_000]);
/// ```
#[must_use]
pub fn back_off(attempt: u32, base: Millis, cap: Millis) -> Millis {
    let doublings = attempt.saturating_sub(1).min(40);
    let wait = base.0.saturating_mul(1_i64 << doublings);
    Millis(wait.min(cap.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_8_long_delays_never_wrap() {
        let day = 24 * 60 * 60 * 1000;
        for days in [24, 25, 400] {
            let due = Timestamp(1_000).plus(Millis(days * day));
            assert!(due > Timestamp(1_000));
            assert_eq!(due.since(Timestamp(1_000)), Millis(days * day));
        }
        assert_eq!(back_off(u32::MAX, Millis(1000), Millis(60_000)), Millis(60_000));
    }
}
