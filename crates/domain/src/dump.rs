//! Everything that a store holds, as rows of plain values: what moves from one store to another.
//!
//! The list below is the order in which rows can be put back, because what a row names comes before it. Invariants: a value
//! is a number, a text or bytes, whatever the store keeps it as, so a dump of one store can be restored into any other; numbers
//! that name rows (`seq`, the numbers of words and SKUs) move along, so whoever has kept one finds the same row. Credit accounts
//! come twice: empty, and after their entries with what these amount to, so that a restore cannot bring in a balance that the
//! entries do not make. Deliberately absent: names of states, which the program brings along, and everything that can be made
//! anew. Read next: [`crate::ports::archive`].

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::catalogue::LatePayment;
use crate::credit::EntryKind;
use crate::error::{Code, Error};
use crate::machine;
use crate::payment::{CaseKind, RefundCause};
use crate::purchase::{InboxResult, Reason};

/// Most rows of one page.
pub const PAGE_ROWS: usize = 500;

/// Bytes of the mark of a schema.
const SCHEMA_BYTES: usize = 8;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A whole number of 64 bits; also a code, a time, or yes and no as 1 and 0.
    Number,
    /// A text, without the character NUL.
    Text,
    /// Bytes, also those of an id.
    Bytes,
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Nothing is there.
    Nothing,
    /// See [`Kind::Number`].
    Number(i64),
    /// See [`Kind::Text`].
    Text(String),
    /// See [`Kind::Bytes`].
    Bytes(Vec<u8>),
}

impl Value {
    /// Whether a column of this kind can hold it.
    #[must_use]
    pub fn fits(&self, kind: Kind) -> bool {
        match self {
            Self::Nothing => true,
            Self::Number(_) => kind == Kind::Number,
            Self::Text(text) => kind == Kind::Text && !text.contains('\0'),
            Self::Bytes(_) => kind == Kind::Bytes,
        }
    }

    /// What is before every key of this kind.
    #[must_use]
    pub fn before_all(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Number(i64::MIN),
            Kind::Text => Self::Text(String::new()),
            // The only bytes among the keys are ids, and none of ours is nil.
            Kind::Bytes => Self::Bytes(vec![0; 16]),
        }
    }
}

/// One row; its values stand in the order of its table's columns.
pub type Row = Vec<Value>;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name, the same in every store.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// One kind of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Its name in a dump.
    pub name: &'static str,
    /// The store's table behind it.
    pub place: &'static str,
    /// So many columns, from the first, are the key by whose order it is read.
    pub key: usize,
    /// What is dumped of it.
    pub columns: &'static [Column],
}

impl Table {
    /// The table of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// Where it stands in the order in which rows can be put back.
    #[must_use]
    pub fn position(&self) -> usize {
        TABLES.iter().position(|table| table == self).expect("every table is listed")
    }

    /// What is before its first row.
    #[must_use]
    pub fn before_all(&self) -> Row {
        self.columns[..self.key].iter().map(|column| Value::before_all(column.kind)).collect()
    }

    /// Whether a row has as many values as there are columns, each of its column's kind.
    #[must_use]
    pub fn admits(&self, row: &[Value]) -> bool {
        row.len() == self.columns.len()
            && row.iter().zip(self.columns).all(|(value, column)| value.fits(column.kind))
    }
}

macro_rules! tables {
    ($($name:literal in $place:literal by $key:literal: $($column:ident $kind:ident),*;)*) => {
        &[$(Table {
            name: $name,
            place: $place,
            key: $key,
            columns: &[$(Column { name: stringify!($column), kind: Kind::$kind }),*],
        }),*]
    };
}

