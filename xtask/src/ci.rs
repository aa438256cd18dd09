//! `cargo xtask ci`: everything that guards `main`, in order, the cheapest first.
//!
//! The steps are one table. Each is a command that a person can type as it stands, and has a time limit; when
//! it overruns, it is ended together with all its children. The first failure ends the run, because what
//! follows would only be slower to say the same.
//!
//! One build profile. Clippy, the tools, the tests, the simulator and the crash demonstration share the development profile (optimised a
//! little, see `Cargo.toml`), so dependencies are built once for all of them, and so is the program: 2,000 seeds take a minute and a half
//! in it, and another build for release would take four.
//!
//! Two steps build much once more, and come last. On a machine that is several times slower than usual there is no time left for them:
//! then they are left out, and the run says so and how to make up for it, because it would otherwise end with nothing shown.
//!
//! Read next: `ci/group.rs`, how a step is ended with everything it started; `ci/proof.rs`, what it has to show.

mod group;
mod proof;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use group::{Ending, Job};
use proof::Proof;

use crate::{Failure, say, services, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only the step of this name (may be repeated)
    #[arg(long, value_name = "STEP", value_parser = STEPS.map(|step| step.name))]
    only: Vec<String>,
    /// Multiply every time limit, for a machine that is busy with other work
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    patience: u32,
}

struct Step {
    name: &'static str,
    limit: Duration,
    /// The program and its arguments.
    command: &'static [&'static str],
    proof: Proof,
    /// Whether it is left out where its limit does not fit into what is left of the whole.
    may_be_left_out: bool,
}

/// All steps together, which take some 25 minutes from cold on two cores where those are quick. With the time that `.ci/run` gives to
/// building `cargo-deny`, and that this program takes to be built, they stay below 40. A step's own limit is for a step that hangs, and
/// has room for a machine that is slow today.
const WHOLE: Duration = Duration::from_mins(34);

/// What `test` has built, because its end-to-end tests start it: to build it apart, with the features that it alone needs, would take
/// most of the time that it then runs.
const PROGRAM: &str = "target/debug/onceward";

/// The step that needs servers.
const SERVERS: &str = "servers";

const STEPS: [Step; 10] = [
    Step {
        name: "fmt",
        limit: Duration::from_secs(30),
        command: &["cargo", "fmt", "--all", "--check"],
        proof: Proof::ExitCode,
        may_be_left_out: false,
    },
    Step {
        // With the tests that need real servers, which would otherwise stop compiling unseen.
        name: "clippy",
        limit: Duration::from_mins(9),
        command: &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--features",
            "onceward-cli/real-services,onceward-http/real-services,onceward-postgres/real-postgres,onceward-redis/real-redis,onceward-rocketmq/real-broker",
            "--",
            "--deny",
            "warnings",
        ],
        proof: Proof::ExitCode,
        may_be_left_out: false,
    },
    Step {
        name: "tidy",
        limit: Duration::from_secs(30),
        command: &["cargo", "xtask", "tidy"],
        proof: Proof::ExitCode,
        may_be_left_out: false,
    },
    Step {
        // Advisories are not among the checks: they need a database from the network at every run.
        name: "deny",
        limit: Duration::from_secs(30),
        command: &["cargo", "deny", "check", "bans", "licenses", "sources"],
        proof: Proof::ExitCode,
        may_be_left_out: false,
    },
    Step {
        name: "test",
        limit: Duration::from_mins(29),
        command: &["cargo", "test", "--workspace"],
        proof: Proof::ExitCode,
        may_be_left_out: false,
    },
    Step {
        name: "codegen",
        limit: Duration::from_mins(3),
        command: &["cargo", "xtask", "codegen", "--check", "--program", PROGRAM],
        proof: Proof::ExitCode,
        may_be_left_out: false,
    },
    Step {
        // In the development profile, which checks assertions and sums as well.
        name: "torture",
        limit: Duration::from_mins(8),
        command: &[PROGRAM, "torture", "--seeds", "2000", "--json"],
        proof: Proof::Simulation { seeds: 2000 },
        may_be_left_out: false,
    },
    Step {
        name: "crash-demo",
        limit: Duration::from_secs(180),
        command: &[PROGRAM, "demo", "--crash", "--orders", "2000"],
        proof: Proof::Report,
        may_be_left_out: false,
    },
    Step {
        // Apart from the other tests, because only this build can take guards away.
        name: "guards",
        limit: Duration::from_mins(8),
        command: &[
            "cargo",
            "test",
            "--package",
            "onceward-testkit",
            "--features",
            "mutants",
            "--test",
            "guards",
        ],
        proof: Proof::ExitCode,
        may_be_left_out: true,
    },
    Step {
        // What needs real servers; it starts them, and installs what is missing. The sales that kill servers take longer
        // than a run may, and are a person's to start.
        name: SERVERS,
        limit: Duration::from_mins(15),
        command: &[
            "cargo",
            "test",
            "--locked",
            "--package",
            "onceward-postgres",
            "--package",
            "onceward-redis",
            "--package",
            "onceward-rocketmq",
            "--package",
            "onceward-cli",
            "--features",
            "onceward-cli/real-services,onceward-postgres/real-postgres,onceward-redis/real-redis,onceward-rocketmq/real-broker",
            "--test",
            "behaviour",
            "--test",
            "conformance",
            "--test",
            "gate",
            "--test",
            "deadline",
            "--test",
            "cluster",
        ],
        proof: Proof::ExitCode,
        may_be_left_out: true,
    },
];

