//! A schema as a whole, out and in.
//!
//! Invariants: a dump is one snapshot on one session; a restore is one transaction that begins where no table holds anything;
//! after it every table numbers its rows on behind those that were put back. The tables are made where there are none, as at the
//! first start of a node, and refused where they are of another version; under a hold neither is done before the server has said
//! that it is still held. Deliberately absent: keeping nodes away, which is the caller's, who takes a [`Hold`]. Read next:
//! [`onceward_domain::dump`], `queries/<noun>/restore.sql`.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use onceward_domain::dump::{Kind, PAGE_ROWS, Page, Row, TABLES, Table, Value};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::archive::{self, Archive, Sink, Source};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_postgres::Row as Found;
use tokio_postgres::types::ToSql;

use crate::address::Address;
use crate::commit::COMMIT;
use crate::failure::{defect, failed, surely_refused};
use crate::hold::Hold;
use crate::link::Link;
use crate::migrate::{begin, require_newest};
use crate::pipeline::Params;
use crate::pool::{Purpose, configured};
use crate::queries;
use crate::rows::get;

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

/// The table that is a sequence here.
const COUNTER: &str = "counter";

/// Whoever takes or gives the pages may be slow: a session that waits for them is not a forgotten one.
const PATIENT: &str = "SET idle_in_transaction_session_timeout = 0";

/// A schema of a server, as a whole.
#[derive(Clone)]
pub struct PostgresArchive {
    url: String,
    hold: Option<Arc<Hold>>,
    runtime: Handle,
}

impl fmt::Debug for PostgresArchive {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL holds a password.
        out.debug_struct("PostgresArchive").finish_non_exhaustive()
    }
}

impl PostgresArchive {
    /// The archive over the schema that a session with this URL finds first. Must be called inside a Tokio runtime, which then
    /// runs its tasks.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), hold: None, runtime: Handle::current() }
    }

    /// Has the schema alone from now on. Sessions of a process that has just ended, or is just ending, are waited for.
    ///
    /// # Errors
    /// `Unavailable` where somebody else uses it, or moves it, or the server cannot be asked.
    pub async fn hold(&self) -> Result<Hold, Error> {
        let url = self.url.clone();
        self.apart("holding the schema", async move { Hold::take(open(&url).await?).await }).await
    }

    /// The same under this hold: what was dumped or restored while it was lost is none.
    #[must_use]
    pub fn under(self, hold: Arc<Hold>) -> Self {
        Self { hold: Some(hold), ..self }
    }

    async fn apart<T: Send + 'static>(
        &self,
        doing: &'static str,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let ended = self.runtime.spawn(task).await;
        ended.map_err(|cause| {
            Error::new(Code::OutcomeUnknown, format!("{doing}: it was cut off")).because(cause)
        })?
    }
}

impl Archive for PostgresArchive {
    fn dump(&self, sink: Box<dyn Sink>) -> Answer<'_, ()> {
        let Self { url, hold, .. } = self.clone();
        Box::pin(self.apart("dumping the store", async move {
            dump(&url, sink).await?;
            still(hold.as_deref()).await
        }))
    }

    fn restore(&self, source: Box<dyn Source>) -> Answer<'_, ()> {
        let Self { url, hold, .. } = self.clone();
        Box::pin(self.apart("restoring the store", async move {
            begin(&url).await?;
            restore(&url, source, hold.as_deref()).await
        }))
    }
}

async fn open(url: &str) -> Result<Link, Error> {
    Link::open(&configured(&Address::parse(url)?, Purpose::Works)).await
}

/// Asks for the hold, where there is one.
async fn still(hold: Option<&Hold>) -> Result<(), Error> {
    match hold {
        Some(hold) => hold.check().await,
        None => Ok(()),
    }
}

fn statements(table: &Table) -> (&'static str, &'static str) {
    let found = STATEMENTS.iter().find(|(name, ..)| *name == table.name);
    found.map(|(_, dump, restore)| (*dump, *restore)).expect("every table has its statements")
}

/// Lets something that may block have its way, and comes back with it.
async fn blocking<H: Send + 'static, T: Send + 'static>(
    mut hand: H,
    ask: impl FnOnce(&mut H) -> Result<T, Error> + Send + 'static,
) -> Result<(H, T), Error> {
    let asked = spawn_blocking(move || ask(&mut hand).map(|answer| (hand, answer))).await;
    asked.map_err(|cause| defect("whoever takes or gives the pages panicked").because(cause))?
}

