//! A server to look at: the same program as a child process.
//!
//! Invariants: the child is ended on every path, by its own process: a drop kills it, and where this process is
//! killed itself, the child notices that its standard input ended. A restart is on the same folder. Deliberately
//! absent: any other way to look into the child than its HTTP port.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onceward_domain::time::Millis;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::Address;
use crate::failure::Failure;

/// How long a server may take to be ready, also on a busy machine and after a crash.
const READY_TIME: Duration = Duration::from_secs(30);
/// How long a drain may take.
const DRAIN_TIME: Duration = Duration::from_secs(30);
/// How the ready line of a server that answers requests begins, and that of one that does not.
const READY: &str = "listening on http://";
const RUNNING: &str = "running ";
/// Lines of the child's log that are kept to explain a failure.
const LOG_LINES: usize = 20;
/// The child's settings, in its folder.
const SETTINGS_FILE: &str = "settings.toml";

/// What a run sets differently from a server that people start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Haste {
    /// After a kill, work that was claimed waits for its lease to end.
    pub(crate) lease: Millis,
    /// How long a silent bank is listened to.
    pub(crate) provider_timeout: Millis,
}

/// One of several processes that are one server, each with a role of its own, over the servers of this process's settings.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its role.
    pub(crate) role: &'static str,
    /// The settings file that this process was given.
    pub(crate) config: Option<PathBuf>,
    /// The secret that all of them share; none for the first, which makes it.
    pub(crate) secret: Option<PathBuf>,
    /// After a kill, work that was claimed waits for its lease to end.
    pub(crate) lease: Millis,
}

/// What a child is.
enum Kind {
    /// All of a server, untouched by this process's settings.
    Whole(Haste),
    Member(Member),
}

/// A server that runs, or was killed and can be started again.
pub(crate) struct Server {
    folder: PathBuf,
    kind: Kind,
    address: watch::Sender<Option<SocketAddr>>,
    child: Option<Child>,
    log: Log,
}

type Log = Arc<Mutex<VecDeque<String>>>;

impl Server {
    /// A server on this folder, not yet started.
    pub(crate) fn new(folder: &Path, haste: Haste) -> Self {
        Self::of(folder, Kind::Whole(haste))
    }

    /// A member on this folder of its own, not yet started.
    pub(crate) fn member(folder: &Path, member: Member) -> Self {
        Self::of(folder, Kind::Member(member))
    }

    fn of(folder: &Path, kind: Kind) -> Self {
        let (address, _) = watch::channel(None);
        Self { folder: folder.to_owned(), kind, address, child: None, log: Log::default() }
    }

    /// Where it can be asked.
    pub(crate) fn address(&self) -> Address {
        self.address.subscribe()
    }

    /// The id of its process, while it runs.
    pub(crate) fn process(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// When it does not become ready in time, with the end of its log.
    pub(crate) async fn start(&mut self) -> Result<(), Failure> {
        let program =
            std::env::current_exe().map_err(|cause| Failure::other("finding this program", cause))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--dev", "--listen", "127.0.0.1:0", "--until-stdin-ends", "--data"])
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        match &self.kind {
            Kind::Whole(haste) => {
                command.arg("--config").arg(self.write_settings(*haste)?);
                // The child is to be what the flags say, whatever this process was started with.
                for (foreign, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
                    command.env_remove(foreign);
                }
            }
            Kind::Member(member) => {
                command.args(["--role", member.role]).env("ONCEWARD_LEASE_MS", member.lease.0.to_string());
                if let Some(config) = &member.config {
                    command.arg("--config").arg(config);
                }
                if let Some(secret) = &member.secret {
                    command.env("ONCEWARD_SECRET_FILE", secret);
                }
            }
        }
        let mut child = command.spawn().map_err(|cause| Failure::other("starting the server", cause))?;
        let stderr =
            child.stderr.take().ok_or_else(|| Failure::Other("the server has no stderr".to_owned()))?;
        self.child = Some(child);
        let mut lines = BufReader::new(stderr).lines();
        match timeout(READY_TIME, ready(&mut lines, &self.log)).await {
            Ok(Some(ready)) => {
                tokio::spawn(keep(lines, Arc::clone(&self.log)));
                self.address.send_replace(match ready {
                    Ready::At(address) => Some(address),
                    Ready::Running => None,
                });
                Ok(())
            }
            Ok(None) => Err(failed(&self.last_words("the server ended before it was ready"))),
            Err(_) => Err(failed(&self.last_words("the server was not ready in time"))),
        }
    }

    fn last_words(&self, what: &str) -> String {
        match self.log().last() {
            Some(line) => format!("{what}: {line}"),
            None => what.to_owned(),
        }
    }

    fn write_settings(&self, haste: Haste) -> Result<PathBuf, Failure> {
        let path = self.folder.join(SETTINGS_FILE);
        let Haste { lease, provider_timeout } = haste;
        let text = format!("lease_ms = {}\n[provider]\ntimeout_ms = {}\n", lease.0, provider_timeout.0);
        std::fs::write(&path, text).map_err(|cause| Failure::file("writing", &path, &cause))?;
        Ok(path)
    }

    /// Kills it as a power cut would: `SIGKILL`, nothing is finished.
    ///
    /// # Errors
    /// When it cannot be killed, or had ended by itself before.
    pub(crate) async fn kill(&mut self) -> Result<(), Failure> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if let Ok(Some(status)) = child.try_wait() {
            return Err(failed(&format!("the server had ended by itself ({status})")));
        }
        child.start_kill().map_err(|cause| Failure::other("killing the server", cause))?;
        self.address.send_replace(None);
        child.wait().await.map_err(|cause| Failure::other("waiting for the killed server", cause))?;
        Ok(())
    }

    /// Ends it as an operator would: `SIGTERM`, and waits for the drain.
    ///
    /// # Errors
    /// When it does not end well or in time.
    pub(crate) async fn stop(&mut self) -> Result<(), Failure> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| failed("the server had ended by itself"))?;
        kill_process(pid, Signal::TERM).map_err(|cause| Failure::other("stopping the server", cause))?;
        match timeout(DRAIN_TIME, child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(failed(&format!("the server drained badly ({status})"))),
            Ok(Err(cause)) => Err(Failure::other("waiting for the server", cause)),
            Err(_) => Err(failed("the server did not drain in time")),
        }
    }

    /// The last lines of the log, of all its runs.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Whether a variable of the environment is a setting; the log filter stays.
fn is_ours(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("ONCEWARD_") && name != "ONCEWARD_LOG")
}

fn failed(what: &str) -> Failure {
    Failure::Other(what.to_owned())
}

/// How a child is ready.
enum Ready {
    At(SocketAddr),
    /// It answers no requests.
    Running,
}

async fn ready(lines: &mut Lines<BufReader<ChildStderr>>, log: &Log) -> Option<Ready> {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(address) = line.strip_prefix(READY) {
            return address.trim().parse().ok().map(Ready::At);
        }
        if line.starts_with(RUNNING) {
            return Some(Ready::Running);
        }
        remember(log, line);
    }
    None
}

/// Reads on, so that the child never waits for somebody to read its log.
async fn keep(mut lines: Lines<BufReader<ChildStderr>>, log: Log) {
    while let Ok(Some(line)) = lines.next_line().await {
        remember(&log, line);
    }
}

fn remember(log: &Log, line: String) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() == LOG_LINES {
        log.pop_front();
    }
    log.push_back(line);
}
