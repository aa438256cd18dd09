//! Putting in and claiming: order, times, tokens, attempts (LQ-01, LQ-02, LQ-08).

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;

use onceward_domain::due::Token;
use onceward_domain::ports::due_queue::{ClaimWork, Due, Put, QUEUE_BATCH_LIMIT, Settled};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{Ground, lane, members, names, work};
use crate::block_on::block_on;
use crate::conformance::store::ground::{LEASE, START};

pub(super) const CASES: &[Case] = &[
    ("lq_01_work_comes_out_as_it_was_put_in_when_it_is_due", comes_when_due),
    ("lq_01_a_repeated_put_changes_nothing", repeated),
    ("lq_01_the_earliest_come_first_up_to_the_limit", earliest_first),
    ("lq_01_lanes_are_apart", lanes_apart),
    ("lq_02_a_token_never_repeats", tokens),
    ("lq_02_thirty_two_threads_claim_each_member_once", claimed_once),
    ("lq_08_d_5_what_is_not_due_is_not_given_out", not_due),
    ("q_f5_a_lease_runs_from_the_claim", lease_from_claim),
    ("q_d4_a_backlog_of_one_moment_is_given_out_to_the_last", backlog),
    ("q_d8_delays_past_two_to_the_31_wait", long_delays),
    ("q_d9_q_d13_milliseconds_keep_their_order", milliseconds),
    ("q_d14_lateness_skips_nothing", lateness),
    ("q_d15_work_comes_without_another_put", without_another_put),
    ("q_c3_leases_and_times_are_the_queues_own", own_clock),
    ("q_k3_an_absolute_time_stays_when_it_is_put_in_late", absolute),
    ("q_a8_payloads_are_never_looked_into", payloads),
    ("se_03_a_batch_has_a_limit", batch_limit),
];

const NOW: Due = Due::After(Millis(0));

fn comes_when_due(ground: &Ground) {
    assert_eq!(ground.put("m", Due::After(Millis(10))), Put::Added);
    assert_eq!(ground.next_due(), Some(START.plus(Millis(10))));
    ground.clock.advance(Millis(9));
    assert!(ground.claim(10).is_empty(), "never early");
    ground.clock.advance(Millis(1));
    let claim = ground.claim_one();
    assert_eq!((claim.attempts, claim.due_at), (1, START.plus(Millis(10))));
    assert_eq!((claim.created_at, claim.body.as_slice()), (START, b"body of m".as_slice()));
    assert!(ground.claim(10).is_empty(), "it is under a lease");
    assert_eq!(ground.next_due(), Some(claim.lease_until));
    assert_eq!(ground.complete(&claim.held), Settled::Completed);
    assert_eq!((ground.next_due(), ground.waiting()), (None, Vec::new()));
}

fn repeated(ground: &Ground) {
    let mut twice = vec![work("m", Due::At(START.plus(Millis(5)))), work("m", NOW), work("n", NOW)];
    twice[1].body = b"another".to_vec();
    assert_eq!(ground.put_all(twice), [Put::Added, Put::There, Put::Added]);
    assert_eq!(names(&ground.claim(10)), ["n"]);
    ground.clock.advance(Millis(5));
    let claim = ground.claim_one();
    assert_eq!(claim.body, b"body of m");
    assert_eq!(ground.put("m", NOW), Put::There, "a repeat never ends a lease");
    assert!(ground.claim(10).is_empty());
    ground.complete(&claim.held);
    assert_eq!(ground.put("m", NOW), Put::Added, "what is done may come anew");
    assert_eq!(ground.claim_one().attempts, 1);
}

fn earliest_first(ground: &Ground) {
    for (member, offset) in [("c", 3), ("a", 1), ("later", 9), ("b", 2)] {
        ground.put(member, Due::After(Millis(offset)));
    }
    ground.clock.advance(Millis(5));
    assert_eq!(names(&ground.claim(2)), ["a", "b"]);
    assert_eq!(names(&ground.claim(100)), ["c"]);
    assert!(ground.claim(100).is_empty());
}

