//! What the broker's codes mean: one table, by whether the thing was done.
//!
//! Invariant: a code that is not known, or that may stand for something half done, is [`Verdict::Perhaps`] (DR-02).

use std::ops::RangeInclusive;

use onceward_domain::error::{Code, Error};
use onceward_tls::refusal;

use crate::proto::{SendMessageResponse, Status};

/// Whether what was asked for was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was.
    Done,
    /// It was not, and we know it.
    Refused,
    /// It was not, because there is too much to do: later it may be.
    Busy,
    /// Nobody can say.
    Perhaps,
}

/// Nothing to receive: an answer, not a failure.
pub(crate) const NOTHING_THERE: i32 = 40_401;
/// A receipt whose lease is over.
pub(crate) const LEASE_LOST: i32 = 40_013;
/// Some entries succeeded, others did not; each says which.
const MIXED: i32 = 30_000;

const TABLE: &[(RangeInclusive<i32>, Verdict)] = &[
    (20_000..=29_999, Verdict::Done),
    // A time-out on the way to the broker behind the proxy.
    (40_800..=40_899, Verdict::Perhaps),
    // Too many requests.
    (42_900..=42_999, Verdict::Busy),
    // A malformed, forbidden or oversized request, an unknown topic.
    (40_000..=49_999, Verdict::Refused),
    // Written, but a copy or the disk was slow to confirm; a time-out; a crash inside.
    (50_000..=50_099, Verdict::Perhaps),
    // Not built in.
    (50_100..=50_199, Verdict::Refused),
    (50_500..=50_599, Verdict::Refused),
];

/// Judges a code of the protocol.
pub(crate) fn judge(code: i32) -> Verdict {
    TABLE.iter().find(|(codes, _)| codes.contains(&code)).map_or(Verdict::Perhaps, |(_, verdict)| *verdict)
}

/// Judges the answer to a message that was sent.
pub(crate) fn judge_answer(answer: &Result<SendMessageResponse, tonic::Status>) -> Verdict {
    match answer {
        Ok(answer) => match (answer.entries.as_slice(), &answer.status) {
            ([entry], _) if entry.status.is_some() => judge(entry.status.as_ref().map_or(0, |one| one.code)),
            (_, Some(status)) => judge(status.code),
            (_, None) => Verdict::Perhaps,
        },
        Err(status) => judge_call(status),
    }
}

/// Judges the failure of a call itself. Few of them say that the broker has not acted.
pub(crate) fn judge_call(status: &tonic::Status) -> Verdict {
    match status.code() {
        tonic::Code::InvalidArgument | tonic::Code::Unauthenticated | tonic::Code::PermissionDenied => {
            Verdict::Refused
        }
        // The line itself says the first two of an answer that it cannot read.
        tonic::Code::OutOfRange
        | tonic::Code::Unimplemented
        | tonic::Code::Ok
        | tonic::Code::Cancelled
        | tonic::Code::Unknown
        | tonic::Code::DeadlineExceeded
        | tonic::Code::NotFound
        | tonic::Code::AlreadyExists
        | tonic::Code::ResourceExhausted
        | tonic::Code::FailedPrecondition
        | tonic::Code::Aborted
        | tonic::Code::Internal
        | tonic::Code::Unavailable
        | tonic::Code::DataLoss => Verdict::Perhaps,
    }
}

/// Success, or an error of class retryable that says what was attempted. Only for what may be repeated.
pub(crate) fn expect_done(doing: &str, status: Option<&Status>) -> Result<(), Error> {
    match status {
        Some(status) if judge(status.code) == Verdict::Done || status.code == MIXED => Ok(()),
        Some(Status { code, message }) => {
            Err(Error::new(Code::Unavailable, format!("{doing}: the broker answered {code}, {message}")))
        }
        None => Err(Error::new(Code::Unavailable, format!("{doing}: the broker's answer has no status"))),
    }
}

/// A call that failed, as an error of class retryable. Only for what may be repeated.
pub(crate) fn unavailable(doing: &str, status: &tonic::Status) -> Error {
    let why = refusal(status).unwrap_or_else(|| format!("{:?}, {}", status.code(), status.message()));
    Error::new(Code::Unavailable, format!("{doing}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dr_02_only_what_surely_happened_is_done_and_only_what_surely_did_not_is_refused() {
        let table = [
            (20_000, Verdict::Done),
            (30_000, Verdict::Perhaps),
            (40_000, Verdict::Refused),
            (40_402, Verdict::Refused),
            (40_800, Verdict::Perhaps),
            (41_301, Verdict::Refused),
            (42_900, Verdict::Busy),
            (50_000, Verdict::Perhaps),
            (50_001, Verdict::Perhaps),
            (50_002, Verdict::Perhaps),
            (50_100, Verdict::Refused),
            (50_400, Verdict::Perhaps),
            (50_401, Verdict::Perhaps),
            (50_402, Verdict::Perhaps),
            (50_501, Verdict::Refused),
            (60_000, Verdict::Perhaps),
            (0, Verdict::Perhaps),
            (-1, Verdict::Perhaps),
        ];
        for (code, expected) in table {
            assert_eq!(judge(code), expected, "{code}");
        }
    }

    #[test]
    fn dr_02_a_broken_line_says_nothing_about_what_was_sent() {
        let table = [
            (tonic::Status::unavailable(""), Verdict::Perhaps),
            (tonic::Status::deadline_exceeded(""), Verdict::Perhaps),
            (tonic::Status::cancelled(""), Verdict::Perhaps),
            (tonic::Status::internal(""), Verdict::Perhaps),
            (tonic::Status::unknown(""), Verdict::Perhaps),
            (tonic::Status::resource_exhausted(""), Verdict::Perhaps),
            (tonic::Status::invalid_argument(""), Verdict::Refused),
            (tonic::Status::unimplemented(""), Verdict::Perhaps),
            (tonic::Status::out_of_range(""), Verdict::Perhaps),
        ];
        for (status, expected) in table {
            assert_eq!(judge_call(&status), expected, "{status:?}");
        }
    }
}
