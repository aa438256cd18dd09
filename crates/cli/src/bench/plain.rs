//! The plain way of turning a message into an order: the familiar tables, one commit a message.
//!
//! Purpose: the baseline for durable orders per second. It is the design that many shops run, written with
//! care: inbox, reservation, stock, order, ledger and outbox, each guarded by its own constraint.
//!
//! Invariants: a message takes effect once; available + occupied + sold stays the initial stock; a message whose
//! order cannot be made leaves a compensation task and its event. Every message is one `IMMEDIATE` transaction
//! that is on disk when it is answered (WAL, `synchronous=FULL`).
//!
//! Kept fair: statements are prepared once, ids are 16-byte blobs, times are integers, SQLite's defaults stay, and
//! the message comes decoded with its hash. What is left is what the design itself costs.
//!
//! Deliberately absent: batches of any kind, and the engine.
//!
//! Read next: `plain/message.rs`, then `plain/insert_inbox.sql`, the first statement of each transaction.

mod message;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::disk::{WriteCounters, folder_bytes};
use message::hex;

pub(super) use message::{Id, Message};

const SCHEMA: [&str; 10] = [
    include_str!("plain/create_consumer_inbox.sql"),
    include_str!("plain/create_inventory_reservation.sql"),
    include_str!("plain/create_inventory_reservation_reconcile.sql"),
    include_str!("plain/create_sku_inventory.sql"),
    include_str!("plain/create_orders.sql"),
    include_str!("plain/create_inventory_ledger.sql"),
    include_str!("plain/create_event_outbox.sql"),
    include_str!("plain/create_event_outbox_dispatch.sql"),
    include_str!("plain/create_compensation_task.sql"),
    include_str!("plain/create_compensation_task_dispatch.sql"),
];
const INSERT_INBOX: &str = include_str!("plain/insert_inbox.sql");
const LOAD_INBOX: &str = include_str!("plain/load_inbox.sql");
const FINISH_INBOX: &str = include_str!("plain/finish_inbox.sql");
const UPSERT_RESERVATION: &str = include_str!("plain/upsert_reservation.sql");
const LOAD_RESERVATION: &str = include_str!("plain/load_reservation.sql");
const SETTLE_RESERVATION: &str = include_str!("plain/settle_reservation.sql");
const INSERT_STOCK: &str = include_str!("plain/insert_stock.sql");
const TAKE_STOCK: &str = include_str!("plain/take_stock.sql");
const GIVE_BACK_STOCK: &str = include_str!("plain/give_back_stock.sql");
const INSERT_ORDER: &str = include_str!("plain/insert_order.sql");
const INSERT_LEDGER: &str = include_str!("plain/insert_ledger.sql");
const INSERT_OUTBOX: &str = include_str!("plain/insert_outbox.sql");
const INSERT_COMPENSATION: &str = include_str!("plain/insert_compensation.sql");

pub(super) const CONSUMER_GROUP: &str = "order-create";
pub(super) const TOPIC: &str = "onceward-order-create";
pub(super) const ACTIVITY: i64 = 1001;
const SKU: i64 = 90_001;
/// The sale's start in the messages, milliseconds since 1970; no measurement reads it.
pub(super) const RESERVED_AT: i64 = 1_782_378_000_000;
pub(super) const DEADLINE_MS: i64 = 300_000;
/// More statements than this file has, so that each is prepared once (the driver's default of 16 is also enough).
const STATEMENTS_CACHED: usize = 32;

/// What a run of the plain way came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRun {
    /// Messages handled.
    pub(crate) messages: u64,
    /// Orders made.
    pub(crate) orders: u64,
    /// From the first message to the last commit.
    pub(crate) elapsed: Duration,
    /// What the kernel says was written in that time; `None` where it does not say.
    pub(crate) written: Option<WriteCounters>,
    /// By how much the database's files grew, the write-ahead log included.
    pub(crate) grown_bytes: u64,
}

impl PlainRun {
    /// Durable orders per second.
    pub(crate) fn orders_per_second(&self) -> f64 {
        self.orders as f64 / self.elapsed.as_secs_f64()
    }

    /// Bytes sent to storage for each order.
    pub(crate) fn written_per_order(&self) -> Option<f64> {
        Some(self.written?.storage_bytes as f64 / self.orders as f64)
    }

    /// Bytes by which the files grew for each order; written bytes are many more, as the log is overwritten.
    pub(crate) fn grown_per_order(&self) -> f64 {
        self.grown_bytes as f64 / self.orders as f64
    }
}

/// Why the plain way could not go on.
#[derive(Debug)]
pub(crate) enum PlainError {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The folder could not be made or read.
    Folder(io::Error),
    /// A row that must be there is not, or a number is too large: a defect of this file.
    Broken(&'static str),
}

impl fmt::Display for PlainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(_) => f.write_str("running the plain way's SQL"),
            Self::Folder(_) => f.write_str("using the plain way's folder"),
            Self::Broken(what) => write!(f, "the plain way is broken: {what}"),
        }
    }
}

