//! The program as a child process in the place of a mode, and a client to ask it: what all these tests share.
//!
//! Invariants: a child, a folder and a place are gone when their value is, also where a test fails; every wait is bounded.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

pub(crate) mod cluster;
pub(crate) mod crowd;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use onceward_ground::{Mode, Place};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Longest wait for anything that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a condition that nobody announces.
const LOOK: Duration = Duration::from_millis(20);

/// Asks until it is so, or patience ends.
pub(crate) fn comes_true(what: &str, is_so: impl FnMut() -> bool) {
    comes_true_within(PATIENCE, what, is_so);
}

/// Asks until it is so, or this long.
pub(crate) fn comes_true_within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    let (_silent, nobody) = sync_channel::<()>(1);
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        assert_eq!(nobody.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout));
    }
}

/// A command of the program, untouched by the environment of the test.
pub(crate) fn onceward() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ONCEWARD_")) {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = pid_of(&child);
    let (send, receive) = sync_channel(1);
    std::thread::spawn(move || send.send(child.wait_with_output()));
    match receive.recv_timeout(2 * PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            kill_process(pid, Signal::KILL).unwrap();
            panic!("{command:?} does not end");
        }
    }
}

/// What it printed on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// A folder of a test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onceward-cli-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Where a server of a mode lives, and lives again after a kill.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    place: Place,
}

impl Site {
    pub(crate) fn new(mode: Mode, name: &str) -> Self {
        // The runtime is needed for as long as the place is made.
        let place = tokio::runtime::Runtime::new().unwrap().block_on(Place::open(mode));
        Self { folder: Folder::new(name), place }
    }

    /// A server for development here that is not started yet.
    pub(crate) fn command(&self) -> Command {
        let mut command = onceward();
        command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(self.folder.path());
        command.env("ONCEWARD_LEASE_MS", "500").envs(self.place.environment());
        command
    }

    pub(crate) fn start(&self) -> Server {
        Server::spawn(&mut self.command()).unwrap_or_else(|said| panic!("it did not start: {said:?}"))
    }
}

/// A running server.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: String,
    /// What it said on stderr before it was ready.
    pub(crate) said: Vec<String>,
}

impl Server {
    /// A server for development on this folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let mut command = onceward();
        command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
        command.env("ONCEWARD_LEASE_MS", "500");
        Self::spawn(&mut command).unwrap_or_else(|said| panic!("it did not start: {said:?}"))
    }

    /// Waits until it is ready; gives what it said where it ends instead.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self, Vec<String>> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = pid_of(&child);
        let reader = BufReader::new(child.stderr.take().unwrap());
        let (send, receive) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut said = Vec::new();
        loop {
            match receive.recv_timeout(PATIENCE) {
                Ok(line) => match line.strip_prefix("listening on http://") {
                    Some(address) => {
                        let address = address.to_owned();
                        // Read on, so that the server never waits for somebody to take its log.
                        std::thread::spawn(move || receive.iter().count());
                        return Ok(Self { child: Some(child), address, said });
                    }
                    None => said.push(line),
                },
                Err(_) => {
                    let _ = kill_process(pid, Signal::KILL);
                    child.wait().unwrap();
                    return Err(said);
                }
            }
        }
    }

    /// `SIGKILL`.
    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// `SIGTERM`, and how it ended.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.tell_to_stop();
        self.ended()
    }

    /// `SIGTERM`.
    pub(crate) fn tell_to_stop(&self) {
        kill_process(pid_of(self.child.as_ref().unwrap()), Signal::TERM).unwrap();
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// How it ended.
    pub(crate) fn ended(mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        let pid = pid_of(&child);
        let (send, receive) = sync_channel(1);
        std::thread::spawn(move || send.send(child.wait()));
        match receive.recv_timeout(PATIENCE) {
            Ok(status) => status.unwrap(),
            Err(_) => {
                kill_process(pid, Signal::KILL).unwrap();
                panic!("it does not drain");
            }
        }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        ask(&self.address, "GET", path, None).unwrap()
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        ask(&self.address, "PUT", path, Some(body)).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        ask(&self.address, "POST", path, Some(body)).unwrap()
    }

    /// Puts one SKU on sale, `a` of `sale`, with a limit of one.
    pub(crate) fn put_on_sale(&self, stock: u32) {
        let activity =
            json!({"name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z"});
        assert_eq!(self.put("/v1/activities/sale", &activity).0, 201);
        let price = json!({"amount": 1999, "currency": "CNY"});
        let sku = json!({"stock": stock, "price": price, "per_user_limit": 1});
        assert_eq!(self.put("/v1/activities/sale/skus/a", &sku).0, 201);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The reservation route of the SKU that [`Server::put_on_sale`] makes.
pub(crate) const RESERVE: &str = "/v1/activities/sale/skus/a/reservations";

/// The body of a reservation.
pub(crate) fn buyer(user: &str, request: &str) -> Value {
    json!({"user_id": user, "request_id": request, "quantity": 1})
}

/// Asks once, on a connection of its own; an error is a lost answer.
pub(crate) fn ask(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> std::io::Result<(u16, Value)> {
    ask_with(address, method, path, body, "")
}

/// The same with more header lines, each ended by `\r\n`.
pub(crate) fn ask_with(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
    headers: &str,
) -> std::io::Result<(u16, Value)> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: onceward\r\nconnection: close\r\n{headers}{kind}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(address, &request)?;
    let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let status = answer.get(9..12).and_then(|code| code.parse().ok()).ok_or_else(cut)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).map_err(|_| cut())? };
    Ok((status, body))
}

/// The body of an answer that is no JSON.
pub(crate) fn text(address: &str, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: onceward\r\nconnection: close\r\n\r\n");
    let answer = exchange(address, &request).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn exchange(address: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
