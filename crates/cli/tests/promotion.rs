//! PostgreSQL as a synchronous pair: its primary is killed under load, its standby is promoted, and the same nodes go on (FS-10).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use house::cluster::{assert_sold, count, database, node, on_server, open_sale, order_of, start};
use house::crowd::Crowd;
use house::{Folder, Server, ask, buyer, comes_true_within};
use onceward_testkit::services;

const STOCK: usize = 100_000;
const PAIR: &str = "postgres-pair";
/// What passes before the nodes have found the new primary and everybody is served again.
const FOUND_AGAIN: Duration = Duration::from_secs(120);

/// Two nodes with a sale of their own.
struct Shop {
    nodes: [Server; 2],
    sku: String,
    _folders: [Folder; 2],
}

impl Shop {
    fn open(name: &str, servers: &[(&str, &str)], trigger: &str) -> Self {
        let url = database(PAIR, "ONCEWARD_TEST_POSTGRES_PAIR_URL", &format!("cli_{name}"));
        Self::open_at(&url, name, servers, trigger)
    }

    fn open_at(url: &str, name: &str, servers: &[(&str, &str)], trigger: &str) -> Self {
        let urls: Vec<(&str, &str)> =
            [("ONCEWARD_STORE_URL", url)].into_iter().chain(servers.iter().copied()).collect();
        let folders = ["one", "two"].map(|number| Folder::new(&format!("{name}-{number}")));
        let nodes =
            folders.each_ref().map(|folder| start(&mut node(folder, folders[0].path(), &urls, trigger)));
        let sku = open_sale(&nodes[0], &format!("{name}-{}", std::process::id()), STOCK);
        Self { nodes, sku, _folders: folders }
    }

    fn crowd(&self) -> Crowd {
        Crowd::at(&self.nodes.each_ref().map(|node| node.address.clone()), &self.sku)
    }
}

/// The standby is away, so a commit waits for it, for longer than any statement may take; then somebody ends the wait. The server
/// says that it has committed, and warns: nobody may be told that it is durable.
fn a_commit_waits_for_the_standby_and_one_that_is_cut_short_is_unknown() {
    let primary = services::address(PAIR, "ONCEWARD_TEST_POSTGRES_PAIR_URL");
    let url = database(PAIR, "ONCEWARD_TEST_POSTGRES_PAIR_URL", "cli_pair_hasty");
    let shop = &Shop::open_at(&format!("{url}%20-cstatement_timeout%3D3s"), "pair_hasty", &[], "store");
    services::kill(PAIR, "standby");
    let (told, answer) = sync_channel(1);
    let (address, path) = (shop.nodes[0].address.clone(), format!("{}/reservations", shop.sku));
    let wish = buyer("hasty", "r");
    let asked = {
        let (path, wish) = (path.clone(), wish.clone());
        std::thread::spawn(move || told.send(ask(&address, "POST", &path, Some(&wish)).unwrap()))
    };
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND now() - query_start > '5 s'";
    comes_true_within(FOUND_AGAIN, "a commit has waited", || count(&primary, waiting) > 0);
    let cut = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let mut heard = None;
    comes_true_within(FOUND_AGAIN, "the buyer is answered", || {
        on_server(&primary, cut);
        heard = answer.try_recv().ok();
        heard.is_some()
    });
    asked.join().unwrap().unwrap();
    let (status, body) = heard.unwrap();
    assert!(status >= 500 && body["code"] == "outcome_unknown", "{status}: {body}");
    services::revive(PAIR, "standby");
    let (status, again) = shop.nodes[1].post(&path, &wish);
    assert!(matches!(status, 200 | 202), "{status}: {again}");
    order_of(&shop.nodes[0], again["reservation_id"].as_str().unwrap());
}

#[test]
fn fs_10_the_primary_is_killed_under_load_and_no_answered_order_is_missing_or_doubled() {
    // Asked while both are there: a pair of which one is missing is begun anew.
    let standby = services::address(PAIR, "ONCEWARD_TEST_POSTGRES_STANDBY_URL");
    let redis = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let broker = services::address("rocketmq", "ONCEWARD_TEST_BROKER_URL");
    let servers = [("ONCEWARD_REDIS_URL", &*redis), ("ONCEWARD_BROKER_URL", &*broker)];
    a_commit_waits_for_the_standby_and_one_that_is_cut_short_is_unknown();
    let shops = [Shop::open("pair_alone", &[], "store"), Shop::open("pair_with_all", &servers, "zset")];
    let crowds = shops.each_ref().map(Shop::crowd);
    let go_on = |more: u64| {
        let goals = crowds.each_ref().map(|crowd| crowd.let_in() + more);
        comes_true_within(FOUND_AGAIN, "both crowds are let in", || {
            crowds.iter().zip(goals).all(|(crowd, goal)| crowd.let_in() >= goal)
        });
    };
    go_on(100);
    services::kill(PAIR, "primary");
    let down = Instant::now();
    on_server(&standby, "SELECT pg_promote()");
    go_on(100);
    let served_after = down.elapsed();
    let repeated = crowds.each_ref().map(Crowd::lost);
    let told = crowds.map(Crowd::disperse);
    for (shop, told) in shops.iter().zip(&told) {
        for one in told {
            let order = order_of(&shop.nodes[1], &one.reservation);
            let named = one.order.as_ref();
            assert!(named.is_none_or(|named| *named == order), "{} was told of another order", one.user);
        }
        assert_sold(&shop.nodes[0], &shop.sku, STOCK, told.len());
    }
    eprintln!(
        "100 more were let in at both {served_after:?} after the kill; {:?} orders, {repeated:?} requests repeated",
        told.each_ref().map(Vec::len)
    );
    for shop in shops {
        for node in shop.nodes {
            assert!(node.terminate().success());
        }
    }
}
