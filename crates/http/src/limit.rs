//! Limits in numbers: how many requests at once, and how many per second and key (SE-03).
//!
//! Invariants: nothing waits here; what is above a limit is refused at once. A place is given back when the
//! answer is ready, however it came about. Deliberately absent: body and header sizes (see `body` and `serve`).

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Counts the requests that are being answered.
#[derive(Debug)]
pub(crate) struct InFlight {
    now: AtomicU32,
    limit: u32,
}

/// One of the places; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a AtomicU32);

impl InFlight {
    /// None yet.
    pub(crate) fn new(limit: u32) -> Self {
        Self { now: AtomicU32::new(0), limit }
    }

    /// Takes a place, where one is free.
    pub(crate) fn enter(&self) -> Option<Place<'_>> {
        // Counted first and judged after: two at once can refuse each other at the edge, but never pass it.
        let before = self.now.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.now);
        (before < self.limit).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// So many per second, with bursts of one second's worth.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    per_second: f64,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    tokens: f64,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let per_second = f64::from(per_second.get());
        Self { per_second, level: Mutex::new(Level { tokens: per_second, at: Instant::now() }) }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The seconds until there is one again, at least 1.
    pub(crate) fn take(&self) -> Result<(), u32> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Result<(), u32> {
        // A level is two numbers, each of them whole at any moment: what a panic left behind can be used.
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(level.at).as_secs_f64();
        level.tokens = (level.tokens + passed * self.per_second).min(self.per_second);
        level.at = now;
        if level.tokens >= 1.0 {
            level.tokens -= 1.0;
            return Ok(());
        }
        // A rate is at least one per second, so the next token is never more than a second away.
        Err(1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn se_03_places_are_given_back() {
        let in_flight = InFlight::new(2);
        let (first, second) = (in_flight.enter(), in_flight.enter());
        assert!(first.is_some() && second.is_some());
        assert!(in_flight.enter().is_none() && in_flight.enter().is_none());
        drop(first);
        assert!(in_flight.enter().is_some());
        drop(second);
        assert_eq!(in_flight.now.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn se_03_a_bucket_fills_with_time_and_never_above_one_second() {
        let bucket = TokenBucket::new(NonZeroU32::new(2).unwrap());
        let start = Instant::now();
        let at = |ms: u64| bucket.take_at(start + Duration::from_millis(ms));
        assert_eq!([at(0), at(0), at(0)], [Ok(()), Ok(()), Err(1)]);
        assert_eq!([at(500), at(500)], [Ok(()), Err(1)]);
        assert_eq!([at(60_000), at(60_000), at(60_000)], [Ok(()), Ok(()), Err(1)]);
    }
}
