//! Two processes of every role over real servers, killed at random (PR-04, PR-05).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::process::Command;

use house::cluster::database;
use house::{onceward, stderr};
use onceward_testkit::services;
use serde_json::Value;

#[test]
fn pr_04_pr_05_two_of_every_role_are_killed_at_random_and_every_answer_is_one_order() {
    let redis = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let broker = services::address("rocketmq", "ONCEWARD_TEST_BROKER_URL");
    let url = database("postgres", "ONCEWARD_TEST_POSTGRES_URL", "cli_roles");
    let mut torture: Command = onceward();
    torture
        .args(["torture", "--scenario", "roles", "--seconds", "30", "--seed", "7", "--json"])
        .envs([
            ("ONCEWARD_STORE_URL", &url),
            ("ONCEWARD_REDIS_URL", &redis),
            ("ONCEWARD_BROKER_URL", &broker),
        ])
        .env("ONCEWARD_DEADLINE_TRIGGER", "zset");
    // It bounds itself: the kills by their time, the rest by its patience.
    let output = torture.output().unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert!(output.status.success() && report["violations"] == 0, "{report:#}\n{}", stderr(&output));
    assert!(report["kills"].as_u64() > Some(10) && report["orders"].as_u64() > Some(100), "{report:#}");
}
