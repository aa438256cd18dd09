//! The store's time: the injected clock, kept from running back (DR-06).
//!
//! Invariant: no call answers with less than an earlier call answered, whatever the wall clock does; after a restart
//! the newest times in the file are the floor. Deliberately absent: reading any clock but the injected one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onceward_domain::error::Error;
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use rusqlite::Connection;

use crate::failure::failed;
use crate::queries;

/// A clock that never goes back.
#[derive(Clone)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    latest: Arc<AtomicI64>,
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
        Ok(Self { clock, latest: Arc::new(AtomicI64::new(floor)) })
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Timestamp {
        let read = self.clock.now().0;
        let before = self.latest.fetch_max(read, Ordering::AcqRel);
        Timestamp(before.max(read))
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "StoreClock(latest {})", self.latest.load(Ordering::Acquire))
    }
}
