//! The store's time: the injected clock, kept from running back and from standing still (DR-06).
//!
//! When the wall clock steps back — while the process runs, or between two runs — the store's time goes on from where it
//! was and lags in: it advances at half the wall's pace until the wall has caught up. A clock that only stood still would hold
//! every lease and every due-time for as long as the step was. Invariants: no call answers with less than an earlier call
//! answered; as long as the wall moves on, so does the store's time. Deliberately absent: reading any clock but the injected one.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::error::Error;
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use rusqlite::Connection;

use crate::failure::failed;
use crate::queries;

/// Of each wall millisecond, one in so many is kept to let the wall catch up.
const CATCH_UP: i64 = 2;

/// What was last read and last said.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// What the wall clock showed.
    wall: i64,
    /// What the store's time was.
    said: i64,
    /// Wall milliseconds that did not yet make a whole one of the store's, while it lags in.
    rest: i64,
}

impl Reading {
    fn next(self, wall: i64) -> Self {
        let gone = wall.saturating_sub(self.wall);
        if gone < 0 {
            // A step back: time goes on from here, at the wall's pace from now on.
            return Self { wall, ..self };
        }
        if self.said <= self.wall {
            return Self { wall, said: wall.max(self.said), rest: 0 };
        }
        let pace = gone.saturating_add(self.rest);
        let said = self.said.saturating_add(pace / CATCH_UP);
        if said <= wall {
            return Self { wall, said: wall.max(self.said), rest: 0 };
        }
        Self { wall, said, rest: pace % CATCH_UP }
    }
}

/// A clock that never goes back, and never stands still while the wall moves on.
#[derive(Clone)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    latest: Arc<Mutex<Reading>>,
}

impl StoreClock {
    /// A clock whose floor is the newest time that the store has written.
    pub(crate) fn starting_from(conn: &Connection, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let mut floor = i64::MIN;
        for sql in [queries::PURCHASE_LATEST, queries::TRANSITION_LATEST, queries::DUE_LATEST] {
            let newest: Option<i64> =
                conn.query_row(sql, [], |row| row.get(0)).map_err(failed("reading the newest time"))?;
            floor = floor.max(newest.unwrap_or(i64::MIN));
        }
        let wall = clock.now().0;
        let latest = Reading { wall, said: floor.max(wall), rest: 0 };
        Ok(Self { clock, latest: Arc::new(Mutex::new(latest)) })
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Timestamp {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = latest.next(self.clock.now().0);
        Timestamp(latest.said)
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        write!(out, "StoreClock({:?})", *latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dr_06_time_lags_in_after_a_step_back_and_never_stands_still() {
        let mut reading = Reading { wall: 1_000, said: 1_000, rest: 0 };
        let hour = 3_600_000;
        reading = reading.next(1_000 - hour);
        assert_eq!(reading.said, 1_000, "it does not run back");
        let mut said = reading.said;
        for second in 1..=2 * 3_600 {
            reading = reading.next(1_000 - hour + second * 1_000);
            assert!(reading.said >= said + 500, "second {second}: a lease of seconds ends within seconds");
            said = reading.said;
        }
        assert_eq!(reading.said, reading.wall, "after twice the step the wall has caught up");
        assert_eq!(reading.next(reading.wall + 7).said, reading.wall + 7);
    }

    #[test]
    fn dr_06_small_ticks_are_not_lost_while_it_lags_in() {
        let mut reading = Reading { wall: 0, said: 10_000, rest: 0 };
        for tick in 1..=100 {
            reading = reading.next(tick);
        }
        assert_eq!(reading.said, 10_050);
    }
}
