//! A shop in the middle of everything, and what must become of it wherever its store is moved to.
//!
//! Read next: `moving.rs`, `moving_cluster.rs`.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::house::{Folder, RESERVE, Server, ask, ask_with, buyer, comes_true, finish, onceward, stderr};

/// Buyers who have their orders before the move.
const DECIDED: usize = 4;
/// Buyers whose reservations only the gate knows at the move.
const OPEN: usize = 5;
const STOCK: u32 = 20;

/// Everything that must be the same afterwards.
pub(crate) struct HalfWay {
    reservations: Vec<String>,
    orders: Vec<String>,
    paid: Value,
    attempt: String,
    cancelled: Value,
    statement: Value,
}

fn pay(server: &Server, order: &str) -> Value {
    let path = format!("/v1/orders/{order}/payments");
    let key = format!("idempotency-key: pay-{order}\r\n");
    let (status, payment) =
        ask_with(&server.address, "POST", &path, Some(&json!({"provider": "sandbox"})), &key).unwrap();
    assert_eq!(status, 201, "{payment}");
    payment
}

fn succeed(server: &Server, payment: &str, order: &str) {
    let path = format!("/sandbox/payments/{payment}/succeed");
    assert_eq!(server.post(&path, &json!({"callback": "duplicate"})).0, 200);
    comes_true("it is paid", || server.get(&format!("/v1/orders/{order}")).1["status"] == "PAID");
}