/// Everything, in the order in which it can be put back.
pub const TABLES: &[Table] = tables! {
    "word" in "word" by 1: word_ref Number, text Text;
    "activity" in "activity" by 1: id Text, name Text, starts_at Number, ends_at Number, payment_window Number,
        cancel_grace Number, reservation_deadline Number, confirm_after_cancel Number, late_payment Number,
        cancelled_frees_limit Number;
    "sku" in "sku" by 1: sku_ref Number, activity_id Text, sku_id Text, price Number, currency Number,
        per_user_limit Number, limit_since Number, buckets Number, opening Number, initial Number, available Number,
        occupied Number, sold Number, adjustments Number, revision Number;
    "bucket" in "bucket" by 1: sku_ref Number, initial Number, available Number, open_reserved Number,
        committed Number, adjustments Number, revision Number;
    "purchase" in "purchase" by 1: seq Number, id Bytes, revision Number, user_id Text, request_id Text,
        route Number, sku_ref Number, quantity Number, place Number, admission Number, reservation Number,
        reason Number, reserved_at Number, business_deadline Number, updated_at Number, inbox_result Number,
        payload_hash Bytes, order_status Number, currency Number, unit_price Number, total Number, paid Number,
        refunded Number, created_at Number, expires_at Number, cancel_due_at Number, paid_at Number,
        cancelled_at Number, cancel_reason Text, compensation Bytes;
    "order_line" in "order_line" by 2: purchase Number, line Number, user_id Text, sku_ref Number, quantity Number,
        place Number, unit_price Number;
    "compensation" in "compensation_task" by 1: purchase Number, status Number, attempts Number, last_result Text,
        created_at Number, updated_at Number, revision Number;
    "stock_entry" in "stock_entry" by 1: seq Number, sku_ref Number, purchase Number, adjustment Bytes,
        cause Number, available Number, occupied Number, sold Number, note Text, at Number;
    "transition" in "transition" by 1: seq Number, purchase Number, at Number, kind Number, from_state Number,
        to_state Number, cause Number, actor Number, reference Text;
    "quarantine" in "quarantine" by 1: seq Number, message_id Text, payload_hash Bytes, reason Text, payload Bytes,
        at Number;
    "answer" in "answer" by 1: key Text, fingerprint Bytes, status Number, body Bytes, at Number, lasting Number;
    "payment" in "payment" by 1: id Bytes, purchase Number, provider Text, amount Number, currency Number,
        status Number, provider_transaction Text, created_at Number, updated_at Number, revision Number;
    "refund" in "refund" by 1: id Bytes, purchase Number, payment Bytes, amount Number, currency Number,
        status Number, cause Number, reason Text, created_at Number, updated_at Number, revision Number;
    "callback" in "callback" by 2: provider Text, event Text, payload_hash Bytes, payload Bytes, received_at Number;
    "open_case" in "open_case" by 1: seq Number, kind Number, subject Text, detail Text, at Number;
    "notice" in "notice" by 1: seq Number, id Bytes, kind Text, subject Text, recipient Text, detail Text,
        status Number, created_at Number, updated_at Number, revision Number;
    "group_order" in "group_order" by 1: seq Number, id Text, leader Text, deadline Number, charge_via Text,
        currency Number, min_participants Number, status Number, participants Number, attempts Number,
        retries Number, next_attempt_at Number, last_error Text, created_at Number, updated_at Number,
        revision Number;
    "participant" in "participant" by 2: group_ref Number, user_id Text, amount Number, charge Number,
        provider_transaction Text, joined_at Number, updated_at Number, revision Number;
    "group_transition" in "group_transition" by 1: seq Number, group_ref Number, at Number, from_state Number,
        to_state Number, cause Number, actor Number;
    "credit_account" in "credit_account" by 1: seq Number, id Text, overdraft Number, created_at Number,
        updated_at Number, revision Number;
    "job" in "job" by 1: seq Number, id Text, account Number, cost Number, max_attempts Number, payload Text,
        status Number, attempts Number, not_before Number, token Number, worker Text, last_error Text,
        is_refunded Number, is_reclaimed Number, created_at Number, updated_at Number, revision Number;
    "credit_entry" in "credit_entry" by 2: account Number, number Number, kind Number, amount Number,
        balance_after Number, job Number, reference Text, reason Text, actor Number, created_at Number;
    "credit_balance" in "credit_account" by 1: seq Number, balance Number, entries Number;
    "lane" in "lane" by 1: lane Number, paused Number, last_claim Number;
    "due" in "due" by 2: lane Number, member Text, seq Number, due_at Number, created_at Number, attempts Number,
        token Number, leased Number, body Bytes;
    "counter" in "counter" by 1: name Text, value Number;
};

