//! BullMQ as a baseline: the queue that most users of Redis have, run by Node.
//!
//! Purpose: jobs claimed and completed a second, by workers of its own on the same machine and server. Invariants: the clock
//! runs from the moment at which every worker is ready to the last completion, and is BullMQ's own process's; jobs do nothing.
//! Kept fair: jobs are ready and not delayed, completed ones are not kept, neither locks are renewed nor stalled jobs looked
//! for, and several numbers of threads and of jobs under way are tried. Deliberately absent: installing it.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const SCRIPT: &str = include_str!("bullmq/work.js");
/// Longest time of a run.
const TIME: Duration = Duration::from_secs(180);

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Threads, each with a worker and connections of its own.
    pub(crate) threads: u32,
    /// Jobs that a worker has under way.
    pub(crate) concurrency: u32,
}

impl Tuning {
    /// What is tried.
    pub(crate) const ALL: [Self; 6] = [
        Self { threads: 1, concurrency: 32 },
        Self { threads: 1, concurrency: 128 },
        Self { threads: 1, concurrency: 512 },
        Self { threads: 2, concurrency: 32 },
        Self { threads: 2, concurrency: 128 },
        Self { threads: 2, concurrency: 512 },
    ];
}

/// Puts in jobs and has them done; how long the latter took. BullMQ is looked for in `node_modules` of the folder, the keys begin
/// with the prefix.
///
/// # Errors
/// When Node cannot be started, does not end in time, or complains.
pub(crate) async fn run(
    folder: &Path,
    redis: &str,
    prefix: &str,
    tuning: Tuning,
    jobs: u64,
) -> io::Result<Duration> {
    let mut command = Command::new("node");
    command
        .args(["--eval", SCRIPT, "--", redis, prefix])
        .args([jobs.to_string(), tuning.threads.to_string(), tuning.concurrency.to_string()])
        // Its threads run the same text.
        .env("ONCEWARD_BENCH_TEXT", SCRIPT)
        .current_dir(folder)
        .kill_on_drop(true);
    let output = timeout(TIME, command.output()).await.map_err(|_| io::ErrorKind::TimedOut)??;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let seconds = said.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    let seconds =
        seconds.ok_or_else(|| io::Error::other(format!("it said {said:?} and not how long it took")))?;
    Ok(Duration::from_secs_f64(seconds))
}