/// Runs the steps and prints, to stderr, how long each took.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let root = workspace::root();
    let chosen =
        |step: &&Step| arguments.only.is_empty() || arguments.only.iter().any(|name| name == step.name);
    let started = Instant::now();
    let mut timings = Vec::new();
    let mut failure = None;
    for step in STEPS.iter().filter(chosen) {
        let left = (WHOLE * arguments.patience).saturating_sub(started.elapsed());
        let own = step.limit * arguments.patience;
        if step.may_be_left_out && own > left {
            let name = step.name;
            say(&format!(
                "ci: {name} is LEFT OUT, this machine is too slow for it: cargo xtask ci --only {name}"
            ));
            timings.push(format!("{:>8} s  {name:<10}  left out", "-"));
            continue;
        }
        let limit = own.min(left);
        say(&format!("ci: {} (at most {} s): {}", step.name, limit.as_secs(), step.command.join(" ")));
        let begun = Instant::now();
        let ending = run_step(step, &root, limit)?;
        timings.push(format!("{:>8.1} s  {:<10}  {ending}", begun.elapsed().as_secs_f64(), step.name));
        if step.name == SERVERS {
            services::stop_all()?;
        }
        if ending != Ending::Success {
            failure = Some(format!("step {} {ending}", step.name));
            break;
        }
    }
    for timing in &timings {
        say(&format!("ci: {timing}"));
    }
    say(&format!("ci: {:>8.1} s  in all", started.elapsed().as_secs_f64()));
    failure.map_or(Ok(()), |message| Err(message.into()))
}

/// Runs one step. What it must show goes through a file, and to the terminal when it has ended.
fn run_step(step: &Step, root: &Path, limit: Duration) -> Result<Ending, Failure> {
    let job = |output: Stdio| Job { command: step.command, folder: root, output, limit };
    if step.proof == Proof::ExitCode {
        return group::run(job(Stdio::inherit()));
    }
    let folder = root.join("target").join("ci");
    fs::create_dir_all(&folder)?;
    let path = folder.join(step.name).with_extension("out");
    let ending = group::run(job(File::create(&path)?.into()))?;
    let output = fs::read_to_string(&path)?;
    io::stdout().lock().write_all(output.as_bytes())?;
    if ending != Ending::Success {
        return Ok(ending);
    }
    Ok(step.proof.check(&output).map_or_else(Ending::Unproved, |()| Ending::Success))
}

#[cfg(test)]
mod tests {
    //! The table keeps the promises that its readers rely on.

    use super::*;

    #[test]
    fn the_limits_fit_the_time_the_whole_may_take() {
        let install_deny = Duration::from_secs(230);
        assert!(WHOLE + install_deny < Duration::from_mins(40));
        assert!(STEPS.iter().all(|step| step.limit < WHOLE));
        let last = STEPS.iter().skip_while(|step| !step.may_be_left_out);
        assert_eq!(
            last.map(|step| step.name).collect::<Vec<_>>(),
            ["guards", SERVERS],
            "nothing stands behind them"
        );
    }

    #[test]
    fn a_step_that_shows_nothing_does_not_pass() -> Result<(), Failure> {
        let root = std::env::temp_dir().join(format!("onceward-ci-{}", std::process::id()));
        fs::create_dir_all(&root)?;
        let limit = Duration::from_mins(1);
        let command: &[&str] = &["sh", "-c", "exit 0"];
        let silent = Step { name: "silent", limit, command, proof: Proof::Report, may_be_left_out: false };
        let speaking = Step { command: &["sh", "-c", "echo done"], ..silent };
        let failing = Step { command: &["sh", "-c", "echo done; exit 1"], ..silent };
        assert!(matches!(run_step(&silent, &root, limit)?, Ending::Unproved(_)));
        assert_eq!(run_step(&speaking, &root, limit)?, Ending::Success);
        assert!(matches!(run_step(&failing, &root, limit)?, Ending::Failed(_)));
        Ok(fs::remove_dir_all(root)?)
    }

    #[test]
    fn names_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS.iter().skip(index + 1).all(|other| other.name != step.name), "{}", step.name);
        }
    }

    #[test]
    fn the_simulator_runs_and_proves_at_least_2000_seeds() {
        let torture = STEPS.iter().find(|step| step.name == "torture");
        let seeds = torture.and_then(|step| {
            let at = step.command.iter().position(|word| *word == "--seeds")?;
            step.command.get(at + 1)?.parse::<u32>().ok()
        });
        assert!(seeds.is_some_and(|seeds| seeds >= 2000));
        assert!(torture.is_some_and(|step| step.proof == Proof::Simulation { seeds: 2000 }));
    }
}
