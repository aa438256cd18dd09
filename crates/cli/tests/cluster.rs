//! `onceward serve` over real servers: PostgreSQL alone, and with Redis and RocketMQ, two nodes each (EM-02, EM-03, EM-05).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use house::cluster::{database, node, order_of, start};
use house::{Folder, Server, buyer, comes_true};
use onceward_testkit::services;
use serde_json::json;

const UNITS: usize = 5;
const BUYERS: usize = 20;

/// Twenty buyers at two nodes want five units; every request is asked twice, once at each node. Five orders are made, one is
/// paid for by nobody like the others, and all end when their time is up.
fn sale(nodes: [&Server; 2], activity: &str) {
    let terms = json!({
        "name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
        "payment_window_ms": 8_000, "cancel_grace_ms": 0,
    });
    assert_eq!(nodes[0].put(&format!("/v1/activities/{activity}"), &terms).0, 201);
    let sku = format!("/v1/activities/{activity}/skus/a");
    let price = json!({"amount": 1999, "currency": "CNY"});
    let stock = json!({"stock": UNITS, "price": price, "per_user_limit": 1});
    assert_eq!(nodes[0].put(&sku, &stock).0, 201);
    let reserve = format!("{sku}/reservations");
    let mut winners = Vec::new();
    for number in 0..BUYERS {
        let wish = buyer(&format!("u{number}"), "r");
        let (status, answer) = nodes[number % 2].post(&reserve, &wish);
        let (again, repeat) = nodes[(number + 1) % 2].post(&reserve, &wish);
        match status {
            202 => {
                assert_eq!((again, &repeat["reservation_id"]), (200, &answer["reservation_id"]), "{repeat}");
                winners.push(answer["reservation_id"].as_str().unwrap().to_owned());
            }
            409 => assert_eq!((again, &answer["code"]), (409, &json!("sold_out")), "{answer}"),
            _ => panic!("{status}: {answer}"),
        }
    }
    assert_eq!(winners.len(), UNITS);
    let orders: Vec<String> = winners.iter().map(|winner| order_of(nodes[1], winner)).collect();
    let ended = |order: &String| nodes[0].get(&format!("/v1/orders/{order}")).1["status"] == "CANCELLED";
    comes_true("every order expires", || orders.iter().all(ended));
    comes_true("all is projected", || {
        nodes[1].get(&sku).1["admission"] == json!({"available": UNITS, "open_reserved": 0, "committed": 0})
    });
    let invariants = nodes[1].get("/v1/ops/invariants").1;
    assert_eq!(invariants["holds"], true, "{invariants}");
}

#[test]
fn em_05_two_nodes_sell_on_postgres_alone_and_one_with_another_secret_is_refused() {
    let url = database("postgres", "ONCEWARD_TEST_POSTGRES_URL", "cli_postgres_alone");
    let urls = [("ONCEWARD_STORE_URL", url.as_str())];
    let folders = ["pg-one", "pg-two", "pg-three"].map(Folder::new);
    let first = start(&mut node(&folders[0], folders[0].path(), &urls, "store"));
    let second = start(&mut node(&folders[1], folders[0].path(), &urls, "store"));
    let refused = Server::spawn(&mut node(&folders[2], folders[2].path(), &urls, "store"));
    let said = refused.err().expect("a node with a secret of its own does not start").join("\n");
    assert!(said.contains("not the one that the database was begun with"), "{said}");
    sale([&first, &second], "sale");
    assert!(first.terminate().success() && second.terminate().success());
}

#[test]
fn em_02_two_nodes_sell_with_postgres_redis_and_rocketmq() {
    let url = database("postgres", "ONCEWARD_TEST_POSTGRES_URL", "cli_cluster");
    let redis = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let broker = services::address("rocketmq", "ONCEWARD_TEST_BROKER_URL");
    let urls =
        [("ONCEWARD_STORE_URL", &*url), ("ONCEWARD_REDIS_URL", &redis), ("ONCEWARD_BROKER_URL", &broker)];
    let folders = ["all-one", "all-two"].map(Folder::new);
    let first = start(&mut node(&folders[0], folders[0].path(), &urls, "zset"));
    assert!(first.said.iter().any(|line| line == "admission: Redis"), "{:?}", first.said);
    let second = start(&mut node(&folders[1], folders[0].path(), &urls, "zset"));
    // Redis keeps what an earlier run left there: each run has a sale of its own.
    sale([&first, &second], &format!("sale-{}", std::process::id()));
    assert!(first.terminate().success() && second.terminate().success());
}
