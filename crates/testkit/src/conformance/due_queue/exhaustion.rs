//! Retries, the end of tries, its notice, and replays (LQ-03, LQ-04, LQ-05).

use std::collections::BTreeSet;

use onceward_domain::ports::due_queue::{Due, Exhaustion, Put, Replayed, Settled, Settlement};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, exhaustion, members, names, retry, work};
use crate::conformance::store::ground::{LEASE, START};

pub(super) const CASES: &[Case] = &[
    ("lq_04_waits_are_1_2_4_8_16_seconds_then_it_is_exhausted", waits),
    ("lq_04_a_cap_and_jitter_shorten_the_waits", cap_and_jitter),
    ("lq_03_lq_05_leases_that_ran_out_use_up_the_same_tries", by_leases),
    ("q_a4_one_budget_covers_crashes_and_failures", one_budget),
    ("q_a3_the_limit_holds_for_every_member_alike", alike),
    ("q_a10_what_is_exhausted_hides_nothing_behind_it", hides_nothing),
    ("q_a14_a_replay_brings_each_back_once_and_later_deaths_wait", replayed_once),
    ("q_a15_an_exhausted_name_stays_and_a_new_period_is_free", new_period),
    ("lq_05_each_exhaustion_is_told_once", told_once),
    ("lq_05_the_exhausted_are_listed_in_pages", pages),
    ("q_a9_work_that_nobody_knows_is_never_dropped", unknown_work),
];

/// Claims a member and lets it fail until its tries are used up.
fn exhaust(ground: &Ground, member: &str) {
    ground.put(member, Due::After(Millis(0)));
    for _attempt in 0..6 {
        let claims = ground.claim(1_000);
        let claim = claims.iter().find(|one| &*one.held.member == member).expect("it is due");
        if let Settled::Again(due_at) = ground.settle(retry(&claim.held)) {
            ground.clock.set(due_at);
        }
    }
    assert!(members(&ground.exhausted()).contains(&member));
}

fn waits(ground: &Ground) {
    ground.put_now("m");
    let mut now = START;
    for (attempt, wait) in (1..).zip([1_000, 2_000, 4_000, 8_000, 16_000]) {
        let claim = ground.claim_one();
        assert_eq!(claim.attempts, attempt);
        now = now.plus(Millis(wait));
        assert_eq!(ground.settle(retry(&claim.held)), Settled::Again(now));
        assert_eq!(ground.next_due(), Some(now));
        ground.clock.set(now.minus(Millis(1)));
        assert!(ground.claim(10).is_empty());
        ground.clock.set(now);
        assert!(ground.notices().is_empty(), "nobody is told too early");
    }
    let last = ground.claim_one();
    assert_eq!(last.attempts, 6);
    assert_eq!(ground.settle(retry(&last.held)), Settled::Exhausted);
    assert_eq!(ground.settle(retry(&last.held)), Settled::LeaseLost);
    let dead = ground.exhausted();
    assert_eq!((members(&dead), dead[0].attempts, dead[0].due_at), (vec!["m"], 0, now));
    assert_eq!((dead[0].token, dead[0].body.as_slice()), (last.held.token, b"body of m".as_slice()));
    assert_eq!((ground.next_due(), ground.waiting().len(), ground.notices().len()), (None, 0, 1));
    ground.check();
}

fn cap_and_jitter(ground: &Ground) {
    let policy = RetryPolicy { cap: Some(Millis(3_000)), jitter: 500, ..RetryPolicy::default() };
    ground.put_all((0..50).map(|number| work(&format!("m{number}"), Due::At(START))).collect());
    let (mut now, mut seen) = (START, BTreeSet::new());
    for whole in [1_000, 2_000, 3_000, 3_000] {
        let claims = ground.claim(100);
        assert_eq!(claims.len(), 50);
        for claim in claims {
            let settlement = Settlement::Retry { held: claim.held, policy };
            let Settled::Again(due_at) = ground.settle(settlement) else { panic!("tries are left") };
            let wait = due_at.since(now).0;
            assert!((whole / 2..=whole).contains(&wait), "{wait} of {whole}");
            seen.insert(wait);
        }
        now = now.plus(Millis(whole));
        ground.clock.set(now);
    }
    assert!(seen.len() > 50, "what failed together does not come back together");
}

fn by_leases(ground: &Ground) {
    ground.put_now("m");
    for attempt in 1..=6 {
        assert_eq!(ground.claim_one().attempts, attempt);
        ground.clock.advance(LEASE);
    }
    assert!(ground.claim(10).is_empty(), "the seventh is one too many");
    assert_eq!((members(&ground.exhausted()), ground.exhausted()[0].attempts), (vec!["m"], 0));
    ground.check();
    ground.clock.advance(LEASE);
    assert!(ground.claim(10).is_empty());
    assert_eq!(ground.notices().len(), 1);
}

fn one_budget(ground: &Ground) {
    let ten = RetryPolicy { attempts: Some(10), ..RetryPolicy::default() };
    ground.put_now("m");
    for _killed in 0..2 {
        assert_eq!(ground.claim_under(10, ten).len(), 1);
        ground.clock.advance(LEASE);
    }
    let mut runs = 0;
    loop {
        let claims = ground.claim_under(10, ten);
        let Some(claim) = claims.first() else { break };
        runs += 1;
        let answer = ground.settle(Settlement::Retry { held: claim.held.clone(), policy: ten });
        if let Settled::Again(due_at) = answer {
            ground.clock.set(due_at);
        } else {
            assert_eq!(answer, Settled::Exhausted);
        }
    }
    assert_eq!(runs, 8, "eight attempts were left after two crashes");
    ground.check();
}

