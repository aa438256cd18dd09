//! A store as a whole, between a dump and the archive of its adapter.
//!
//! Invariants: what is on its way is shown on stderr, where that is a terminal, and nowhere else; a store that several nodes share
//! has the mark of the secret in it before its restore is committed, so that the first node to start cannot bring another one.
//! Read next: [`crate::commands::export`], [`crate::commands::import`].

use indicatif::ProgressBar;
use onceward_domain::dump::{Page, Row, Table, Value};
use onceward_domain::error::Error;
use onceward_domain::ports::archive::{Archive, Sink, Source};
use onceward_domain::ports::clock::Clock as _;
use onceward_postgres::PostgresArchive;
use onceward_sqlite::SqliteArchive;

use crate::settings::StorePlace;
use crate::time::SystemClock;
use crate::wiring::SECRET_MARK;

/// The archive over a store.
pub(crate) fn archive_of(place: &StorePlace) -> Box<dyn Archive> {
    match place {
        StorePlace::File(path) => Box::new(SqliteArchive::new(path)),
        StorePlace::Server(url) => Box::new(PostgresArchive::new(url)),
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
