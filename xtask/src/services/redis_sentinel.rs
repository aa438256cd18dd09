//! A primary, a copy of it, and three Sentinels that put the copy in its place when it is gone.
//!
//! It begins anew with every start: the first server is the primary, whatever was promoted before. The copy is written to
//! after the primary has answered, so a promotion may lose what was written last; that is what it is for.

use std::fs;
use std::process::Command;

use super::place::Place;
use super::redis::{answers, ask, is_installed, make_data_folder, server};
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "redis-sentinel",
    packages: &["redis-server"],
    is_installed,
    user: None,
    processes: &["primary", "replica", "sentinel-1", "sentinel-2", "sentinel-3"],
    ports: 5,
    prepare,
    command,
    is_ready,
    settle: |_| Ok(()),
    exports,
};

/// What Sentinels call the primary and its copies.
const MONITORED: &str = "onceward";
/// How many of the three must agree that it is gone.
const QUORUM: usize = 2;
/// The ports of the Sentinels, among all.
const SENTINELS: std::ops::Range<usize> = 2..5;

fn prepare(place: &Place) -> Result<(), Failure> {
    for name in SERVICE.processes {
        // What was promoted the last time would know more than the primary of this time.
        let folder = place.folder().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        make_data_folder(place, name)?;
    }
    for index in SENTINELS {
        let folder = place.folder().join(SERVICE.processes[index]);
        let (own, primary) = (place.port(index)?, place.port(0)?);
        let settings = [
            format!("port {own}"),
            "bind 127.0.0.1".to_owned(),
            format!("dir {}", folder.display()),
            format!("sentinel monitor {MONITORED} 127.0.0.1 {primary} {QUORUM}"),
            format!("sentinel down-after-milliseconds {MONITORED} 1000"),
            format!("sentinel failover-timeout {MONITORED} 5000"),
        ];
        // It keeps what it learns in the same file.
        fs::write(folder.join("sentinel.conf"), settings.join("\n") + "\n")?;
    }
    Ok(())
}

fn command(place: &Place, process: &str) -> Result<Command, Failure> {
    let index = SERVICE.processes.iter().position(|name| *name == process).ok_or("no such process")?;
    if SENTINELS.contains(&index) {
        let mut command = super::redis::program_command();
        command.arg(place.folder().join(process).join("sentinel.conf")).arg("--sentinel");
        return Ok(command);
    }
    let mut command = server(place, process, place.port(index)?);
    if process == "replica" {
        command.args(["--replicaof", "127.0.0.1", &place.port(0)?.to_string()]);
    }
    Ok(command)
}

/// Whether every Sentinel knows of enough others and of a copy that it could promote.
fn is_ready(place: &Place) -> Result<bool, Failure> {
    for index in SENTINELS {
        let port = place.port(index)?;
        if !answers(
            port,
            &format!("SENTINEL CKQUORUM {MONITORED}"),
            &format!("+OK {} usable", SENTINELS.len()),
        ) {
            return Ok(false);
        }
        let copies = ask(port, &format!("SENTINEL REPLICAS {MONITORED}"));
        if !copies.is_ok_and(|text| text.contains("master-link-status\r\n$2\r\nok")) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let mut servers = Vec::new();
    for index in SENTINELS {
        servers.push(format!("127.0.0.1:{}", place.port(index)?));
    }
    let url = format!("redis+sentinel://{}/{MONITORED}", servers.join(","));
    Ok(vec![("ONCEWARD_TEST_REDIS_SENTINEL_URL", url)])
}
