//! Who may end a claim, and who may not any more (LQ-02, LQ-03, LQ-06).

use onceward_domain::due::{Claimed, Held};
use onceward_domain::ports::due_queue::{Due, Put, Removed, Settled, Settlement};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, names, retry};
use crate::conformance::store::ground::{LEASE, START};

pub(super) const CASES: &[Case] = &[
    ("lq_02_q_f2_a_late_report_changes_nothing", late_report),
    ("lq_02_q_f1_what_is_done_stays_done", done_stays_done),
    ("lq_02_one_lost_lease_does_not_touch_the_others", others_untouched),
    ("lq_03_an_ended_lease_comes_back_and_has_cost_an_attempt", comes_back),
    ("lq_03_q_a13_a_failure_that_was_never_reported_costs_one_attempt", never_reported),
    ("lq_06_q_f6_an_extended_lease_is_kept_as_long_as_it_is_extended", extended),
    ("lq_06_q_a5_q_f7_a_hand_back_costs_nothing", handed_back),
    ("q_f10_q_f11_a_twin_of_the_same_name_neither_steals_nor_settles", twins),
    ("q_f12_a_member_that_replaces_itself_is_in_one_place", replaces_itself),
    ("q_k1_a_member_that_was_removed_is_lost_for_its_holder", removed),
    ("q_k2_a_removed_member_is_taken_again_at_once", put_again),
    ("q_k6_a_retry_is_not_in_its_own_way", own_way),
    ("q_c6_a_token_of_an_earlier_round_is_worth_nothing", earlier_round),
    ("q_a10_one_ended_lease_is_found_behind_many_running_ones", behind_many),
];

/// Every way to settle a claim.
fn every_settlement(held: &Held) -> [Settlement; 4] {
    [
        Settlement::Complete(held.clone()),
        retry(held),
        Settlement::Extend { held: held.clone(), lease: Millis(999_000) },
        Settlement::HandBack { held: held.clone(), wait: Millis(0) },
    ]
}

fn is_lost(ground: &Ground, held: &Held) {
    for settlement in every_settlement(held) {
        assert_eq!(ground.settle(settlement.clone()), Settled::LeaseLost, "{settlement:?}");
    }
    assert_eq!(ground.settle_all(every_settlement(held).into()), [Settled::LeaseLost; 4]);
}

/// A claim whose lease somebody else took over, and that other claim.
fn overtaken(ground: &Ground) -> (Claimed, Claimed) {
    ground.put_now("m");
    let first = ground.claim_one();
    ground.clock.advance(LEASE);
    (first, ground.claim_one())
}

fn late_report(ground: &Ground) {
    let (first, second) = overtaken(ground);
    let before = ground.waiting();
    is_lost(ground, &first.held);
    assert_eq!(ground.waiting(), before, "no field is touched");
    assert_eq!(ground.complete(&second.held), Settled::Completed);
    is_lost(ground, &second.held);
}

fn done_stays_done(ground: &Ground) {
    let (first, second) = overtaken(ground);
    ground.complete(&second.held);
    is_lost(ground, &first.held);
    ground.clock.advance(Millis(LEASE.0 * 10));
    assert!(ground.claim(10).is_empty());
}

fn others_untouched(ground: &Ground) {
    let (first, second) = overtaken(ground);
    ground.put_now("n");
    let other = ground.claim_one();
    let answers = ground.settle_all(vec![
        Settlement::Complete(other.held.clone()),
        Settlement::Complete(first.held),
        retry(&second.held),
        Settlement::Complete(other.held),
    ]);
    assert_eq!(
        (answers[0], answers[1], answers[3]),
        (Settled::Completed, Settled::LeaseLost, Settled::LeaseLost)
    );
    assert!(matches!(answers[2], Settled::Again(_)));
    ground.check();
}

fn comes_back(ground: &Ground) {
    ground.put_now("m");
    let first = ground.claim_one();
    ground.clock.advance(Millis(LEASE.0 - 1));
    assert!(ground.claim(10).is_empty());
    ground.clock.advance(Millis(1));
    let second = ground.claim_one();
    assert_eq!((second.attempts, second.body), (2, first.body));
    assert_ne!(second.held.token, first.held.token);
}

fn never_reported(ground: &Ground) {
    ground.put_now("m");
    // The handler fails, the failure reaches nobody, the process ends.
    drop(ground.claim_one());
    ground.clock.advance(LEASE);
    assert_eq!(ground.claim_one().attempts, 2);
}

