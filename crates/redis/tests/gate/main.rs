//! What a real server brings that no clock of a suite shows: many at once, lost scripts, lost answers, several slots.

mod real;
#[path = "real/sale.rs"]
mod sale;
#[path = "real/stalled.rs"]
mod stalled;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward_domain::catalogue::Bucket;
use onceward_domain::error::{Class, Error};
use onceward_domain::event::Event;
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::ports::admission::{
    Admission, Compensate, CompensateCode, Projected, Reserve, ReserveAnswer, SendSettlement,
};
use onceward_domain::purchase::Line;
use onceward_domain::retention::WINDOW;
use onceward_domain::time::{Millis, Timestamp};
use onceward_redis::{RedisAdmission, Time};
use onceward_testkit::clock::ManualClock;
use sale::{Sale, id};
use tokio::time::timeout;

async fn reserve(gate: &RedisAdmission, command: Reserve) -> Result<ReserveAnswer, Error> {
    Ok(gate.reserve(vec![command]).await?.remove(0))
}

fn queued(number: u64) -> ReserveAnswer {
    ReserveAnswer::Queued { reservation: id(number).reservation() }
}

async fn counters(gate: &RedisAdmission, sale: &Sale) -> (i64, i64, i64) {
    let bucket = gate.counters(sale.key.clone()).await.expect("the gate answers").expect("it is on sale");
    let Bucket { initial, available, open_reserved, committed, .. } = bucket;
    assert_eq!(initial, available + open_reserved + committed);
    (available, open_reserved, committed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pr_02_of_a_thousand_requests_of_one_buyer_at_once_one_is_let_in() {
    let ground = real::Ground::new("thousand");
    let sale = Sale::of(5_000, 1, 1).await;
    let gate = sale.gate(ground.options());
    let all = join_all((0..1_000).map(|number| reserve(&gate, sale.command(number, "u", 1)))).await;
    let mut winners = Vec::new();
    let mut told = Vec::new();
    for answer in all {
        let answer = answer.unwrap();
        if let ReserveAnswer::Queued { reservation } = answer {
            winners.push(reservation);
        } else {
            let ReserveAnswer::LimitReached { live } = answer else { panic!("{answer:?}") };
            told.push(live);
        }
    }
    assert_eq!(winners.len(), 1);
    assert!(told.len() == 999 && told.iter().all(|live| *live == Some(winners[0])));
    assert_eq!(counters(&gate, &sale).await, (4_999, 1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fs_01_of_many_buyers_at_once_as_many_are_let_in_as_there_are_units() {
    let ground = real::Ground::new("many");
    let sale = Sale::of(300, 2, 1).await;
    let gates = [sale.gate(ground.options()), sale.gate(ground.options())];
    let ask = |number: u64| {
        let gate = &gates[usize::from(number.is_multiple_of(2))];
        reserve(gate, sale.command(number, &format!("u{number}"), 1))
    };
    let all = join_all((0..1_000).map(ask)).await;
    let count = |wanted: fn(&ReserveAnswer) -> bool| all.iter().flatten().filter(|one| wanted(one)).count();
    assert_eq!(count(|one| matches!(one, ReserveAnswer::Queued { .. })), 300);
    assert_eq!(count(|one| *one == ReserveAnswer::SoldOut), 700);
    assert_eq!(counters(&gates[0], &sale).await, (0, 300, 0));
}

#[tokio::test]
async fn fs_03_a_request_is_known_under_the_id_of_an_older_key() {
    let ground = real::Ground::new("older");
    let sale = Sale::of(5, 2, 1).await;
    let gate = sale.gate(ground.options());
    assert_eq!(reserve(&gate, sale.command(1, "u", 1)).await.unwrap(), queued(1));
    let rotated = Reserve { purchase: id(100), older: vec![id(99), id(1)], ..sale.command(1, "u", 1) };
    let repeat = ReserveAnswer::Repeat { reservation: id(1).reservation(), status: Status::Reserved };
    assert_eq!(reserve(&gate, rotated).await.unwrap(), repeat);
    assert_eq!(counters(&gate, &sale).await, (4, 1, 0));
}

#[tokio::test]
async fn lq_07_a_server_that_forgot_its_scripts_is_told_them_again() {
    let ground = real::Ground::new("scripts");
    let sale = Sale::of(5, 2, 1).await;
    let gate = sale.gate(ground.options());
    for number in 0..3 {
        let () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut ground.connection()).unwrap();
        assert_eq!(
            reserve(&gate, sale.command(number, &format!("u{number}"), 1)).await.unwrap(),
            queued(number)
        );
    }
}

#[tokio::test]
async fn fs_19_a_buyer_is_refused_only_when_every_bucket_is_empty() {
    let ground = real::Ground::new("buckets");
    let sale = Sale::of(50, 2, 4).await;
    let gate = sale.gate(ground.options());
    for number in 0..49 {
        let answer = reserve(&gate, sale.command(number, &format!("u{number}"), 1)).await.unwrap();
        assert_eq!(answer, queued(number));
    }
    assert_eq!(reserve(&gate, sale.command(60, "two", 2)).await.unwrap(), ReserveAnswer::SoldOut);
    assert_eq!(counters(&gate, &sale).await, (1, 49, 0));
    assert_eq!(reserve(&gate, sale.command(61, "one", 1)).await.unwrap(), queued(61));
    assert_eq!(reserve(&gate, sale.command(62, "none", 1)).await.unwrap(), ReserveAnswer::SoldOut);
    assert_eq!(counters(&gate, &sale).await, (0, 50, 0));
    for number in (0..49).chain([61]) {
        assert!(gate.find(id(number)).await.unwrap().is_some(), "{number} is found without being told where");
    }
    let claims = gate.claim_send(1_000, Millis(30_000)).await.unwrap();
    assert_eq!(claims.iter().map(|claim| claim.messages.len()).sum::<usize>(), 50);
}

#[tokio::test]
async fn fs_19_a_closed_bucket_refuses_those_who_came_to_it_and_nobody_else() {
    let ground = real::Ground::new("closed");
    let sale = Sale::of(100, 2, 2).await;
    let stalled = Arc::new(stalled::Stalled::around(sale.store.clone()));
    let gate = sale.gate_before(stalled.clone(), ground.options());
    let commands = |from: u64| -> Vec<Reserve> {
        (from..from + 20).map(|number| sale.command(number, &format!("u{number}"), 1)).collect()
    };
    assert!(gate.reserve(commands(0)).await.is_ok(), "both buckets are open");
    stalled.stall();
    ground.lose_bucket("{sale:sku:1}");
    let answers = gate.reserve_each(commands(100)).await.unwrap();
    let (let_in, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(let_in.len() >= 5 && refused.len() >= 5, "{} and {}", let_in.len(), refused.len());
    assert!(let_in.iter().flatten().all(|answer| matches!(answer, ReserveAnswer::Queued { .. })));
    let class = |answer: &Result<ReserveAnswer, Error>| answer.as_ref().unwrap_err().class();
    assert!(refused.iter().all(|answer| class(answer) == Class::Retryable), "they were not let in");
    assert_eq!(gate.reserve(commands(200)).await.unwrap_err().class(), Class::UnknownOutcome);
    stalled.go_on();
    let opened = async { while gate.reserve(commands(100)).await.is_err() {} };
    timeout(Duration::from_secs(10), opened).await.expect("it opens by itself");
    // What the lost bucket had let in is known to nobody any more; here the store had not heard of it either.
    let (available, open_reserved, _) = counters(&gate, &sale).await;
    assert_eq!(available + open_reserved, 100);
}

#[tokio::test]
async fn fs_19_a_closed_bucket_fails_what_concerns_it_and_nothing_else() {
    let ground = real::Ground::new("parts");
    let sale = Sale::of(100, 2, 2).await;
    let stalled = Arc::new(stalled::Stalled::around(sale.store.clone()));
    let gate = sale.gate_before(stalled.clone(), ground.options());
    let commands: Vec<Reserve> =
        (0..40).map(|number| sale.command(number, &format!("u{number}"), 1)).collect();
    assert!(gate.reserve(commands.clone()).await.is_ok(), "both buckets are open");
    let parts: BTreeSet<u64> = commands.iter().map(|command| gate.part(command).0).collect();
    assert_eq!(parts.len(), 2, "each buyer's bucket is known");
    let event = |command: &Reserve| {
        let line = Line { key: sale.key.clone(), quantity: 1, place: 0, unit_price: None };
        Event::order_created(command.purchase, command.user.clone(), vec![line], Timestamp(0))
    };
    let compensation = |command: &Reserve| Compensate {
        purchase: command.purchase,
        key: sale.key.clone(),
        compensation: command.purchase.compensation(),
    };
    stalled.stall_catalogue();
    ground.lose_bucket("{sale:sku:1}");
    let (ordered, refused) = commands.split_at(20);
    let soon = Duration::from_secs(8);
    let projected = gate.project(ordered.iter().map(event).collect());
    let projected = timeout(soon, projected).await.expect("a rebuild is not waited for").unwrap();
    let released = gate.compensate(refused.iter().map(compensation).collect());
    let released = timeout(soon, released).await.expect("a rebuild is not waited for").unwrap();
    let home = |command: &Reserve| gate.part(command);
    let open =
        home(ordered.iter().zip(&projected).find(|(_, one)| one.is_ok()).expect("one bucket answers").0);
    for (command, outcome) in ordered.iter().zip(&projected) {
        match outcome {
            Ok(outcome) => assert_eq!((*outcome, home(command)), (Projected::Applied, open)),
            Err(error) => assert!(error.class() == Class::Retryable && home(command) != open, "{error}"),
        }
    }
    for (command, code) in refused.iter().zip(&released) {
        match code {
            Ok(code) => assert_eq!((*code, home(command)), (CompensateCode::Applied, open)),
            Err(error) => assert!(error.class() == Class::Retryable && home(command) != open, "{error}"),
        }
    }
    assert!(released.iter().any(Result::is_err) && released.iter().any(Result::is_ok));
    stalled.go_on();
    let again = async {
        while gate.project(ordered.iter().map(event).collect()).await.unwrap().iter().any(Result::is_err) {}
    };
    timeout(Duration::from_secs(10), again).await.expect("it opens by itself");
}

#[tokio::test]
async fn fs_19_a_bucket_that_answers_nonsense_hides_no_other_from_the_workers() {
    let ground = real::Ground::new("nonsense");
    let sale = Sale::of(100, 2, 2).await;
    let gate = sale.gate(ground.options());
    let commands: Vec<Reserve> =
        (0..40).map(|number| sale.command(number, &format!("u{number}"), 1)).collect();
    assert!(gate.reserve(commands).await.is_ok(), "both buckets are open");
    ground.spoil(&[":send_due", ":send", ":deadline"], "{sale:sku:1}");
    let lease = Millis(30_000);
    let claims = gate.claim_send(1_000, lease).await.unwrap();
    let sent: usize = claims.iter().map(|claim| claim.messages.len()).sum();
    assert!((5..40).contains(&sent), "those of the other bucket: {sent}");
    assert!(gate.next_send().await.unwrap().is_some());
    let unsent = gate.unsent(1_000).await.unwrap().reservations;
    assert_eq!(usize::try_from(unsent).unwrap(), sent);
    assert!(gate.next_overdue().await.unwrap().is_some());
    assert!(gate.find(id(999)).await.unwrap().is_none());
    let ends = claims.into_iter().map(|claim| SendSettlement::Sent(claim.held)).collect();
    assert!(gate.settle_send(ends).await.unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fs_19_while_a_server_of_a_cluster_hangs_buyers_of_the_others_do_not_wait() {
    const HANGS: Duration = Duration::from_secs(5);
    let ground = real::Ground::on(real::Servers::Cluster, "hangs");
    let sale = Sale::of(1_000_000, 2, 16).await;
    let gate = sale.gate(ground.options().with_response_limit(Duration::from_millis(400)));
    let mut buyers: BTreeMap<u64, Vec<Reserve>> = BTreeMap::new();
    let opened = (0..64).map(|number| sale.command(number, &format!("u{number}"), 1)).collect();
    assert!(gate.reserve(opened).await.is_ok(), "every bucket is open");
    for number in 64..40_000 {
        let command = sale.command(number, &format!("u{number}"), 1);
        buyers.entry(gate.part(&command).0).or_default().push(command);
    }
    assert_eq!(buyers.len(), 16);
    ground.pause_a_server(HANGS);
    let until = tokio::time::Instant::now() + HANGS.mul_f32(0.8);
    // The longest that somebody waited in each bucket, and whether all were let in.
    let ask = async |commands: Vec<Reserve>| {
        let (mut longest, mut is_open) = (Duration::ZERO, true);
        for command in commands {
            let began = tokio::time::Instant::now();
            if began > until {
                break;
            }
            is_open &= reserve(&gate, command).await.is_ok();
            longest = longest.max(began.elapsed());
        }
        (longest, is_open)
    };
    let seen = join_all(buyers.into_values().map(ask)).await;
    let hung = seen.iter().filter(|(_, is_open)| !is_open).count();
    assert!((1..16).contains(&hung), "some hang, and not all: {seen:?}");
    let longest = seen.iter().filter(|(_, is_open)| *is_open).map(|(longest, _)| *longest).max();
    assert!(longest.is_some_and(|longest| longest < Duration::from_millis(800)), "{seen:?}");
}

#[tokio::test]
async fn dr_02_a_lost_answer_is_an_unknown_outcome_and_the_same_id_finds_out() {
    let ground = real::Ground::new("lost");
    let sale = Sale::of(5, 2, 1).await;
    let gate = sale.gate(ground.options().with_response_limit(Duration::from_millis(200)));
    assert_eq!(reserve(&gate, sale.command(1, "u", 1)).await.unwrap(), queued(1));
    let mut other = ground.connection();
    let () = redis::cmd("CLIENT").arg("PAUSE").arg(20_000).arg("WRITE").query(&mut other).unwrap();
    let lost = reserve(&gate, sale.command(2, "v", 1)).await;
    let () = redis::cmd("CLIENT").arg("UNPAUSE").query(&mut other).unwrap();
    assert_eq!(lost.unwrap_err().class(), Class::UnknownOutcome);
    let answer = reserve(&gate, sale.command(2, "v", 1)).await.unwrap();
    let repeat = ReserveAnswer::Repeat { reservation: id(2).reservation(), status: Status::Reserved };
    assert!(answer == queued(2) || answer == repeat, "{answer:?}");
    assert_eq!(counters(&gate, &sale).await, (3, 2, 0));
}

#[tokio::test]
async fn dr_02_a_server_that_is_not_there_has_done_nothing() {
    let sale = Sale::of(5, 2, 1).await;
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gate = sale.gate(onceward_redis::Options::of(&format!("redis://127.0.0.1:{port}")).unwrap());
    let error = reserve(&gate, sale.command(1, "u", 1)).await.unwrap_err();
    assert_eq!(error.class(), Class::Retryable);
}

#[tokio::test]
async fn dr_02_whoever_waited_for_a_connection_that_failed_hears_so_and_does_not_try_in_turn() {
    let sale = Sale::of(5, 2, 1).await;
    // It takes up connections and says nothing, as a server that is stopped does.
    let stopped = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", stopped.local_addr().unwrap());
    let gate = sale.gate(onceward_redis::Options::of(&url).unwrap());
    let all = join_all((0..20).map(|_| gate.standing(sale.key.clone())));
    let answers = timeout(Duration::from_secs(10), all).await.expect("not one after the other");
    assert!(answers.iter().all(|one| one.as_ref().is_err_and(|error| error.class() == Class::Retryable)));
}

#[tokio::test]
async fn a_new_limit_is_heard_of() {
    let ground = real::Ground::new("limit");
    let sale = Sale::of(500_000, 1, 1).await;
    let gate = sale.gate(ground.options());
    assert_eq!(reserve(&gate, sale.command(0, "u", 1)).await.unwrap(), queued(0));
    sale.limit(3).await;
    let heard = async {
        for number in 1.. {
            let answer = reserve(&gate, sale.command(number, "u", 2)).await.unwrap();
            if answer == queued(number) {
                return number;
            }
            assert_eq!(answer, ReserveAnswer::LimitReached { live: Some(id(0).reservation()) });
        }
        unreachable!("numbers do not end")
    };
    timeout(Duration::from_secs(20), heard).await.expect("within some seconds");
    assert!(matches!(
        reserve(&gate, sale.command(999_999, "u", 1)).await.unwrap(),
        ReserveAnswer::LimitReached { live: None }
    ));
}

#[tokio::test]
async fn fs_05_a_lost_list_of_buckets_is_said_again() {
    let ground = real::Ground::new("list");
    let sale = Sale::of(5, 2, 1).await;
    let gate = sale.gate(ground.options());
    assert_eq!(reserve(&gate, sale.command(1, "u", 1)).await.unwrap(), queued(1));
    // In a cluster it may lie on another server than the bucket, and be lost alone.
    ground.lose_the_list_of_buckets();
    let sent = async {
        loop {
            let claims = gate.claim_send(10, Millis(30_000)).await.unwrap();
            if let [claim] = claims.as_slice() {
                return claim.messages[0].purchase;
            }
        }
    };
    assert_eq!(timeout(Duration::from_secs(10), sent).await.expect("within some seconds"), id(1));
}

#[tokio::test]
async fn fs_18_while_a_rebuild_goes_on_nobody_waits_long_and_a_slow_store_shuts_no_open_door() {
    let ground = real::Ground::new("patience");
    let sale = Sale::of(500_000, 2, 1).await;
    let stalled = Arc::new(stalled::Stalled::around(sale.store.clone()));
    let gate = sale.gate_before(stalled.clone(), ground.options());
    assert_eq!(reserve(&gate, sale.command(1, "u", 1)).await.unwrap(), queued(1));
    stalled.stall();
    // Longer than a limit may be old: it cannot be read now.
    let open_door = async {
        let until = tokio::time::Instant::now() + Duration::from_millis(1_200);
        for number in 2.. {
            let user = format!("u{number}");
            assert_eq!(reserve(&gate, sale.command(number, &user, 1)).await.unwrap(), queued(number));
            if tokio::time::Instant::now() > until {
                return number;
            }
        }
        unreachable!("numbers do not end")
    };
    let last = timeout(Duration::from_secs(5), open_door).await.expect("the store is not waited for");
    ground.lose_everything();
    let commands: Vec<Reserve> = (1..=900).map(|more| sale.command(last + more, "many", 1)).collect();
    let closed = timeout(Duration::from_secs(4), gate.reserve(commands)).await.expect("nobody waits longer");
    assert_eq!(closed.unwrap_err().class(), Class::Retryable);
    assert_eq!(gate.rebuilds().running, 1);
    stalled.go_on();
    let opened = async { while reserve(&gate, sale.command(1, "u", 1)).await.is_err() {} };
    timeout(Duration::from_secs(10), opened).await.expect("it opens by itself");
    assert_eq!(counters(&gate, &sale).await, (499_999, 1, 0));
    assert_eq!((gate.rebuilds().running, gate.rebuilds().done), (0, 2));
}

#[test]
fn fs_18_whoever_rebuilt_a_bucket_that_was_lost_meanwhile_does_not_open_the_one_made_after_it() {
    const PREPARE: &str = include_str!("../scripts/admission/prepare.lua");
    const OPEN: &str = include_str!("../scripts/admission/open.lua");
    let ground = real::Ground::new("again");
    let key = ground.key_of("{sale:sku}:counter");
    let prepare = |name: &str| -> (i64, String, String) {
        let arguments = ["5", "0", "1", "0", "9999999999999", "120000", "", name];
        redis::Script::new(PREPARE).key(&key).arg(&arguments).invoke(&mut ground.connection()).unwrap()
    };
    let open = |(epoch, history, name): &(i64, String, String)| -> i64 {
        let script = redis::Script::new(OPEN);
        let mut call = script.key(&key);
        call.arg(epoch).arg(history).arg("1").arg("").arg(name).invoke(&mut ground.connection()).unwrap()
    };
    let first = prepare("first");
    assert_eq!(prepare("second"), first, "what is there is left alone");
    ground.lose_everything();
    let second = prepare("second");
    assert_eq!((second.0, &second.1), (first.0, &first.1), "epoch and history are the same");
    assert_eq!(open(&first), 0, "the first one's orders are not in it");
    assert_eq!(open(&second), 1);
}

#[tokio::test]
async fn a_server_that_keeps_every_key_is_fit_for_a_gate() {
    let ground = real::Ground::new("check");
    onceward_redis::check(ground.options()).await.unwrap();
}

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
