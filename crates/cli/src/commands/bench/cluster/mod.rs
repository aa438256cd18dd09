//! `bench redis`, `bench postgres`, `bench cluster`: over the servers of cluster mode (issue 5).
//!
//! Invariants: measured only where it is named; a server whose address is missing is an error that says which. Each scenario
//! has a schema, a key prefix and topics of its own, and removes what it made, also where it fails. Read next: `places`.

mod order;
mod places;
mod queue;
mod reserve;
mod shop;
mod whole;

use super::Effort;
use crate::bench::report::{Machine, Report};
use crate::failure::Failure;
use places::Places;

/// The parts that can be chosen.
pub(super) fn parts() -> Vec<String> {
    [reserve::PARTS.as_slice(), &order::PARTS, &queue::PARTS, &whole::PARTS]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Measures what was named.
///
/// # Errors
/// When a server's address is missing, or a run is not clean.
pub(super) async fn run(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let places = Places::of_environment();
    let mut reports = reserve::run(effort, machine, &places).await?;
    reports.extend(order::run(effort, machine, &places).await?);
    reports.extend(queue::run(effort, machine, &places).await?);
    reports.extend(whole::run(effort, machine, &places).await?);
    Ok(reports)
}
