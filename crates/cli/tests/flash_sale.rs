//! The promises of a sale, asked of the real server over HTTP.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::collections::BTreeSet;
use std::sync::{Barrier, Mutex};

use house::{RESERVE, Server, Site, ask, buyer};
use onceward_ground::{Mode, in_every_mode};
use serde_json::Value;

/// Everybody asks at the same moment; gives all answers.
fn at_once(server: &Server, buyers: &[Value]) -> Vec<(u16, Value)> {
    let barrier = Barrier::new(buyers.len());
    std::thread::scope(|scope| {
        let asking: Vec<_> = buyers
            .iter()
            .map(|body| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    server.post(RESERVE, body)
                })
            })
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn orders(server: &Server) -> Vec<Value> {
    let (status, mut list) = server.get("/v1/orders?activity_id=sale&limit=200");
    assert_eq!((status, &list["next"]), (200, &Value::Null));
    let Value::Array(orders) = list["data"].take() else { panic!("no list") };
    orders
}

/// Waits for the decision of a reservation.
fn decided(server: &Server, reservation: &str) -> Value {
    for _look in 0..6 {
        let (status, found) = server.get(&format!("/v1/reservations/{reservation}?wait_ms=10000"));
        assert_eq!(status, 200, "{found}");
        if found["status"] != "RESERVED" {
            return found;
        }
    }
    panic!("{reservation} is not decided");
}

in_every_mode! {
    plain:
    fs_01_400_buyers_at_once_on_50_units,
    fs_04_300_distinct_requests_of_one_user_are_one_order,
    dr_01_a_kill_loses_nothing_that_was_answered,
}

fn fs_01_400_buyers_at_once_on_50_units(mode: Mode) {
    let site = Site::new(mode, "400");
    let server = site.start();
    server.put_on_sale(50);
    let buyers: Vec<Value> = (0..400).map(|number| buyer(&format!("u{number}"), "r")).collect();
    let answers = at_once(&server, &buyers);
    let queued: Vec<&Value> = answers
        .iter()
        .filter(|(status, _)| *status == 202)
        .map(|(_, body)| &body["reservation_id"])
        .collect();
    let refused =
        answers.iter().filter(|(status, body)| *status == 409 && body["code"] == "sold_out").count();
    assert_eq!((queued.len(), refused), (50, 350));

    let mut ordered = BTreeSet::new();
    for id in queued {
        let found = decided(&server, id.as_str().unwrap());
        assert_eq!(found["status"], "ORDER_CREATED");
        ordered.insert(found["order_id"].as_str().unwrap().to_owned());
    }
    let listed: BTreeSet<String> =
        orders(&server).iter().map(|order| order["order_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((ordered.len(), &ordered), (50, &listed));
    let (_, sku) = server.get("/v1/activities/sale/skus/a");
    assert_eq!((&sku["stock"]["available"], &sku["stock"]["occupied"]), (&Value::from(0), &Value::from(50)));
    assert_eq!(server.get("/v1/ops/invariants").1["holds"], true);
    assert!(server.terminate().success());
}

fn fs_04_300_distinct_requests_of_one_user_are_one_order(mode: Mode) {
    let site = Site::new(mode, "300");
    let server = site.start();
    server.put_on_sale(1000);
    let requests: Vec<Value> = (0..300).map(|number| buyer("u", &format!("r{number}"))).collect();
    let answers = at_once(&server, &requests);
    let queued: Vec<&(u16, Value)> = answers.iter().filter(|(status, _)| *status == 202).collect();
    assert_eq!(queued.len(), 1);
    let id = queued[0].1["reservation_id"].as_str().unwrap();
    for (status, body) in answers.iter().filter(|(status, _)| *status != 202) {
        assert_eq!((*status, &body["code"]), (409, &Value::from("limit_reached")));
    }
    decided(&server, id);
    assert_eq!(orders(&server).len(), 1);
}

fn dr_01_a_kill_loses_nothing_that_was_answered(mode: Mode) {
    let site = Site::new(mode, "kill");
    let server = site.start();
    server.put_on_sale(10_000);
    let address = server.address.clone();
    let acknowledged: Mutex<Vec<(Value, Value)>> = Mutex::new(Vec::new());
    let asking = |lane: u32| {
        for number in 0.. {
            let body = buyer(&format!("u{lane}-{number}"), "r");
            // A lost answer is the kill.
            let Ok((202, answer)) = ask(&address, "POST", RESERVE, Some(&body)) else { return };
            acknowledged.lock().unwrap().push((body, answer["reservation_id"].clone()));
        }
    };
    std::thread::scope(|scope| {
        for lane in 0..16 {
            scope.spawn(move || asking(lane));
        }
        while acknowledged.lock().unwrap().len() < 200 {
            std::thread::yield_now();
        }
        server.kill();
    });

    let server = site.start();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() >= 200);
    for (body, id) in &acknowledged {
        let found = decided(&server, id.as_str().unwrap());
        assert_eq!((&found["status"], &found["user_id"]), (&Value::from("ORDER_CREATED"), &body["user_id"]));
    }
    // The promise of a repeat with the same ids outlives the kill as well.
    let (body, id) = &acknowledged[0];
    let (status, again) = server.post(RESERVE, body);
    assert_eq!((status, &again["reservation_id"]), (200, id));
    assert_eq!(server.get("/v1/ops/invariants").1["holds"], true);
}
