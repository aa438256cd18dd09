//! `onceward doctor`: looks for what would keep the engine from running well here.
//!
//! Invariants: it changes nothing that belongs to the engine; what it must try out, it tries in a folder of its own on
//! the same disk, and removes it. Exit code 0 where nothing is broken; a warning is not broken. Deliberately absent:
//! mending.

mod bank;
mod disk;
mod servers;
mod store;

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::deadline::TriggerKind;
use onceward_domain::time::Timestamp;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use crate::api_keys;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::secret::{self, Standing};
use crate::settings::{Flags, Settings, StorePlace};
use crate::time::{SystemClock, rfc3339};

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The data folder [default: ./onceward-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the server would listen [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// A settings file (TOML)
    #[arg(long, value_name = "FILE", env = "ONCEWARD_CONFIG")]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// As it should be.
    Good,
    /// It will run, and somebody should look.
    Warning,
    /// It will not run, or not safely.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    name: &'static str,
    verdict: Verdict,
    detail: String,
}

impl Finding {
    /// What was found.
    pub(crate) fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { name, verdict, detail: detail.into() }
    }
}

#[derive(Serialize)]
struct Report {
    healthy: bool,
    findings: Vec<Finding>,
}

/// Years in which this program can be running: a clock outside them was never set.
const PLAUSIBLE: std::ops::Range<Timestamp> = Timestamp(1_767_225_600_000)..Timestamp(4_102_444_800_000);
/// A file this far in the future was written by another clock.
const FUTURE_TOLERANCE: Duration = Duration::from_secs(60);
/// Connections need a file descriptor each; below this a busy server will run out of them.
const OPEN_FILES_WANTED: u64 = 4_096;

/// Looks, and prints what was found.
///
/// # Errors
/// When something is broken.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let flags = Flags { data: arguments.data.clone(), listen: arguments.listen, ..Flags::default() };
    let settings = Settings::load(arguments.config.as_deref(), &flags)?;
    let path = settings.store_path()?;
    let place = existing_part(path.parent().unwrap_or(Path::new("."))).to_owned();
    let server_runs = store::is_in_use(&path);
    let mut findings = match settings.store_place()? {
        StorePlace::Server(url) => servers::postgres(&url),
        StorePlace::File(path) => {
            let file = store::of_file(&path, server_runs);
            [file].into_iter().chain(store::tried_out(&place, &path)).collect()
        }
    };
    findings.extend(settings.redis()?.into_iter().flat_map(servers::redis));
    findings.extend(settings.broker()?.iter().flat_map(servers::broker));
    findings.extend(settings.authorities()?.map(|named| {
        let detail = format!("{named} judge the servers whose lines are encrypted");
        Finding::new("authorities", Verdict::Good, detail)
    }));
    findings.push(disk::free_space(&place));
    findings.push(disk::sync_time(&place));
    findings.push(clock(&path));
    findings.extend(secret(&secret::Files::of(&settings)?));
    findings.extend(bank::journal(&settings, existing_part(&settings.data)));
    findings.push(trigger(settings.trigger()?));
    if let (TriggerKind::Keyspace, Some(options)) = (settings.trigger()?, settings.redis()?) {
        findings.push(servers::events(options));
    }
    findings.push(keys(&settings.data));
    findings.push(port(settings.listen, server_runs));
    findings.push(open_files());
    let healthy = findings.iter().all(|finding| finding.verdict != Verdict::Broken);
    let report = Report { healthy, findings };
    match Format::of(arguments.json) {
        Format::Json => output::json(&report)?,
        Format::Text => output::data(|out| write_text(out, &report))?,
    }
    if healthy { Ok(()) } else { Err(Failure::Reported) }
}

/// The folder itself, or the one in which it would be made.
fn existing_part(folder: &Path) -> &Path {
    let found = folder.ancestors().find(|part| !part.as_os_str().is_empty() && part.is_dir());
    found.unwrap_or(Path::new("."))
}

fn clock(store: &Path) -> Finding {
    let now = SystemClock.now();
    if !PLAUSIBLE.contains(&now) {
        return Finding::new("clock", Verdict::Broken, format!("{} cannot be the time", rfc3339(now)));
    }
    let changed = fs::metadata(store).and_then(|data| data.modified()).ok();
    let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let now_since = Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    match changed.and_then(|at| at.checked_sub(now_since)).filter(|ahead| *ahead > FUTURE_TOLERANCE) {
        Some(ahead) => Finding::new(
            "clock",
            Verdict::Warning,
            format!("the store was written {} s in the future: the clock ran back", ahead.as_secs()),
        ),
        None => Finding::new("clock", Verdict::Good, rfc3339(now)),
    }
}