fn lanes_apart(ground: &Ground) {
    let other = onceward_domain::due::Lane::new("other");
    ground.put_now("m");
    block_on(ground.queue.put(other.clone(), vec![work("m", NOW)])).expect("puts answer");
    let claim = ground.claim_one();
    ground.complete(&claim.held);
    let request = ClaimWork { lane: other, limit: 10, lease: LEASE, policy: RetryPolicy::default() };
    assert_eq!(block_on(ground.queue.claim(request)).expect("claims answer").len(), 1);
}

fn tokens(ground: &Ground) {
    let mut seen: BTreeSet<Token> = BTreeSet::new();
    for _round in 0..20 {
        ground.put("m", NOW);
        ground.put("n", NOW);
        for claim in ground.claim(2) {
            assert!(claim.held.token > Token::NONE && seen.insert(claim.held.token), "it came twice");
            ground.complete(&claim.held);
        }
    }
    assert_eq!(seen.len(), 40);
}

fn claimed_once(ground: &Ground) {
    const THREADS: usize = 32;
    ground.put_all((0..200).map(|number| work(&format!("m{number:03}"), NOW)).collect());
    let gate = Arc::new(Barrier::new(THREADS));
    let start = |_| {
        let (gate, queue) = (Arc::clone(&gate), Arc::clone(&ground.queue));
        thread::spawn(move || {
            gate.wait();
            let request = ClaimWork { lane: lane(), limit: 9, lease: LEASE, policy: RetryPolicy::default() };
            block_on(queue.claim(request)).expect("claims answer")
        })
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    let claims: Vec<_> = threads.into_iter().flat_map(|one| one.join().expect("no panic")).collect();
    let unique = names(&claims).into_iter().collect::<BTreeSet<_>>().len();
    let tokens = claims.iter().map(|one| one.held.token).collect::<BTreeSet<_>>().len();
    assert_eq!((claims.len(), unique, tokens), (200, 200, 200));
}

fn not_due(ground: &Ground) {
    let later = Due::After(Millis(3_600_000));
    for part in 0..10 {
        ground.put_all((0..1_000).map(|one| work(&format!("w{part}-{one}"), later)).collect());
    }
    assert!(ground.claim(500).is_empty());
    ground.put_now("due");
    assert_eq!(names(&ground.claim(500)), ["due"]);
    assert!(ground.claim(500).is_empty());
}

fn lease_from_claim(ground: &Ground) {
    ground.put_now("m");
    ground.clock.advance(Millis(600_000));
    let claim = ground.claim_one();
    assert_eq!(claim.lease_until, START.plus(Millis(600_000)).plus(LEASE));
}

fn backlog(ground: &Ground) {
    const COUNT: usize = 5_000;
    for part in 0..COUNT / QUEUE_BATCH_LIMIT {
        let one = |number| work(&format!("m{part}-{number}"), Due::At(START));
        ground.put_all((0..QUEUE_BATCH_LIMIT).map(one).collect());
    }
    let mut seen = BTreeSet::new();
    for _round in 0..COUNT {
        let claims = ground.claim(700);
        if claims.is_empty() {
            break;
        }
        assert!(claims.len() <= 700, "a claim is bounded");
        seen.extend(claims.into_iter().map(|one| one.held.member));
    }
    assert_eq!(seen.len(), COUNT);
}

fn long_delays(ground: &Ground) {
    let day = 24 * 60 * 60 * 1000;
    let delays = [("d24", 24 * day), ("d25", 25 * day), ("d400", 400 * day)];
    for (member, delay) in delays {
        ground.put(member, Due::After(Millis(delay)));
    }
    for (member, delay) in delays {
        ground.clock.set(START.plus(Millis(delay - 1)));
        assert!(ground.claim(10).is_empty(), "{member} must not run early");
        ground.clock.advance(Millis(1));
        let claim = ground.claim_one();
        assert_eq!(&*claim.held.member, member);
        ground.complete(&claim.held);
    }
}

fn milliseconds(ground: &Ground) {
    const YEAR_2040: Timestamp = Timestamp(2_208_988_800_000);
    for offset in [999, 2, 0, 1, 200, 900] {
        ground.put(&format!("m{offset:03}"), Due::At(YEAR_2040.plus(Millis(offset))));
    }
    for offset in [0, 1, 2, 200, 900, 999] {
        let due_at = YEAR_2040.plus(Millis(offset));
        assert_eq!(ground.next_due(), Some(due_at));
        ground.clock.set(due_at.minus(Millis(1)));
        assert!(ground.claim(10).is_empty(), "one millisecond early is early");
        ground.clock.set(due_at);
        let claim = ground.claim_one();
        assert_eq!((&*claim.held.member, claim.due_at), (&*format!("m{offset:03}"), due_at));
        ground.complete(&claim.held);
    }
}

fn lateness(ground: &Ground) {
    for number in 0..1_000 {
        ground.put(&format!("m{number}"), Due::After(Millis(number)));
    }
    // The queue stood still for a minute.
    ground.clock.advance(Millis(60_000));
    let mut ended = 0;
    for _round in 0..1_000 {
        let claims = ground.claim(64);
        if claims.is_empty() {
            break;
        }
        ended += claims.iter().filter(|one| ground.complete(&one.held) == Settled::Completed).count();
    }
    assert_eq!(ended, 1_000);
}

fn without_another_put(ground: &Ground) {
    ground.put("m", Due::After(Millis(4 * 60 * 60 * 1000)));
    let due_at = ground.next_due().expect("a worker knows how long to sleep");
    ground.clock.set(due_at);
    assert_eq!(names(&ground.claim(10)), ["m"]);
}

fn own_clock(ground: &Ground) {
    // Nobody hands a time in: a claimer cannot be early and a sweeper cannot be late by its own clock.
    ground.put("m", Due::After(Millis(1_000)));
    assert!(ground.claim(10).is_empty());
    ground.clock.advance(Millis(1_000));
    let claim = ground.claim_one();
    assert_eq!(claim.lease_until, START.plus(Millis(1_000)).plus(LEASE));
    ground.clock.advance(Millis(LEASE.0 - 1));
    assert!(ground.claim(10).is_empty());
    ground.clock.advance(Millis(1));
    assert_eq!(names(&ground.claim(10)), ["m"]);
}

fn absolute(ground: &Ground) {
    let due_at = START.plus(Millis(500_000));
    // The store was down when it was asked for; it is put in two minutes later.
    ground.clock.advance(Millis(120_000));
    ground.put("m", Due::At(due_at));
    assert_eq!(ground.next_due(), Some(due_at));
}

fn payloads(ground: &Ground) {
    let bodies: [&[u8]; 6] = [
        b"",
        b"\0\xff\xfe",
        b"{\"at\": 1.2345678901234567e+09",
        b"201605131024011015",
        b"'; --",
        b"\r\n*3\r\n",
    ];
    let one = |(number, body): (usize, &&[u8])| {
        let mut new = work(&format!("bad:{number} \u{8a02}\u{55ae}"), NOW);
        new.body = body.to_vec();
        new
    };
    ground.put_all(bodies.iter().enumerate().map(one).collect());
    ground.put_all((0..100).map(|number| work(&format!("good{number:03}"), NOW)).collect());
    let claims = ground.claim(1_000);
    assert_eq!(claims.len(), 106);
    for claim in &claims {
        let place = claim.held.member.strip_prefix("bad:").map(|rest| rest.as_bytes()[0] - b'0');
        if let Some(place) = place {
            assert_eq!(claim.body, bodies[usize::from(place)]);
        }
    }
    assert_eq!(members(&ground.waiting()).len(), 106);
}

fn batch_limit(ground: &Ground) {
    let many = |count: usize| (0..count).map(|number| work(&format!("m{number}"), NOW)).collect::<Vec<_>>();
    assert!(block_on(ground.queue.put(lane(), many(QUEUE_BATCH_LIMIT + 1))).is_err());
    assert!(ground.waiting().is_empty(), "a refused batch puts nothing in");
    assert_eq!(ground.put_all(many(QUEUE_BATCH_LIMIT)).len(), QUEUE_BATCH_LIMIT);
    assert!(ground.put_all(Vec::new()).is_empty());
}
