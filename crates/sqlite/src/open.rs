//! Opening and closing a store.
//!
//! Invariants: the file is migrated before anybody reads it; the writer syncs every commit (`synchronous=FULL`, WAL);
//! closing carries out what was taken; the log is bounded while commits come, and moved into the file when they stop
//! ([`crate::keeper`]). Deliberately absent: settings that would trade durability for speed.
//! Read next: `store` for the port, `writer` for what happens to a work.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::clock::Clock;
use rusqlite::{Connection, OpenFlags};

use crate::clock::StoreClock;
use crate::failure::{defect, failed};
use crate::keeper::Keeper;
use crate::migrate::{MIGRATIONS, migrate, name_states};
use crate::queries;
use crate::readers::Readers;
use crate::writer::Writer;

/// Readers that a store has where nothing else is said.
const READERS: usize = 2;

/// Page cache of the writer. With SQLite's own 2 MB a large batch collapses to a fifth of its speed.
const WRITER_CACHE_KIB: i64 = 128 * 1024;

/// Page cache of a reader.
const READER_CACHE_KIB: i64 = 16 * 1024;

/// Pages of the log after which the writer moves them into the file: 80 MB, so that pages which are written again and
/// again, as those of an index are, move once.
const CHECKPOINT_PAGES: i64 = 20_000;

/// After a checkpoint the log's file is cut down to this.
const LOG_LIMIT_BYTES: i64 = 256 * 1024 * 1024;

/// How long a lock of another process is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a page in a new file.
const PAGE_BYTES: i64 = 4096;

/// Prepared statements a connection keeps: more than there are, so that none is ever prepared twice.
const STATEMENTS: usize = 384;

/// How to open a store.
#[derive(Clone)]
pub struct OpenOptions {
    /// The file; it is made where it is not there.
    pub path: PathBuf,
    /// The clock by which the store judges due-times.
    pub clock: Arc<dyn Clock>,
    /// Threads that read, at least 1.
    pub readers: usize,
}

impl OpenOptions {
    /// The usual options.
    pub fn new(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { path: path.into(), clock, readers: READERS }
    }
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, readers, clock: _ } = self;
        out.debug_struct("OpenOptions").field("path", path).field("readers", readers).finish_non_exhaustive()
    }
}

/// The embedded store. Dropping it closes it.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    keeper: Keeper,
    pub(crate) clock: StoreClock,
    pub(crate) path: PathBuf,
    backup: Option<PathBuf>,
}

impl SqliteStore {
    /// Opens a file, migrates it and starts the threads.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use onceward_domain::{ports::clock::Clock, time::Timestamp};
    /// use onceward_sqlite::{OpenOptions, SqliteStore};
    ///
    /// struct Noon;
    /// impl Clock for Noon {
    ///     fn now(&self) -> Timestamp {
    ///         Timestamp(43_200_000)
    ///     }
    /// }
    ///
    /// let folder = std::env::temp_dir().join(format!("onceward-example-{}", std::process::id()));
    /// std::fs::create_dir_all(&folder).unwrap();
    /// let store = SqliteStore::open(OpenOptions::new(folder.join("store.db"), Arc::new(Noon))).unwrap();
    /// assert_eq!(store.backup(), None);
    /// store.close();
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be opened; `ConstraintViolated` where it is not a store, or one of a newer
    /// version.
    pub fn open(options: OpenOptions) -> Result<Self, Error> {
        let OpenOptions { path, clock, readers } = options;
        let mut conn = open_writing(&path)?;
        let backup = migrate(&mut conn, &path, MIGRATIONS)?;
        name_states(&mut conn)?;
        let clock = StoreClock::starting_from(&conn, clock)?;
        let reading = (0..readers.max(1)).map(|_| open_reading(&path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            readers: Readers::start(reading)?,
            keeper: Keeper::start(open_keeping(&path)?, &path)?,
            writer: Writer::start(conn, clock.clone())?,
            clock,
            path,
            backup,
        })
    }

    /// The copy of the file as it was before it was migrated, where it was.
    #[must_use]
    pub fn backup(&self) -> Option<&Path> {
        self.backup.as_deref()
    }

    /// Carries out what was taken, answers it, and lets go of the file. What comes later is refused as `Unavailable`.
    pub fn close(&self) {
        // The last connection moves the log into the file and removes it, and only the writer's can.
        self.readers.close();
        self.keeper.close();
        self.writer.close();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

pub(crate) fn open_writing(path: &Path) -> Result<Connection, Error> {
    let doing = format!("opening {}", path.display());
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(failed(&doing))?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(failed(&doing))?;
    let set = |name: &str, value: i64| conn.pragma_update(None, name, value).map_err(failed(&doing));
    // Takes effect only in a new file, and only before it becomes a WAL file.
    set("page_size", PAGE_BYTES)?;
    let mode: String = conn
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(failed(&doing))?;
    if mode != "wal" {
        return Err(defect(format!("{doing}: the file system gives no WAL, but {mode}")));
    }
    conn.pragma_update(None, "synchronous", "FULL").map_err(failed(&doing))?;
    // Also keeps the pages that a savepoint may need again out of temporary files.
    conn.pragma_update(None, "temp_store", "MEMORY").map_err(failed(&doing))?;
    set("foreign_keys", 1)?;
    set("cache_size", -WRITER_CACHE_KIB)?;
    set("wal_autocheckpoint", CHECKPOINT_PAGES)?;
    set("journal_size_limit", LOG_LIMIT_BYTES)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// For a look at a file that is there and that nobody else has open: nothing is written, but for its log.
pub(crate) fn open_existing(path: &Path) -> Result<Connection, Error> {
    let doing = format!("opening {}", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(failed(&doing))?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(failed(&doing))?;
    conn.pragma_update(None, "query_only", 1).map_err(failed(&doing))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// For the keeper of the log, who waits for nobody.
fn open_keeping(path: &Path) -> Result<Connection, Error> {
    let doing = format!("opening {} to keep its log", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(failed(&doing))?;
    conn.busy_timeout(Duration::ZERO).map_err(failed(&doing))?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(failed(&doing))?;
    Ok(conn)
}

fn open_reading(path: &Path) -> Result<Connection, Error> {
    let doing = format!("opening {} to read", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(failed(&doing))?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(failed(&doing))?;
    conn.pragma_update(None, "cache_size", -READER_CACHE_KIB).map_err(failed(&doing))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.query_row(queries::SCHEMA_COUNT, [], |_| Ok(()))
        .map_err(|cause| Error::new(Code::Unavailable, format!("{doing}: {cause}")).because(cause))?;
    Ok(conn)
}
