//! Only the current token settles a claim (LQ-02).

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{Charge, Claimed, DueChange, Held};
use onceward_domain::error::Code;
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, LEASE, START, activity, due, lane, put, retry};

pub(super) const CASES: &[Case] = &[
    Case::new("lq_02_only_the_current_token_settles", only_current),
    Case::new("lq_02_f_2_a_lost_lease_changes_no_field", lost_lease_changes_nothing),
    Case::new("lq_02_an_expired_but_unclaimed_lease_still_settles", expired_unclaimed),
    Case::new("lq_02_a_lost_token_stops_the_whole_set", lost_token_stops_all),
    Case::new("lq_04_a_retry_waits_and_keeps_its_attempts", retry_waits),
    Case::new("lq_06_a_lease_is_extended_by_its_holder", extended),
    Case::new("lq_06_a_removed_member_is_gone_for_its_holder", removed),
    Case::new("f_12_complete_and_put_again_in_one_set_is_a_new_member", replaced_in_one_set),
];

/// All three ways to settle a claim.
fn settlements(held: &Held) -> [ChangeSet; 3] {
    let later = START.plus(Millis(999_000));
    [
        due(vec![DueChange::Complete(held.clone())]),
        due(vec![DueChange::Retry {
            held: held.clone(),
            due_at: later,
            body: Some(b"stolen".to_vec()),
            charge: Charge::Refund,
        }]),
        due(vec![DueChange::Extend { held: held.clone(), lease_until: later }]),
    ]
}

/// A claim whose lease another worker took over, and that other claim.
fn overtaken(ground: &Ground) -> (Claimed, Claimed) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let first = ground.claim_one(&lane);
    ground.clock.advance(LEASE);
    let second = ground.claim_one(&lane);
    (first, second)
}

fn only_current(ground: &Ground) {
    let (first, second) = overtaken(ground);
    for changes in settlements(&first.held) {
        ground.refuses(changes, Code::GuardLost);
    }
    ground.must(due(vec![DueChange::Complete(second.held.clone())]));
    for changes in settlements(&second.held) {
        ground.refuses(changes, Code::GuardLost);
    }
}

fn lost_lease_changes_nothing(ground: &Ground) {
    let (first, second) = overtaken(ground);
    for changes in settlements(&first.held) {
        ground.refuses(changes, Code::GuardLost);
    }
    assert_eq!(ground.next_due(&second.held.lane), Some(second.lease_until));
    ground.clock.advance(LEASE);
    let third = ground.claim_one(&second.held.lane);
    assert_eq!((third.attempts, third.body), (3, b"m".to_vec()));
}

fn expired_unclaimed(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let claimed = ground.claim_one(&lane);
    ground.clock.advance(Millis(LEASE.0 * 3));
    ground.must(due(vec![DueChange::Complete(claimed.held)]));
    assert_eq!(ground.next_due(&lane), None);
}

fn lost_token_stops_all(ground: &Ground) {
    let (first, second) = overtaken(ground);
    let changes = ChangeSet {
        activities: vec![activity("effect")],
        due: vec![put(&lane("other"), "x", START), DueChange::Complete(first.held)],
        ..ChangeSet::default()
    };
    ground.refuses(changes, Code::GuardLost);
    assert_eq!(ground.next_due(&lane("other")), None);
    let need = onceward_domain::facts::Need { activities: vec![activity("effect").id], ..Default::default() };
    assert!(ground.view(need).activities.is_empty());
    ground.must(due(vec![DueChange::Complete(second.held)]));
}

fn retry_waits(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    for (attempt, wait) in (1..).zip([1000, 2000, 4000, 8000, 16_000]) {
        let claimed = ground.claim_one(&lane);
        assert_eq!(claimed.attempts, attempt);
        let due_at = claimed.due_at.plus(Millis(wait));
        ground.must(retry(&claimed.held, due_at));
        ground.refuses(retry(&claimed.held, due_at), Code::GuardLost);
        assert_eq!(ground.next_due(&lane), Some(due_at));
        ground.clock.set(due_at.minus(Millis(1)));
        assert!(ground.claim(&lane, 1).is_empty());
        ground.clock.set(due_at);
    }
}

fn extended(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let claimed = ground.claim_one(&lane);
    let end = claimed.lease_until.plus(LEASE);
    ground.must(due(vec![DueChange::Extend { held: claimed.held.clone(), lease_until: end }]));
    ground.clock.set(end.minus(Millis(1)));
    assert!(ground.claim(&lane, 1).is_empty());
    ground.must(due(vec![DueChange::Complete(claimed.held)]));
}

fn removed(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let claimed = ground.claim_one(&lane);
    let remove = || due(vec![DueChange::Remove { lane: lane.clone(), member: Arc::from("m") }]);
    ground.must(remove());
    ground.must(remove());
    for changes in settlements(&claimed.held) {
        ground.refuses(changes, Code::GuardLost);
    }
    ground.put(&lane, "m", START);
    for changes in settlements(&claimed.held) {
        ground.refuses(changes, Code::GuardLost);
    }
}

fn replaced_in_one_set(ground: &Ground) {
    let lane = lane("work");
    ground.put(&lane, "m", START);
    let claimed = ground.claim_one(&lane);
    ground.must(due(vec![DueChange::Complete(claimed.held.clone()), put(&lane, "m", START.plus(Millis(5)))]));
    ground.clock.advance(Millis(5));
    let again = ground.claim_one(&lane);
    assert_eq!(again.attempts, 1);
    assert_ne!(again.held.token, claimed.held.token);
}
