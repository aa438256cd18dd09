//! A Redis Cluster of three primaries with a copy each.
//!
//! It begins anew and empty with every start, because its nodes would look for each other at the ports of the last one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::place::Place;
use super::redis::{answers, is_installed, make_data_folder, program_command, server};
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "redis-cluster",
    packages: &["redis-server"],
    is_installed,
    user: None,
    processes: &["node-1", "node-2", "node-3", "node-4", "node-5", "node-6"],
    // One for clients and one for the other nodes, each.
    ports: 12,
    prepare,
    command,
    is_ready,
    settle,
    exports,
};

const NODES: usize = 6;

fn prepare(place: &Place) -> Result<(), Failure> {
    for name in SERVICE.processes {
        let folder = place.folder().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        make_data_folder(place, name)?;
    }
    Ok(())
}

fn command(place: &Place, process: &str) -> Result<Command, Failure> {
    let index = SERVICE.processes.iter().position(|name| *name == process).ok_or("no such process")?;
    let mut command = server(place, process, place.port(index)?);
    command
        .args(["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"])
        .args(["--cluster-node-timeout", "2000"])
        .args(["--cluster-port", &place.port(NODES + index)?.to_string()]);
    Ok(command)
}

fn is_ready(place: &Place) -> Result<bool, Failure> {
    for index in 0..NODES {
        if !answers(place.port(index)?, "PING", "+PONG") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes a cluster of the nodes, and waits until each of them says that it is one.
fn settle(place: &Place) -> Result<(), Failure> {
    let addresses = addresses(place)?;
    let output = client()
        .args(["--cluster", "create"])
        .args(&addresses)
        .args(["--cluster-replicas", "1", "--cluster-yes"])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    Err(format!("making the cluster failed: {}", String::from_utf8_lossy(&words)).into())
}

/// The client beside the server, by the name of the same project.
fn client() -> Command {
    let server = program_command();
    let path = Path::new(server.get_program());
    let name = path.file_name().map(|name| name.to_string_lossy().replace("-server", "-cli"));
    Command::new(path.with_file_name(name.unwrap_or_default()))
}

fn addresses(place: &Place) -> Result<Vec<String>, Failure> {
    (0..NODES).map(|index| Ok(format!("127.0.0.1:{}", place.port(index)?))).collect()
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let url = format!("redis+cluster://{}", addresses(place)?.join(","));
    Ok(vec![("ONCEWARD_TEST_REDIS_CLUSTER_URL", url)])
}