fn extended(ground: &Ground) {
    ground.put_now("m");
    let claim = ground.claim_one();
    for _third in 0..15 {
        ground.clock.advance(Millis(LEASE.0 / 3));
        let end = ground.settle(Settlement::Extend { held: claim.held.clone(), lease: LEASE });
        assert!(matches!(end, Settled::Extended(_)), "{end:?}");
        assert!(ground.claim(10).is_empty(), "healthy long work is never given to another");
    }
    ground.clock.advance(Millis(LEASE.0 - 1));
    assert!(ground.claim(10).is_empty());
    ground.clock.advance(Millis(1));
    assert_eq!(ground.claim_one().attempts, 2, "it comes back once nobody extends it");
    is_lost(ground, &claim.held);
}

fn handed_back(ground: &Ground) {
    // One attempt is allowed: a graceful stop does not use it up, a crash does.
    let once = RetryPolicy { attempts: Some(1), ..RetryPolicy::default() };
    ground.put_now("m");
    for _restart in 0..5 {
        let claims = ground.claim_under(10, once);
        assert_eq!(claims[0].attempts, 1);
        let given = Settlement::HandBack { held: claims[0].held.clone(), wait: Millis(0) };
        assert_eq!(ground.settle(given), Settled::Again(START));
        is_lost(ground, &claims[0].held);
    }
    assert_eq!(ground.claim_under(10, once).len(), 1);
    ground.clock.advance(LEASE);
    assert!(ground.claim_under(10, once).is_empty());
    assert_eq!(ground.exhausted().len(), 1);
    ground.check();
}

fn twins(ground: &Ground) {
    ground.put_now("m");
    let dead = ground.claim_one();
    // A process of the same name starts: it has no token, and gets nothing before the lease ends.
    assert!(ground.claim(10).is_empty());
    ground.clock.advance(LEASE);
    let twin = ground.claim_one();
    is_lost(ground, &dead.held);
    assert_eq!(ground.complete(&twin.held), Settled::Completed);
}

fn replaces_itself(ground: &Ground) {
    ground.put_now("m");
    let claim = ground.claim_one();
    assert_eq!(ground.remove("m"), Removed::Removed);
    assert_eq!(ground.put("m", Due::After(Millis(5))), Put::Added);
    is_lost(ground, &claim.held);
    ground.check();
    ground.clock.advance(Millis(5));
    let again = ground.claim_one();
    assert_eq!(again.attempts, 1, "it is another one");
    ground.complete(&again.held);
    assert!(ground.waiting().is_empty());
}

fn removed(ground: &Ground) {
    ground.put_now("m");
    let claim = ground.claim_one();
    assert_eq!(ground.remove("m"), Removed::Removed);
    assert_eq!(ground.remove("m"), Removed::Absent);
    is_lost(ground, &claim.held);
    ground.clock.advance(Millis(LEASE.0 * 2));
    assert!(ground.claim(10).is_empty() && ground.waiting().is_empty());
    assert_eq!(ground.next_due(), None);
}

fn put_again(ground: &Ground) {
    for _round in 0..3 {
        assert_eq!(ground.put("m", Due::After(Millis(5))), Put::Added);
        assert_eq!(ground.remove("m"), Removed::Removed);
    }
}

fn own_way(ground: &Ground) {
    ground.put_now("m");
    let claim = ground.claim_one();
    let Settled::Again(due_at) = ground.settle(retry(&claim.held)) else { panic!("it is tried again") };
    ground.clock.set(due_at);
    assert_eq!(names(&ground.claim(10)), ["m"]);
}

fn earlier_round(ground: &Ground) {
    ground.put_now("m");
    let first = ground.claim_one();
    ground.settle(Settlement::HandBack { held: first.held.clone(), wait: Millis(0) });
    let second = ground.claim_one();
    // The member looks as it did when the first claim was made; only the token tells them apart.
    assert_eq!((first.attempts, first.lease_until), (second.attempts, second.lease_until));
    is_lost(ground, &first.held);
    assert_eq!(ground.complete(&second.held), Settled::Completed);
}

fn behind_many(ground: &Ground) {
    let work = |number| super::ground::work(&format!("long{number:04}"), Due::At(START));
    ground.put_all((0..1_000).map(work).collect());
    let long = ground.claim(1_000);
    let longer = |claim: &Claimed| Settlement::Extend { held: claim.held.clone(), lease: Millis(3_600_000) };
    ground.settle_all(long.iter().map(longer).collect());
    ground.put_now("short");
    drop(ground.claim_one());
    ground.clock.advance(LEASE);
    assert_eq!(names(&ground.claim(10)), ["short"]);
}