async fn dump(url: &str, mut sink: Box<dyn Sink>) -> Result<(), Error> {
    let link = open(url).await?;
    require_newest(&link).await?;
    link.batch("beginning a dump", PATIENT).await?;
    link.batch("beginning a dump", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    for table in TABLES {
        let mut after = table.before_all();
        loop {
            let rows = read(&link, table, &after).await?;
            let is_last = rows.len() < PAGE_ROWS;
            if let Some(last) = rows.last() {
                after = last[..table.key].to_vec();
                let page = Page { table, rows };
                (sink, ()) = blocking(sink, move |sink| sink.take(page)).await?;
            }
            if is_last {
                break;
            }
        }
    }
    link.batch("ending a dump", "COMMIT").await
}

async fn read(link: &Link, table: &Table, after: &[Value]) -> Result<Vec<Row>, Error> {
    let doing = format!("dumping {}", table.name);
    let limit = i64::try_from(PAGE_ROWS).expect("a page is small");
    let mut params: Params<'_> = after.iter().map(bound).collect();
    params.push(Box::new(limit));
    let found = link.rows(&doing, statements(table).0, params).await?;
    found.iter().map(|one| values(table, one)).collect()
}

fn values(table: &Table, found: &Found) -> Result<Row, Error> {
    let value = |(index, kind): (usize, Kind)| {
        Ok(match kind {
            Kind::Number => get::<Option<i64>>(found, index)?.map(Value::Number),
            Kind::Text => get::<Option<String>>(found, index)?.map(Value::Text),
            Kind::Bytes => get::<Option<Vec<u8>>>(found, index)?.map(Value::Bytes),
        }
        .unwrap_or(Value::Nothing))
    };
    table.columns.iter().map(|column| column.kind).enumerate().map(value).collect()
}

fn bound(value: &Value) -> Box<dyn ToSql + Sync + Send + '_> {
    match value {
        Value::Nothing => Box::new(Option::<i64>::None),
        Value::Number(number) => Box::new(*number),
        Value::Text(text) => Box::new(text.as_str()),
        Value::Bytes(bytes) => Box::new(bytes.as_slice()),
    }
}

async fn restore(url: &str, source: Box<dyn Source>, hold: Option<&Hold>) -> Result<(), Error> {
    let link = open(url).await?;
    require_newest(&link).await?;
    // What is not committed goes with the session.
    link.batch("beginning a restore", PATIENT).await?;
    link.batch("beginning a restore", "BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let holder =
        link.first("looking whether the store is empty", queries::SCHEMA_OCCUPIED, Vec::new()).await?;
    let holder: Option<String> = holder.map(|row| get(&row, 0)).transpose()?;
    archive::require_empty(holder.as_deref())?;
    write_all(&link, source).await?;
    // What others wrote meanwhile would be mixed with it.
    still(hold).await?;
    commit(&link).await
}

/// Writes every page, and has the tables number on behind them.
async fn write_all(link: &Link, mut source: Box<dyn Source>) -> Result<(), Error> {
    let mut counters = Vec::new();
    loop {
        let page;
        (source, page) = blocking(source, |source| source.next()).await?;
        match page {
            // Sequences do not go back with a transaction: they are moved when nothing else can fail.
            Some(page) if page.table.name == COUNTER => counters.push(page),
            Some(page) => write(link, &page).await?,
            None => break,
        }
    }
    for page in counters {
        write(link, &page).await?;
    }
    link.rows("numbering on", queries::SCHEMA_NUMBER_ON, Vec::new()).await.map(drop)
}

async fn commit(link: &Link) -> Result<(), Error> {
    link.take_warning();
    let committed = link.client().batch_execute(COMMIT).await;
    let unknown = |text: &str| Error::new(Code::OutcomeUnknown, format!("committing the restore: {text}"));
    match committed {
        Ok(()) if link.take_warning() => Err(unknown("the server committed with a warning")),
        Ok(()) => Ok(()),
        Err(cause) => Err(surely_refused(&cause).unwrap_or_else(|| unknown("no answer").because(cause))),
    }
}

async fn write(link: &Link, page: &Page) -> Result<(), Error> {
    let doing = format!("restoring {}", page.table.name);
    page.require_fit()?;
    let params: Params<'_> = (0..page.table.columns.len()).map(|index| column_of(page, index)).collect();
    let statement = link.statement(statements(page.table).1).await.map_err(failed(&doing))?;
    let written = link.client().execute_raw(&statement, params).await.map_err(failed(&doing))?;
    if usize::try_from(written) != Ok(page.rows.len()) {
        return Err(page.dangling());
    }
    Ok(())
}

/// The values of one column, as an array.
fn column_of(page: &Page, index: usize) -> Box<dyn ToSql + Sync + Send + '_> {
    let all = page.rows.iter().map(move |row| &row[index]);
    match page.table.columns[index].kind {
        Kind::Number => Box::new(all.map(number).collect::<Vec<Option<i64>>>()),
        Kind::Text => Box::new(all.map(text).collect::<Vec<Option<&str>>>()),
        Kind::Bytes => Box::new(all.map(bytes).collect::<Vec<Option<&[u8]>>>()),
    }
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Number(number) = value { Some(*number) } else { None }
}

fn text(value: &Value) -> Option<&str> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
}

#[cfg(test)]
mod tests {
    //! No table is left behind; columns are compared on a real server (`tests/archive.rs`).

    use super::*;

    #[test]
    fn every_table_has_its_statements_and_says_where_rows_go() {
        for (table, (name, dump, restore)) in TABLES.iter().zip(STATEMENTS) {
            assert_eq!(table.name, *name);
            let restored = restore.contains(&format!("INTO {} ", table.place))
                || ["credit_balance", "counter"].contains(name);
            assert!(
                restored && (dump.contains(&format!("FROM {}\n", table.place)) || *name == "counter"),
                "{name}"
            );
        }
        assert_eq!(TABLES.len(), STATEMENTS.len());
    }
}
