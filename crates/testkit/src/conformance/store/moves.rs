//! Exhausting, setting aside, replaying, rescheduling and pausing due work (LQ-04, LQ-06).

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{Claimed, DueChange, DueEntry, Lane, Sequence, Token, Waiting};
use onceward_domain::error::Code;
use onceward_domain::facts::Need;
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{Ground, LEASE, START, due, lane, names, put};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("lq_04_an_exhausted_member_is_in_its_set_with_a_cleared_counter", exhausted),
    Case::new("lq_02_only_the_current_token_exhausts_or_sets_aside", only_current),
    Case::new("f_12_k_2_a_member_is_in_its_lane_or_exhausted_never_in_both", in_one_place),
    Case::new("lq_04_an_exhaustion_is_replayed_once", replayed_once),
    Case::new("lq_06_only_what_waits_is_rescheduled", rescheduled),
    Case::new("lq_06_a_paused_lane_gives_out_nothing", paused),
    Case::new("lq_02_a_decision_sees_who_holds_what", seen_by_decisions),
];

fn claimed(ground: &Ground, lane: &Lane, member: &str) -> Claimed {
    ground.put(lane, member, START);
    ground.claim_one(lane)
}

fn list(ground: &Ground, lane: &Lane) -> Vec<Waiting> {
    block_on(ground.store.list_due(lane.clone(), 100, None)).expect("list_due answers")
}

fn entry(ground: &Ground, lane: &Lane, member: &str) -> Option<DueEntry> {
    let key = (lane.clone(), Arc::from(member));
    ground.view(Need { due: vec![key.clone()], ..Need::default() }).due.remove(&key)
}

fn replay(lane: &Lane, member: &str, token: Token, due_at: Timestamp) -> ChangeSet {
    due(vec![DueChange::Replay { lane: lane.clone(), member: Arc::from(member), token, due_at }])
}

fn exhausted(ground: &Ground) {
    let lane = lane("work");
    let claim = claimed(ground, &lane, "m");
    ground.clock.advance(Millis(7));
    ground.must(due(vec![DueChange::Exhaust(claim.held.clone())]));
    assert_eq!((list(ground, &lane), ground.next_due(&lane)), (Vec::new(), None));
    let expected = Waiting {
        lane: lane.dead_letters(),
        member: Arc::from("m"),
        due_at: START.plus(Millis(7)),
        created_at: START,
        attempts: 0,
        leased: false,
        token: claim.held.token,
        body: b"m".to_vec(),
    };
    assert_eq!(list(ground, &lane.dead_letters()), [expected]);
}

fn only_current(ground: &Ground) {
    let lane = lane("work");
    let first = claimed(ground, &lane, "m");
    ground.clock.advance(LEASE);
    let second = ground.claim_one(&lane);
    let aside = |claim: &Claimed| DueChange::SetAside {
        held: claim.held.clone(),
        member: Arc::from("part"),
        body: b"part".to_vec(),
    };
    ground.refuses(due(vec![DueChange::Exhaust(first.held.clone())]), Code::GuardLost);
    ground.refuses(due(vec![aside(&first)]), Code::GuardLost);
    assert!(list(ground, &lane.dead_letters()).is_empty());
    ground.must(due(vec![aside(&second), DueChange::Complete(second.held.clone())]));
    ground.refuses(due(vec![DueChange::Exhaust(second.held.clone())]), Code::GuardLost);
    let found = list(ground, &lane.dead_letters());
    assert_eq!((found.len(), &*found[0].member, found[0].token), (1, "part", second.held.token));
    // Met again under another claim, it stays as it was.
    let third = claimed(ground, &lane, "n");
    ground.must(due(vec![aside(&third), DueChange::Complete(third.held.clone())]));
    assert_eq!(list(ground, &lane.dead_letters()), found);
}

fn in_one_place(ground: &Ground) {
    let lane = lane("work");
    let claim = claimed(ground, &lane, "m");
    ground.must(due(vec![DueChange::Exhaust(claim.held)]));
    ground.put(&lane, "m", START);
    assert!(list(ground, &lane).is_empty(), "what is exhausted is not put in again");
    ground.put(&lane, "m2", START);
    assert_eq!(list(ground, &lane).len(), 1, "another generation has another name (A15)");
    let gone = DueChange::Remove { lane: lane.dead_letters(), member: Arc::from("m") };
    ground.must(due(vec![gone, put(&lane, "m", START)]));
    assert_eq!(list(ground, &lane).len(), 2);
    assert!(list(ground, &lane.dead_letters()).is_empty());
}

