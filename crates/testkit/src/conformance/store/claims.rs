//! Claims of due work: order, limits, leases, tokens and attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use onceward_domain::due::{Charge, DueChange, Lane, Sequence, Token};
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{Ground, LEASE, START, due, lane, names, put, retry};

pub(super) const CASES: &[Case] = &[
    Case::new("lq_01_a_second_put_of_a_member_changes_nothing", repeated_put),
    Case::new("lq_01_a_member_lives_in_each_lane_apart", lanes_apart),
    Case::new("lq_01_claims_go_by_due_time_up_to_the_limit", by_due_time),
    Case::new("lq_01_nothing_is_given_out_early", never_early),
    Case::new("lq_02_a_token_of_a_claim_never_repeats", tokens_never_repeat),
    Case::new("lq_03_attempts_are_counted_at_the_claim", attempts_at_claim),
    Case::new("lq_03_an_expired_lease_is_claimed_again", expired_lease),
    Case::new("lq_08_one_due_member_is_found_among_ten_thousand", ten_thousand),
    Case::new("fs_11_a_strict_lane_waits_behind_its_head", strict_lane),
    Case::new("fs_11_a_strict_lane_gives_out_its_head_run_in_order", strict_run),
    Case::new("f_5_a_lease_runs_from_the_claim", lease_from_claim),
    Case::new("d_8_delays_past_two_to_the_31_wait", long_delays),
    Case::new("d_9_milliseconds_are_exact_at_large_times", exact_milliseconds),
];

fn repeated_put(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START.plus(Millis(10)));
    ground.must(due(vec![DueChange::Put {
        lane: lane.clone(),
        member: Arc::from("m"),
        due_at: START,
        body: b"another".to_vec(),
    }]));
    assert_eq!(ground.next_due(&lane), Some(START.plus(Millis(10))));
    ground.clock.advance(Millis(10));
    let claimed = ground.claim_one(&lane);
    assert_eq!(claimed.body, b"m");
    ground.put(&lane, "m", START);
    assert!(ground.claim(&lane, 10).is_empty(), "a repeat never ends a lease");
}

fn lanes_apart(ground: &Ground) {
    let (first, second) = (lane("first"), lane("second"));
    ground.put(&first, "m", START);
    ground.put(&second, "m", START);
    let held = ground.claim_one(&first).held;
    ground.must(due(vec![DueChange::Complete(held)]));
    assert_eq!(ground.claim_one(&second).attempts, 1);
    assert_eq!(ground.next_due(&first), None);
}

fn by_due_time(ground: &Ground) {
    let lane = lane("work");
    for (member, offset) in [("c", 3), ("a", 1), ("later", 9), ("b", 2)] {
        ground.put(&lane, member, START.plus(Millis(offset)));
    }
    ground.clock.advance(Millis(5));
    assert_eq!(names(&ground.claim(&lane, 2)), ["a", "b"]);
    assert_eq!(names(&ground.claim(&lane, 100)), ["c"]);
    assert!(ground.claim(&lane, 100).is_empty());
}

fn never_early(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START.plus(Millis(1)));
    assert!(ground.claim(&lane, 1).is_empty());
    ground.clock.advance(Millis(1));
    let claimed = ground.claim_one(&lane);
    assert_eq!(claimed.due_at, START.plus(Millis(1)));
    assert_eq!(claimed.created_at, START);
}

fn tokens_never_repeat(ground: &Ground) {
    let lane = lane("work");
    let mut seen: BTreeSet<Token> = BTreeSet::new();
    for round in 0..20 {
        ground.must(due(vec![put(&lane, "m", START), put(&lane, "n", START)]));
        for claimed in ground.claim(&lane, 2) {
            assert!(seen.insert(claimed.held.token), "token {:?} came twice", claimed.held.token);
            let change = match round % 3 {
                0 => DueChange::Remove { lane: lane.clone(), member: claimed.held.member },
                1 => DueChange::Complete(claimed.held),
                _ => {
                    DueChange::Retry { held: claimed.held, due_at: START, body: None, charge: Charge::Refund }
                }
            };
            ground.must(due(vec![change]));
        }
    }
    assert_eq!(seen.len(), 40);
}

fn attempts_at_claim(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let first = ground.claim_one(&lane);
    assert_eq!(first.attempts, 1);
    ground.must(retry(&first.held, START));
    let second = ground.claim_one(&lane);
    assert_eq!(second.attempts, 2);
    ground.must(due(vec![DueChange::Retry {
        held: second.held,
        due_at: START,
        body: Some(b"less".to_vec()),
        charge: Charge::Refund,
    }]));
    let third = ground.claim_one(&lane);
    assert_eq!((third.attempts, third.body), (2, b"less".to_vec()), "a hand-back is not charged (A5)");
    ground.must(due(vec![
        DueChange::Remove { lane: lane.clone(), member: Arc::from("m") },
        put(&lane, "m", START),
    ]));
    assert_eq!(ground.claim_one(&lane).attempts, 1, "a new member starts anew");
}

fn expired_lease(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let first = ground.claim_one(&lane);
    ground.clock.advance(Millis(LEASE.0 - 1));
    assert!(ground.claim(&lane, 1).is_empty());
    assert_eq!(ground.next_due(&lane), Some(first.lease_until));
    ground.clock.advance(Millis(1));
    let second = ground.claim_one(&lane);
    assert_eq!(second.attempts, 2);
    assert_eq!(second.due_at, first.lease_until);
    assert_ne!(second.held.token, first.held.token);
}