/// Whether the secret is the one that the store was begun with, and who may read it.
fn secret(files: &secret::Files) -> Vec<Finding> {
    let path = files.secret().display();
    let (verdict, detail) = match files.standing() {
        Ok(Standing::ToBeMade) => (Verdict::Good, format!("{path} will be made at the first start")),
        Ok(Standing::Unmarked(_)) => {
            (Verdict::Good, format!("{path} is there; its fingerprint will be kept from the next start on"))
        }
        Ok(Standing::Known(_)) => (Verdict::Good, format!("{path} is the one that was used first")),
        Err(cause) => (Verdict::Broken, cause.to_string()),
    };
    let mode = files.secret().exists().then(|| private_file("secret file", files.secret()));
    [Finding::new("secret", verdict, detail)].into_iter().chain(mode).collect()
}

fn private_file(name: &'static str, path: &Path) -> Finding {
    match fs::metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Finding::new(name, Verdict::Good, format!("{} will be made at the first start", path.display()))
        }
        Err(cause) => Finding::new(name, Verdict::Broken, format!("{}: {cause}", path.display())),
        Ok(data) => {
            let mode = data.permissions().mode() & 0o777;
            let verdict = if mode & 0o077 == 0 { Verdict::Good } else { Verdict::Broken };
            let advice = if verdict == Verdict::Good { "" } else { ": others can read it; chmod 600" };
            Finding::new(name, verdict, format!("{} has mode {mode:o}{advice}", path.display()))
        }
    }
}

fn keys(data: &Path) -> Finding {
    let path = data.join(api_keys::KEYS_FILE);
    if !path.exists() {
        return Finding::new("API keys", Verdict::Good, "the first one will be made at the first start");
    }
    match api_keys::load(data) {
        Ok(keys) => Finding::new("API keys", Verdict::Good, format!("{} known", keys.keys.len())),
        Err(cause) => Finding::new("API keys", Verdict::Broken, cause.to_string()),
    }
}

/// What tells when orders' time is up. Whichever it is, the sweep finds what it lost.
fn trigger(kind: TriggerKind) -> Finding {
    let detail = match kind {
        TriggerKind::Queue => {
            "queue: in memory; after a restart the sweep finds what is due, some seconds late"
        }
        TriggerKind::Store => "store: durable with the orders themselves",
        TriggerKind::Broker => "broker: delayed messages; the sweep finds what it lost",
        TriggerKind::Zset => "zset: a sorted set in Redis; the sweep finds what it lost",
        TriggerKind::Keyspace => {
            "keyspace: what Redis tells is not kept; the sweep finds what it lost, some seconds late"
        }
    };
    Finding::new("deadlines", Verdict::Good, detail)
}

fn port(listen: SocketAddr, server_runs: bool) -> Finding {
    match TcpListener::bind(listen) {
        Ok(_) => Finding::new("listen address", Verdict::Good, format!("{listen} is free")),
        Err(_) if server_runs => {
            Finding::new("listen address", Verdict::Good, format!("{listen} is taken, and a server runs"))
        }
        Err(cause) => Finding::new("listen address", Verdict::Broken, format!("{listen}: {cause}")),
    }
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile).current;
    match limit {
        Some(limit) if limit < OPEN_FILES_WANTED => Finding::new(
            "open files",
            Verdict::Warning,
            format!("limit {limit}; {OPEN_FILES_WANTED} are wanted"),
        ),
        Some(limit) => Finding::new("open files", Verdict::Good, format!("limit {limit}")),
        None => Finding::new("open files", Verdict::Good, "no limit"),
    }
}

fn write_text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for Finding { name, verdict, detail } in &report.findings {
        let verdict = match verdict {
            Verdict::Good => "good",
            Verdict::Warning => "WARNING",
            Verdict::Broken => "BROKEN",
        };
        writeln!(out, "{verdict:<9}{name:<16}{detail}")?;
    }
    let last = if report.healthy { "Nothing stands in the way." } else { "This must be mended first." };
    writeln!(out, "\n{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_05_a_secret_that_others_can_read_is_broken() {
        let path = std::env::temp_dir().join(format!("onceward-doctor-{}", std::process::id()));
        assert_eq!(private_file("secret file", &path).verdict, Verdict::Good);
        fs::write(&path, "secret").unwrap();
        for (mode, verdict) in [(0o600, Verdict::Good), (0o640, Verdict::Broken), (0o604, Verdict::Broken)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(private_file("secret file", &path).verdict, verdict, "{mode:o}");
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_taken_port_is_broken_unless_a_server_runs() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert_eq!(port(address, false).verdict, Verdict::Broken);
        assert_eq!(port(address, true).verdict, Verdict::Good);
    }
}
