//! Redis 7, or a Valkey that brings the same program names: one server with an append-only file.
//!
//! It listens on loopback only and evicts nothing: a gate that lost keys to a full memory would sell twice. Its data outlive
//! it, synced once a second; who tests or measures another way says so to the running server (`CONFIG SET appendfsync
//! always`). Tests take prefixes of their own.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::place::Place;
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "redis",
    packages: &["redis-server"],
    is_installed,
    user: None,
    processes: &["redis"],
    ports: 1,
    prepare: |place| make_data_folder(place, "data").map(drop),
    command: |place, _| Ok(server(place, "data", place.port(0)?)),
    is_ready: |place| Ok(answers(place.port(0)?, "PING", "+PONG")),
    settle: |_| Ok(()),
    exports,
};

/// How long a server may think before it counts as not ready.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn is_installed() -> bool {
    program().is_some()
}

/// The server's program, by the name of either project.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = ["redis-server", "valkey-server"];
    candidates.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|it| it.is_file()))
}

/// Makes a server's own data folder under the service's, and says where.
pub(super) fn make_data_folder(place: &Place, name: &str) -> Result<PathBuf, Failure> {
    let folder = place.folder().join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The server's program, to be given its arguments.
pub(super) fn program_command() -> Command {
    Command::new(program().unwrap_or_else(|| PathBuf::from("redis-server")))
}

/// What promises rest on, wherever it runs; `ops/compose.yaml` says the same. The append-only file is the only one: a snapshot
/// would fork the server in the middle of a measurement.
pub(super) const SETTINGS: [&str; 8] =
    ["--maxmemory-policy", "noeviction", "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""];

/// A server on this port that keeps its data in this folder.
pub(super) fn server(place: &Place, data: &str, port: u16) -> Command {
    let mut command = program_command();
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--daemonize", "no"])
        .arg("--dir")
        .arg(place.folder().join(data))
        .args(SETTINGS);
    command
}

/// Whether a server answers a command of one line with a line that begins like this.
pub(super) fn answers(port: u16, command: &str, expected: &str) -> bool {
    ask(port, command).is_ok_and(|answer| answer.starts_with(expected))
}

/// Asks a server, and gives back what it says at once.
pub(super) fn ask(port: u16, command: &str) -> Result<String, Failure> {
    const LONGEST_ANSWER: usize = 64 * 1024;
    let mut stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = vec![0; LONGEST_ANSWER];
    let length = stream.read(&mut answer)?;
    answer.truncate(length);
    Ok(String::from_utf8(answer)?)
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let url = format!("redis://127.0.0.1:{}", place.port(0)?);
    // Two names, so that a test never writes into a server that somebody works with.
    Ok(vec![("ONCEWARD_REDIS_URL", url.clone()), ("ONCEWARD_TEST_REDIS_URL", url)])
}
