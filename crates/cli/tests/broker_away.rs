//! A broker that is killed in the middle of a sale, and comes back a minute later (FS-16).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::time::{Duration, Instant};

use house::cluster::{assert_sold, database, node, open_sale, order_of, start};
use house::crowd::Crowd;
use house::{Folder, buyer, comes_true, comes_true_within};
use onceward_testkit::services;
use serde_json::json;

const STOCK: usize = 100_000;
/// Admission closes when a reservation has waited this long to be sent.
const OUTAGE: (&str, &str) = ("ONCEWARD_BACKLOG_OUTAGE_MS", "5000");
/// How long the broker is away.
const AWAY: Duration = Duration::from_secs(60);
/// What passes before everybody has found the broker again: it starts anew, and waits after failures have grown.
const FOUND_AGAIN: Duration = Duration::from_secs(150);

#[test]
fn fs_16_a_broker_killed_for_a_minute_in_a_sale_closes_admission_which_opens_by_itself_and_nothing_is_lost() {
    let broker = services::address("rocketmq", "ONCEWARD_TEST_BROKER_URL");
    let url = database("postgres", "ONCEWARD_TEST_POSTGRES_URL", "cli_broker_away");
    let redis = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let urls = [
        ("ONCEWARD_STORE_URL", &*url),
        ("ONCEWARD_REDIS_URL", &redis),
        ("ONCEWARD_BROKER_URL", &broker),
        OUTAGE,
    ];
    let folders = ["away-one", "away-two"].map(Folder::new);
    let nodes = folders.each_ref().map(|folder| start(&mut node(folder, folders[0].path(), &urls, "zset")));
    // Redis keeps what an earlier run left there: each run has a sale of its own.
    let sku = open_sale(&nodes[0], &format!("away-{}", std::process::id()), STOCK);
    let reserve = format!("{sku}/reservations");
    let (status, first) = nodes[0].post(&reserve, &buyer("first", "r"));
    assert_eq!(status, 202, "{first}");
    order_of(&nodes[1], first["reservation_id"].as_str().unwrap());

    let crowd = Crowd::at(&nodes.each_ref().map(|node| node.address.clone()), &sku);
    comes_true("a crowd is let in", || crowd.let_in() > 100);
    services::kill("rocketmq", "broker");
    let down = Instant::now();
    comes_true("admission closes at both nodes", || {
        nodes.iter().all(|node| node.get("/readyz").1["admission"]["reason"] == "outage")
    });
    let (closed_after, let_in) = (down.elapsed(), crowd.let_in());
    assert!(closed_after >= Duration::from_secs(4), "not before its threshold: {closed_after:?}");
    let known = nodes[1].post(&reserve, &buyer("first", "r"));
    assert_eq!((known.0, &known.1["reservation_id"]), (200, &first["reservation_id"]), "{}", known.1);
    comes_true_within(2 * AWAY, "the broker is away for a minute", || down.elapsed() >= AWAY);
    let refused = crowd.refused();
    assert!(refused > 0 && crowd.let_in() < let_in + 20, "it stays closed: {let_in}, {}", crowd.let_in());

    services::revive("rocketmq", "broker");
    let (up, let_in) = (Instant::now(), crowd.let_in());
    comes_true_within(FOUND_AGAIN, "admission opens by itself", || crowd.let_in() > let_in + 50);
    let opened_after = up.elapsed();
    let told = crowd.disperse();
    for one in &told {
        order_of(&nodes[0], &one.reservation);
    }
    assert_sold(&nodes[1], &sku, STOCK, told.len() + 1);
    let open = nodes[0].get("/readyz").1["admission"]["open"].clone();
    assert_eq!(open, json!(true), "it is open at the end");
    eprintln!(
        "closed after {closed_after:?}, open {opened_after:?} after the broker; {} orders, {refused} refused meanwhile, drained \
         after {:?}",
        told.len() + 1,
        up.elapsed()
    );
    for node in nodes {
        assert!(node.terminate().success());
    }
}
