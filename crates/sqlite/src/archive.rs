//! A file as a whole, out and in.
//!
//! Invariants: a dump reads one snapshot and writes nothing, so a file of an older version is refused, not migrated by the way;
//! a restore is one transaction on a file that holds nothing, also where the file is made by it. The connection is its own, in a
//! thread of its own: nobody else has the store open, which is for the caller to see to. Read next:
//! [`onceward_domain::dump`], `queries/<noun>/dump.sql`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

use onceward_domain::dump::{PAGE_ROWS, Page, Row, TABLES, Table, Value};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::archive::{self, Archive, Sink, Source};
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row as Found, params_from_iter};
use tokio::sync::oneshot;

use crate::failure::{commit_failed, defect, failed};
use crate::migrate::{MIGRATIONS, migrate, name_states, require_newest};
use crate::open::{open_existing, open_writing};
use crate::queries;
use crate::readers::panicked;

/// The two statements of each table.
const STATEMENTS: &[(&str, &str, &str)] = &[
    ("word", queries::WORD_DUMP, queries::WORD_RESTORE),
    ("activity", queries::ACTIVITY_DUMP, queries::ACTIVITY_RESTORE),
    ("sku", queries::SKU_DUMP, queries::SKU_RESTORE),
    ("bucket", queries::BUCKET_DUMP, queries::BUCKET_RESTORE),
    ("purchase", queries::PURCHASE_DUMP, queries::PURCHASE_RESTORE),
    ("order_line", queries::ORDER_LINE_DUMP, queries::ORDER_LINE_RESTORE),
    ("compensation", queries::COMPENSATION_DUMP, queries::COMPENSATION_RESTORE),
    ("stock_entry", queries::STOCK_ENTRY_DUMP, queries::STOCK_ENTRY_RESTORE),
    ("transition", queries::TRANSITION_DUMP, queries::TRANSITION_RESTORE),
    ("quarantine", queries::QUARANTINE_DUMP, queries::QUARANTINE_RESTORE),
    ("answer", queries::ANSWER_DUMP, queries::ANSWER_RESTORE),
    ("payment", queries::PAYMENT_DUMP, queries::PAYMENT_RESTORE),
    ("refund", queries::REFUND_DUMP, queries::REFUND_RESTORE),
    ("callback", queries::CALLBACK_DUMP, queries::CALLBACK_RESTORE),
    ("open_case", queries::OPEN_CASE_DUMP, queries::OPEN_CASE_RESTORE),
    ("notice", queries::NOTICE_DUMP, queries::NOTICE_RESTORE),
    ("group_order", queries::GROUP_ORDER_DUMP, queries::GROUP_ORDER_RESTORE),
    ("participant", queries::PARTICIPANT_DUMP, queries::PARTICIPANT_RESTORE),
    ("group_transition", queries::GROUP_TRANSITION_DUMP, queries::GROUP_TRANSITION_RESTORE),
    ("credit_account", queries::CREDIT_ACCOUNT_DUMP, queries::CREDIT_ACCOUNT_RESTORE),
    ("job", queries::JOB_DUMP, queries::JOB_RESTORE),
    ("credit_entry", queries::CREDIT_ENTRY_DUMP, queries::CREDIT_ENTRY_RESTORE),
    ("credit_balance", queries::CREDIT_BALANCE_DUMP, queries::CREDIT_BALANCE_RESTORE),
    ("lane", queries::LANE_DUMP, queries::LANE_RESTORE),
    ("due", queries::DUE_DUMP, queries::DUE_RESTORE),
    ("counter", queries::COUNTER_DUMP, queries::COUNTER_RESTORE),
];

/// A store's file, as a whole.
#[derive(Debug, Clone)]
pub struct SqliteArchive {
    path: PathBuf,
}

impl SqliteArchive {
    /// The archive over a file, which need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Archive for SqliteArchive {
    fn dump(&self, mut sink: Box<dyn Sink>) -> Answer<'_, ()> {
        let path = self.path.clone();
        Box::pin(apart("dumping the store", move || dump(&path, &mut *sink)))
    }

    fn restore(&self, mut source: Box<dyn Source>) -> Answer<'_, ()> {
        let path = self.path.clone();
        Box::pin(apart("restoring the store", move || restore(&path, &mut *source)))
    }
}

/// Runs a task in a thread of its own, to its end.
async fn apart(
    doing: &'static str,
    task: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let (answer, answered) = oneshot::channel();
    let run = move || {
        let done = catch_unwind(AssertUnwindSafe(task));
        // Whoever asked may have gone away; it is done all the same.
        drop(answer.send(done.unwrap_or_else(|panic| Err(panicked(doing, panic.as_ref())))));
    };
    thread::Builder::new()
        .name("sqlite-archive".to_owned())
        .spawn(run)
        .map_err(|cause| Error::new(Code::Unavailable, format!("{doing}: {cause}")).because(cause))?;
    answered.await.map_err(|_| defect(format!("{doing}: its thread ended")))?
}

fn statements(table: &Table) -> (&'static str, &'static str) {
    let found = STATEMENTS.iter().find(|(name, ..)| *name == table.name);
    found.map(|(_, dump, restore)| (*dump, *restore)).expect("every table has its statements")
}

fn batch(conn: &Connection, sql: &str) -> Result<(), Error> {
    conn.execute_batch(sql).map_err(failed(sql))
}

