//! The log: to stderr, filtered by `ONCEWARD_LOG`.
//!
//! Invariants: nothing goes to stdout; the default is `warn`, so that a healthy server is silent after its one line.
//! Deliberately absent: files and rotation; whoever runs the process keeps its stderr.

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::output;

/// The environment variable with the filter, e.g. `onceward=info,warn`.
const FILTER: &str = "ONCEWARD_LOG";
const DEFAULT_FILTER: &str = "warn";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log, once for the process.
///
/// # Errors
/// When the filter cannot be read.
pub(crate) fn start(format: LogFormat) -> Result<(), Failure> {
    let wanted = std::env::var(FILTER).unwrap_or_else(|_| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(&wanted)
        .map_err(|cause| Failure::Usage(format!("{FILTER} is not a log filter: {cause}")))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_has_colours());
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
