//! `onceward bench`: measures the engine beside the plain way of doing the same.
//!
//! Invariants: one JSON object a scenario on stdout; what is going on goes to stderr; a figure whose run was not clean
//! is not printed at all. The measuring tools and the baselines are in [`crate::bench`]; here they are paired with the
//! engine. Read next: `docs/benchmarks.md`, then `order` and `reserve`.

mod latency;
mod memory_bus;
mod order;
mod reserve;
mod shop;

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::ValueEnum;

use crate::bench::report::{Machine, Report, write_json, write_table};
use crate::failure::Failure;
use crate::output::{self, Format};

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Buyers at the gate: winners and refusals, in process and over HTTP
    Reserve,
    /// Messages that become durable orders
    Order,
}

/// The arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to measure; all where nothing is said
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    /// Interleaved rounds of each comparison
    #[arg(long, value_name = "COUNT", default_value = "5")]
    rounds: NonZeroU32,
    /// Orders, or requests, of one round
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    count: u64,
    /// Orders that are in the store before `order` is measured at its largest
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    preload: u64,
    /// Where the temporary stores lie; the disk is part of what is measured
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print one JSON object a scenario
    #[arg(long)]
    json: bool,
}

/// How much to measure.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    /// Interleaved rounds.
    pub(crate) rounds: NonZeroU32,
    /// Orders or requests of a round.
    pub(crate) count: u64,
    /// Orders before the largest measurement.
    pub(crate) preload: u64,
    /// Where temporary folders are made.
    pub(crate) folder: PathBuf,
}

/// Measures and prints.
///
/// # Errors
/// When a scenario cannot be run cleanly.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let chosen = match arguments.scenarios.as_slice() {
        [] => Scenario::value_variants(),
        some => some,
    };
    let effort = Effort {
        rounds: arguments.rounds,
        count: arguments.count,
        preload: arguments.preload,
        folder: arguments.folder.clone().unwrap_or_else(std::env::temp_dir),
    };
    if cfg!(debug_assertions) {
        output::note("this is a debug build: its figures say little");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let machine = Machine::this();
    let mut reports: Vec<Report> = Vec::new();
    for scenario in chosen {
        reports.extend(runtime.block_on(async {
            match scenario {
                Scenario::Reserve => reserve::run(&effort, &machine).await,
                Scenario::Order => order::run(&effort, &machine).await,
            }
        })?);
    }
    match Format::of(arguments.json) {
        Format::Json => output::data(|out| write_json(out, &reports)),
        Format::Text => output::data(|out| write_table(out, &reports)),
    }
}
