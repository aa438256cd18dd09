//! The real clock, and names for batches: the only place of the program that asks the machine for either.
//!
//! Invariant: everything else gets time and names through the ports, so a simulation can replay it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onceward_domain::due::Member;
use onceward_domain::ports::clock::{Clock, Ids};
use onceward_domain::time::Timestamp;
use uuid::Uuid;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock behind the Clock port")]
    fn now(&self) -> Timestamp {
        // Before 1970 is a machine without a clock; the store keeps its own time from running back.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Names that sort by the time they were made: UUIDs of version 7.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemIds;

impl Ids for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is what is behind the Ids port")]
    fn member(&self) -> Member {
        Arc::from(Uuid::now_v7().hyphenated().encode_lower(&mut Uuid::encode_buffer()) as &str)
    }
}

/// A time as callers write it: RFC 3339, UTC, milliseconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let edge = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    format!("{:.3}", jiff::Timestamp::from_millisecond(at.0).unwrap_or(edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_milliseconds() {
        assert_eq!(rfc3339(Timestamp(1_782_378_000_007)), "2026-06-25T09:00:00.007Z");
    }

    #[test]
    fn names_are_new_and_sort() {
        let names: Vec<Member> = (0..1000).map(|_| SystemIds.member()).collect();
        assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