fn dump(path: &Path, sink: &mut dyn Sink) -> Result<(), Error> {
    let conn = open_existing(path)?;
    require_newest(&conn, path)?;
    batch(&conn, "BEGIN")?;
    for table in TABLES {
        let mut after = table.before_all();
        loop {
            let rows = read(&conn, table, &after)?;
            let is_last = rows.len() < PAGE_ROWS;
            if let Some(last) = rows.last() {
                after = last[..table.key].to_vec();
                sink.take(Page { table, rows })?;
            }
            if is_last {
                break;
            }
        }
    }
    batch(&conn, "COMMIT")
}

fn read(conn: &Connection, table: &Table, after: &[Value]) -> Result<Vec<Row>, Error> {
    let doing = format!("dumping {}", table.name);
    let limit = i64::try_from(PAGE_ROWS).expect("a page is small");
    let bound = after.iter().map(bound).chain([ToSqlOutput::Owned(Owned::Integer(limit))]);
    let mut statement = conn.prepare_cached(statements(table).0).map_err(failed(&doing))?;
    let mut found = statement.query(params_from_iter(bound)).map_err(failed(&doing))?;
    let mut rows = Vec::new();
    while let Some(one) = found.next().map_err(failed(&doing))? {
        rows.push(values(table, one).map_err(|cause| defect(format!("{doing}: {cause}")))?);
    }
    Ok(rows)
}

fn values(table: &Table, found: &Found<'_>) -> Result<Row, String> {
    let mut row = Row::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let value = match found.get_ref(index).map_err(|cause| cause.to_string())? {
            ValueRef::Null => Value::Nothing,
            ValueRef::Integer(number) => Value::Number(number),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|cause| format!("{}: {cause}", column.name))?;
                Value::Text(text.to_owned())
            }
            ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => return Err(format!("{} holds a fraction", column.name)),
        };
        if !value.fits(column.kind) {
            return Err(format!("{} holds what its column cannot", column.name));
        }
        row.push(value);
    }
    Ok(row)
}

fn bound(value: &Value) -> ToSqlOutput<'_> {
    match value {
        Value::Nothing => ToSqlOutput::Owned(Owned::Null),
        Value::Number(number) => ToSqlOutput::Owned(Owned::Integer(*number)),
        Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
    }
}

fn restore(path: &Path, source: &mut dyn Source) -> Result<(), Error> {
    let mut conn = open_writing(path)?;
    migrate(&mut conn, path, MIGRATIONS)?;
    name_states(&mut conn)?;
    // What is not committed goes with the connection.
    batch(&conn, "BEGIN IMMEDIATE")?;
    require_empty(&conn)?;
    while let Some(page) = source.next()? {
        write(&conn, &page)?;
    }
    conn.execute_batch("COMMIT").map_err(commit_failed)
}

fn require_empty(conn: &Connection) -> Result<(), Error> {
    let doing = failed("looking whether the store is empty");
    let found: Option<String> =
        conn.query_row(queries::SCHEMA_OCCUPIED, [], |row| row.get(0)).optional().map_err(doing)?;
    archive::require_empty(found.as_deref())
}

fn write(conn: &Connection, page: &Page) -> Result<(), Error> {
    let doing = format!("restoring {}", page.table.name);
    let mut statement = conn.prepare_cached(statements(page.table).1).map_err(failed(&doing))?;
    page.require_fit()?;
    for row in &page.rows {
        let written = statement.execute(params_from_iter(row.iter().map(bound))).map_err(failed(&doing))?;
        if written != 1 {
            return Err(page.dangling());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! No table and no column is left behind.

    use std::collections::BTreeSet;

    use super::*;

    /// What a dump leaves out: names for people, which the program brings along.
    const LEFT_OUT: [&str; 1] = ["state"];

    fn names(conn: &Connection, sql: &str) -> BTreeSet<String> {
        let mut statement = conn.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn every_table_and_every_column_is_dumped_and_restored() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, Path::new("fresh"), MIGRATIONS).unwrap();
        for (table, (name, dump, restore)) in TABLES.iter().zip(STATEMENTS) {
            assert_eq!(table.name, *name);
            let dumped = conn.prepare(dump).unwrap();
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(dumped.column_names().collect::<Vec<_>>(), columns, "{name}");
            assert_eq!(dumped.parameter_count(), table.key + 1, "{name}");
            let restored = conn.prepare(restore).unwrap();
            let order: Vec<String> = (1..=restored.parameter_count())
                .map(|index| restored.parameter_name(index).unwrap()[1..].to_owned())
                .collect();
            assert_eq!(order, columns, "{name}");
        }
        assert_eq!(TABLES.len(), STATEMENTS.len());
        let all = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        for place in names(&conn, all).iter().filter(|place| !LEFT_OUT.contains(&place.as_str())) {
            let dumped: BTreeSet<String> = TABLES
                .iter()
                .filter(|table| table.place == place)
                .flat_map(|table| table.columns)
                .map(|column| column.name.to_owned())
                .collect();
            // Columns that follow from others are hidden here.
            let there = names(&conn, &format!("SELECT name FROM pragma_table_info('{place}')"));
            assert_eq!(dumped, there, "{place}");
            assert!(queries::SCHEMA_OCCUPIED.contains(&format!("'{place}'")), "{place}");
        }
    }
}
