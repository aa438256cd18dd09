//! What a real server brings that no clock of a suite shows: many at once, lost scripts, lost answers, several slots.

mod damaged;
mod parts;
mod past;
#[path = "../real/mod.rs"]
mod real;
#[path = "../real/sale.rs"]
mod sale;
#[path = "../real/stalled.rs"]
mod stalled;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward_domain::catalogue::Bucket;
use onceward_domain::error::{Class, Error};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::ports::admission::{Admission, Reserve, ReserveAnswer};
use onceward_domain::time::Millis;
use onceward_redis::RedisAdmission;
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
async fn fs_01_whoever_was_let_in_is_found_at_once_and_on_every_node() {
    let ground = real::Ground::new("found");
    let sale = Sale::of(10, 1, 2).await;
    let (here, there) = (sale.gate(ground.options()), sale.gate(ground.options()));
    assert!(
        there.find(id(1)).await.unwrap().is_none(),
        "it knows of no bucket, and remembers that for a while"
    );
    assert_eq!(reserve(&here, sale.command(1, "u1", 1)).await.unwrap(), queued(1));
    assert!(there.find(id(1)).await.unwrap().is_some());
    assert!(here.find(id(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn fs_06_an_order_that_was_made_while_somebody_looked_is_seen() {
    let ground = real::Ground::new("meanwhile");
    let sale = Sale::of(10, 1, 1).await;
    let store = Arc::new(stalled::Stalled::around(sale.store.clone()));
    let gate = sale.gate_before(store.clone(), ground.options());
    let commands = [sale.command(1, "u1", 1), sale.command(2, "u2", 1)];
    assert!(gate.reserve(commands.to_vec()).await.is_ok());
    let mut reserved = Vec::new();
    for command in &commands {
        reserved.extend(gate.find(command.purchase).await.unwrap().map(|view| view.purchase));
    }
    sale.decide(reserved.remove(0), reserved.remove(0)).await;
    gate.project(vec![sale.ordered(&commands[0])]).await.unwrap().remove(0).unwrap();
    store.look_early();
    let found = gate.find(id(1)).await.unwrap().unwrap();
    assert!(found.purchase.order.is_some(), "the gate knew of it, and so does the store by now");
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
    const PREPARE: &str = include_str!("../../scripts/admission/prepare.lua");
    const OPEN: &str = include_str!("../../scripts/admission/open.lua");
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