fn alike(ground: &Ground) {
    // Whatever put it in, and even where it is put in again while it stalls.
    ground.put_now("m");
    for _attempt in 0..6 {
        drop(ground.claim_one());
        assert_eq!(ground.put("m", Due::After(Millis(0))), Put::There);
        ground.clock.advance(LEASE);
    }
    assert!(ground.claim(10).is_empty());
    assert_eq!(ground.put("m", Due::After(Millis(0))), Put::Exhausted);
    ground.check();
}

fn hides_nothing(ground: &Ground) {
    let once = RetryPolicy { attempts: Some(1), ..RetryPolicy::default() };
    ground.put_all((0..30).map(|number| work(&format!("spent{number:02}"), Due::At(START))).collect());
    assert_eq!(ground.claim_under(100, once).len(), 30);
    ground.put("good", Due::At(START.plus(LEASE)));
    ground.clock.advance(LEASE);
    // Pages of ten: three of them hold only members that are given to nobody any more.
    assert_eq!(names(&ground.claim_under(10, once)), ["good"]);
    assert_eq!(ground.exhausted().len(), 30);
    ground.check();
}

fn replayed_once(ground: &Ground) {
    let once = RetryPolicy { attempts: Some(1), ..RetryPolicy::default() };
    let fail_all = || {
        for claim in ground.claim_under(1_000, once) {
            let settlement = Settlement::Retry { held: claim.held, policy: once };
            assert_eq!(ground.settle(settlement), Settled::Exhausted);
        }
    };
    ground.put_all((0..200).map(|number| work(&format!("m{number:03}"), Due::At(START))).collect());
    fail_all();
    let which: Vec<Exhaustion> = ground.exhausted().iter().map(exhaustion).collect();
    assert_eq!(which.len(), 200);
    let mut revived = 0;
    for part in which.chunks(10) {
        revived += ground.replay(part.to_vec()).iter().filter(|one| **one == Replayed::Revived).count();
        // They die again while the replay goes on.
        fail_all();
        assert_eq!(ground.replay(part.to_vec()), [Replayed::Absent; 10], "a later death waits");
    }
    assert_eq!((revived, ground.exhausted().len(), ground.waiting().len()), (200, 200, 0));
    ground.check();
    assert_eq!(ground.notices().len(), 400, "each death is told");
    let again = ground.exhausted().iter().map(exhaustion).take(1).collect();
    assert_eq!(ground.replay(again), [Replayed::Revived]);
    assert_eq!(ground.claim_one().attempts, 1, "tries are fresh");
}

fn new_period(ground: &Ground) {
    exhaust(ground, "settle:day-1");
    assert_eq!(ground.put("settle:day-1", Due::After(Millis(0))), Put::Exhausted);
    assert_eq!(ground.put("settle:day-2", Due::After(Millis(0))), Put::Added);
    assert_eq!(names(&ground.claim(10)), ["settle:day-2"]);
    ground.check();
}

fn told_once(ground: &Ground) {
    exhaust(ground, "m");
    let first = ground.notices();
    assert_eq!(first.len(), 1);
    assert!(first[0].detail.contains('m') && first[0].subject.contains("work"));
    for _look in 0..10 {
        assert_eq!(ground.notices(), first);
    }
    let which = ground.exhausted().iter().map(exhaustion).collect();
    assert_eq!(ground.replay(which), [Replayed::Revived]);
    assert_eq!(ground.notices(), first, "a replay tells nobody");
    exhaust(ground, "m");
    let second = ground.notices();
    assert_eq!(second.len(), 2);
    assert_ne!(second[0].id, second[1].id);
}

fn pages(ground: &Ground) {
    let once = RetryPolicy { attempts: Some(1), ..RetryPolicy::default() };
    let wanted: Vec<String> = (0..7).map(|number| format!("m{number}")).collect();
    ground.put_all(wanted.iter().map(|name| work(name, Due::At(START))).collect());
    drop(ground.claim_under(100, once));
    ground.clock.advance(LEASE);
    assert!(ground.claim_under(100, once).is_empty());
    let (mut seen, mut after) = (Vec::new(), None);
    for _page in 0..10 {
        let page = ground.exhausted_page(3, after.clone());
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        assert_eq!(last.lane, super::ground::lane());
        after = Some(last.member.clone());
        seen.extend(page.iter().map(|one| one.member.to_string()));
    }
    seen.sort();
    assert_eq!(seen, wanted);
}

fn unknown_work(ground: &Ground) {
    // An older node gives back what it does not know; the budget of attempts alone ends it.
    ground.put_now("of a later version");
    for _node in 0..20 {
        let claim = ground.claim_one();
        let back = Settlement::HandBack { held: claim.held, wait: Millis(10) };
        assert!(matches!(ground.settle(back), Settled::Again(_)));
        ground.clock.advance(Millis(10));
    }
    let claim = ground.claim_one();
    assert_eq!((claim.attempts, claim.body), (1, b"body of of a later version".to_vec()));
}
