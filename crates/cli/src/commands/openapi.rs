//! `onceward openapi`: the document that a server gives at `/openapi.json`, without starting one.

use crate::failure::Failure;
use crate::output;

/// The arguments of `openapi`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Taken for the sake of uniformity: the document is JSON in any case
    #[arg(long)]
    json: bool,
}

/// Prints the document, for people to read and for `git diff` to compare.
///
/// # Errors
/// When stdout fails.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { json: _ } = arguments;
    let document = onceward_http::openapi()
        .to_pretty_json()
        .map_err(|cause| Failure::other("writing the OpenAPI document", cause))?;
    output::data(|out| writeln!(out, "{document}"))
}
