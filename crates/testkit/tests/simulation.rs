//! The simulator holds on many seeds, replays exactly, meets every interesting case, and notices broken stores.

use std::collections::BTreeMap;

use onceward_testkit::model::Defect;
use onceward_testkit::sim::{SimOptions, run};

/// Seeds that a test run looks at; `torture` looks at thousands.
const SEEDS: u64 = 1_000;

/// Cases that the seeds above must meet at least once, or they prove little.
const CASES: [&str; 39] = [
    "adjustment_refused",
    "cancelled_by_user",
    "claimed_again",
    "clock_back",
    "clock_forward",
    "compensated",
    "compensation_repeated",
    "crash",
    "crash_after_effect",
    "dead_letter_replayed",
    "deadline_rejected",
    "direct_order",
    "direct_refused",
    "duplicate_delivery",
    "duplicate_in_batch",
    "forged_message",
    "frozen",
    "guard_lost",
    "late_rejected",
    "lease_lost",
    "limit_reached",
    "line_broke",
    "lost_answer",
    "lost_call",
    "order_cancelled",
    "order_created",
    "order_expired",
    "projection_repeated",
    "quarantined",
    "reordered_delivery",
    "request_conflict",
    "request_repeated",
    "sender_slept",
    "sold_out",
    "stale_read",
    "stock_adjusted",
    "stock_short",
    "unavailable",
    "winners_counted",
];

#[test]
fn pr_03_every_invariant_holds_on_every_seed_and_every_case_is_met() {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let report = run(seed, &SimOptions::default());
        assert!(report.violations.is_empty(), "{report:#?}");
        for (case, times) in report.sometimes {
            *met.entry(case).or_default() += times;
        }
    }
    let missed: Vec<&str> = CASES.into_iter().filter(|case| !met.contains_key(case)).collect();
    assert!(missed.is_empty(), "{SEEDS} seeds never met {missed:?}; they met {met:#?}");
}

#[test]
fn pr_03_one_seed_gives_one_trace_twice() {
    for seed in [0, 1, 2, 1_000_000, u64::MAX] {
        let first = run(seed, &SimOptions::default());
        assert_eq!(first, run(seed, &SimOptions::default()));
        assert_ne!(first.trace_hash, run(seed ^ 1, &SimOptions::default()).trace_hash);
    }
}

/// Seeds within which a broken store must be noticed.
const NOTICED_WITHIN: u64 = 100;

/// The first seed that notices a defect.
fn noticed(defect: Defect) -> Option<u64> {
    let options = SimOptions { defect, ..SimOptions::default() };
    (0..NOTICED_WITHIN).find(|seed| !run(*seed, &options).violations.is_empty())
}

#[test]
fn pr_03_canary_a_store_without_revision_guards_is_noticed() {
    assert!(noticed(Defect::IgnoreRevisions).is_some(), "the simulator is blind");
}

#[test]
fn pr_03_canary_a_store_without_fencing_is_noticed() {
    assert!(noticed(Defect::IgnoreTokens).is_some(), "the simulator is blind");
}
