//! Starts a process that outlives this one, tells whether it lives, and ends it by its id.
//!
//! A process holds a lock for as long as it or a child of it lives: the lock is on a file that it inherits as its
//! standard input. So nobody is fooled by an id that the system gave to somebody else since, and the end of a process can
//! be waited for without asking again and again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Service;
use super::place::Place;
use crate::Failure;

/// How long a server may take to become ready: a JVM on a busy machine, or a database that recovers.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a server may take to end before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How often a server is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Starts a process of a service in a group of its own; what it says goes to its log.
pub(super) fn start(place: &Place, name: &str, mut command: Command) -> Result<(), Failure> {
    let life = life_of(place, name)?;
    life.try_lock().map_err(|_| format!("{name} is running already"))?;
    let log = OpenOptions::new().create(true).append(true).open(log_of(place, name))?;
    command.stdin(life).stdout(log.try_clone()?).stderr(log).current_dir(place.folder()).process_group(0);
    if let Some((uid, gid)) = place.owner() {
        command.uid(uid).gid(gid);
    }
    let child = command.spawn().map_err(|cause| format!("could not start {name}: {cause}"))?;
    fs::write(pid_of(place, name), child.id().to_string())?;
    Ok(())
}

/// Whether the process, or a child of it, lives.
pub(super) fn is_alive(place: &Place, name: &str) -> Result<bool, Failure> {
    let life = life_of(place, name)?;
    match life.try_lock() {
        // Said and not left to the end of `life`: a program that another thread is just starting holds a copy of it.
        Ok(()) => Ok(life.unlock().map(|()| false)?),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(cause)) => Err(cause.into()),
    }
}

/// Ends the process and waits until it is gone. Says whether there was one.
pub(super) fn stop(place: &Place, name: &str) -> Result<bool, Failure> {
    // Ctrl-C: PostgreSQL then ends without waiting for clients, Redis and a JVM in good order.
    end(place, name, &[Signal::INT, Signal::KILL])
}

/// Kills the process, which finishes nothing, and waits until it and its children are gone. Says whether there was one.
pub(super) fn kill(place: &Place, name: &str) -> Result<bool, Failure> {
    end(place, name, &[Signal::KILL])
}

fn end(place: &Place, name: &str, signals: &[Signal]) -> Result<bool, Failure> {
    if !is_alive(place, name)? {
        return Ok(false);
    }
    let text = fs::read_to_string(pid_of(place, name))?;
    let pid = Pid::from_raw(text.trim().parse()?).ok_or("process ids begin at 1")?;
    for signal in signals.iter().copied() {
        // It may have ended since it was looked at.
        let _ = kill_process(pid, signal);
        if is_gone(place, name)? {
            return Ok(true);
        }
    }
    Err(format!("{name}, process {text}, does not end").into())
}

/// Waits for the end of the process, for a while.
fn is_gone(place: &Place, name: &str) -> Result<bool, Failure> {
    let life = life_of(place, name)?;
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || sender.send(life.lock().and_then(|()| life.unlock())));
    match receiver.recv_timeout(STOP_LIMIT) {
        Ok(locked) => Ok(locked.map(|()| true)?),
        Err(_) => Ok(false),
    }
}

/// Asks a service until it is ready, or one of its processes has ended.
#[expect(
    clippy::disallowed_methods,
    reason = "another program's readiness has no signal that we could wait for"
)]
pub(super) fn wait_until_ready(place: &Place, service: &Service) -> Result<(), Failure> {
    let started = Instant::now();
    while started.elapsed() < START_LIMIT {
        for name in service.processes {
            if !is_alive(place, name)? {
                return Err(format!("{name} ended while it started:\n{}", end_of_log(place, name)).into());
            }
        }
        if (service.is_ready)(place)? {
            return Ok(());
        }
        thread::sleep(ASK_EVERY);
    }
    let logs: Vec<String> = service.processes.iter().map(|name| end_of_log(place, name)).collect();
    Err(format!("{} is not ready after {} s:\n{}", service.name, START_LIMIT.as_secs(), logs.join("\n"))
        .into())
}

fn life_of(place: &Place, name: &str) -> Result<File, Failure> {
    let path = place.folder().join(format!("{name}.alive"));
    Ok(OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?)
}

fn pid_of(place: &Place, name: &str) -> PathBuf {
    place.folder().join(format!("{name}.pid"))
}

fn log_of(place: &Place, name: &str) -> PathBuf {
    place.folder().join(format!("{name}.log"))
}

fn end_of_log(place: &Place, name: &str) -> String {
    const LINES_SHOWN: usize = 20;
    let text = fs::read_to_string(log_of(place, name)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}

#[cfg(test)]
mod tests {
    //! A process outlives the hand that started it, is started once, and is gone when `stop` says so.

    use super::*;

    #[test]
    fn a_process_lives_until_it_is_stopped() -> Result<(), Failure> {
        let folder = std::env::temp_dir().join(format!("onceward-xtask-process-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let place = Place::in_folder(folder);
        let sleeper = || {
            // Its child is killed with it only if the lock is what is waited for.
            let mut command = Command::new("sh");
            command.args(["-c", "trap 'kill $!; exit' INT; sleep 3600 & wait"]);
            command
        };
        assert!(!stop(&place, "sleeper")?, "nothing to stop");
        start(&place, "sleeper", sleeper())?;
        assert!(is_alive(&place, "sleeper")?);
        assert!(start(&place, "sleeper", sleeper()).is_err(), "it runs already");
        assert!(stop(&place, "sleeper")?);
        assert!(!is_alive(&place, "sleeper")?);
        let childless = || {
            let mut command = Command::new("sleep");
            command.arg("3600");
            command
        };
        start(&place, "sleeper", childless())?;
        assert!(kill(&place, "sleeper")? && !kill(&place, "sleeper")?);
        Ok(fs::remove_dir_all(place.folder())?)
    }
}
