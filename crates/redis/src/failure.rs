//! What Redis' errors mean: one table, by whether the thing was done.
//!
//! Invariants: a script checks before it writes, and Redis refuses it before its first write or not at all, so what the
//! server refuses by one of these codes has not happened; what could not be sent has not happened either; everything else may
//! have (DR-02), except an error inside a script, which is a defect of ours.

use onceward_domain::error::{Code, Error};
use onceward_tls::refusal;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// How far a call came before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There was no connection, so nothing was sent.
    Connecting,
    /// It was sent, or may have been.
    Sent,
}

/// The server's words, and what they mean here.
const TABLE: &[(&str, Code)] = &[
    // The memory is full, and nothing is evicted.
    ("OOM", Code::Unavailable),
    // It is a copy, or has just become one.
    ("READONLY", Code::Unavailable),
    // It reads its file after a start.
    ("LOADING", Code::Unavailable),
    // Another script runs for too long.
    ("BUSY", Code::Unavailable),
    // It cannot write its file.
    ("MISCONF", Code::Unavailable),
    // Fewer copies are in touch than the operator demands.
    ("NOREPLICAS", Code::Unavailable),
    ("CLUSTERDOWN", Code::Unavailable),
    ("MASTERDOWN", Code::Unavailable),
    ("TRYAGAIN", Code::Unavailable),
    ("MOVED", Code::Unavailable),
    ("ASK", Code::Unavailable),
    ("NOSCRIPT", Code::Unavailable),
    ("NOAUTH", Code::Unavailable),
    ("WRONGPASS", Code::Unavailable),
    ("NOPERM", Code::Unavailable),
    // Its connections are used up.
    ("ERR max number of clients reached", Code::Unavailable),
    // Ours, whatever the cause.
    ("CROSSSLOT", Code::ConstraintViolated),
    ("WRONGTYPE", Code::ConstraintViolated),
    ("ERR", Code::ConstraintViolated),
];

/// Judges a failed call.
pub(crate) fn judge(stage: Stage, cause: &RedisError) -> Code {
    if stage == Stage::Connecting {
        return Code::Unavailable;
    }
    let Some(word) = cause.code() else {
        let never_sent = cause.kind() == ErrorKind::ClusterConnectionNotFound;
        return if never_sent { Code::Unavailable } else { Code::OutcomeUnknown };
    };
    let said = format!("{word} {}", cause.detail().unwrap_or_default());
    let found = TABLE.iter().find(|(words, _)| {
        said.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', '.']))
    });
    found.map_or(Code::OutcomeUnknown, |(_, code)| *code)
}

/// The error that callers hear.
pub(crate) fn error_of(stage: Stage, cause: RedisError) -> Error {
    let text = match refusal(&cause) {
        Some(why) => format!("asking Redis: {why}"),
        // Nothing that we have sent can be in it.
        None if stage == Stage::Connecting => format!("connecting to Redis, {}: {cause}", cause.category()),
        None => format!("asking Redis, {}", cause.category()),
    };
    Error::new(judge(stage, &cause), text).because(cause)
}

/// Whether the server has lost its scripts, as it does at every start.
pub(crate) fn is_unknown_script(cause: &RedisError) -> bool {
    cause.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether the connection is of no use any more: it broke, its answers may be out of step, or it leads to a server that is
/// not the primary any more.
pub(crate) fn breaks_the_line(cause: &RedisError) -> bool {
    matches!(
        cause.kind(),
        ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::Client
            | ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    )
}

#[cfg(test)]
mod tests {
    use redis::{RedisResult, Value, parse_redis_value};

    use super::*;

    fn said_by_server(line: &str) -> RedisError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let result: RedisResult<Value> = value.extract_error();
        result.expect_err("an error line is an error")
    }

    #[test]
    fn dr_02_each_row_of_the_table_is_what_the_server_says() {
        for (words, code) in TABLE {
            let cause = said_by_server(&format!("{words} and more of it"));
            assert_eq!(judge(Stage::Sent, &cause), *code, "{words}");
            assert_eq!(judge(Stage::Connecting, &cause), Code::Unavailable, "{words}");
        }
        let full =
            "OOM command not allowed when used memory > 'maxmemory'. script: 6c1b, on @user_script:92.";
        assert_eq!(judge(Stage::Sent, &said_by_server(full)), Code::Unavailable);
    }

    #[test]
    fn dr_02_whatever_is_not_known_may_have_happened() {
        assert_eq!(judge(Stage::Sent, &said_by_server("STRANGE words")), Code::OutcomeUnknown);
        let lost = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(judge(Stage::Sent, &lost), Code::OutcomeUnknown);
        assert_eq!(judge(Stage::Connecting, &lost), Code::Unavailable);
        let late = RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        assert_eq!(judge(Stage::Sent, &late), Code::OutcomeUnknown);
        assert!(breaks_the_line(&late) && breaks_the_line(&lost));
    }

    #[test]
    fn lq_07_a_server_without_its_scripts_is_told_them_again() {
        let cause = said_by_server("NOSCRIPT No matching script. Please use EVAL.");
        assert!(is_unknown_script(&cause) && !breaks_the_line(&cause));
        assert!(breaks_the_line(&said_by_server("READONLY You can't write against a read only replica.")));
    }
}
