//! What a run came to: one table for people, one object for programs, from the same figures.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use super::books::Findings;
use super::{Torture, Wanted, plan};
use crate::outside::check::Check;

/// What a run was, beside what it found.
pub(super) struct Run {
    pub(super) wanted: Wanted,
    pub(super) kills: u64,
    pub(super) took: Duration,
}

/// The figures of one run.
#[derive(Clone, Debug, Serialize)]
pub(in crate::commands::torture) struct Report {
    pub(in crate::commands::torture) seed: u64,
    /// Of the plan: equal for equal seeds, orders and builds. What real servers make of it differs each time.
    pub(in crate::commands::torture) trace_hash: String,
    pub(in crate::commands::torture) requests: u64,
    /// Orders that were compared with the bank.
    pub(in crate::commands::torture) orders: usize,
    /// How often the server was killed.
    pub(in crate::commands::torture) kills: u64,
    pub(in crate::commands::torture) wall_ms: u64,
    pub(in crate::commands::torture) sometimes: BTreeMap<&'static str, u64>,
    pub(in crate::commands::torture) checks: Vec<Check>,
}

impl Report {
    /// Whether every check holds.
    pub(in crate::commands::torture) fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    /// Writes the table.
    ///
    /// # Errors
    /// When the writer fails.
    pub(in crate::commands::torture) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{:<20}{}", "seed", self.seed)?;
        writeln!(out, "{:<20}{}", "orders", self.orders)?;
        writeln!(out, "{:<20}{}", "requests", self.requests)?;
        writeln!(out, "{:<20}{}", "kills (SIGKILL)", self.kills)?;
        writeln!(out, "{:<20}{:.1} s", "took", self.wall_ms as f64 / 1000.0)?;
        for (case, count) in &self.sometimes {
            writeln!(out, "  {case:<46}{count:>10}")?;
        }
        for check in &self.checks {
            let verdict = if check.holds { "holds" } else { "BROKEN" };
            writeln!(out, "{verdict:<7}{:<32}{}", check.name, check.detail)?;
        }
        Ok(())
    }
}

/// Puts the figures of a run together.
pub(super) fn of(torture: &Torture<'_>, found: Findings, run: Run) -> Report {
    let Run { wanted, kills, took } = run;
    let mut sometimes = torture.lock().sometimes.clone();
    for (case, count) in found.sometimes {
        *sometimes.entry(case).or_default() += count;
    }
    let (lost, recovered) = (&torture.losses.lost, &torture.losses.recovered);
    let (lost, recovered) = (lost.load(Ordering::Relaxed), recovered.load(Ordering::Relaxed));
    sometimes.insert("answer_lost", lost);
    sometimes.insert("replaced_because_too_late", torture.missed.load(Ordering::Relaxed) as u64);
    let wrong =
        if lost == recovered { Vec::new() } else { vec![format!("{lost} lost, {recovered} recovered")] };
    let mut checks = found.checks;
    checks.push(Check::of("lost_answers_are_recovered", &format!("{lost} lost answers"), &wrong));
    if wanted.crash {
        let wrong = if kills == 0 { vec!["no kill".to_owned()] } else { Vec::new() };
        checks.push(Check::of("the_server_was_killed", &format!("{kills} times"), &wrong));
    }
    Report {
        seed: wanted.seed,
        trace_hash: format!("{:016x}", plan::fingerprint(wanted.seed, wanted.orders)),
        requests: torture.requests.load(Ordering::Relaxed),
        orders: found.orders,
        kills,
        wall_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        sometimes,
        checks,
    }
}
