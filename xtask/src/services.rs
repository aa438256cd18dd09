//! `cargo xtask services up|down|env|kill|start`: the servers of cluster mode on this machine's loopback, for tests and for trying.
//!
//! Each service is one row of [`SERVICES`]: what to install, how to make its data folder, which processes it is, when it
//! is ready and what it tells its users. Everything else is the same for all of them and lies in `process.rs`. Invariants:
//! `up` may be said any number of times, by many at once, and changes nothing where all is well; data, logs, ports and
//! process ids lie under the target folder, so that `cargo clean` leaves nothing behind; what is stopped is stopped by
//! its process id. Deliberately absent: containers, and any use of a server that the machine itself runs.
//!
//! Read next: `place.rs` (where a service lives), `process.rs` (how it is started and ended), then a service.

mod certificates;
#[cfg(test)]
mod compose;
mod install;
mod place;
mod postgres;
mod postgres_pair;
mod postgres_tls;
mod process;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod redis_tls;
mod rocketmq;

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::Command as Program;

use clap::{Args, Subcommand};
use place::Place;

use crate::{Failure, say};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start what is not running, and wait until it is ready
    Up(Which),
    /// Stop what is running
    Down(Which),
    /// Print the addresses of what is running, as lines for a shell
    Env(Which),
    /// Kill one process of a service, as a power cut would
    Kill(One),
    /// Start one process of a service again that was killed, where it was, and wait until all of it is ready
    Start(One),
}

#[derive(Args)]
struct One {
    #[arg(value_name = "SERVICE", value_parser = SERVICES.map(|service| service.name))]
    service: String,
    #[arg(value_name = "PROCESS")]
    process: String,
}

#[derive(Args)]
struct Which {
    /// Only these services; otherwise all of them
    #[arg(value_name = "SERVICE", value_parser = SERVICES.map(|service| service.name))]
    names: Vec<String>,
}

/// One server of cluster mode: one process or several that belong together.
struct Service {
    /// What people call it on the command line; also the name of its folder.
    name: &'static str,
    /// The Debian packages that bring its programs.
    packages: &'static [&'static str],
    /// Whether its programs are on this machine.
    is_installed: fn() -> bool,
    /// The user it runs as where root starts it, because it refuses to run as root.
    user: Option<&'static str>,
    /// Its processes, in the order in which they are started.
    processes: &'static [&'static str],
    /// How many ports it needs.
    ports: usize,
    /// Makes what must be there before the first start. Runs before every start.
    prepare: fn(&Place) -> Result<(), Failure>,
    /// The command of one of its processes, which stays in the foreground.
    command: fn(&Place, &str) -> Result<Program, Failure>,
    /// Whether all of it answers.
    is_ready: fn(&Place) -> Result<bool, Failure>,
    /// Makes what its users expect to find. Runs once after every start, when it is ready.
    settle: fn(&Place) -> Result<(), Failure>,
    /// What its users need to know.
    exports: fn(&Place) -> Result<Exports, Failure>,
}

/// Names and values of environment variables.
type Exports = Vec<(&'static str, String)>;

/// Every service, in the order in which they are started.
const SERVICES: [Service; 8] = [
    postgres::SERVICE,
    postgres_pair::SERVICE,
    postgres_tls::SERVICE,
    redis::SERVICE,
    redis_sentinel::SERVICE,
    redis_cluster::SERVICE,
    redis_tls::SERVICE,
    rocketmq::SERVICE,
];

/// Carries out one command. Only `env` writes to stdout.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let home = place::home()?;
    fs::create_dir_all(&home)?;
    // Test processes say `up` at the same time: the second waits until the first has started everything.
    let turn = File::create(home.join("lock"))?;
    turn.lock()?;
    match &arguments.verb {
        Verb::Up(which) => chosen(which).try_for_each(|service| up(service, &Place::of(&home, service)?)),
        Verb::Down(which) => chosen(which).try_for_each(|service| down(service, &Place::of(&home, service)?)),
        Verb::Env(which) => chosen(which).try_for_each(|service| env(service, &Place::of(&home, service)?)),
        Verb::Kill(one) => {
            let (service, process) = one.find()?;
            kill(process, &Place::of(&home, service)?)
        }
        Verb::Start(one) => {
            let (service, process) = one.find()?;
            start(service, process, &Place::of(&home, service)?)
        }
    }
}

