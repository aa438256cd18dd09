//! Redis under TLS in its three forms, each of one server: alone, as a cluster, and alone with a Sentinel that names it.
//!
//! It begins anew with every start. Each has a plain port as well, by which it is asked whether it is ready.

use std::fs;
use std::process::Command;

use super::certificates::Certificates;
use super::place::Place;
use super::redis::{answers, ask, is_installed, make_data_folder, program_command, server};
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "redis-tls",
    packages: &["redis-server"],
    is_installed,
    user: None,
    processes: &[ALONE, CLUSTER, SENTINEL],
    // A plain and an encrypted one each, and one for the other nodes of the cluster, of which there is none.
    ports: 7,
    prepare,
    command,
    is_ready,
    settle,
    exports,
};

const ALONE: &str = "alone";
const CLUSTER: &str = "cluster";
const SENTINEL: &str = "sentinel";
/// What the Sentinel calls the server that is alone.
const MONITORED: &str = "onceward";
const PORT_OF_NODES: usize = 6;

fn plain(place: &Place, process: &str) -> Result<u16, Failure> {
    place.port(first_port(process)?)
}

fn encrypted(place: &Place, process: &str) -> Result<u16, Failure> {
    place.port(first_port(process)? + 1)
}

/// Which is the first of a server's two ports.
fn first_port(process: &str) -> Result<usize, Failure> {
    let index = SERVICE.processes.iter().position(|name| *name == process).ok_or("no such process")?;
    Ok(2 * index)
}

/// Names and values of what a server needs for TLS; nobody who connects must show a certificate.
fn settings(place: &Place, process: &str) -> Result<Vec<(&'static str, String)>, Failure> {
    let certificates = Certificates::of(place);
    Ok(vec![
        ("tls-port", encrypted(place, process)?.to_string()),
        ("tls-cert-file", certificates.certificate.display().to_string()),
        ("tls-key-file", certificates.key.display().to_string()),
        ("tls-ca-cert-file", certificates.authority.display().to_string()),
        ("tls-auth-clients", "no".to_owned()),
        ("tls-replication", "yes".to_owned()),
    ])
}

fn prepare(place: &Place) -> Result<(), Failure> {
    Certificates::make(place)?;
    for name in SERVICE.processes {
        let folder = place.folder().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        make_data_folder(place, name)?;
    }
    let folder = place.folder().join(SENTINEL);
    let mut lines = vec![
        format!("port {}", plain(place, SENTINEL)?),
        "bind 127.0.0.1".to_owned(),
        format!("dir {}", folder.display()),
        format!("sentinel monitor {MONITORED} 127.0.0.1 {} 1", encrypted(place, ALONE)?),
    ];
    lines.extend(settings(place, SENTINEL)?.into_iter().map(|(name, value)| format!("{name} {value}")));
    // It keeps what it learns in the same file.
    Ok(fs::write(folder.join("sentinel.conf"), lines.join("\n") + "\n")?)
}

fn command(place: &Place, process: &str) -> Result<Command, Failure> {
    if process == SENTINEL {
        let mut command = program_command();
        command.arg(place.folder().join(process).join("sentinel.conf")).arg("--sentinel");
        return Ok(command);
    }
    let mut command = server(place, process, plain(place, process)?);
    for (name, value) in settings(place, process)? {
        command.args([format!("--{name}"), value]);
    }
    if process == CLUSTER {
        command
            .args(["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"])
            .args(["--tls-cluster", "yes", "--cluster-announce-ip", "127.0.0.1"])
            .args(["--cluster-port", &place.port(PORT_OF_NODES)?.to_string()]);
    }
    Ok(command)
}

fn is_ready(place: &Place) -> Result<bool, Failure> {
    for process in SERVICE.processes {
        if !answers(plain(place, process)?, "PING", "+PONG") {
            return Ok(false);
        }
    }
    // Its first look at the server.
    let named = ask(plain(place, SENTINEL)?, &format!("SENTINEL CKQUORUM {MONITORED}"));
    Ok(named.is_ok_and(|answer| answer.starts_with("+OK")))
}

/// Gives all slots to the cluster's one node.
fn settle(place: &Place) -> Result<(), Failure> {
    let answer = ask(plain(place, CLUSTER)?, "CLUSTER ADDSLOTSRANGE 0 16383")?;
    if answer.starts_with("+OK") { Ok(()) } else { Err(format!("making the cluster: {answer}").into()) }
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let certificates = Certificates::of(place);
    let at = |process| encrypted(place, process).map(|port| format!("127.0.0.1:{port}"));
    Ok(vec![
        ("ONCEWARD_TEST_REDIS_TLS_URL", format!("rediss://{}", at(ALONE)?)),
        ("ONCEWARD_TEST_REDIS_TLS_CLUSTER_URL", format!("rediss+cluster://{}", at(CLUSTER)?)),
        ("ONCEWARD_TEST_REDIS_TLS_SENTINEL_URL", format!("rediss+sentinel://{}/{MONITORED}", at(SENTINEL)?)),
        ("ONCEWARD_TEST_REDIS_TLS_PLAIN_URL", format!("redis://127.0.0.1:{}", plain(place, ALONE)?)),
        ("ONCEWARD_TEST_REDIS_TLS_AUTHORITY", certificates.authority.display().to_string()),
        ("ONCEWARD_TEST_REDIS_TLS_STRANGER", certificates.stranger.display().to_string()),
    ])
}
