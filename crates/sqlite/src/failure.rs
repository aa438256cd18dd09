//! SQLite's errors in our five classes: one table, and what each row means (design.md §4).
//!
//! Invariants: a failure before COMMIT never took effect, because the transaction is rolled back; a failed COMMIT did
//! not take effect only where SQLite says so for sure. Deliberately absent: retries; the engine decides on them.

use onceward_domain::error::{Code, Error};
use rusqlite::ErrorCode;

/// What a failed statement means. Not listed: a defect, for a person.
const TABLE: &[(ErrorCode, Code)] = &[
    // Another process holds the lock for longer than the busy time-out.
    (ErrorCode::DatabaseBusy, Code::Unavailable),
    (ErrorCode::DatabaseLocked, Code::Unavailable),
    // The disk, or the way to it. The statement took no effect; it may work again later.
    (ErrorCode::DiskFull, Code::Unavailable),
    (ErrorCode::SystemIoFailure, Code::Unavailable),
    (ErrorCode::CannotOpen, Code::Unavailable),
    (ErrorCode::ReadOnly, Code::Unavailable),
    (ErrorCode::PermissionDenied, Code::Unavailable),
    (ErrorCode::OutOfMemory, Code::Unavailable),
    (ErrorCode::OperationInterrupted, Code::Unavailable),
    (ErrorCode::FileLockingProtocolFailed, Code::Unavailable),
    // The last line of defence: a defect that ends with a person, never in a wrong effect.
    (ErrorCode::ConstraintViolation, Code::ConstraintViolated),
    (ErrorCode::DatabaseCorrupt, Code::ConstraintViolated),
    (ErrorCode::NotADatabase, Code::ConstraintViolated),
];

/// COMMIT failed in a way that surely left nothing behind: the lock was not had, or the log could not grow by the frame
/// that makes a commit. After any other failure the log may hold that frame, and a crash would bring it to life.
const SURELY_NOT_COMMITTED: &[ErrorCode] = &[
    ErrorCode::DatabaseBusy,
    ErrorCode::DatabaseLocked,
    ErrorCode::DiskFull,
    ErrorCode::ConstraintViolation,
];

/// The error of a statement, with what was being attempted.
pub(crate) fn failed(doing: &str) -> impl Fn(rusqlite::Error) -> Error + '_ {
    move |cause| {
        let text = format!("{doing}: {cause}");
        Error::new(code_of(&cause), text).because(cause)
    }
}

/// The error of a COMMIT.
pub(crate) fn commit_failed(cause: rusqlite::Error) -> Error {
    let surely = cause.sqlite_error_code().is_some_and(|code| SURELY_NOT_COMMITTED.contains(&code));
    let code = if surely { code_of(&cause) } else { Code::OutcomeUnknown };
    Error::new(code, format!("committing: {cause}")).because(cause)
}

/// A row that should not be able to exist.
pub(crate) fn defect(text: impl Into<String>) -> Error {
    Error::new(Code::ConstraintViolated, text)
}

/// A guard that did not hit exactly one row.
pub(crate) fn guard_lost(text: impl Into<String>) -> Error {
    Error::new(Code::GuardLost, text)
}

/// A second copy of an error, for the others of its group.
pub(crate) fn copy_of(error: &Error) -> Error {
    Error::new(error.code(), error.operator_text())
}

fn code_of(cause: &rusqlite::Error) -> Code {
    let Some(code) = cause.sqlite_error_code() else { return Code::ConstraintViolated };
    TABLE.iter().find(|(known, _)| *known == code).map_or(Code::ConstraintViolated, |(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    //! One row for each code of SQLite that the table names, as a statement and as a COMMIT.

    use super::*;
    use rusqlite::ffi;

    #[test]
    fn every_code_has_its_class() {
        let table = [
            (ffi::SQLITE_BUSY, Code::Unavailable, Code::Unavailable),
            (ffi::SQLITE_LOCKED, Code::Unavailable, Code::Unavailable),
            (ffi::SQLITE_FULL, Code::Unavailable, Code::Unavailable),
            (ffi::SQLITE_IOERR, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_IOERR_FSYNC, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_CANTOPEN, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_READONLY, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_PERM, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_NOMEM, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_INTERRUPT, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_PROTOCOL, Code::Unavailable, Code::OutcomeUnknown),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Code::ConstraintViolated, Code::ConstraintViolated),
            (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, Code::ConstraintViolated, Code::ConstraintViolated),
            (ffi::SQLITE_CORRUPT, Code::ConstraintViolated, Code::OutcomeUnknown),
            (ffi::SQLITE_NOTADB, Code::ConstraintViolated, Code::OutcomeUnknown),
            (ffi::SQLITE_MISUSE, Code::ConstraintViolated, Code::OutcomeUnknown),
        ];
        for (raw, statement, commit) in table {
            let cause = || rusqlite::Error::SqliteFailure(ffi::Error::new(raw), Some("text".to_owned()));
            assert_eq!(failed("doing")(cause()).code(), statement, "{raw}");
            assert_eq!(commit_failed(cause()).code(), commit, "{raw}");
        }
    }

    #[test]
    fn the_operator_reads_what_was_attempted_and_what_sqlite_said() {
        let raw = ffi::Error::new(ffi::SQLITE_CONSTRAINT_UNIQUE);
        let text = "UNIQUE constraint failed: purchase.id".to_owned();
        let error = failed("adding a purchase")(rusqlite::Error::SqliteFailure(raw, Some(text)));
        assert_eq!(error.operator_text(), "adding a purchase: UNIQUE constraint failed: purchase.id");
    }
}