fn ten_thousand(ground: &Ground) {
    let lane = lane("work");
    let later = START.plus(Millis(3_600_000));
    let waiting = (0..10_000).map(|number| put(&lane, &format!("w{number:05}"), later)).collect();
    ground.must(due(waiting));
    ground.put(&lane, "due", START);
    assert_eq!(names(&ground.claim(&lane, 500)), ["due"]);
    assert!(ground.claim(&lane, 500).is_empty());
}

fn strict_lane(ground: &Ground) {
    let lane = lane(Lane::OUTBOX);
    // The second member is due earlier; arrival counts.
    ground.put(&lane, "z-first", START.plus(Millis(5)));
    ground.put(&lane, "a-second", START);
    let claim = || ground.claim_as(&lane, 1, Sequence::Strict);
    assert!(claim().is_empty(), "the head is not due yet");
    ground.clock.advance(Millis(5));
    let head = claim();
    assert_eq!(names(&head), ["z-first"]);
    assert!(claim().is_empty(), "the head is leased");
    ground.must(retry(&head[0].held, START.plus(Millis(50))));
    assert!(claim().is_empty(), "the head waits for its back-off");
    ground.clock.advance(Millis(50));
    let head = claim();
    assert_eq!((names(&head), head[0].attempts), (vec!["z-first"], 2));
    ground.clock.advance(LEASE);
    let head = claim();
    assert_eq!(names(&head), ["z-first"], "an expired head comes again before the rest");
    ground.must(due(vec![DueChange::Complete(head[0].held.clone())]));
    assert_eq!(names(&claim()), ["a-second"]);
}

fn strict_run(ground: &Ground) {
    let lane = lane(Lane::OUTBOX);
    for (member, offset) in [("d", 0), ("c", 0), ("b", 60), ("a", 0)] {
        ground.put(&lane, member, START.plus(Millis(offset)));
    }
    let run = ground.claim_as(&lane, 10, Sequence::Strict);
    assert_eq!(names(&run), ["d", "c"], "the run ends at the first that is not due");
    ground.must(due(vec![DueChange::Complete(run[1].held.clone())]));
    ground.clock.advance(Millis(60));
    assert!(ground.claim_as(&lane, 10, Sequence::Strict).is_empty(), "the head is still leased");
    ground.must(due(vec![DueChange::Complete(run[0].held.clone())]));
    assert_eq!(names(&ground.claim_as(&lane, 1, Sequence::Strict)), ["b"], "the limit holds");
}

fn lease_from_claim(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    ground.clock.advance(Millis(600_000));
    let claimed = ground.claim_one(&lane);
    let end = START.plus(Millis(600_000)).plus(LEASE);
    assert_eq!(claimed.lease_until, end);
    assert_eq!(ground.next_due(&lane), Some(end));
}

fn long_delays(ground: &Ground) {
    let lane = lane("work");
    let day = 24 * 60 * 60 * 1000;
    let delays = [("d24", 24 * day), ("d25", 25 * day), ("d400", 400 * day)];
    for (member, delay) in delays {
        ground.put(&lane, member, START.plus(Millis(delay)));
    }
    ground.put(&lane, "never", Timestamp(i64::MAX));
    for (member, delay) in delays {
        ground.clock.set(START.plus(Millis(delay - 1)));
        assert!(ground.claim(&lane, 10).is_empty(), "{member} must not run early");
        ground.clock.advance(Millis(1));
        let claimed = ground.claim_one(&lane);
        assert_eq!(names(std::slice::from_ref(&claimed)), [member]);
        ground.must(due(vec![DueChange::Complete(claimed.held)]));
    }
    assert_eq!(ground.next_due(&lane), Some(Timestamp(i64::MAX)));
}

fn exact_milliseconds(ground: &Ground) {
    const YEAR_2040: Timestamp = Timestamp(2_208_988_800_000);
    let lane = lane("work");
    for offset in [2, 0, 1] {
        ground.put(&lane, &format!("m{offset}"), YEAR_2040.plus(Millis(offset)));
    }
    for offset in 0..3 {
        let due_at = YEAR_2040.plus(Millis(offset));
        assert_eq!(ground.next_due(&lane), Some(due_at));
        ground.clock.set(YEAR_2040.plus(Millis(offset - 1)));
        assert!(ground.claim(&lane, 10).is_empty());
        ground.clock.set(due_at);
        let claimed = ground.claim_one(&lane);
        assert_eq!((&*claimed.held.member, claimed.due_at), (&*format!("m{offset}"), due_at));
        ground.must(due(vec![DueChange::Complete(claimed.held)]));
    }
    let moment = YEAR_2040.plus(Millis(7));
    ground.must(due((0..5_000).map(|number| put(&lane, &format!("n{number:04}"), moment)).collect()));
    ground.clock.set(moment);
    let mut seen = BTreeSet::new();
    loop {
        let claimed = ground.claim(&lane, 700);
        if claimed.is_empty() {
            break;
        }
        assert!(claimed.iter().all(|claim| claim.due_at == moment));
        seen.extend(claimed.into_iter().map(|claim| claim.held.member));
    }
    assert_eq!(seen.len(), 5_000, "all items of one millisecond are given out, each once");
}