impl std::error::Error for PlainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Sqlite(source) => Some(source),
            Self::Folder(source) => Some(source),
            Self::Broken(_) => None,
        }
    }
}

impl From<rusqlite::Error> for PlainError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite(source)
    }
}

/// Handles `messages` messages for one SKU that has stock for all of them, in a fresh database in `folder`.
/// It blocks; async callers put it on a blocking thread.
///
/// # Errors
/// When the folder holds such a database already or SQLite fails.
pub(crate) fn run(folder: &Path, messages: u64) -> Result<PlainRun, PlainError> {
    fs::create_dir_all(folder).map_err(PlainError::Folder)?;
    let mut shop = PlainShop::open(folder, messages)?;
    let size_before = folder_bytes(folder).map_err(PlainError::Folder)?;
    let counters_before = WriteCounters::now();

    let started = Instant::now();
    let mut orders = 0;
    for number in 0..messages {
        let outcome = shop.consume(&Message::nth(number))?;
        orders += u64::from(outcome == PlainOutcome::OrderCreated);
    }
    let elapsed = started.elapsed();

    let written = WriteCounters::now().zip(counters_before).map(|(now, before)| now.since(before));
    let size_after = folder_bytes(folder).map_err(PlainError::Folder)?;
    let grown_bytes = size_after.saturating_sub(size_before);
    Ok(PlainRun { messages, orders, elapsed, written, grown_bytes })
}

/// How one message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainOutcome {
    OrderCreated,
    /// Handled by an earlier delivery; nothing was written.
    Duplicate,
    /// The id of an earlier message with other content; nothing was written.
    PayloadConflict,
    /// No order could be made; the admission is to be given back.
    Rejected,
    /// The reservation was settled before this message came.
    AlreadySettled,
}

/// The database of the plain way.
struct PlainShop {
    connection: Connection,
}

impl PlainShop {
    /// Makes a fresh database with one SKU on sale.
    fn open(folder: &Path, stock: u64) -> Result<Self, PlainError> {
        let connection = Connection::open(folder.join("plain.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        for statement in SCHEMA {
            connection.execute(statement, [])?;
        }
        let stock =
            i64::try_from(stock).map_err(|_| PlainError::Broken("more stock than SQLite can count"))?;
        connection.execute(INSERT_STOCK, params![ACTIVITY, SKU, stock])?;
        Ok(Self { connection })
    }

    /// Handles one delivery of a message in one transaction; duplicates and conflicts are rolled back.
    fn consume(&mut self, message: &Message) -> Result<PlainOutcome, PlainError> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !claim_message(&tx, message)? {
            return Ok(outcome_of_known(&tx, message)?);
        }
        let (status, order_id) = reservation_before(&tx, message)?;
        let outcome = if status == "RESERVED" {
            create_order_or_reject(&tx, message)?
        } else {
            finish(&tx, message, "ALREADY_SETTLED", order_id.as_ref())?;
            PlainOutcome::AlreadySettled
        };
        tx.commit()?;
        Ok(outcome)
    }
}

fn claim_message(tx: &Transaction<'_>, message: &Message) -> rusqlite::Result<bool> {
    let values = params![
        CONSUMER_GROUP,
        message.message_id,
        TOPIC,
        "ORDER_CREATE_REQUESTED",
        message.reservation_id,
        message.request_id,
        message.payload_hash,
        "PROCESSING",
    ];
    let claimed: Option<Id> =
        tx.prepare_cached(INSERT_INBOX)?.query_row(values, |row| row.get(0)).optional()?;
    Ok(claimed.is_some())
}

fn outcome_of_known(tx: &Transaction<'_>, message: &Message) -> rusqlite::Result<PlainOutcome> {
    let known: [u8; 32] = tx
        .prepare_cached(LOAD_INBOX)?
        .query_row(params![CONSUMER_GROUP, message.message_id], |row| row.get(0))?;
    let is_same = known == message.payload_hash;
    Ok(if is_same { PlainOutcome::Duplicate } else { PlainOutcome::PayloadConflict })
}

