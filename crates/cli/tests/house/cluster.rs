//! Nodes over real servers, and what their tests wait for.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use onceward_testkit::services;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use super::{Folder, Server, comes_true_within, onceward};

/// Longest wait for everything to come to rest after a fault: waits after failures grow to half a minute, and a broker gives
/// out again what nobody has settled half a minute after its lease.
pub(crate) const REST: Duration = Duration::from_secs(240);

/// A schema that nobody else has, as a store's URL; the next run with this name begins it anew.
pub(crate) fn database(service: &'static str, variable: &'static str, name: &str) -> String {
    let server = services::address(service, variable);
    on_server(&server, &format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"));
    format!("{server}?options=-csearch_path%3D{name}")
}

/// Carries out statements on a server.
pub(crate) fn on_server(url: &str, statements: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
    });
}

/// A number that a server counts.
pub(crate) fn count(url: &str, question: &str) -> i64 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one(question, &[]).await.unwrap().get(0)
    })
}

/// A node that is not started yet, with the secret of the first one, short leases, and this trigger.
pub(crate) fn node(folder: &Folder, first: &Path, urls: &[(&str, &str)], trigger: &str) -> Command {
    let mut command = usual_node(folder, first, urls);
    command.args(["--deadline-trigger", trigger]).env("ONCEWARD_LEASE_MS", "500");
    command
}

/// The same as people start it.
pub(crate) fn usual_node(folder: &Folder, first: &Path, urls: &[(&str, &str)]) -> Command {
    let mut command = onceward();
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(folder.path()).envs(urls.iter().copied());
    if folder.path() != first {
        command.env("ONCEWARD_SECRET_FILE", first.join("secret"));
    }
    command
}

pub(crate) fn start(command: &mut Command) -> Server {
    Server::spawn(command).unwrap_or_else(|said| panic!("it did not start: {said:?}"))
}

/// Puts one SKU `a` of an activity on sale, with a limit of one, for so long that nothing expires meanwhile.
pub(crate) fn open_sale(node: &Server, activity: &str, stock: usize) -> String {
    let terms = json!({
        "name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
        "payment_window_ms": 3_600_000, "cancel_grace_ms": 0, "reservation_deadline_ms": 900_000,
    });
    assert_eq!(node.put(&format!("/v1/activities/{activity}"), &terms).0, 201);
    let sku = format!("/v1/activities/{activity}/skus/a");
    let price = json!({"amount": 1999, "currency": "CNY"});
    let body = json!({"stock": stock, "price": price, "per_user_limit": 1});
    assert_eq!(node.put(&sku, &body).0, 201);
    sku
}

/// The order of a reservation, as soon as there is one.
pub(crate) fn order_of(node: &Server, reservation: &str) -> String {
    let mut answer = Value::Null;
    comes_true_within(REST, &format!("reservation {reservation} becomes an order"), || {
        answer = node.get(&format!("/v1/reservations/{reservation}?wait_ms=2000")).1;
        answer["order_id"].is_string()
    });
    answer["order_id"].as_str().unwrap().to_owned()
}

/// Nothing is on its way, nothing was set aside, every unit is free or in one of so many orders, and all invariants hold.
pub(crate) fn assert_sold(node: &Server, sku: &str, stock: usize, orders: usize) {
    let left = stock - orders;
    let mut seen = Value::Null;
    let expected = json!({"available": left, "open_reserved": 0, "committed": orders});
    comes_true_within(REST, &format!("{orders} of {stock} are sold, and the gate knows"), || {
        seen = node.get(sku).1;
        seen["admission"] == expected
    });
    let stock_of = &seen["stock"];
    assert_eq!((&stock_of["available"], &stock_of["occupied"]), (&json!(left), &json!(orders)), "{seen}");
    let overview = node.get("/v1/ops/overview").1;
    let queues = overview["queues"].as_array().unwrap();
    let dead = queues.iter().filter(|one| one["name"].as_str().is_some_and(|name| name.starts_with("dead/")));
    assert!(dead.clone().all(|one| one["size"] == 0), "{:?}", dead.collect::<Vec<_>>());
    assert_eq!(overview["quarantined"], 0, "{overview}");
    let invariants = node.get("/v1/ops/invariants").1;
    assert_eq!(invariants["holds"], true, "{invariants}");
}
