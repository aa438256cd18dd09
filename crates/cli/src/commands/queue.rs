//! `onceward queue`: looks at the queues of a running server, pauses and resumes them (LQ-06).
//!
//! Invariant: it goes through the API of a running server, so that two programs never have one store. Read next:
//! [`crate::api`].

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::api::{Api, Options, block_on, segment};
use crate::failure::Failure;
use crate::output::{self, Format};

/// The arguments of `queue`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the queues
    List(Options),
    /// Stop giving out a queue; what is being worked on may be finished
    Pause(OfQueue),
    /// Give it out again
    Resume(OfQueue),
}

#[derive(Debug, clap::Args)]
struct OfQueue {
    /// The queue's name, as the list has it
    name: String,
    #[command(flatten)]
    options: Options,
}

/// Does what was asked for.
///
/// # Errors
/// What the server refuses, or that it gave no answer.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List(options) => list(options),
        Action::Pause(of) => set(of, "pause"),
        Action::Resume(of) => set(of, "resume"),
    }
}

fn list(options: &Options) -> Result<(), Failure> {
    let api = Api::of(&options.server)?;
    let queues = block_on(api.get("/v1/ops/queues"))?;
    match Format::of(options.json) {
        Format::Json => output::json(&queues),
        Format::Text => output::data(|out| write_table(out, &queues["data"])),
    }
}

fn set(of: &OfQueue, verb: &str) -> Result<(), Failure> {
    let api = Api::of(&of.options.server)?;
    block_on(api.post(&format!("/v1/ops/queues/{}/{verb}", segment(&of.name))))?;
    let paused = verb == "pause";
    match Format::of(of.options.json) {
        Format::Json => output::json(&json!({ "name": of.name, "paused": paused })),
        Format::Text => {
            output::data(|out| writeln!(out, "{} {}", of.name, if paused { "is paused" } else { "runs" }))
        }
    }
}

/// At most 80 columns wide, as long as no name is longer than those the engine has.
fn write_table(out: &mut dyn Write, queues: &Value) -> io::Result<()> {
    writeln!(out, "{:<38} {:>7} {:>6} {:>9} {:>8}  state", "queue", "size", "leased", "exhausted", "late s")?;
    for queue in queues.as_array().into_iter().flatten() {
        let number = |name: &str| queue[name].as_u64().unwrap_or(0);
        let state = if queue["paused"] == true { "paused" } else { "runs" };
        writeln!(
            out,
            "{:<38} {:>7} {:>6} {:>9} {:>8}  {state}",
            queue["name"].as_str().unwrap_or_default(),
            number("size"),
            number("leased"),
            number("exhausted"),
            number("overdue_ms") / 1_000,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_eighty_columns() {
        let name = "bus/onceward-order-create/order-consumer";
        let queue = json!({ "name": name, "size": 1_000_000, "leased": 64, "exhausted": 12, "overdue_ms": 86_400_000, "paused": true });
        let mut text = Vec::new();
        write_table(&mut text, &json!([queue])).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.len() <= 82) && text.contains("paused"), "{text}");
    }
}
