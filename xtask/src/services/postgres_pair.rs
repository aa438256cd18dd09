//! A primary whose commits are on a standby before they are answered, and that standby.
//!
//! It begins anew with every start: the first server is the primary, whatever was promoted before. The standby's data folder
//! is a copy of the primary's from before its first start. Deliberately absent: promoting, which is for whoever tries it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::place::Place;
use super::postgres::{
    DATABASE, ROLE, is_installed, is_open, make_data_folder, make_database, password, program, server,
};
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "postgres-pair",
    packages: &["postgresql"],
    is_installed,
    user: Some("postgres"),
    processes: &[PRIMARY, STANDBY],
    ports: 2,
    prepare,
    command,
    is_ready,
    settle,
    exports,
};

const PRIMARY: &str = "primary";
/// Also the name by which the primary knows it.
const STANDBY: &str = "standby";

fn data(place: &Place, process: &str) -> PathBuf {
    place.folder().join(process)
}

fn port(place: &Place, process: &str) -> Result<u16, Failure> {
    place.port(usize::from(process == STANDBY))
}

fn prepare(place: &Place) -> Result<(), Failure> {
    let (primary, standby) = (data(place, PRIMARY), data(place, STANDBY));
    make_data_folder(place, &primary)?;
    if standby.exists() {
        fs::remove_dir_all(&standby)?;
    }
    // Owners and modes as they are, or the server refuses it.
    let copied = Command::new("cp").arg("-a").arg(&primary).arg(&standby).stdin(Stdio::null()).status()?;
    if !copied.success() {
        return Err(format!("copying the data folder: {copied}").into());
    }
    Ok(fs::write(standby.join("standby.signal"), "")?)
}

fn command(place: &Place, process: &str) -> Result<Command, Failure> {
    let mut command = server(&data(place, process), port(place, process)?)?;
    if process == PRIMARY {
        command.args(["-c", &format!("synchronous_standby_names={STANDBY}")]);
    } else {
        let primary = format!(
            "primary_conninfo=host=127.0.0.1 port={} user={ROLE} password={} application_name={STANDBY}",
            port(place, PRIMARY)?,
            password(place)?
        );
        command.args(["-c", &primary]);
    }
    Ok(command)
}

/// Both take sessions, and the primary waits for the standby.
fn is_ready(place: &Place) -> Result<bool, Failure> {
    if !is_open(&data(place, PRIMARY)) || !is_open(&data(place, STANDBY)) {
        return Ok(false);
    }
    let output = program("psql")?
        .args([
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--dbname",
            &url(place, &[PRIMARY], "postgres")?,
        ])
        // Its rows are the standbys.
        .args(["--command", "TABLE pg_stat_replication"])
        .stdin(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).split('|').any(|field| field == "sync"))
}

fn settle(place: &Place) -> Result<(), Failure> {
    make_database(&url(place, &[PRIMARY], "postgres")?)
}

fn url(place: &Place, processes: &[&str], database: &str) -> Result<String, Failure> {
    let mut hosts = Vec::new();
    for process in processes {
        hosts.push(format!("127.0.0.1:{}", port(place, process)?));
    }
    Ok(format!("postgres://{ROLE}:{}@{}/{database}", password(place)?, hosts.join(",")))
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    Ok(vec![
        ("ONCEWARD_TEST_POSTGRES_PAIR_URL", url(place, &[PRIMARY, STANDBY], DATABASE)?),
        ("ONCEWARD_TEST_POSTGRES_STANDBY_URL", url(place, &[STANDBY], DATABASE)?),
    ])
}
