//! Redis servers of one test's own, which it may flush, cut off and kill. They are gone when their value is.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onceward_testkit::services;

use crate::house::Folder;
use crate::house::comes_true;

/// What Sentinel calls the primary.
const MONITORED: &str = "onceward";
/// After so long a primary is gone; a copy that was out of touch for ten times as long is not promoted.
const DOWN_AFTER_MS: u32 = 3_000;
/// How long a server may think.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// A server.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    _folder: Folder,
}

impl Redis {
    /// A server with an append-only file.
    pub(crate) fn start(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// A copy of another one, up to date.
    pub(crate) fn copy_of(name: &str, primary: &Self) -> Self {
        let copy = Self::with(name, &["--replicaof", "127.0.0.1", &primary.port.to_string()]);
        comes_true("the copy is in touch", || copy.info("replication", "master_link_status") == "up");
        copy
    }

    /// A Sentinel that watches a primary.
    fn sentinel_of(primary: &Self) -> Self {
        let folder = Folder::new("sentinel");
        let port = free_port();
        let settings = [
            format!("port {port}"),
            "bind 127.0.0.1".to_owned(),
            format!("dir {}", folder.path().display()),
            format!("sentinel monitor {MONITORED} 127.0.0.1 {} 1", primary.port),
            format!("sentinel down-after-milliseconds {MONITORED} {DOWN_AFTER_MS}"),
            format!("sentinel failover-timeout {MONITORED} 10000"),
        ];
        let file = folder.path().join("sentinel.conf");
        std::fs::write(&file, settings.join("\n") + "\n").unwrap();
        let mut command = Command::new(program());
        command.arg(file).arg("--sentinel");
        Self::spawn(&mut command, port, folder)
    }

    fn with(name: &str, more: &[&str]) -> Self {
        let folder = Folder::new(name);
        let port = free_port();
        let mut command = Command::new(program());
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "yes",
        ]);
        command.arg("--dir").arg(folder.path()).args(more);
        Self::spawn(&mut command, port, folder)
    }

    fn spawn(command: &mut Command, port: u16, folder: Folder) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let server = Self { child, port, _folder: folder };
        comes_true("the server answers", || try_ask(server.port, &["PING"]).is_ok_and(|said| said == "PONG"));
        server
    }

    /// Where nodes find it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What it says; of a bulk its text.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        try_ask(self.port, words).unwrap_or_else(|cause| panic!("{words:?}: {cause}"))
    }

    /// One line of its `INFO`.
    pub(crate) fn info(&self, section: &str, name: &str) -> String {
        line_of(&self.ask(&["INFO", section]), name)
    }

    /// `SIGKILL`; gives the port that is free now.
    fn kill(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A primary and its copy, of which the copy takes over.
pub(crate) struct Pair {
    primary: Option<Redis>,
    pub(crate) copy: Redis,
    sentinel: Option<Redis>,
}

impl Pair {
    /// Somebody has the copy listen where the primary did.
    pub(crate) fn by_hand() -> Self {
        let primary = Redis::start("primary");
        let copy = Redis::copy_of("copy", &primary);
        Self { primary: Some(primary), copy, sentinel: None }
    }

    /// One Sentinel, which needs nobody's consent, puts the copy in the primary's place.
    pub(crate) fn by_sentinel() -> Self {
        let mut pair = Self::by_hand();
        let sentinel = Redis::sentinel_of(pair.primary());
        comes_true("Sentinel knows of the copy", || {
            try_ask(sentinel.port, &["SENTINEL", "CKQUORUM", MONITORED])
                .is_ok_and(|said| said.starts_with("OK"))
                && sentinel.info("sentinel", "master0").contains("slaves=1")
        });
        pair.sentinel = Some(sentinel);
        pair
    }

    /// Where nodes find whichever is the primary.
    pub(crate) fn url(&self) -> String {
        match &self.sentinel {
            Some(sentinel) => format!("redis+sentinel://127.0.0.1:{}/{MONITORED}", sentinel.port),
            None => self.primary().url(),
        }
    }

    /// The primary, as long as there is one.
    pub(crate) fn primary(&self) -> &Redis {
        self.primary.as_ref().unwrap()
    }

    /// From now on the copy does not hear what the primary hears.
    pub(crate) fn cut(&self) {
        let primary = self.primary();
        assert_eq!(primary.ask(&["ACL", "SETUSER", "default", "-psync", "-sync", "-replconf"]), "OK");
        assert_eq!(primary.ask(&["CLIENT", "KILL", "TYPE", "replica"]), "1");
        comes_true("the copy is out of touch", || {
            self.copy.info("replication", "master_link_status") == "down"
        });
    }

    /// Kills the primary, and waits until the copy is one.
    pub(crate) fn take_over(&mut self) {
        let port = self.primary.take().unwrap().kill();
        if self.sentinel.is_none() {
            assert_eq!(self.copy.ask(&["REPLICAOF", "NO", "ONE"]), "OK");
            let port_text = port.to_string();
            comes_true("the address is free", || {
                try_ask(self.copy.port, &["CONFIG", "SET", "port", &port_text]).is_ok_and(|said| said == "OK")
            });
            self.copy.port = port;
        }
        comes_true("the copy is promoted", || self.copy.info("replication", "role") == "master");
    }
}

/// The program of the server that `cargo xtask services` has found or installed.
fn program() -> String {
    let url = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let port = url.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
    line_of(&try_ask(port.expect("its address ends with a port"), &["INFO", "server"]).unwrap(), "executable")
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn line_of(info: &str, name: &str) -> String {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{name} is not in {info}")).trim().to_owned()
}

/// Asks a server once, on a connection of its own.
pub(crate) fn try_ask(port: u16, words: &[&str]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        command += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(command.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head)?;
    let head = head.trim_end();
    let Some(length) = head.strip_prefix('$') else {
        return Ok(head.strip_prefix(['+', ':']).unwrap_or(head).to_owned());
    };
    let mut bulk = vec![0; length.parse().unwrap_or(0)];
    reader.read_exact(&mut bulk)?;
    Ok(String::from_utf8_lossy(&bulk).into_owned())
}
