//! The server's errors in our five classes: one table, and what each row means (design.md §4).
//!
//! Invariants: a failure before COMMIT was sent never took effect, because a transaction that is not committed is rolled
//! back, also where its session is gone; whether a failed COMMIT took effect is asked in `commit`. Deliberately absent:
//! retries, but for the one in `transact`; the engine decides on them.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_tls::refusal;
use tokio_postgres::error::SqlState;

/// What a failed statement means, by SQLSTATE or the beginning of one; the first that fits counts. Not listed: a defect,
/// for a person.
const TABLE: &[(&str, Code)] = &[
    // Somebody else won: two transactions wanted the same rows in different orders, or a snapshot was too old.
    ("40001", Code::GuardLost),
    ("40P01", Code::GuardLost),
    ("40", Code::Unavailable),
    // A lock was held for longer than our patience, or an operator ended the statement.
    ("55P03", Code::Unavailable),
    ("57", Code::Unavailable),
    // The way to the server, its disk, its memory, its connections, or a server that only reads (a standby).
    ("08", Code::Unavailable),
    ("53", Code::Unavailable),
    ("58", Code::Unavailable),
    ("25006", Code::Unavailable),
    ("25P03", Code::Unavailable),
    // Somebody migrated under a prepared statement: the session is given up and the next one prepares anew.
    ("0A000", Code::Unavailable),
    // The server knows no such role, password or database: an operator sets it right, nothing was changed.
    ("28", Code::Unavailable),
    ("3D000", Code::Unavailable),
    // The last line of defence: a defect that ends with a person, never in a wrong effect.
    ("22", Code::ConstraintViolated),
    ("23", Code::ConstraintViolated),
    ("XX", Code::ConstraintViolated),
];

/// COMMIT failed in a way that surely left nothing behind: the server refused it before it wrote anything.
const SURELY_NOT_COMMITTED: &[&str] = &["40001", "40P01", "23", "22", "25"];

/// The error of a statement, with what was being attempted.
pub(crate) fn failed(doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + '_ {
    move |cause| Error::new(code_of(&cause), text(doing, &cause)).because(cause)
}

/// The error of a connection that could not be made: nothing was asked of the server yet.
pub(crate) fn unreachable(cause: tokio_postgres::Error) -> Error {
    let doing = "connecting to PostgreSQL";
    let text = match (refusal(&cause), cause.source()) {
        (Some(why), _) => format!("{doing}: {why}"),
        // The driver says what it did, and the cause what came of it, such as a server that knows no TLS.
        (None, Some(why)) if cause.as_db_error().is_none() => format!("{doing}: {cause}: {why}"),
        (None, _) => text(doing, &cause),
    };
    Error::new(Code::Unavailable, text).because(cause)
}

/// The error of a connection that a server keeps waiting: nothing was asked of it yet either.
pub(crate) fn silent(patience: Duration) -> Error {
    let waited = patience.as_secs_f32();
    Error::new(Code::Unavailable, format!("connecting to PostgreSQL: it gave no answer within {waited} s"))
}

/// The error of a session on which the server answers nothing any more, before anything was committed.
pub(crate) fn unanswered(patience: Duration) -> Error {
    Error::new(
        Code::Unavailable,
        format!("the server left a session unanswered for {} s", patience.as_secs_f32()),
    )
}

/// The error of a COMMIT, where it surely did not take effect; none where it may have.
pub(crate) fn surely_refused(cause: &tokio_postgres::Error) -> Option<Error> {
    let state = cause.code().filter(|state| begins(SURELY_NOT_COMMITTED, state))?;
    Some(Error::new(meaning(state), text("committing", cause)))
}

/// What the server says of a key that is there already.
pub(crate) fn doubled(cause: &tokio_postgres::Error) -> Option<String> {
    let said = cause.as_db_error().filter(|said| *said.code() == SqlState::UNIQUE_VIOLATION)?;
    Some(format!("{}: {}", said.constraint().unwrap_or_default(), said.detail().unwrap_or_default()))
}

/// A row that should not be able to exist.
pub(crate) fn defect(text: impl Into<String>) -> Error {
    Error::new(Code::ConstraintViolated, text)
}

/// A guard that did not hit exactly one row.
pub(crate) fn guard_lost(text: impl Into<String>) -> Error {
    Error::new(Code::GuardLost, text)
}

fn text(doing: &str, cause: &tokio_postgres::Error) -> String {
    match cause.as_db_error() {
        Some(said) => {
            let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{doing}: {} {}{detail}", said.code().code(), said.message())
        }
        None => format!("{doing}: {cause}"),
    }
}

fn code_of(cause: &tokio_postgres::Error) -> Code {
    if let Some(state) = cause.code() {
        return meaning(state);
    }
    let is_io = cause.source().is_some_and(|source| source.downcast_ref::<io::Error>().is_some());
    if cause.is_closed() || is_io { Code::Unavailable } else { Code::ConstraintViolated }
}

fn meaning(state: &SqlState) -> Code {
    TABLE
        .iter()
        .find(|(known, _)| state.code().starts_with(known))
        .map_or(Code::ConstraintViolated, |row| row.1)
}

fn begins(known: &[&str], state: &SqlState) -> bool {
    known.iter().any(|known| state.code().starts_with(known))
}

#[cfg(test)]
mod tests {
    //! One row for each state of the server that the table names, as a statement and as a COMMIT.

    use super::*;

    #[test]
    fn every_state_has_its_class() {
        let (lost, later, defect) = (Code::GuardLost, Code::Unavailable, Code::ConstraintViolated);
        for (state, statement, is_refused_commit) in [
            ("40001", lost, true),    // serialization_failure
            ("40P01", lost, true),    // deadlock_detected
            ("40003", later, false),  // statement_completion_unknown
            ("55P03", later, false),  // lock_not_available
            ("57014", later, false),  // query_canceled
            ("57P01", later, false),  // admin_shutdown
            ("57P02", later, false),  // crash_shutdown
            ("57P03", later, false),  // cannot_connect_now
            ("08006", later, false),  // connection_failure
            ("53100", later, false),  // disk_full
            ("53300", later, false),  // too_many_connections
            ("58030", later, false),  // io_error
            ("25006", later, true),   // read_only_sql_transaction
            ("25P03", later, true),   // idle_in_transaction_session_timeout
            ("0A000", later, false),  // feature_not_supported: a cached plan must not change its result
            ("28P01", later, false),  // invalid_password
            ("3D000", later, false),  // invalid_catalog_name
            ("22003", defect, true),  // numeric_value_out_of_range
            ("23001", defect, true),  // restrict_violation
            ("23502", defect, true),  // not_null_violation
            ("23503", defect, true),  // foreign_key_violation
            ("23505", defect, true),  // unique_violation
            ("23514", defect, true),  // check_violation
            ("25P02", defect, true),  // in_failed_sql_transaction
            ("42P01", defect, false), // undefined_table
            ("XX001", defect, false), // data_corrupted
            ("XX000", defect, false), // internal_error
            ("P0001", defect, false), // raise_exception
        ] {
            let found = SqlState::from_code(state);
            assert_eq!(meaning(&found), statement, "{state}");
            assert_eq!(begins(SURELY_NOT_COMMITTED, &found), is_refused_commit, "{state} as a COMMIT");
        }
    }
}