/// Makes the reservation known if it is not, and reads its status and order.
fn reservation_before(tx: &Transaction<'_>, message: &Message) -> rusqlite::Result<(String, Option<Id>)> {
    tx.prepare_cached(UPSERT_RESERVATION)?.execute(params![
        message.reservation_id,
        message.request_id,
        ACTIVITY,
        SKU,
        message.user_id,
        message.message_id,
        "RESERVED",
        RESERVED_AT,
        RESERVED_AT + DEADLINE_MS,
    ])?;
    tx.prepare_cached(LOAD_RESERVATION)?
        .query_row([message.reservation_id], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn create_order_or_reject(tx: &Transaction<'_>, message: &Message) -> Result<PlainOutcome, PlainError> {
    if !take_stock(tx)? {
        return reject(tx, message, "SOLD_OUT");
    }
    if !insert_order(tx, message)? {
        expect_one(tx.prepare_cached(GIVE_BACK_STOCK)?.execute([ACTIVITY, SKU])?, "the stock just taken")?;
        return reject(tx, message, "LIMIT_REACHED");
    }
    settle(tx, message, "ORDER_CREATED", None)?;
    let booked = tx.prepare_cached(INSERT_LEDGER)?.execute(params![
        ACTIVITY,
        SKU,
        message.reservation_id,
        message.order_id,
        "OCCUPY",
        1,
        format!("OCCUPY:{}", hex(&message.reservation_id)),
    ])?;
    expect_one(booked, "the ledger entry")?;
    let payload = format!(
        "{{\"order_id\":\"{}\",\"reservation_id\":\"{}\",\"activity_id\":{ACTIVITY},\"sku_id\":{SKU},\"user_id\":{}}}",
        hex(&message.order_id),
        hex(&message.reservation_id),
        message.user_id,
    );
    emit(tx, message, "ORDER", &message.order_id, ("ORDER_CREATED", &payload))?;
    finish(tx, message, "ORDER_CREATED", Some(&message.order_id))?;
    Ok(PlainOutcome::OrderCreated)
}

fn take_stock(tx: &Transaction<'_>) -> rusqlite::Result<bool> {
    let left: Option<i64> =
        tx.prepare_cached(TAKE_STOCK)?.query_row([ACTIVITY, SKU], |row| row.get(0)).optional()?;
    Ok(left.is_some())
}

fn insert_order(tx: &Transaction<'_>, message: &Message) -> rusqlite::Result<bool> {
    let values = params![
        message.order_id,
        ACTIVITY,
        SKU,
        message.user_id,
        message.request_id,
        message.reservation_id,
        "CREATED"
    ];
    let inserted: Option<Id> =
        tx.prepare_cached(INSERT_ORDER)?.query_row(values, |row| row.get(0)).optional()?;
    Ok(inserted.is_some())
}

/// Ends the reservation without an order and leaves the task of giving its admission back.
fn reject(tx: &Transaction<'_>, message: &Message, reason: &str) -> Result<PlainOutcome, PlainError> {
    settle(tx, message, "ORDER_REJECTED", Some(reason))?;
    let reservation = hex(&message.reservation_id);
    let kind = "RELEASE_RESERVATION";
    // The order that was not made needs no id, so the task takes it.
    let values = params![message.order_id, message.reservation_id, kind, format!("{kind}:{reservation}")];
    expect_one(tx.prepare_cached(INSERT_COMPENSATION)?.execute(values)?, "the compensation task")?;
    let payload = format!("{{\"reservation_id\":\"{reservation}\",\"reason\":\"{reason}\"}}");
    let event = ("RESERVATION_COMPENSATE_REQUIRED", payload.as_str());
    emit(tx, message, "RESERVATION", &message.reservation_id, event)?;
    finish(tx, message, reason, None)?;
    Ok(PlainOutcome::Rejected)
}

/// Moves the reservation out of `RESERVED`.
fn settle(tx: &Transaction<'_>, message: &Message, to: &str, reason: Option<&str>) -> Result<(), PlainError> {
    let order_id = reason.is_none().then_some(message.order_id);
    let values = params![message.reservation_id, "RESERVED", to, order_id, reason];
    expect_one(tx.prepare_cached(SETTLE_RESERVATION)?.execute(values)?, "the reservation to settle")
}

/// Leaves an event, given as its type and payload, in the outbox.
fn emit(
    tx: &Transaction<'_>,
    message: &Message,
    aggregate_type: &str,
    aggregate_id: &Id,
    (event_type, payload): (&str, &str),
) -> Result<(), PlainError> {
    let key = hex(aggregate_id);
    let values = params![message.event_id, aggregate_type, aggregate_id, event_type, 1, key, payload];
    expect_one(tx.prepare_cached(INSERT_OUTBOX)?.execute(values)?, "the event")
}

fn finish(
    tx: &Transaction<'_>,
    message: &Message,
    result: &str,
    order_id: Option<&Id>,
) -> Result<(), PlainError> {
    let values = params![CONSUMER_GROUP, message.message_id, result, order_id];
    expect_one(tx.prepare_cached(FINISH_INBOX)?.execute(values)?, "the inbox row")
}

/// A guarded write that may only hit one row; another count would be a hidden loss.
fn expect_one(affected: usize, what: &'static str) -> Result<(), PlainError> {
    if affected == 1 { Ok(()) } else { Err(PlainError::Broken(what)) }
}

#[cfg(test)]
mod tests;
