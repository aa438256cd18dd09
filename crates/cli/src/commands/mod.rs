//! The commands, one file each: their arguments, and what they do.
//!
//! Read next: [`serve`], then [`demo`].

pub(crate) mod admission;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod credits;
pub(crate) mod dead_letters;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod groups;
pub(crate) mod import;
pub(crate) mod migrate;
pub(crate) mod openapi;
pub(crate) mod queue;
pub(crate) mod serve;
pub(crate) mod torture;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// An order engine in which every action may be repeated and its effect lands once.
#[derive(Debug, Parser)]
#[command(name = "onceward", version, max_term_width = 80)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the engine and answer requests.
    Serve(serve::Arguments),
    /// Watch a whole sale in a temporary folder, and have everything checked.
    Demo(demo::Arguments),
    /// Look for what would keep the engine from running well here.
    Doctor(doctor::Arguments),
    /// Bring the store to the version of this program.
    Migrate(migrate::Arguments),
    /// Write everything of a store to standard output; stop its servers first.
    Export(export::Arguments),
    /// Put an export from standard input into an empty store.
    Import(import::Arguments),
    /// Look at the queues of a running server, pause and resume them.
    Queue(queue::Arguments),
    /// Look at work whose tries are used up, and set it going again.
    DeadLetters(dead_letters::Arguments),
    /// Look how the gate stands, and have it made anew from the store.
    Admission(admission::Arguments),
    /// Look at group orders, and settle one that failed.
    Groups(groups::Arguments),
    /// Look at credit accounts, give credits and set balances right.
    Credits(credits::Arguments),
    /// Print the OpenAPI document.
    Openapi(openapi::Arguments),
    /// Print completions for a shell.
    Completions(completions::Arguments),
    /// Look for a way to break a promise: simulated, or with real servers.
    Torture(torture::Arguments),
    /// Measure the engine beside the plain way of doing the same.
    Bench(bench::Arguments),
}

/// Runs what the command line asks for.
///
/// # Errors
/// The command's own.
pub(crate) fn run(line: CommandLine) -> Result<(), Failure> {
    match line.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Queue(arguments) => queue::run(&arguments),
        Command::DeadLetters(arguments) => dead_letters::run(&arguments),
        Command::Admission(arguments) => admission::run(&arguments),
        Command::Groups(arguments) => groups::run(&arguments),
        Command::Credits(arguments) => credits::run(&arguments),
        Command::Openapi(arguments) => openapi::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Torture(arguments) => torture::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound_and_its_help_fits_eighty_columns() {
        let mut command = CommandLine::command();
        command.clone().debug_assert();
        command.build();
        for part in command.get_subcommands_mut() {
            let help = part.render_long_help().to_string();
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        }
    }
}
