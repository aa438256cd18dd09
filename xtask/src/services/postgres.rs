//! PostgreSQL 15 or newer, with its default durable settings.
//!
//! It listens on loopback only, asks for a password that is made with the data folder, and has no socket in the file
//! system. Tests make databases of their own in it; the one named `onceward` is for people.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::place::Place;
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "postgres",
    packages: &["postgresql"],
    is_installed,
    user: Some("postgres"),
    processes: &["postgres"],
    ports: 1,
    prepare,
    command,
    is_ready,
    settle,
    exports,
};

/// The oldest version that the store supports.
pub(super) const OLDEST: u32 = 15;
/// Enough for a pool in each of the tests that run at once.
pub(super) const CONNECTIONS: u32 = 300;
/// The owner of everything in it.
pub(super) const ROLE: &str = "onceward";
/// The database that people use.
pub(super) const DATABASE: &str = "onceward";

pub(super) fn is_installed() -> bool {
    folder_of_programs().is_some()
}

/// The newest version that is installed: Debian's folders first, then whatever the search path finds.
fn folder_of_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
        })
        .filter(|(version, folder)| *version >= OLDEST && folder.join("initdb").is_file())
        .max();
    newest.map(|(_, folder)| folder).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
    })
}

pub(super) fn program(name: &str) -> Result<Command, Failure> {
    let folder = folder_of_programs().ok_or("PostgreSQL is not installed")?;
    Ok(Command::new(folder.join(name)))
}

fn data(place: &Place) -> PathBuf {
    place.folder().join("data")
}

fn password_file(place: &Place) -> PathBuf {
    place.folder().join("password")
}

/// Makes the data folder, once: a run that was cut off leaves none behind.
fn prepare(place: &Place) -> Result<(), Failure> {
    if data(place).join("PG_VERSION").is_file() && !place.folder().join("unfinished").exists() {
        return Ok(());
    }
    fs::write(place.folder().join("unfinished"), "")?;
    make_data_folder(place, &data(place))?;
    Ok(fs::remove_file(place.folder().join("unfinished"))?)
}

/// Makes a data folder anew, with a new password.
pub(super) fn make_data_folder(place: &Place, folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    keep_new_password(place)?;
    let mut initdb = program("initdb")?;
    initdb
        .arg("--pgdata")
        .arg(folder)
        .arg("--pwfile")
        .arg(password_file(place))
        .args(["--username", ROLE, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"])
        .current_dir(place.folder())
        .stdin(Stdio::null());
    if let Some((uid, gid)) = place.owner() {
        initdb.uid(uid).gid(gid);
    }
    let output = initdb.output()?;
    if !output.status.success() {
        return Err(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}

fn keep_new_password(place: &Place) -> Result<(), Failure> {
    const ONLY_THE_OWNER: u32 = 0o600;
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut options = fs::OpenOptions::new();
    let mut file =
        options.create(true).write(true).truncate(true).mode(ONLY_THE_OWNER).open(password_file(place))?;
    file.write_all(password.as_bytes())?;
    if let Some((uid, gid)) = place.owner() {
        chown(password_file(place), Some(uid), Some(gid))?;
    }
    Ok(())
}

fn command(place: &Place, _process: &str) -> Result<Command, Failure> {
    server(&data(place), place.port(0)?)
}

/// A server on a data folder.
pub(super) fn server(folder: &Path, port: u16) -> Result<Command, Failure> {
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "unix_socket_directories=".to_owned(),
        format!("max_connections={CONNECTIONS}"),
    ];
    let mut command = program("postgres")?;
    command.arg("-D").arg(folder).args(settings.iter().flat_map(|setting| ["-c", setting]));
    Ok(command)
}

fn is_ready(place: &Place) -> Result<bool, Failure> {
    Ok(is_open(&data(place)))
}

/// Whether the server on this folder takes sessions: it writes its state into a file for whoever waits for it.
pub(super) fn is_open(folder: &Path) -> bool {
    const LINE_OF_STATUS: usize = 7;
    // The file comes and goes with the server.
    let text = fs::read_to_string(folder.join("postmaster.pid")).unwrap_or_default();
    text.lines().nth(LINE_OF_STATUS).is_some_and(|status| status.trim() == "ready")
}

fn settle(place: &Place) -> Result<(), Failure> {
    make_database(&url(place, "postgres")?)
}

/// Makes the database for people, once.
pub(super) fn make_database(server: &str) -> Result<(), Failure> {
    let output = program("createdb")?
        .args(["--maintenance-db", server, DATABASE])
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || complaint.contains("already exists") {
        return Ok(());
    }
    Err(format!("making the database {DATABASE}: {complaint}").into())
}

fn url(place: &Place, database: &str) -> Result<String, Failure> {
    Ok(format!("postgres://{ROLE}:{}@127.0.0.1:{}/{database}", password(place)?, place.port(0)?))
}

pub(super) fn password(place: &Place) -> Result<String, Failure> {
    Ok(fs::read_to_string(password_file(place))?)
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let url = url(place, DATABASE)?;
    // Two names, so that a test never makes databases on a server that somebody works with.
    Ok(vec![("ONCEWARD_STORE_URL", url.clone()), ("ONCEWARD_TEST_POSTGRES_URL", url)])
}
