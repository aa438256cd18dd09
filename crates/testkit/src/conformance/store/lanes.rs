//! Looking at due work without touching it.

use std::sync::Arc;

use onceward_domain::due::{DueChange, Lane, LaneStatus, Token, Waiting, pack_ids};
use onceward_domain::id::PurchaseId;
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, LEASE, START, due, id, lane, put};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("lq_01_next_due_is_the_earliest_of_its_lane", next_due),
    Case::new("fs_05_a_purchase_is_found_in_a_packed_body", found_in_body),
    Case::new("lq_01_a_lane_is_listed_in_pages_oldest_first", listed_in_pages),
    Case::new("lq_01_lanes_show_size_leases_and_age", lanes_at_a_glance),
];

fn next_due(ground: &Ground) {
    let lane = lane("work");
    assert_eq!(ground.next_due(&lane), None);
    ground.must(due(vec![put(&lane, "b", START.plus(Millis(9))), put(&lane, "a", START.plus(Millis(4)))]));
    assert_eq!(ground.next_due(&lane), Some(START.plus(Millis(4))));
    assert_eq!(ground.next_due(&Lane::new("another")), None);
    ground.clock.advance(Millis(4));
    let held = ground.claim_one(&lane).held;
    assert_eq!(ground.next_due(&lane), Some(START.plus(Millis(9))));
    ground.must(due(vec![DueChange::Complete(held)]));
    ground.clock.advance(Millis(5));
    let last = ground.claim_one(&lane);
    assert_eq!(ground.next_due(&lane), Some(last.lease_until));
}

fn find(ground: &Ground, lane: &Lane, purchase: PurchaseId) -> Option<Waiting> {
    block_on(ground.store.find_due(lane.clone(), purchase)).expect("find_due answers")
}

fn found_in_body(ground: &Ground) {
    let lane = lane(Lane::SEND_DUE);
    let batches: [(&str, Vec<PurchaseId>); 3] =
        [("one", (0..50).map(id).collect()), ("two", (50..53).map(id).collect()), ("three", vec![id(99)])];
    for (member, ids) in &batches {
        let body = pack_ids(ids);
        ground.must(due(vec![DueChange::Put {
            lane: lane.clone(),
            member: Arc::from(*member),
            due_at: START,
            body,
        }]));
    }
    for (member, ids) in &batches {
        for purchase in ids {
            let found = find(ground, &lane, *purchase).expect("it is in the lane");
            assert_eq!(&*found.member, *member);
        }
    }
    assert_eq!(find(ground, &lane, id(7_777)), None);
    assert_eq!(find(ground, &Lane::new("another"), id(99)), None);
    // Sixteen bytes that straddle two ids are no id.
    let mut astride = [0_u8; 16];
    astride.copy_from_slice(&pack_ids(&[id(50), id(51)])[8..24]);
    assert_eq!(find(ground, &lane, PurchaseId::from_bytes(astride)), None);
    let claimed = ground.claim(&lane, 1);
    let found = find(ground, &lane, id(0)).expect("a claimed member is still found");
    assert!(found.leased && found.attempts == 1 && found.due_at == claimed[0].lease_until);
}

fn list(ground: &Ground, lane: &Lane, limit: u32, after: Option<Arc<str>>) -> Vec<Waiting> {
    block_on(ground.store.list_due(lane.clone(), limit, after)).expect("list_due answers")
}

fn listed_in_pages(ground: &Ground) {
    let lane = lane("work");
    let names = ["e", "d", "c", "b", "a"];
    for member in names {
        ground.put(&lane, member, START.plus(Millis(100)));
        ground.clock.advance(Millis(1));
    }
    let mut seen: Vec<String> = Vec::new();
    let mut after = None;
    loop {
        let page = list(ground, &lane, 2, after.clone());
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(Arc::clone(&last.member));
        seen.extend(page.iter().map(|waiting| waiting.member.to_string()));
    }
    assert_eq!(seen, names);
    let first = list(ground, &lane, 1, None).remove(0);
    let expected = Waiting {
        lane: lane.clone(),
        member: Arc::from("e"),
        due_at: START.plus(Millis(100)),
        created_at: START,
        attempts: 0,
        leased: false,
        token: Token::NONE,
        body: b"e".to_vec(),
    };
    assert_eq!(first, expected);
}

fn lanes_at_a_glance(ground: &Ground) {
    let lanes = || block_on(ground.store.lanes()).expect("lanes answers");
    assert!(lanes().is_empty());
    let (first, second) = (lane("a-lane"), lane("b-lane"));
    ground.put(&first, "m", START);
    ground.clock.advance(Millis(5));
    ground.must(due(vec![put(&first, "n", START.plus(Millis(900_000))), put(&second, "m", START)]));
    let claimed = ground.claim(&first, 1);
    let mut shown = lanes();
    shown.sort_by(|left, right| left.lane.cmp(&right.lane));
    let a = LaneStatus {
        lane: first.clone(),
        size: 2,
        leased: 1,
        next_due: Some(START.plus(Millis(5)).plus(LEASE)),
        oldest: Some(START),
        paused: false,
        last_claim: Some(START.plus(Millis(5))),
    };
    let b = LaneStatus {
        lane: second.clone(),
        size: 1,
        leased: 0,
        next_due: Some(START),
        oldest: Some(START.plus(Millis(5))),
        paused: false,
        last_claim: None,
    };
    assert_eq!(shown, [a, b.clone()]);
    ground.must(due(vec![
        DueChange::Complete(claimed[0].held.clone()),
        DueChange::Remove { lane: first, member: Arc::from("n") },
    ]));
    assert_eq!(lanes(), [b], "an empty lane is not shown");
}
