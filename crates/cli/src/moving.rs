//! A store as a whole, between a dump and the archive of its adapter, and having it alone meanwhile.
//!
//! Invariants: whoever moves a store holds it from the first look to the last: a file is locked, and so is the schema of a
//! server, whose word that it still is stands before anybody says that the move is done; what is on its way is shown on stderr,
//! where that is a terminal, and nowhere else; a store that several nodes share has the mark of the secret in it before its
//! restore is committed, so that the first node to start cannot bring another one. Read next: [`crate::commands::export`],
//! [`crate::commands::import`].

use std::path::PathBuf;
use std::sync::Arc;

use indicatif::ProgressBar;
use onceward_domain::dump::{Page, Row, Table, Value};
use onceward_domain::error::Error;
use onceward_domain::ports::archive::{Archive, Sink, Source};
use onceward_domain::ports::clock::Clock as _;
use onceward_postgres::{Hold as SchemaHold, PostgresArchive};
use onceward_sqlite::SqliteArchive;

use crate::data_dir::{self, Lock};
use crate::failure::Failure;
use crate::settings::StorePlace;
use crate::time::SystemClock;
use crate::wiring::SECRET_MARK;

/// A store that nobody else has, until this is dropped.
pub(crate) enum Hold {
    /// A file, for as long as this process lives.
    File {
        /// Where it is.
        path: PathBuf,
        _lock: Lock,
    },
    /// A server's schema, for as long as a session lives.
    Server {
        /// Where it is.
        url: String,
        /// The session.
        schema: Arc<SchemaHold>,
    },
}

impl Hold {
    /// Has this store alone from now on.
    ///
    /// # Errors
    /// Where somebody else has it, or it cannot be had.
    pub(crate) async fn take(place: &StorePlace) -> Result<Self, Failure> {
        match place {
            StorePlace::File(path) => Ok(Self::File { path: path.clone(), _lock: data_dir::lock(path)? }),
            StorePlace::Server(url) => {
                let schema = PostgresArchive::new(url).hold().await?;
                Ok(Self::Server { url: url.clone(), schema: Arc::new(schema) })
            }
        }
    }

    /// Asks whether it is still held: a lock of this process is, a session may have ended.
    ///
    /// # Errors
    /// Where it is not; then others may have come meanwhile.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        match self {
            Self::File { .. } => Ok(()),
            Self::Server { schema, .. } => Ok(schema.check().await?),
        }
    }

    /// The archive over it, which asks for the hold before it says that it has dumped or restored.
    pub(crate) fn archive(&self) -> Box<dyn Archive> {
        match self {
            Self::File { path, .. } => Box::new(SqliteArchive::new(path)),
            Self::Server { url, schema } => Box::new(PostgresArchive::new(url).under(Arc::clone(schema))),
        }
    }
}

/// Its name for people.
pub(crate) fn name_of(place: &StorePlace) -> &'static str {
    match place {
        StorePlace::File(_) => "SQLite",
        StorePlace::Server(_) => "PostgreSQL",
    }
}

/// A sink or a source whose pages are shown as they pass.
pub(crate) struct Shown<T> {
    inner: T,
    bar: ProgressBar,
}

impl<T> Shown<T> {
    /// Shows what passes to or from this one.
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, bar: ProgressBar::new_spinner() }
    }

    fn show(&self, page: &Page) {
        self.bar.set_message(format!("{} rows, {}", self.bar.position(), page.table.name));
        self.bar.inc(page.rows.len() as u64);
    }
}

impl<T: Sink> Sink for Shown<T> {
    fn take(&mut self, page: Page) -> Result<(), Error> {
        self.show(&page);
        self.inner.take(page)
    }
}

impl<T: Source> Source for Shown<T> {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        let page = self.inner.next()?;
        if let Some(page) = &page {
            self.show(page);
        }
        Ok(page)
    }
}

/// A dump with the mark of the secret in it, whether or not the store that it came from kept one.
pub(crate) struct Marked<T> {
    inner: T,
    mark: [u8; 32],
    is_there: bool,
}

impl<T> Marked<T> {
    /// Adds this mark where it is missing.
    pub(crate) fn new(inner: T, mark: [u8; 32]) -> Self {
        Self { inner, mark, is_there: false }
    }

    fn row(&self) -> Row {
        vec![
            Value::Text(SECRET_MARK.to_owned()),
            Value::Bytes(self.mark.to_vec()),
            Value::Number(0),
            Value::Bytes(Vec::new()),
            Value::Number(SystemClock.now().0),
            Value::Number(1),
        ]
    }
}

impl<T: Source> Source for Marked<T> {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        let table = Table::named("answer").expect("answers are dumped");
        if let Some(page) = self.inner.next()? {
            let is_mark = |row: &Row| row.first() == Some(&Value::Text(SECRET_MARK.to_owned()));
            self.is_there |= page.table == table && page.rows.iter().any(is_mark);
            return Ok(Some(page));
        }
        if self.is_there {
            return Ok(None);
        }
        self.is_there = true;
        Ok(Some(Page { table, rows: vec![self.row()] }))
    }
}
