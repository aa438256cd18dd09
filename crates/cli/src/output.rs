//! Where words go: data to stdout, everything else to stderr.
//!
//! Invariants: both are locked for the length of one write, so lines of two threads never mix; a reader that went away
//! (`| head`) ends the output and is no failure. Deliberately absent: colours of our own; `NO_COLOR` is kept by clap
//! and by the log.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use serde::Serialize;

use crate::failure::Failure;

/// How data is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people, at most 80 columns.
    Text,
    /// For programs.
    Json,
}

impl Format {
    /// From the flag `--json`.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Writes data to stdout.
///
/// # Errors
/// When stdout fails for another reason than that nobody reads it any more.
pub(crate) fn data(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    match written {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::other("writing to standard output", cause))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes one JSON value and a line end to stdout.
///
/// # Errors
/// As [`data`].
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    data(|out| {
        serde_json::to_writer(&mut *out, value)?;
        writeln!(out)
    })
}

/// Says something to a person, on stderr. A closed stderr is nobody's failure.
pub(crate) fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Whether stderr takes colours: a terminal, and nobody said `NO_COLOR`.
pub(crate) fn stderr_has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
