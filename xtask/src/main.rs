//! `cargo xtask`: the house's own tools, one file per command.
//!
//! They are Rust and not shell, so that they are typed, tested and the same on every machine. A command
//! exists here only when something runs it: a person before a commit, or the build that guards `main`.
//!
//! Deliberately absent: anything that ships. Nothing in `crates/` may import this crate.
//!
//! Read next: `ci` (what guards `main`), `tidy` (the rules no compiler knows), `codegen`, `services`.

mod ci;
mod codegen;
mod services;
mod tidy;
mod workspace;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Why a command did not succeed, in words for the person at the terminal.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Ci(arguments) => ci::run(&arguments),
        Command::Tidy => tidy::run(),
        Command::Codegen(arguments) => codegen::run(&arguments),
        Command::Services(arguments) => services::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// The tools of the Onceward repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that guards `main`, in order, each step under a time limit
    Ci(ci::Arguments),
    /// Check the rules of the house that the compiler does not know
    Tidy,
    /// Write the files in docs/generated from the code
    Codegen(codegen::Arguments),
    /// Start and stop the servers of cluster mode on loopback
    Services(services::Arguments),
}

/// Prints one line to stderr. Nothing can be done about a closed stderr, so its error is dropped.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
