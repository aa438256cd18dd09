//! The log's keeper: a thread that moves the log into the file while nobody writes.
//!
//! The writer moves it too, but only every so many pages, so that pages which are written again and again move once
//! ([`crate::open`]); what is left when a sale has ended would lie in the log for ever, and a long log makes every start
//! slower. Invariants: while commits come the keeper only looks; it takes no lock that a commit would wait for, except where
//! readers have held the log open until it passed its limit. Deliberately absent: any write of its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use rusqlite::Connection;

use crate::failure::failed;

/// How often the keeper looks. A look is the length of one file.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So much log is left alone: to move less is not worth a sync.
pub(crate) const KEPT_BYTES: u64 = 4 * 1024 * 1024;
/// A log that passes this is cut even if a commit has to wait: readers have kept it from being begun anew. More than twice
/// of what the writer lets it grow to.
const LIMIT_BYTES: u64 = 192 * 1024 * 1024;
/// How long the readers are waited for then. They read for a second at most.
const PATIENCE: Duration = Duration::from_secs(5);

type Stop = Arc<(Mutex<bool>, Condvar)>;

/// The thread.
pub(crate) struct Keeper {
    stop: Stop,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Starts the thread on a connection of its own to the file of this path.
    pub(crate) fn start(conn: Connection, path: &Path) -> Result<Self, Error> {
        let stop: Stop = Arc::default();
        let mut desk = Desk { conn, log: log_of(path), version: None };
        let asked = Arc::clone(&stop);
        let run = move || {
            while !waits_in_vain(&asked) {
                if let Err(error) = desk.look() {
                    tracing::warn!(%error, "the log could not be moved; it is tried again");
                }
            }
        };
        let started = thread::Builder::new().name("sqlite-keeper".to_owned()).spawn(run);
        let thread = started.map_err(|cause| {
            Error::new(Code::Unavailable, format!("starting the log's keeper: {cause}")).because(cause)
        })?;
        Ok(Self { stop, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the thread and lets go of the file.
    pub(crate) fn close(&self) {
        let (asked, changed) = &*self.stop;
        *asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread that ended by a panic has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

/// Waits until it is time to look; answers whether it was told to stop instead.
fn waits_in_vain(stop: &Stop) -> bool {
    let (asked, changed) = &**stop;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = changed.wait_timeout_while(asked, LOOK_EVERY, |asked| !*asked);
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

/// The log beside a store's file.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

struct Desk {
    conn: Connection,
    log: PathBuf,
    /// The file's version at the last look; it changes with every commit.
    version: Option<i64>,
}

impl Desk {
    fn look(&mut self) -> Result<(), Error> {
        let length = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        if length <= KEPT_BYTES {
            return Ok(());
        }
        let doing = failed("moving the log");
        let version = self.conn.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(&doing)?;
        let is_quiet = self.version.replace(version) == Some(version);
        if length > LIMIT_BYTES {
            self.conn.busy_timeout(PATIENCE).map_err(&doing)?;
            let cut = self.checkpoint("TRUNCATE");
            self.conn.busy_timeout(Duration::ZERO).map_err(&doing)?;
            return cut.map(|_| ());
        }
        // First what holds up nobody; where that has moved everything, cutting it off takes a moment.
        if is_quiet && self.checkpoint("PASSIVE")? {
            self.checkpoint("TRUNCATE")?;
        }
        Ok(())
    }

    /// Whether all of the log was moved.
    fn checkpoint(&self, how: &str) -> Result<bool, Error> {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        let moved = self.conn.query_row(&sql, [], |row| {
            let (busy, pages, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(busy == 0 && pages == moved)
        });
        moved.map_err(failed("moving the log"))
    }
}
