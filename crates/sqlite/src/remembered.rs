//! What a reader remembers of sums over the whole file, for as long as nobody writes to it.
//!
//! A sum over a million orders takes the better part of a second, and somebody who watches asks for it every few seconds,
//! also while nothing happens (OT-11: idle costs nothing). Invariant: a sum is given again only in a snapshot of the same
//! version of the file; the version is SQLite's own and changes with every commit, whoever makes it. Deliberately absent:
//! keeping sums up to date while rows change.

use onceward_domain::due::LaneStatus;
use onceward_domain::error::Error;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;
use rusqlite::Connection;

use crate::failure::failed;
use crate::readers::Reader;
use crate::{list, tally};

/// The sums of one version of the file.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    version: Option<i64>,
    tally: Option<Tally>,
    lanes: Option<Vec<LaneStatus>>,
}

impl Remembered {
    /// Forgets what is not of this snapshot's version.
    fn refresh(&mut self, conn: &Connection) -> Result<(), Error> {
        let version = conn.pragma_query_value(None, "data_version", |row| row.get(0));
        let version = Some(version.map_err(failed("reading the file's version"))?);
        if self.version != version {
            *self = Self { version, ..Self::default() };
        }
        Ok(())
    }
}

/// Everything added up. `bytes` is the size of the files.
pub(crate) fn tally(reader: &mut Reader, now: Timestamp, bytes: u64) -> Result<Tally, Error> {
    let Reader { conn, refs, remembered } = reader;
    remembered.refresh(conn)?;
    let sums = match remembered.tally.take() {
        Some(sums) => sums,
        None => tally::tally(conn, refs, now, bytes)?,
    };
    let sums = remembered.tally.insert(sums);
    Ok(Tally { now, bytes, ..sums.clone() })
}

/// Every lane that has members. While leases run, time alone changes them, so they are not kept then.
pub(crate) fn lanes(reader: &mut Reader, now: Timestamp) -> Result<Vec<LaneStatus>, Error> {
    let Reader { conn, refs, remembered } = reader;
    remembered.refresh(conn)?;
    if let Some(lanes) = &remembered.lanes {
        return Ok(lanes.clone());
    }
    let lanes = list::lanes(conn, refs, now)?;
    remembered.lanes = lanes.iter().all(|lane| lane.leased == 0).then(|| lanes.clone());
    Ok(lanes)
}
