//! What an operator does: pausing, rescheduling, looking (LQ-06).

use onceward_domain::due::LaneStatus;
use onceward_domain::ports::due_queue::{Due, Put, Rescheduled, Settled};
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, lane, members, names};
use crate::block_on::block_on;
use crate::conformance::store::ground::{LEASE, START};

pub(super) const CASES: &[Case] = &[
    ("lq_06_a_paused_lane_gives_out_nothing_and_loses_nothing", paused),
    ("lq_06_waiting_work_is_rescheduled_and_leased_work_is_not", rescheduled),
    ("lq_06_a_lane_shows_its_size_leases_ages_and_last_claim", status),
    ("lq_06_a_lane_is_listed_oldest_first", listed),
];

fn paused(ground: &Ground) {
    ground.put_now("held");
    let held = ground.claim_one().held;
    ground.put_now("m");
    for _twice in 0..2 {
        block_on(ground.queue.pause(lane())).expect("a pause answers");
        assert!(ground.claim(10).is_empty());
        assert_eq!(ground.next_due(), None, "a worker sleeps");
    }
    assert_eq!(ground.put("later", Due::After(Millis(0))), Put::Added);
    assert_eq!(ground.complete(&held), Settled::Completed, "what is out may be ended");
    for _twice in 0..2 {
        block_on(ground.queue.resume(lane())).expect("resuming answers");
    }
    assert_eq!(ground.next_due(), Some(START));
    assert_eq!(ground.claim(10).len(), 2);
}

fn rescheduled(ground: &Ground) {
    assert_eq!(ground.reschedule("m", Due::At(START)), Rescheduled::Absent);
    ground.put("m", Due::After(Millis(1_000)));
    assert_eq!(ground.reschedule("m", Due::After(Millis(5))), Rescheduled::Moved);
    assert_eq!(ground.next_due(), Some(START.plus(Millis(5))));
    ground.clock.advance(Millis(5));
    let claim = ground.claim_one();
    assert_eq!(ground.reschedule("m", Due::At(START)), Rescheduled::Leased);
    assert_eq!(ground.next_due(), Some(claim.lease_until));
    assert_eq!(ground.complete(&claim.held), Settled::Completed);
}

fn status(ground: &Ground) {
    let shown = || block_on(ground.queue.status(lane())).expect("a status answers");
    assert_eq!(shown(), LaneStatus::empty(lane()));
    ground.put_now("m");
    ground.clock.advance(Millis(5));
    ground.put("n", Due::After(Millis(900_000)));
    let claim = ground.claim_one();
    ground.clock.advance(Millis(3));
    let expected = LaneStatus {
        lane: lane(),
        size: 2,
        leased: 1,
        next_due: Some(START.plus(Millis(5)).plus(LEASE)),
        oldest: Some(START),
        paused: false,
        last_claim: Some(START.plus(Millis(5))),
    };
    assert_eq!(shown(), expected);
    ground.complete(&claim.held);
    block_on(ground.queue.pause(lane())).expect("a pause answers");
    let after = shown();
    assert_eq!((after.size, after.leased, after.paused), (1, 0, true));
}

fn listed(ground: &Ground) {
    for member in ["e", "d", "c", "b", "a"] {
        ground.put_now(member);
        ground.clock.advance(Millis(1));
    }
    assert_eq!(members(&ground.waiting()), ["e", "d", "c", "b", "a"]);
    assert_eq!(names(&ground.claim(1)), ["e"]);
    let page = block_on(ground.queue.list(lane(), 2, Some("d".into()))).expect("lists answer");
    assert_eq!(members(&page), ["c", "b"]);
    let first = &ground.waiting()[0];
    assert!(first.leased && first.attempts == 1);
}
