//! Five ways to be told that time is up, in every mode: the same sale, the same results, and what a way loses is swept (OT-10).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use house::{PATIENCE, Server, Site, buyer, comes_true_within, finish, stderr};
use onceward_domain::ports::deadline::TriggerKind;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

const UNITS: i64 = 5;
const BUYERS: usize = 8;
/// How long orders may be paid: long enough for all of them to be made, and one of them to be paid.
const WINDOW_MS: i64 = 15_000;
/// The same where a first round has shown that the machine needs longer.
const LONG_WINDOW_MS: i64 = 4 * WINDOW_MS;
/// Between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What becomes of a sale with five units, eight buyers, and one who pays.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    cancelled: usize,
    paid: usize,
    early: usize,
    stock: Value,
    admission: Value,
    holds: Value,
}

fn expected() -> Outcome {
    Outcome {
        cancelled: 4,
        paid: 1,
        early: 0,
        stock: json!({ "initial": UNITS, "available": UNITS - 1, "occupied": 0, "sold": 1 }),
        admission: json!({ "available": UNITS - 1, "open_reserved": 0, "committed": 1 }),
        holds: json!(true),
    }
}

/// Whether a mode has what a trigger needs.
fn is_possible(mode: Mode, trigger: TriggerKind) -> bool {
    match (mode, trigger) {
        (_, TriggerKind::Store | TriggerKind::Queue) => true,
        #[cfg(feature = "real-services")]
        (Mode::Cluster, TriggerKind::Zset | TriggerKind::Broker | TriggerKind::Keyspace) => true,
        (_, TriggerKind::Zset | TriggerKind::Broker | TriggerKind::Keyspace) => false,
    }
}

/// Whether it forgets everything when the process that it tells is killed over the time.
fn forgets(trigger: TriggerKind) -> bool {
    match trigger {
        TriggerKind::Queue | TriggerKind::Keyspace => true,
        TriggerKind::Zset | TriggerKind::Store | TriggerKind::Broker => false,
    }
}

in_every_mode! {
    plain:
    ot_10_whatever_tells_that_time_is_up_the_same_sale_has_the_same_results,
}

fn ot_10_whatever_tells_that_time_is_up_the_same_sale_has_the_same_results(mode: Mode) {
    let row = |trigger: TriggerKind| {
        let site = Site::new(mode, trigger.name());
        let refused = finish_if_refused(&site, mode, trigger);
        if !refused {
            assert_eq!(alive(&site, trigger), expected(), "{mode:?} {trigger:?}");
            assert_eq!(killed(&site, trigger), expected(), "{mode:?} {trigger:?}, killed over the time");
        }
    };
    let failed: Vec<TriggerKind> = std::thread::scope(|scope| {
        let rows = TriggerKind::ALL.map(|trigger| (trigger, scope.spawn(move || row(trigger))));
        rows.into_iter().filter_map(|(trigger, row)| row.join().is_err().then_some(trigger)).collect()
    });
    assert!(failed.is_empty(), "{mode:?}: {failed:?}");
}

/// What a trigger needs and a mode lacks is named before anything is opened.
fn finish_if_refused(site: &Site, mode: Mode, trigger: TriggerKind) -> bool {
    if is_possible(mode, trigger) {
        return false;
    }
    let refused = finish(site.command().args(["--deadline-trigger", trigger.name()]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("_url"), "{}", stderr(&refused));
    true
}

fn serve(site: &Site, trigger: TriggerKind) -> Server {
    let mut command = site.command();
    command.args(["--deadline-trigger", trigger.name()]);
    Server::spawn(&mut command).unwrap_or_else(|said| panic!("{trigger:?} did not start: {said:?}"))
}

/// The server lives through the sale.
fn alive(site: &Site, trigger: TriggerKind) -> Outcome {
    let server = serve(site, trigger);
    let orders = sell(&server, "alive", WINDOW_MS);
    ended(&server, &orders);
    let outcome = outcome(&server, "alive", &orders);
    assert!(server.terminate().success());
    outcome
}

/// The server is killed when the orders are made, and starts again when their time has been up for a while.
fn killed(site: &Site, trigger: TriggerKind) -> Outcome {
    let mut rounds = [WINDOW_MS, LONG_WINDOW_MS].into_iter();
    let outcome = rounds.find_map(|window_ms| killed_within(site, trigger, window_ms));
    outcome.expect("the server is killed before the orders' time is up")
}

/// The same with this much time; nothing where the first server has lived long enough to end every order itself.
fn killed_within(site: &Site, trigger: TriggerKind, window_ms: i64) -> Option<Outcome> {
    let activity = format!("killed-{window_ms}");
    let server = serve(site, trigger);
    let orders = sell(&server, &activity, window_ms);
    let due = orders.iter().filter_map(|order| time(&server, order, "cancel_due_at")).max().unwrap();
    server.kill();
    let killed_at = now();
    let until = due + jiff::SignedDuration::from_secs(1);
    let (_never, pause) = sync_channel::<()>(0);
    while now() < until {
        assert_eq!(pause.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout));
    }
    let server = serve(site, trigger);
    ended(&server, &orders);
    // On a busy machine the first server may have lived long enough to end some of them itself.
    let is_left = |order: &&String| time(&server, order, "cancelled_at").is_some_and(|at| at > killed_at);
    let left = orders.iter().filter(is_left).count();
    if left > 0 && forgets(trigger) {
        // What is counted is counted after its commit, which others may see a moment before.
        comes_true("the sweep has found all that were left", || swept(&server) == left);
    }
    let outcome = outcome(&server, &activity, &orders);
    assert!(server.terminate().success());
    (left > 0).then_some(outcome)
}

