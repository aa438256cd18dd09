//! Finding the servers that tests of cluster mode need.
//!
//! Invariant: a test that needs a server has one or fails, and says what to do; it never skips itself. A server is looked
//! for in the environment first, so that somebody may name one of their own; otherwise `cargo xtask services` is asked,
//! which starts it where it is not running. Deliberately absent: any driver. Who needs a server knows how to speak to it.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Where a service is, found once in each test process.
///
/// # Panics
/// Where there is no such service and it cannot be started.
#[must_use]
pub fn address(service: &'static str, variable: &'static str) -> String {
    static FOUND: Mutex<Option<HashMap<&'static str, String>>> = Mutex::new(None);
    if let Ok(named) = std::env::var(variable) {
        return named;
    }
    // Whoever comes second waits here, and finds what the first has found.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    found.entry(variable).or_insert_with(|| start(service, variable)).clone()
}

/// Kills one process of a service that [`address`] has found, as a power cut would: nothing is finished, and it is gone when
/// this returns.
///
/// # Panics
/// Where it does not run, or the service is one that somebody named in the environment.
pub fn kill(service: &'static str, process: &str) {
    xtask(&["services", "kill", service, process]).unwrap_or_else(|reason| panic!("{reason}"));
}

/// Starts a process again that was killed, where it was, and waits until its service is ready.
///
/// # Panics
/// Where it runs, or does not become ready.
pub fn revive(service: &'static str, process: &str) {
    xtask(&["services", "start", service, process]).unwrap_or_else(|reason| panic!("{reason}"));
}

fn start(service: &str, variable: &str) -> String {
    let needed = format!(
        "this test needs {service}: run `cargo xtask services up {service}`, or name one in {variable}"
    );
    if let Err(reason) = xtask(&["services", "up", service]) {
        panic!("{needed}\n{reason}");
    }
    let lines = xtask(&["services", "env", service]).unwrap_or_else(|reason| panic!("{needed}\n{reason}"));
    let prefix = format!("export {variable}='");
    let value = lines.lines().find_map(|line| line.strip_prefix(&prefix)?.strip_suffix('\''));
    value.unwrap_or_else(|| panic!("{needed}\nits address is not in {lines:?}")).to_owned()
}

/// What a tool of the house says, or why it failed.
fn xtask(arguments: &[&str]) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--package", "xtask", "--"])
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| format!("cargo could not be started: {cause}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(complaint);
    }
    String::from_utf8(output.stdout).map_err(|cause| cause.to_string())
}
