//! Sales that are past (FS-14): nothing of them stays in Redis.

use std::sync::Arc;
use std::time::Duration;

use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::ports::admission::{Admission, ReserveAnswer, SendSettlement};
use onceward_domain::retention::WINDOW;
use onceward_domain::time::Millis;
use onceward_redis::Time;
use onceward_testkit::clock::ManualClock;
use tokio::time::timeout;

use crate::sale::{Sale, id};
use crate::{counters, queued, real, reserve};

#[tokio::test]
async fn fs_14_nothing_stays_in_redis_of_a_sale_that_is_past_and_no_node_brings_it_back() {
    let ground = real::Ground::new("past");
    let clock = Arc::new(ManualClock::new(real::now()));
    let sale = Sale::by(clock.clone(), 100, 2, 2).await;
    let options = || ground.options().with_time(Time::Handed(clock.clone())).with_retention(Some(WINDOW));
    let (gate, other) = (sale.gate(options()), sale.gate(options()));
    let lease = Millis(30_000);
    for (number, node) in (0..40).zip([&gate, &other].into_iter().cycle()) {
        let answer = reserve(node, sale.command(number, &format!("u{number}"), 1)).await.unwrap();
        assert_eq!(answer, queued(number));
    }
    sale.give_all_back(&gate, 0..40).await;
    for claim in gate.claim_send(1_000, lease).await.unwrap() {
        gate.settle_send(vec![SendSettlement::Sent(claim.held)]).await.unwrap();
    }
    clock.advance(Millis(120_000));
    let overdue = gate.claim_overdue(1_000, lease).await.unwrap();
    gate.settle_overdue(overdue).await.unwrap();
    clock.advance(Millis(3_600_000 + WINDOW.0));
    assert!(!ground.contents().is_empty());
    assert_eq!(gate.retire().await.unwrap(), 2);
    assert!(ground.contents().is_empty(), "not even the list of buckets");
    let repeat = |number: u64| ReserveAnswer::Repeat {
        reservation: id(number).reservation(),
        status: Status::Compensated,
    };
    let asked_again = async {
        // Longer than a list of buckets, or what a door has told of its bucket, may be old.
        let until = tokio::time::Instant::now() + Duration::from_millis(2_500);
        while tokio::time::Instant::now() < until {
            for (number, node) in (0..40).zip([&other, &gate].into_iter().cycle()) {
                let answer = reserve(node, sale.command(number, &format!("u{number}"), 1)).await.unwrap();
                assert_eq!(answer, repeat(number));
            }
            assert_eq!(reserve(&other, sale.command(99, "late", 1)).await.unwrap(), ReserveAnswer::NotOpen);
            assert!(other.claim_send(10, lease).await.unwrap().is_empty());
        }
    };
    timeout(Duration::from_secs(10), asked_again).await.expect("nobody waits");
    assert!(ground.contents().is_empty(), "nobody's asking has brought it back");
    assert_eq!(counters(&other, &sale).await, (100, 0, 0));
}

#[tokio::test]
async fn fs_14_a_past_bucket_that_the_list_has_lost_is_let_go_of_once() {
    let ground = real::Ground::new("unlisted");
    let clock = Arc::new(ManualClock::new(real::now()));
    let sale = Sale::by(clock.clone(), 100, 2, 2).await;
    let node =
        || sale.gate(ground.options().with_time(Time::Handed(clock.clone())).with_retention(Some(WINDOW)));
    node().rebuild(sale.key.clone()).await.unwrap();
    let listed =
        ground.contents().into_iter().find(|(key, _)| key.ends_with(b":buckets")).expect("there is a list");
    let () = redis::cmd("DEL").arg(listed.0).query(&mut ground.connection()).unwrap();
    // Whoever opened them has gone, too.
    let other = node();
    assert_eq!(other.retire().await.unwrap(), 0, "it is not past");
    clock.advance(Millis(7_200_000 + WINDOW.0));
    assert_eq!([other.retire().await.unwrap(), other.retire().await.unwrap()], [2, 0]);
    assert!(ground.contents().is_empty());
}
