//! The real engine in a simulator, many seeds over.
//!
//! Invariants: one seed is one run, so whatever a seed shows it shows again; a run that panics is a violation like any
//! other and ends nothing; exit code 0 only without violations. Seeds are shared out over the cores, and the report is
//! the same whoever ran which. Read next: [`onceward_testkit::sim`].

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZero;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use onceward_testkit::sim::{SimOptions, SimReport, run as simulate};
use serde::Serialize;

use super::Violated;
use crate::failure::Failure;
use crate::output::{self, Format};

/// Which seeds are run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    /// The first.
    pub(super) first: u64,
    /// How many.
    pub(super) count: u64,
}

/// Seeds with violations that are told in full; the rest is counted.
const TOLD_MAX: usize = 20;

/// What all seeds together came to.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// How many seeds were run.
    seeds: u64,
    /// The first of them.
    first_seed: u64,
    /// How many violations there were.
    violations: u64,
    /// The first seeds with violations, in full.
    violated: Vec<Violated>,
    /// Of the last seed, as 16 hexadecimal digits: equal for equal seeds and builds.
    trace_hash: String,
    steps: u64,
    simulated_ms: u64,
    wall_ms: u64,
    /// How often interesting cases came about.
    sometimes: BTreeMap<&'static str, u64>,
}

/// Runs the seeds and prints what they found, with the last lines of the trace of each that found something.
///
/// # Errors
/// Where there are violations.
pub(super) fn run(seeds: Seeds, trace: usize, json: bool) -> Result<(), Failure> {
    let started = Instant::now();
    let options = SimOptions { tail: trace, ..SimOptions::default() };
    let mut report = run_all(seeds.first, seeds.count, &options);
    report.wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match Format::of(json) {
        Format::Json => output::json(&report)?,
        Format::Text => output::data(|out| write_text(out, &report))?,
    }
    if report.violations == 0 { Ok(()) } else { Err(Failure::Reported) }
}

fn run_all(first_seed: u64, seeds: u64, options: &SimOptions) -> Report {
    let progress = progress_bar(seeds);
    let next = AtomicU64::new(0);
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let parts = std::thread::scope(|scope| {
        let work = || {
            let mut part = Report { first_seed, seeds, ..Report::default() };
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= seeds {
                    return part;
                }
                part.add(run_one(first_seed.wrapping_add(number), options), number + 1 == seeds);
                progress.inc(1);
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    progress.finish_and_clear();
    parts.into_iter().fold(Report { first_seed, seeds, ..Report::default() }, Report::merged)
}

/// One seed; a panic is a finding.
fn run_one(seed: u64, options: &SimOptions) -> SimReport {
    catch_unwind(|| simulate(seed, options)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        SimReport {
            seed,
            violations: vec![format!("a panic: {}", text.unwrap_or_default())],
            trace_hash: 0,
            tail: Vec::new(),
            steps: 0,
            simulated_ms: 0,
            sometimes: BTreeMap::new(),
        }
    })
}

impl Report {
    fn add(&mut self, one: SimReport, is_last: bool) {
        self.violations += one.violations.len() as u64;
        self.steps += one.steps;
        self.simulated_ms += u64::try_from(one.simulated_ms).unwrap_or(0);
        for (case, count) in one.sometimes {
            *self.sometimes.entry(case).or_default() += count;
        }
        if is_last {
            self.trace_hash = format!("{:016x}", one.trace_hash);
        }
        if !one.violations.is_empty() {
            self.violated.push(Violated { seed: one.seed, violations: one.violations, trace: one.tail });
        }
    }

    /// Both together. Violated seeds are told in their own order, whoever found them.
    fn merged(mut self, other: Self) -> Self {
        self.violations += other.violations;
        self.steps += other.steps;
        self.simulated_ms += other.simulated_ms;
        for (case, count) in other.sometimes {
            *self.sometimes.entry(case).or_default() += count;
        }
        if !other.trace_hash.is_empty() {
            self.trace_hash = other.trace_hash;
        }
        self.violated.extend(other.violated);
        self.violated.sort_by_key(|one| one.seed);
        self.violated.truncate(TOLD_MAX);
        self
    }
}

fn write_text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for one in &report.violated {
        for line in &one.trace {
            writeln!(out, "  {line}")?;
        }
        for violation in &one.violations {
            writeln!(out, "seed {}: {violation}", one.seed)?;
        }
    }
    writeln!(out, "{:<20}{}", "seeds", report.seeds)?;
    writeln!(out, "{:<20}{}", "steps", report.steps)?;
    writeln!(out, "{:<20}{:.1} h", "simulated", report.simulated_ms as f64 / 3_600_000.0)?;
    writeln!(out, "{:<20}{:.1} s", "took", report.wall_ms as f64 / 1000.0)?;
    writeln!(out, "{:<20}{}", "trace hash", report.trace_hash)?;
    for (case, count) in &report.sometimes {
        writeln!(out, "  {case:<38}{count:>12}")?;
    }
    writeln!(out, "{} violations", report.violations)
}

fn progress_bar(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(seeds).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_the_same_whoever_ran_which_seed() {
        let options = SimOptions::default();
        let (one, other) = (run_all(40, 12, &options), run_all(40, 12, &options));
        let as_text = |report: &Report| serde_json::to_string(report).unwrap();
        assert_eq!(as_text(&one), as_text(&other));
        assert!(one.steps > 0 && one.trace_hash.len() == 16);
        assert_eq!(one.trace_hash, run_all(51, 1, &options).trace_hash);
    }
}