fn reserve(server: &Server, number: usize) -> (u16, String) {
    let (status, answer) = server.post(RESERVE, &buyer(&format!("u{number}"), "r"));
    (status, answer["reservation_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned())
}

fn order_of(server: &Server, reservation: &str) -> String {
    let mut order = Value::Null;
    comes_true("the order is made", || {
        order = server.get(&format!("/v1/reservations/{reservation}?wait_ms=1000")).1["order_id"].clone();
        order.is_string()
    });
    order.as_str().unwrap().to_owned()
}

fn grant(server: &Server, account: &str, amount: i64) {
    let body = json!({"amount": amount, "reference": "spring"});
    let path = format!("/v1/accounts/{account}/grants");
    let key = format!("idempotency-key: grant-{account}\r\n");
    assert_eq!(ask_with(&server.address, "POST", &path, Some(&body), &key).unwrap().0, 201);
}

fn pause(server: &Server, lane: &str, verb: &str) {
    let path = format!("/v1/ops/queues/{lane}/{verb}");
    assert_eq!(ask(&server.address, "POST", &path, None).unwrap().0, 204, "{path}");
}

fn statement(server: &Server) -> Value {
    server.get("/v1/accounts/studio/entries").1
}

/// Begins everything, and kills the server in the middle of it: orders that are paid, being paid and cancelled, reservations
/// whose messages are not sent, a group before its deadline, a job between two runs.
pub(crate) fn begin(folder: &Path) -> HalfWay {
    let server = Server::start(folder);
    server.put_on_sale(STOCK);
    let mut reservations: Vec<String> = (0..DECIDED).map(|number| reserve(&server, number).1).collect();
    let orders: Vec<String> = reservations.iter().map(|one| order_of(&server, one)).collect();
    let payment = pay(&server, &orders[0]);
    succeed(&server, payment["payment_id"].as_str().unwrap(), &orders[0]);
    let attempt = pay(&server, &orders[1])["payment_id"].as_str().unwrap().to_owned();
    let cancel = format!("/v1/orders/{}/cancel", orders[2]);
    assert_eq!(server.post(&cancel, &json!({"reason": "changed my mind"})).0, 200);
    let (paid, cancelled) = (format!("/v1/orders/{}", orders[0]), format!("/v1/orders/{}", orders[2]));
    comes_true("it is cancelled", || server.get(&cancelled).1["status"] == "CANCELLED");

    for user in ["ann", "bob"] {
        grant(&server, user, 50);
    }
    let terms = json!({
        "leader_user_id": "ann", "deadline": "2099-01-01T00:00:00Z", "charge_via": "wallet", "currency": "CNY",
    });
    assert_eq!(server.put("/v1/groups/later", &terms).0, 201);
    let (_, overview) = server.get("/v1/ops/overview");
    let now: jiff::Timestamp = overview["now"].as_str().unwrap().parse().unwrap();
    let mut soon = terms;
    soon["deadline"] = json!(format!("{:.3}", now + jiff::SignedDuration::from_secs(4)));
    assert_eq!(server.put("/v1/groups/soon", &soon).0, 201);
    for user in ["ann", "bob"] {
        let amount = json!({"amount": {"amount": 10, "currency": "CNY"}});
        assert_eq!(server.put(&format!("/v1/groups/soon/participants/{user}"), &amount).0, 201);
    }
    // It settles after the move, whenever that is.
    pause(&server, "settlement", "pause");

    grant(&server, "studio", 100);
    for job in ["done", "again"] {
        assert_eq!(
            server.put(&format!("/v1/jobs/{job}"), &json!({"account_id": "studio", "cost": 30})).0,
            201
        );
    }
    assert_eq!(server.post("/v1/jobs/done/succeed", &json!({})).0, 200);
    assert_eq!(server.post("/v1/jobs/again/fail", &json!({"reason": "no paper"})).0, 200);

    // From here on nothing is sent: these reservations are the gate's alone.
    pause(&server, "send_due", "pause");
    reservations.extend((DECIDED..DECIDED + OPEN).map(|number| reserve(&server, number).1));
    let half_way = HalfWay {
        paid: server.get(&paid).1,
        cancelled: server.get(&cancelled).1,
        statement: statement(&server),
        attempt,
        orders,
        reservations,
    };
    server.kill();
    half_way
}

/// Goes on where [`begin`] stopped: whatever was asked before is recognised, and everything comes to its end.
pub(crate) fn finish_all(server: &Server, half_way: &HalfWay) {
    for (number, reservation) in half_way.reservations.iter().enumerate() {
        assert_eq!(reserve(server, number), (200, reservation.clone()), "a repeat is recognised");
    }
    assert_eq!(server.get(&format!("/v1/orders/{}", half_way.orders[0])).1, half_way.paid);
    assert_eq!(server.get(&format!("/v1/orders/{}", half_way.orders[2])).1, half_way.cancelled);
    assert_eq!(statement(server), half_way.statement);
    let again = pay(server, &half_way.orders[1]);
    assert_eq!(again["payment_id"], half_way.attempt.as_str(), "the first answer again");
    succeed(server, &half_way.attempt, &half_way.orders[1]);

    let open = &half_way.reservations[DECIDED..];
    let state = |id: &String| server.get(&format!("/v1/reservations/{id}")).1["status"].clone();
    assert!(open.iter().all(|id| state(id) == "RESERVED"), "a paused queue is paused wherever it is");
    pause(server, "send_due", "resume");
    pause(server, "settlement", "resume");
    for reservation in open {
        order_of(server, reservation);
    }
    comes_true("the group is settled", || server.get("/v1/groups/soon").1["status"] == "SETTLED");
    assert_eq!(server.get("/v1/accounts/ann").1["balance"], 40);
    assert_eq!(server.get("/v1/groups/later").1["status"], "OPEN");
    assert_eq!(server.post("/v1/jobs/again/succeed", &json!({})).0, 200);
    assert_eq!(server.get("/v1/accounts/studio").1["balance"], 40, "reclaimed, once");

    assert_eq!(reserve(server, 99).0, 202, "and the sale goes on");
    let sold = (DECIDED + OPEN) as i64;
    let left = i64::from(STOCK) - sold;
    comes_true("the gate has heard of everything", || {
        server.get("/v1/activities/sale/skus/a").1["admission"]
            == json!({"available": left, "open_reserved": 0, "committed": sold})
    });
    let invariants = server.get("/v1/ops/invariants").1;
    assert_eq!(invariants["holds"], true, "{invariants}");
}

/// Exports a store into a file.
pub(crate) fn export(data: &Path, urls: &[(&str, &str)], file: &Path) -> Output {
    let out = File::create(file).unwrap();
    let mut command = onceward();
    command.args(["export", "--data"]).arg(data).envs(urls.iter().copied());
    let child = command.stdout(Stdio::from(out)).stderr(Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap()
}

/// Imports a file into a store.
pub(crate) fn import(data: &Path, urls: &[(&str, &str)], file: &Path) -> Output {
    let mut command = import_command(data, file);
    finish(command.envs(urls.iter().copied()))
}

/// The same, not begun yet.
pub(crate) fn import_command(data: &Path, file: &Path) -> Command {
    let mut command = onceward();
    command.args(["import", "--data"]).arg(data).stdin(Stdio::from(File::open(file).unwrap()));
    command
}

/// A folder with the secret and the sandbox bank of another, and no store.
pub(crate) fn beside(name: &str, other: &Path) -> Folder {
    let folder = Folder::new(name);
    for file in ["secret", "sandbox-secret", "sandbox-bank.jsonl"] {
        fs::copy(other.join(file), folder.path().join(file)).unwrap();
    }
    folder
}

/// That a command went well.
pub(crate) fn went_well(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}
