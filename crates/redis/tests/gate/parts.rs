//! A gate in several parts, of which some are closed, hang, or answer nonsense (FS-19).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward_domain::error::{Class, Error};
use onceward_domain::ports::admission::{
    Admission, CompensateCode, Projected, Reserve, ReserveAnswer, SendSettlement,
};
use onceward_domain::time::Millis;
use onceward_redis::RedisAdmission;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::sale::{Sale, id};
use crate::{counters, queued, real, reserve, stalled};

/// Whoever has a server of the cluster hang, one at a time.
static HANGING: Mutex<()> = Mutex::const_new(());

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
    let commands = |from: u64| sale.commands(from..from + 20);
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
    let commands = sale.commands(0..40);
    assert!(gate.reserve(commands.clone()).await.is_ok(), "both buckets are open");
    let parts: BTreeSet<u64> = commands.iter().map(|command| gate.part(command).0).collect();
    assert_eq!(parts.len(), 2, "each buyer's bucket is known");
    let event = |command: &Reserve| sale.ordered(command);
    let compensation = |command: &Reserve| sale.compensation(command.purchase);
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
async fn fs_18_a_bucket_that_could_not_be_opened_is_left_alone_for_a_while() {
    let ground = real::Ground::new("pause");
    let sale = Sale::of(1_000, 2, 2).await;
    let counting = Arc::new(stalled::Stalled::around(sale.store.clone()));
    let gate = sale.gate_before(counting.clone(), ground.options());
    assert!(gate.reserve(sale.commands(0..20)).await.is_ok(), "both buckets are open");
    ground.spoil(&[":counter"], "{sale:sku}");
    ground.lose_bucket("{sale:sku:1}");
    // Whoever opens the lost one must know what its sister has, which answers nonsense now.
    let (asked_before, began) = (counting.asked(), tokio::time::Instant::now());
    for first in 1..=50 {
        let answers = gate.reserve_each(sale.commands(100 * first..100 * first + 10)).await.unwrap();
        assert!(answers.iter().all(Result::is_err), "nobody is let in");
    }
    let (asked, seconds) = (counting.asked() - asked_before, began.elapsed().as_secs());
    assert!(asked <= 5 * (seconds + 1), "the store was asked {asked} times in {seconds} s, for 50 batches");
}

#[tokio::test]
async fn fs_19_a_bucket_that_answers_nonsense_hides_no_other_from_the_workers() {
    let ground = real::Ground::new("nonsense");
    let sale = Sale::of(100, 2, 2).await;
    let gate = sale.gate(ground.options());
    let commands = sale.commands(0..40);
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

/// Lets somebody into each bucket. The server that another test had hang may do so for a moment yet.
async fn open_all(gate: &RedisAdmission, sale: &Sale, patience: Duration) {
    let commands = sale.commands(0..64);
    let opened = async { while gate.reserve(commands.clone()).await.is_err() {} };
    timeout(patience, opened).await.expect("every bucket is open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fs_19_while_a_server_of_a_cluster_hangs_buyers_of_the_others_do_not_wait() {
    const HANGS: Duration = Duration::from_secs(5);
    let _alone = HANGING.lock().await;
    let ground = real::Ground::on(real::Servers::Cluster, "hangs");
    let sale = Sale::of(1_000_000, 2, 16).await;
    let gate = sale.gate(ground.options().with_response_limit(Duration::from_millis(400)));
    let mut buyers: BTreeMap<u64, Vec<Reserve>> = BTreeMap::new();
    open_all(&gate, &sale, 10 * HANGS).await;
    for command in sale.commands(64..40_000) {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fs_19_who_comes_to_a_server_of_a_cluster_that_hangs_is_told_so_at_once_after_the_first() {
    const HANGS: Duration = Duration::from_secs(4);
    let _alone = HANGING.lock().await;
    let ground = real::Ground::on(real::Servers::Cluster, "silent");
    let sale = Sale::of(1_000_000, 2, 16).await;
    let gate = sale.gate(ground.options().with_response_limit(Duration::from_millis(400)));
    open_all(&gate, &sale, 10 * HANGS).await;
    let mut buyers: BTreeMap<u64, Vec<Reserve>> = BTreeMap::new();
    for command in sale.commands(64..8_000) {
        buyers.entry(gate.part(&command).0).or_default().push(command);
    }
    let mut of_each = |count: usize| -> Vec<Reserve> {
        buyers.values_mut().flat_map(|commands| commands.drain(..count).collect::<Vec<_>>()).collect()
    };
    let ask =
        async |commands: Vec<Reserve>| join_all(commands.into_iter().map(|one| reserve(&gate, one))).await;
    ground.pause_a_server(HANGS);
    let first = ask(of_each(1)).await;
    let hung: Vec<bool> = first.iter().map(Result::is_err).collect();
    assert!((1..16).contains(&hung.iter().filter(|one| **one).count()), "some hang, and not all: {first:?}");
    assert!(first.iter().flatten().all(|answer| matches!(answer, ReserveAnswer::Queued { .. })));
    // Of what was sent there nobody would know whether it has happened.
    let classes = ask(of_each(1)).await.into_iter().map(|one| one.err().map(|error| error.class()));
    let expected: Vec<_> = hung.iter().map(|is_hung| is_hung.then_some(Class::Retryable)).collect();
    assert_eq!(classes.collect::<Vec<_>>(), expected);
    assert!(gate.next_send().await.unwrap().is_some(), "workers look at the others");
    let is_heard = async {
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        for commands in std::iter::repeat_with(|| of_each(1)) {
            pace.tick().await;
            if ask(commands).await.iter().all(Result::is_ok) {
                break;
            }
        }
    };
    timeout(10 * HANGS, is_heard).await.expect("it is heard when it answers again");
}
