//! What an operator asks a running server for: group orders and credits, by the real program.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::process::Output;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use house::{Server, Site, ask_with, finish, onceward, stderr};
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most looks for one thing: two minutes of them. A group is given up after 31 seconds of back-off.
const LOOKS_LIMIT: u32 = 1_200;

fn run(server: &Server, arguments: &[&str]) -> Output {
    finish(onceward().args(arguments).args(["--server", &server.address]))
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    assert_eq!(stderr(output), "", "only data is said");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

fn json_of(server: &Server, arguments: &[&str]) -> Value {
    let output = run(server, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a command that is refused, and gives its exit code.
fn refused(server: &Server, arguments: &[&str], reason: &str) -> i32 {
    let output = run(server, arguments);
    assert!(
        output.stdout.is_empty() && stderr(&output).contains(reason),
        "{arguments:?}: {}",
        stderr(&output)
    );
    output.status.code().unwrap()
}

fn in_a_second(server: &Server) -> String {
    let (_, overview) = server.get("/v1/ops/overview");
    let now: jiff::Timestamp = overview["now"].as_str().unwrap().parse().unwrap();
    format!("{:.3}", now + jiff::SignedDuration::from_secs(1))
}

in_every_mode! {
    plain:
    gs_06_a_failed_group_is_listed_shown_and_settled_by_an_operator,
    cl_08_an_operator_gives_looks_back_and_exports,
    cl_08_a_statement_of_many_pages_is_one_statement,
}

fn gs_06_a_failed_group_is_listed_shown_and_settled_by_an_operator(mode: Mode) {
    let site = Site::new(mode, "operator-groups");
    let server = site.start();
    assert_eq!(server.put("/sandbox/mode", &json!({ "charge": "error" })).0, 200);
    let terms = |deadline: &str| json!({ "leader_user_id": "lea", "deadline": deadline, "charge_via": "sandbox", "currency": "CNY" });
    assert_eq!(server.put("/v1/groups/g", &terms(&in_a_second(&server))).0, 201);
    let amount = json!({ "amount": { "amount": 10, "currency": "CNY" } });
    assert_eq!(server.put("/v1/groups/g/participants/ann", &amount).0, 201);
    assert_eq!(server.put("/v1/groups/later", &terms("2099-01-01T00:00:00Z")).0, 201);

    assert_eq!(refused(&server, &["groups", "settle", "later"], "group_not_retryable"), 10);
    assert_eq!(refused(&server, &["groups", "show", "none"], "not_found"), 10);
    assert_eq!(refused(&server, &["groups", "list", "--status", "DONE"], "invalid"), 10);
    assert_eq!(refused(&server, &["groups", "settle", "later", "--key", "two words"], "--key"), 2);

    let (_never, pause) = sync_channel::<()>(0);
    let until = |status: &str| {
        for _ in 0..LOOKS_LIMIT {
            if server.get("/v1/groups/g").1["status"] == status {
                return;
            }
            assert_eq!(pause.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout));
        }
        panic!("the group is never {status}");
    };
    until("FAILED");
    let listed = json_of(&server, &["groups", "list", "--status", "FAILED"]);
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["group_id"]), (1, &json!("g")));
    assert!(said(&run(&server, &["groups", "list"])).contains("later"));
    let shown = said(&run(&server, &["groups", "show", "g"]));
    assert!(shown.contains("FAILED") && shown.contains("PENDING   ann"), "{shown}");

    assert_eq!(server.put("/sandbox/mode", &json!({ "charge": "timeout_after_effect" })).0, 200);
    for _twice in 0..2 {
        let settled = json_of(&server, &["groups", "settle", "g", "--key", "again"]);
        assert_eq!(settled["status"], "CLOSED", "with one key it is one wish");
    }
    until("SETTLED");
    let whole = json_of(&server, &["groups", "show", "g"]);
    let causes: Vec<&str> =
        whole["timeline"].as_array().unwrap().iter().map(|line| line["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["made", "closed", "failed", "retried", "settled"]);
    let (_, taken) = server.get("/sandbox/customers/ann/charges");
    assert_eq!(taken["data"].as_array().map(Vec::len), Some(1), "{taken}");
    assert!(server.terminate().success());
}

fn failed_job(server: &Server) {
    assert_eq!(server.put("/v1/jobs/j", &json!({ "account_id": "studio", "cost": 40 })).0, 201);
    assert_eq!(server.post("/v1/jobs/j/fail", &json!({ "reason": "no paper", "retryable": false })).0, 200);
}

fn cl_08_an_operator_gives_looks_back_and_exports(mode: Mode) {
    let site = Site::new(mode, "operator-credits");
    let server = site.start();
    let grant = ["credits", "grant", "studio", "100", "--reference", "spring", "--key", "k-1"];
    let first = json_of(&server, &grant);
    assert_eq!(
        (&first["type"], &first["amount"], &first["balance_after"]),
        (&json!("grant"), &json!(100), &json!(100))
    );
    assert_eq!(json_of(&server, &grant), first, "with one key it is one entry");
    assert_eq!(
        refused(
            &server,
            &["credits", "grant", "studio", "99", "--reference", "spring", "--key", "k-1"],
            "idempotency_key_reused"
        ),
        10
    );
    failed_job(&server);
    let then = server.get("/v1/accounts/studio").1["as_of"].as_str().unwrap().to_owned();
    assert!(
        said(&run(&server, &["credits", "adjust", "studio", "-30", "--reason", "counted twice"]))
            .contains("balance    70")
    );
    assert_eq!(
        refused(&server, &["credits", "adjust", "studio", "-71", "--reason", "x"], "insufficient_credit"),
        10
    );
    assert_eq!(refused(&server, &["credits", "adjust", "studio", "0", "--reason", "x"], "invalid"), 10);
    assert_eq!(refused(&server, &["credits", "show", "nobody"], "not_found"), 10);
    assert_eq!(json_of(&server, &["credits", "show", "studio"])["balance"], 70);
    assert_eq!(json_of(&server, &["credits", "show", "studio", "--at", &then])["balance"], 100);
    let job = said(&run(&server, &["credits", "job", "j"]));
    assert!(
        job.contains("status     FAILED") && job.contains("refunded   yes") && job.contains("net        0"),
        "{job}"
    );
    let table = said(&run(&server, &["credits", "statement", "studio"]));
    let kinds: Vec<&str> =
        table.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(kinds, ["grant", "charge", "refund", "adjust"], "{table}");
    assert!(server.terminate().success());
}

fn cl_08_a_statement_of_many_pages_is_one_statement(mode: Mode) {
    const ENTRIES: usize = 405;
    let site = Site::new(mode, "operator-statement");
    let server = site.start();
    for number in 0..ENTRIES {
        let body = json!({ "amount": number + 1, "reference": format!("gift {number}, =1+1") });
        let key = format!("idempotency-key: k{number}\r\n");
        let answer = ask_with(&server.address, "POST", "/v1/accounts/a/grants", Some(&body), &key).unwrap();
        assert_eq!(answer.0, 201);
    }
    let entries = json_of(&server, &["credits", "statement", "a"]);
    let amounts: Vec<usize> = entries["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["amount"].as_u64().unwrap() as usize)
        .collect();
    assert_eq!(amounts, (1..=ENTRIES).collect::<Vec<_>>(), "oldest first, none twice, none missing");
    let output = run(&server, &["credits", "statement", "a", "--csv"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    assert_eq!(csv.matches("entry_id").count(), 1, "one head");
    assert_eq!(csv.lines().count(), ENTRIES + 1);
    assert_eq!(run(&server, &["credits", "statement", "a", "--csv", "--json"]).status.code(), Some(2));
    assert!(server.terminate().success());
    let gone = finish(onceward().args(["credits", "show", "a", "--server", "127.0.0.1:1"]));
    assert_eq!(gone.status.code(), Some(12), "nobody listens: the same request later");
}

#[test]
fn fs_18_the_gate_of_an_embedded_server_is_shown_and_has_nothing_to_rebuild() {
    let site = Site::new(Mode::Embedded, "operator-gate");
    let server = site.start();
    server.put_on_sale(5);
    let listed = json_of(&server, &["admission", "status"]);
    let counters = json!({ "available": 5, "open_reserved": 0, "committed": 0 });
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["admission"]), (1, &counters));
    assert!(said(&run(&server, &["admission", "status"])).contains("open"));
    assert!(said(&run(&server, &["admission", "status", "sale", "a"])).contains("open, in the store"));
    let rebuilt = json_of(&server, &["admission", "rebuild", "sale", "a"]);
    assert_eq!((&rebuilt["in_store"], &rebuilt["epoch"]), (&json!(true), &json!(0)));
    assert_eq!(json_of(&server, &["admission", "rebuild", "--all"]), listed, "there was nothing to do");
    assert_eq!(refused(&server, &["admission", "status", "sale", "none"], "not_found"), 10);
    for unfit in
        [&["admission", "rebuild"][..], &["admission", "rebuild", "sale"], &["admission", "status", "sale"]]
    {
        assert_eq!(refused(&server, unfit, "required"), 2);
    }
    assert!(server.terminate().success());
}
