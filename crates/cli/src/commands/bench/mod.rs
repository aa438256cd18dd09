//! `onceward bench`: measures the engine beside the plain way of doing the same.
//!
//! Invariants: one JSON object a scenario on stdout; what is going on goes to stderr; a figure whose run was not clean
//! is not printed at all. The measuring tools and the baselines are in [`crate::bench`]; here they are paired with the
//! engine. Read next: `docs/benchmarks.md`, then `order` and `reserve`.

mod cluster;
mod due;
mod latency;
mod ledger;
mod memory_bus;
mod order;
mod queue;
mod reserve;
mod serving;
mod shop;

use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::bench::report::{Machine, Report, write_json, write_table};
use crate::failure::Failure;
use crate::output::{self, Format};

/// The arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to measure: order, reserve, queue, ledger, due, or a part such as reserve.http or order.batch; all where nothing is
    /// said. Over servers: redis, postgres, cluster, at the addresses in ONCEWARD_STORE_URL, ONCEWARD_REDIS_URL and
    /// ONCEWARD_BROKER_URL
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Interleaved rounds of each comparison
    #[arg(long, value_name = "COUNT", default_value = "5")]
    rounds: NonZeroU32,
    /// Orders, requests, due members or entries of one round
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    count: u64,
    /// Orders that are in the store before `order` is measured at its largest
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    preload: u64,
    /// Members in the queue when `queue` is measured at its largest
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    members: u64,
    /// Orders that wait for their due-time while `due.idle` watches a server
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    waiting: u64,
    /// Where the temporary stores lie; the disk is part of what is measured
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The folder that BullMQ was installed into, for `redis.queue.compared`
    #[arg(long, value_name = "DIR")]
    bullmq: Option<PathBuf>,
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
    /// Members before the largest measurement of the queue.
    pub(crate) members: u64,
    /// Orders that wait while an idle server is watched.
    pub(crate) waiting: u64,
    /// Where temporary folders are made.
    pub(crate) folder: PathBuf,
    /// The folder that BullMQ was installed into.
    pub(crate) bullmq: Option<PathBuf>,
    /// Parts to measure; where there are none, all that need no servers.
    pub(crate) chosen: Vec<String>,
}

impl Effort {
    /// Whether a part was asked for, by its own name or by that of a whole it belongs to.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.chosen.is_empty() || self.names(part)
    }

    /// The same for a part that needs servers, which is measured only where it is named.
    pub(crate) fn names(&self, part: &str) -> bool {
        self.chosen.iter().any(|name| belongs(part, name))
    }
}

fn belongs(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Measures and prints.
///
/// # Errors
/// When a scenario cannot be run cleanly.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let embedded = [order::parts(), reserve::parts(), queue::parts(), ledger::parts(), due::parts()].concat();
    let parts = [embedded, cluster::parts()].concat();
    for name in &arguments.scenarios {
        if !parts.iter().any(|part| belongs(part, name)) {
            return Err(Failure::Usage(format!("`{name}` is no scenario; there are {}", parts.join(", "))));
        }
    }
    let effort = Effort {
        rounds: arguments.rounds,
        count: arguments.count,
        preload: arguments.preload,
        members: arguments.members,
        waiting: arguments.waiting,
        folder: arguments.folder.clone().unwrap_or_else(std::env::temp_dir),
        bullmq: arguments.bullmq.clone(),
        chosen: arguments.scenarios.clone(),
    };
    if cfg!(debug_assertions) {
        output::note("this is a debug build: its figures say little");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let machine = Machine::this();
    let reports: Vec<Report> = runtime.block_on(async {
        let mut reports = order::run(&effort, &machine).await?;
        reports.extend(reserve::run(&effort, &machine).await?);
        reports.extend(queue::run(&effort, &machine).await?);
        reports.extend(ledger::run(&effort, &machine).await?);
        reports.extend(due::run(&effort, &machine).await?);
        reports.extend(cluster::run(&effort, &machine).await?);
        Ok::<_, Failure>(reports)
    })?;
    match Format::of(arguments.json) {
        Format::Json => output::data(|out| write_json(out, &reports)),
        Format::Text => output::data(|out| write_table(out, &reports)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_chosen_by_its_name_or_by_its_whole() {
        let parts = [order::parts(), reserve::parts(), due::parts()].concat();
        let count = |name: &str| parts.iter().filter(|part| belongs(part, name)).count();
        assert_eq!((count("order.large"), count("order"), count("reserve.http.winners")), (1, 4, 4));
        assert_eq!((count("ord"), count("reserve.http.winners.all.64.x"), count("")), (0, 0, 0));
    }

    #[test]
    fn what_needs_servers_is_measured_only_where_it_is_named() {
        let effort = |chosen: &[&str]| Effort {
            rounds: NonZeroU32::MIN,
            count: 1,
            preload: 1,
            members: 1,
            waiting: 1,
            folder: PathBuf::new(),
            bullmq: None,
            chosen: chosen.iter().map(|&name| name.to_owned()).collect(),
        };
        let named =
            |chosen: &[&str]| cluster::parts().iter().filter(|part| effort(chosen).names(part)).count();
        assert_eq!((named(&[]), named(&["queue"]), named(&["redis"]), named(&["redis.queue"])), (0, 0, 5, 3));
        assert!(effort(&[]).wants("order.batch") && !effort(&["redis"]).wants("order.batch"));
    }
}
