//! A group order on the real server, which is killed while it settles (GS-04).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use house::{Server, Site};
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

/// Several rounds of calls, so that there is a middle to be killed in.
const PARTICIPANTS: usize = 100;
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Most looks for one thing: two minutes of them, leases included.
const LOOKS_LIMIT: u32 = 2_400;

/// Looks at the group until it is as it should be.
fn look_until(server: &Server, holds: impl Fn(&Value) -> bool) -> Value {
    let (_never, pause) = sync_channel::<()>(0);
    for _ in 0..LOOKS_LIMIT {
        let (status, group) = server.get("/v1/groups/g");
        assert_eq!(status, 200, "{group}");
        if holds(&group) {
            return group;
        }
        assert_eq!(pause.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout));
    }
    panic!("it never comes");
}

fn charged(group: &Value) -> usize {
    let rows = group["participants"].as_array().unwrap();
    rows.iter().filter(|row| row["charge"] == "CHARGED").count()
}

in_every_mode! {
    plain:
    gs_04_a_server_that_is_killed_while_it_settles_charges_everybody_once,
}

fn gs_04_a_server_that_is_killed_while_it_settles_charges_everybody_once(mode: Mode) {
    let site = Site::new(mode, "groups");
    let mut server = site.start();
    // Every answer is lost after the money moved.
    assert_eq!(server.put("/sandbox/mode", &json!({ "charge": "timeout_after_effect" })).0, 200);
    let (_, overview) = server.get("/v1/ops/overview");
    let now: jiff::Timestamp = overview["now"].as_str().unwrap().parse().unwrap();
    let deadline = format!("{:.3}", now + jiff::SignedDuration::from_secs(5));
    let terms =
        json!({ "leader_user_id": "lea", "deadline": deadline, "charge_via": "sandbox", "currency": "CNY" });
    assert_eq!(server.put("/v1/groups/g", &terms).0, 201);
    let users: Vec<String> = (0..PARTICIPANTS).map(|number| format!("u{number:03}")).collect();
    for user in &users {
        let amount = json!({ "amount": { "amount": 10, "currency": "CNY" } });
        assert_eq!(server.put(&format!("/v1/groups/g/participants/{user}"), &amount).0, 201);
    }
    for kill in 1..=2 {
        let group = look_until(&server, |group| charged(group) >= kill * PARTICIPANTS / 4);
        assert_eq!(
            group["status"],
            "CLOSED",
            "it was killed too late to prove anything: {}",
            charged(&group)
        );
        server.kill();
        server = site.start();
    }
    let group = look_until(&server, |group| group["status"] != "CLOSED");
    assert_eq!((&group["status"], charged(&group)), (&json!("SETTLED"), PARTICIPANTS));
    for user in &users {
        let (_, taken) = server.get(&format!("/sandbox/customers/{user}/charges"));
        assert_eq!(taken["data"].as_array().map(Vec::len), Some(1), "{user}: {taken}");
        assert_eq!(taken["data"][0]["charge_id"], format!("settle:g:{user}"));
    }
    assert_eq!(server.get("/v1/ops/invariants").1["holds"], true);
    assert!(server.terminate().success());
}
