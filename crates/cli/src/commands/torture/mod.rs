//! `onceward torture`: looks for a way to make the engine break a promise.
//!
//! Three scenarios: `simulated`, the real engine in a simulator, many seeds over; `pay-cancel`, real processes, files and
//! sockets; and `roles`, real processes over the servers that the settings name. Invariants: exit code 0 only without
//! violations; all print the same object for programs. Read next: [`simulated`], then [`pay_cancel`], then [`roles`].

mod pay_cancel;
mod roles;
mod simulated;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use self::pay_cancel::Wanted;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::outside::check::Check;

/// The arguments of `torture`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What is played
    #[arg(long, value_enum, default_value_t = Scenario::Simulated)]
    scenario: Scenario,
    /// Run this one seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run this many seeds, from 0 [default: 100 simulated, 1 of the others]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// pay-cancel: orders paid within 150 ms of their due-time
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    orders: u32,
    /// pay-cancel: kill the server every 200 to 700 ms
    #[arg(long)]
    crash: bool,
    /// roles: kill processes for so long
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// roles: a settings file (TOML), as for serve; the environment comes before it
    #[arg(long, value_name = "FILE", env = "ONCEWARD_CONFIG")]
    config: Option<PathBuf>,
    /// simulated: show this many of the last lines of the trace of each seed with
    /// a violation
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    trace: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// The engine in a simulator: crashes and lost answers at any step
    Simulated,
    /// Real servers and a bank: payments at the moment of the cancel
    PayCancel,
    /// A process for each role, twice, killed at random over your own servers; it
    /// leaves a sale behind, so give it a database of its own
    Roles,
}

/// Seeds of a simulated run where nothing is said.
const SIMULATED_SEEDS: u64 = 100;

/// Plays the scenario and prints what was found.
///
/// # Errors
/// Where there are violations, or it could not be played.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (first_seed, seeds) = match (arguments.seed, arguments.scenario) {
        (Some(seed), _) => (seed, 1),
        (None, Scenario::Simulated) => (0, arguments.seeds.unwrap_or(SIMULATED_SEEDS)),
        (None, Scenario::PayCancel | Scenario::Roles) => (0, arguments.seeds.unwrap_or(1)),
    };
    let seeds = simulated::Seeds { first: first_seed, count: seeds };
    match arguments.scenario {
        Scenario::Simulated => simulated::run(seeds, arguments.trace, arguments.json),
        Scenario::PayCancel | Scenario::Roles => on_real_servers(seeds, arguments),
    }
}

/// What all runs over real servers came to.
#[derive(Debug, Default, Serialize)]
struct Report {
    scenario: &'static str,
    seeds: u64,
    first_seed: u64,
    violations: u64,
    violated: Vec<Violated>,
    /// Of the last seed's plan.
    trace_hash: String,
    /// Requests that were sent.
    steps: u64,
    /// Nothing is simulated.
    simulated_ms: u64,
    wall_ms: u64,
    orders: u64,
    kills: u64,
    sometimes: BTreeMap<&'static str, u64>,
    /// Of the last seed.
    checks: Vec<Check>,
}

/// A seed that found something.
#[derive(Debug, Serialize)]
struct Violated {
    seed: u64,
    violations: Vec<String>,
    /// The last lines of its trace, where one was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trace: Vec<String>,
}

fn on_real_servers(seeds: simulated::Seeds, arguments: &Arguments) -> Result<(), Failure> {
    let is_roles = arguments.scenario == Scenario::Roles;
    let orders =
        usize::try_from(arguments.orders).map_err(|cause| Failure::other("counting orders", cause))?;
    let scenario = if is_roles { "roles" } else { "pay-cancel" };
    let mut all = Report { scenario, seeds: seeds.count, first_seed: seeds.first, ..Report::default() };
    for number in 0..seeds.count {
        let seed = seeds.first.wrapping_add(number);
        let one = if is_roles {
            let (length, config) = (Duration::from_secs(arguments.seconds), arguments.config.as_deref());
            roles::run(roles::Wanted { seed, length, config })?
        } else {
            pay_cancel::run(Wanted { seed, orders, crash: arguments.crash })?
        };
        if !arguments.json {
            output::data(|out| one.write_table(out))?;
        }
        all.add(one);
    }
    match Format::of(arguments.json) {
        Format::Json => output::json(&all)?,
        Format::Text => output::data(|out| write_verdict(out, &all))?,
    }
    if all.violations == 0 { Ok(()) } else { Err(Failure::Reported) }
}

fn write_verdict(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    writeln!(out, "{} violations", report.violations)
}

impl Report {
    fn add(&mut self, one: pay_cancel::Report) {
        let broken = one.checks.iter().filter(|check| !check.holds);
        let violations: Vec<String> =
            broken.map(|check| format!("{}: {}", check.name, check.detail)).collect();
        self.violations += violations.len() as u64;
        if !violations.is_empty() {
            self.violated.push(Violated { seed: one.seed, violations, trace: Vec::new() });
        }
        self.trace_hash = one.trace_hash;
        self.steps += one.requests;
        self.wall_ms += one.wall_ms;
        self.orders += one.orders as u64;
        self.kills += one.kills;
        for (case, count) in one.sometimes {
            *self.sometimes.entry(case).or_default() += count;
        }
        self.checks = one.checks;
    }
}
