//! `onceward completions SHELL`: a script that a shell reads.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::commands::CommandLine;
use crate::failure::Failure;
use crate::output;

/// The arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell that is to read it
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// When stdout fails.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    // clap writes into a buffer here, because it panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut CommandLine::command(), "onceward", &mut script);
    output::data(|out| out.write_all(&script))
}
