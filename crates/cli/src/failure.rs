//! Why a command ended badly, and the exit code that says so.
//!
//! Invariants: the exit codes are those of the error classes (10 to 14), 2 for a wrong command line, 1 for anything
//! else; the text says what was being attempted and never holds a secret. Deliberately absent: a sixth class.

use std::fmt;
use std::io;
use std::path::Path;

use onceward_domain::error::{Class, Error};

/// A command's bad end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or the settings ask for something that cannot be.
    Usage(String),
    /// The engine said no; the class gives the exit code.
    Engine(Error),
    /// Anything else.
    Other(String),
    /// Everything was said on stdout already; only the exit code is left.
    Reported,
}

impl Failure {
    /// What went wrong with a file.
    pub(crate) fn file(doing: &str, path: &Path, cause: &io::Error) -> Self {
        Self::Other(format!("{doing} {}: {cause}", path.display()))
    }

    /// What was attempted, and what came of it.
    pub(crate) fn other(doing: &str, cause: impl fmt::Display) -> Self {
        Self::Other(format!("{doing}: {cause}"))
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Engine(error) => match error.class() {
                Class::Rejected => 10,
                Class::Conflict => 11,
                Class::Retryable => 12,
                Class::UnknownOutcome => 13,
                Class::Manual => 14,
            },
            Self::Other(_) | Self::Reported => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Other(text) => out.write_str(text),
            Self::Engine(error) => out.write_str(error.operator_text()),
            Self::Reported => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onceward_domain::error::Code;

    #[test]
    fn each_class_has_its_exit_code() {
        let table = [
            (Code::SoldOut, 10),
            (Code::GuardLost, 11),
            (Code::Unavailable, 12),
            (Code::OutcomeUnknown, 13),
            (Code::ConstraintViolated, 14),
        ];
        for (code, exit) in table {
            assert_eq!(Failure::from(Error::new(code, "doing it")).exit_code(), exit);
        }
        assert_eq!(Failure::Usage(String::new()).exit_code(), 2);
        assert_eq!(Failure::Reported.exit_code(), 1);
    }
}