fn replayed_once(ground: &Ground) {
    let lane = lane("work");
    let claim = claimed(ground, &lane, "m");
    let token = claim.held.token;
    ground.must(due(vec![DueChange::Exhaust(claim.held)]));
    ground.refuses(replay(&lane, "m", Token(token.0 + 1), START), Code::GuardLost);
    ground.must(replay(&lane, "m", token, START.plus(Millis(3))));
    ground.refuses(replay(&lane, "m", token, START), Code::GuardLost);
    assert_eq!(ground.next_due(&lane), Some(START.plus(Millis(3))));
    ground.clock.advance(Millis(3));
    let again = ground.claim_one(&lane);
    assert_eq!((again.attempts, again.body.as_slice()), (1, b"m".as_slice()), "tries are fresh");
    ground.must(due(vec![DueChange::Exhaust(again.held.clone())]));
    ground.refuses(replay(&lane, "m", token, START), Code::GuardLost);
    ground.must(replay(&lane, "m", again.held.token, START));
}

fn rescheduled(ground: &Ground) {
    let lane = lane("work");
    let to = |due_at| due(vec![DueChange::Reschedule { lane: lane.clone(), member: Arc::from("m"), due_at }]);
    ground.refuses(to(START), Code::GuardLost);
    ground.put(&lane, "m", START);
    ground.must(to(START.plus(Millis(50))));
    assert_eq!(ground.next_due(&lane), Some(START.plus(Millis(50))));
    ground.must(to(START));
    let claim = ground.claim_one(&lane);
    ground.refuses(to(START), Code::GuardLost);
    assert_eq!(ground.next_due(&lane), Some(claim.lease_until));
}

fn paused(ground: &Ground) {
    let (stopped, other) = (lane("stopped"), lane("other"));
    let running = claimed(ground, &stopped, "running");
    ground.put(&stopped, "m", START);
    ground.put(&other, "m", START);
    for _twice in 0..2 {
        ground.must(due(vec![DueChange::Pause(stopped.clone())]));
        for sequence in [Sequence::ByDue, Sequence::Strict] {
            assert!(ground.claim_as(&stopped, 10, sequence).is_empty());
        }
        assert_eq!(ground.next_due(&stopped), None);
    }
    ground.must(due(vec![DueChange::Complete(running.held)]));
    assert_eq!(names(&ground.claim(&other, 10)), ["m"], "other lanes go on");
    let all_paused = || block_on(ground.store.paused()).expect("paused answers");
    let status = |wanted: &Lane| {
        let lanes = block_on(ground.store.lanes()).expect("lanes answers");
        lanes.into_iter().find(|one| one.lane == *wanted)
    };
    let shown = status(&stopped).expect("it has a member");
    assert_eq!((shown.paused, shown.size, shown.last_claim), (true, 1, Some(START)));
    ground.must(due(vec![DueChange::Remove { lane: stopped.clone(), member: Arc::from("m") }]));
    assert!(status(&stopped).is_some_and(|one| one.paused), "a pause is shown where nothing waits");
    assert_eq!(all_paused(), std::slice::from_ref(&stopped));
    ground.put(&stopped, "m", START);
    for _twice in 0..2 {
        ground.must(due(vec![DueChange::Resume(stopped.clone())]));
        assert_eq!(ground.next_due(&stopped), Some(START));
    }
    assert_eq!(names(&ground.claim(&stopped, 10)), ["m"]);
    assert!(status(&stopped).is_some_and(|one| !one.paused));
    assert_eq!(all_paused(), []);
}

fn seen_by_decisions(ground: &Ground) {
    let lane = lane("work");
    assert_eq!(entry(ground, &lane, "m"), None);
    ground.put(&lane, "m", START);
    let waits = DueEntry {
        due_at: START,
        created_at: START,
        attempts: 0,
        token: Token::NONE,
        is_held: false,
        body: b"m".to_vec(),
    };
    assert_eq!(entry(ground, &lane, "m"), Some(waits.clone()));
    let claim = ground.claim_one(&lane);
    let token = claim.held.token;
    let held = DueEntry { due_at: claim.lease_until, attempts: 1, token, is_held: true, ..waits.clone() };
    assert_eq!(entry(ground, &lane, "m"), Some(held.clone()));
    ground.clock.advance(Millis(LEASE.0 * 2));
    assert_eq!(entry(ground, &lane, "m"), Some(held.clone()), "until somebody else claims it");
    let now = START.plus(Millis(LEASE.0 * 2));
    ground.must(due(vec![DueChange::Exhaust(claim.held)]));
    assert_eq!(entry(ground, &lane, "m"), None);
    let dead = DueEntry { due_at: now, attempts: 0, is_held: false, ..held };
    assert_eq!(entry(ground, &lane.dead_letters(), "m"), Some(dead));
}