#[expect(clippy::disallowed_methods, reason = "servers go by the machine's time")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// A time that an order tells, if it does.
fn time(server: &Server, order: &str, field: &str) -> Option<jiff::Timestamp> {
    Some(server.get(order).1[field].as_str()?.parse().unwrap())
}

/// How many orders the sweep found since the start.
fn swept(server: &Server) -> usize {
    let text = house::text(&server.address, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix("onceward_deadline_signal_lost_total "));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

/// Eight buyers want five units; the first of those who get one pays. Answers the paths of the orders, the paid one first.
fn sell(server: &Server, activity: &str, window_ms: i64) -> Vec<String> {
    let terms = json!({
        "name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
        "payment_window_ms": window_ms, "cancel_grace_ms": 0,
    });
    assert_eq!(server.put(&format!("/v1/activities/{activity}"), &terms).0, 201);
    let sku = format!("/v1/activities/{activity}/skus/a");
    let stock =
        json!({ "stock": UNITS, "price": { "amount": 1999, "currency": "CNY" }, "per_user_limit": 1 });
    assert_eq!(server.put(&sku, &stock).0, 201);
    let mut winners = Vec::new();
    for number in 0..BUYERS {
        let (status, answer) =
            server.post(&format!("{sku}/reservations"), &buyer(&format!("u{number}"), "r"));
        match status {
            202 => winners.push(answer["reservation_id"].as_str().unwrap().to_owned()),
            _ => assert_eq!((status, &answer["code"]), (409, &json!("sold_out")), "{answer}"),
        }
    }
    let orders: Vec<String> = winners.iter().map(|winner| order_of(server, winner)).collect();
    assert_eq!(i64::try_from(orders.len()).unwrap(), UNITS);
    let wish = json!({ "provider": "sandbox" });
    let key = "idempotency-key: pay\r\n";
    let path = format!("{}/payments", orders[0]);
    let (status, started) = house::ask_with(&server.address, "POST", &path, Some(&wish), key).unwrap();
    assert_eq!(status, 201, "{started}");
    let payment = started["payment_id"].as_str().unwrap();
    let act = json!({ "callback": "send" });
    assert_eq!(server.post(&format!("/sandbox/payments/{payment}/succeed"), &act).0, 200);
    comes_true("it is paid", || server.get(&orders[0]).1["status"] == "PAID");
    orders
}

fn order_of(server: &Server, reservation: &str) -> String {
    let mut order = Value::Null;
    comes_true("the order is made", || {
        order = server.get(&format!("/v1/reservations/{reservation}?wait_ms=5000")).1["order_id"].clone();
        order.is_string()
    });
    format!("/v1/orders/{}", order.as_str().unwrap())
}

/// Waits until every order but the paid one has ended, and the gate knows.
fn ended(server: &Server, orders: &[String]) {
    let has_ended = |order: &String| {
        let status = server.get(order).1["status"].clone();
        status == "PAID" || status == "CANCELLED"
    };
    comes_true("every order ends", || orders.iter().all(has_ended));
}

fn comes_true(what: &str, is_so: impl FnMut() -> bool) {
    comes_true_within(2 * PATIENCE, what, is_so);
}

fn outcome(server: &Server, activity: &str, orders: &[String]) -> Outcome {
    let path = format!("/v1/activities/{activity}/skus/a");
    comes_true("all is projected", || server.get(&path).1["admission"] == expected().admission);
    let rows: Vec<Value> = orders.iter().map(|order| server.get(order).1).collect();
    let count = |status: &str| rows.iter().filter(|row| row["status"] == status).count();
    let at =
        |row: &Value, name: &str| row[name].as_str().map(|text| text.parse::<jiff::Timestamp>().unwrap());
    let is_early =
        |row: &&Value| at(row, "cancelled_at").is_some_and(|end| Some(end) < at(row, "cancel_due_at"));
    let sku = server.get(&path).1;
    Outcome {
        cancelled: count("CANCELLED"),
        paid: count("PAID"),
        early: rows.iter().filter(is_early).count(),
        stock: sku["stock"].clone(),
        admission: sku["admission"].clone(),
        holds: server.get("/v1/ops/invariants").1["holds"].clone(),
    }
}