/// Stops every service that runs.
pub(crate) fn stop_all() -> Result<(), Failure> {
    run(&Arguments { verb: Verb::Down(Which { names: Vec::new() }) })
}

impl One {
    fn find(&self) -> Result<(&'static Service, &'static str), Failure> {
        const ALL: &[Service] = &SERVICES;
        let service = ALL.iter().find(|service| service.name == self.service);
        let service = service.ok_or_else(|| format!("there is no service {}", self.service))?;
        let process = service.processes.iter().find(|name| **name == self.process);
        let known = service.processes.join(", ");
        let process = process.ok_or_else(|| format!("{} is {known}, not {}", service.name, self.process))?;
        Ok((service, process))
    }
}

fn kill(process: &str, place: &Place) -> Result<(), Failure> {
    if !process::kill(place, process)? {
        return Err(format!("{process} does not run").into());
    }
    say(&format!("services: {process} was killed"));
    Ok(())
}

fn start(service: &Service, process: &str, place: &Place) -> Result<(), Failure> {
    let place = &place.owned_by(service.user)?;
    process::start(place, process, (service.command)(place, process)?)?;
    process::wait_until_ready(place, service)?;
    say(&format!("services: {process} was started again"));
    Ok(())
}

fn chosen(which: &Which) -> impl Iterator<Item = &'static Service> {
    const ALL: &[Service] = &SERVICES;
    ALL.iter().filter(|service| which.names.is_empty() || which.names.iter().any(|name| name == service.name))
}

fn is_up(service: &Service, place: &Place) -> Result<bool, Failure> {
    for name in service.processes {
        if !process::is_alive(place, name)? {
            return Ok(false);
        }
    }
    (service.is_ready)(place)
}

fn up(service: &Service, place: &Place) -> Result<(), Failure> {
    if is_up(service, place)? {
        say(&format!("services: {} is up", service.name));
        return Ok(());
    }
    down(service, place)?;
    if !(service.is_installed)() {
        install::packages(service.packages)?;
        if !(service.is_installed)() {
            return Err(format!("{} is not there, although {:?} are", service.name, service.packages).into());
        }
    }
    // The user may have come with the packages.
    let place = &place.owned_by(service.user)?;
    place.choose_ports(service.ports)?;
    (service.prepare)(place)?;
    for name in service.processes {
        process::start(place, name, (service.command)(place, name)?)?;
    }
    process::wait_until_ready(place, service)?;
    (service.settle)(place)?;
    say(&format!("services: {} was started, in {}", service.name, place.folder().display()));
    Ok(())
}

fn down(service: &Service, place: &Place) -> Result<(), Failure> {
    for name in service.processes.iter().rev() {
        if process::stop(place, name)? {
            say(&format!("services: {name} was stopped"));
        }
    }
    Ok(())
}

fn env(service: &Service, place: &Place) -> Result<(), Failure> {
    if !is_up(service, place)? {
        say(&format!("services: {} is not up; run `cargo xtask services up`", service.name));
        return Ok(());
    }
    let mut out = io::stdout().lock();
    for (name, value) in (service.exports)(place)? {
        writeln!(out, "export {name}='{value}'")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! The table keeps what the frame relies on.

    use super::*;

    #[test]
    fn names_are_unique_and_every_service_is_something() {
        for (index, service) in SERVICES.iter().enumerate() {
            assert!(SERVICES.iter().skip(index + 1).all(|other| other.name != service.name));
            assert!(!service.processes.is_empty() && !service.packages.is_empty(), "{}", service.name);
        }
    }
}