/// Rows of one table, in the order of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Of which table.
    pub table: &'static Table,
    /// At most [`PAGE_ROWS`].
    pub rows: Vec<Row>,
}

impl Page {
    /// Refuses rows that their table does not admit.
    ///
    /// # Errors
    /// `Invalid` where one of them does not fit its columns.
    pub fn require_fit(&self) -> Result<(), Error> {
        if self.rows.iter().all(|row| self.table.admits(row)) {
            return Ok(());
        }
        Err(self.refused("a row does not fit its columns"))
    }

    /// What is said where a row names another one that was not put back before it.
    #[must_use]
    pub fn dangling(&self) -> Error {
        self.refused("a row names what is not there")
    }

    fn refused(&self, why: &str) -> Error {
        Error::new(Code::Invalid, format!("restoring {}: {why}", self.table.name))
    }
}

/// A mark of everything that rows of one program mean to another: the columns, and the lists behind the stored codes. Equal
/// marks mean that a dump can be restored.
#[must_use]
pub fn schema() -> String {
    let mut text = String::new();
    for table in TABLES {
        let _ = write!(text, "{} {}:", table.name, table.key);
        for column in table.columns {
            let _ = write!(text, " {} {:?}", column.name, column.kind);
        }
        text.push('\n');
    }
    let lists = [
        ("reason", Reason::ALL.map(Reason::name).to_vec()),
        ("inbox_result", InboxResult::ALL.map(InboxResult::name).to_vec()),
        ("late_payment", LatePayment::ALL.map(LatePayment::name).to_vec()),
        ("refund_cause", RefundCause::ALL.map(RefundCause::name).to_vec()),
        ("case", CaseKind::ALL.map(CaseKind::name).to_vec()),
        ("credit_entry", EntryKind::ALL.map(EntryKind::name).to_vec()),
    ];
    let machines = machine::all().into_iter().map(|view| (view.name, view.states));
    for (name, codes) in machines.chain(lists) {
        let _ = writeln!(text, "{name}: {}", codes.join(" "));
    }
    let digest = Sha256::digest(text.as_bytes());
    digest[..SCHEMA_BYTES].iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tables_have_names_of_their_own_and_keys_that_can_be_passed() {
        let names: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(names.len(), TABLES.len());
        for (position, table) in TABLES.iter().enumerate() {
            assert_eq!((Table::named(table.name), table.position()), (Some(table), position));
            assert!((1..=2).contains(&table.key), "{}", table.name);
            let names: BTreeSet<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
        assert_eq!(Table::named("state"), None);
    }

    #[test]
    fn a_row_is_admitted_where_every_value_fits_its_column() {
        let counter = Table::named("counter").unwrap();
        let name = || Value::Text("token".to_owned());
        for (row, fits) in [
            (vec![name(), Value::Number(1)], true),
            (vec![name(), Value::Nothing], true),
            (vec![name()], false),
            (vec![name(), Value::Number(1), Value::Nothing], false),
            (vec![Value::Number(1), name()], false),
            (vec![Value::Text("a\0b".to_owned()), Value::Number(1)], false),
        ] {
            assert_eq!(counter.admits(&row), fits, "{row:?}");
        }
    }

    #[test]
    fn the_mark_of_the_schema_is_of_eight_bytes_and_stays_the_same() {
        assert_eq!(schema().len(), 2 * SCHEMA_BYTES);
        assert_eq!(schema(), schema());
    }
}
