//! `onceward bench` over real servers: one object a scenario, and nothing is left behind.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use house::{finish, onceward, stderr};
use onceward_testkit::services;
use serde_json::Value;
use tokio_postgres::NoTls;

/// What every object must have (api.md).
const FIELDS: [&str; 8] =
    ["scenario", "parameters", "per_second", "p50_us", "p99_us", "baseline_per_second", "ratio", "machine"];

/// The schemas that measurements have made.
fn schemas(server: &str) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
        tokio::spawn(connection);
        let mine = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'onceward\\_bench\\_%'";
        client.query(mine, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    })
}

/// What Redis says of the keys that measurements have made: how many, as its protocol writes it.
fn keys(url: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("redis://").unwrap()).unwrap();
    stream.write_all(b"KEYS onceward-bench-*\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn scenarios_over_servers_print_an_object_each_and_remove_what_they_made() {
    let store = services::address("postgres", "ONCEWARD_TEST_POSTGRES_URL");
    let redis = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let scenarios =
        ["redis.reserve", "redis.queue.members", "postgres.order.spread", "cluster.winners.postgres"];
    let mut command = onceward();
    command.arg("bench").args(scenarios);
    command.args(["--json", "--rounds", "1", "--count", "1000", "--members", "5000"]);
    command.env("ONCEWARD_STORE_URL", &store).env("ONCEWARD_REDIS_URL", &redis);
    let before = (schemas(&store), keys(&redis));
    let output = finish(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), scenarios.len() + 1, "the first one has two parts: {text}");
    for object in &objects {
        assert!(FIELDS.iter().all(|field| object.get(field).is_some()), "{object}");
        assert!(object["per_second"].as_f64().unwrap() > 0.0, "{object}");
    }
    assert_eq!((schemas(&store), keys(&redis)), before, "each scenario removes what it made");
}
