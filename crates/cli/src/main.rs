//! `onceward`, the program: reads the command line, runs a command, answers with an exit code.
//!
//! **Purpose.** The only place that picks adapters and reads the clock, the environment and the operating system.
//!
//! **Invariants.** Data goes to stdout, everything else to stderr. The exit codes are those of `failure`. `main` is the
//! only way out, so destructors run: a lock is given back, a child is ended, a folder is removed.
//!
//! **Deliberately absent.** Rules of the engine, and HTTP handlers.
//!
//! **Read next.** `commands::serve` → `wiring` → `settings`; then `commands::demo` for the whole seen from outside.

mod commands;

mod failure;
mod output;

mod api;
mod api_keys;
mod data_dir;
mod moving;
mod secret;
mod settings;
mod stop;
mod temp_dir;
mod wiring;

mod client;
mod logging;
mod outside;
mod time;

mod bench;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // clap prints help and usage errors itself, and ends with 0 or 2.
    match commands::run(commands::CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                output::note(&format!("error: {text}"));
            }
            ExitCode::from(failure.exit_code())
        }
    }
}
