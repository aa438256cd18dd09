//! The simulator holds on many seeds, replays exactly, meets every interesting case, and notices broken stores.

use std::collections::BTreeMap;

use onceward_testkit::model::Defect;
use onceward_testkit::sim::{Adapter, SimOptions, run};

/// Seeds that a test run looks at; `torture` looks at thousands.
const SEEDS: u64 = 1_500;

/// Cases that the seeds above must meet at least once, or they prove little.
const CASES: [&str; 114] = [
    "adjustment_refused",
    "amount_mismatch",
    "bank_answer_lost",
    "bank_away",
    "bank_silent",
    "bank_took_nothing",
    "buyer_vanished",
    "callback_before_known",
    "callback_dropped",
    "callback_heard",
    "cancel_came_too_late",
    "cancelled_by_user",
    "charge_answer_lost",
    "charge_declined",
    "charge_not_taken",
    "charge_taken",
    "claimed_again",
    "clock_back",
    "clock_forward",
    "close_answer_lost",
    "compensated",
    "compensation_repeated",
    "crash",
    "crash_after_effect",
    "dead_letter_replayed",
    "deadline_rejected",
    "declined",
    "direct_order",
    "direct_refused",
    "double_payment_refunded",
    "duplicate_delivery",
    "duplicate_in_batch",
    "exhausted",
    "forced_after_close",
    "forced_after_decline",
    "forged_message",
    "frozen",
    "group_cancelled",
    "group_closed",
    "group_failed",
    "group_joined",
    "group_joined_too_late",
    "group_left",
    "group_left_too_late",
    "group_made",
    "group_retried",
    "group_settled",
    "guard_lost",
    "job_conflict",
    "job_dead",
    "job_delivered",
    "job_delivered_by_a_former_holder",
    "job_delivered_from_the_dead",
    "job_failed",
    "job_given",
    "job_given_again",
    "job_lease_extended",
    "job_lease_lost",
    "job_opened",
    "job_reclaimed",
    "job_refunded",
    "job_refused",
    "job_replayed",
    "job_waits",
    "job_worker_vanished",
    "late_payment_for_a_person",
    "late_payment_refunded",
    "late_payment_reinstated",
    "late_rejected",
    "lease_lost",
    "limit_reached",
    "line_broke",
    "lost_answer",
    "lost_call",
    "notifier_away",
    "order_cancelled",
    "order_created",
    "order_expired",
    "order_paid",
    "paid_a_wrong_amount",
    "paid_at_the_bank",
    "payment_refused",
    "payment_shared",
    "payment_started",
    "payment_won_the_race",
    "projection_repeated",
    "quarantined",
    "refund_answer_lost",
    "refund_asked",
    "refund_came_back",
    "refund_declined",
    "refund_refused",
    "refund_reopened",
    "refund_returned",
    "refunded",
    "reordered_delivery",
    "request_conflict",
    "request_repeated",
    "second_confirmation_found_money",
    "sender_slept",
    "signal_doubled",
    "signal_lost_in_the_queue",
    "signal_lost_in_the_store",
    "signal_lost_on_the_way_out",
    "sold_out",
    "stale_read",
    "statement_told_the_rest",
    "stock_adjusted",
    "stock_short",
    "swept",
    "unavailable",
    "unsent_money_found",
    "unwanted_refund_failed",
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

/// The first seed that notices what is broken.
fn noticed(options: SimOptions) -> Option<u64> {
    (0..NOTICED_WITHIN).find(|seed| !run(*seed, &options).violations.is_empty())
}

#[test]
fn pr_03_canary_a_store_without_revision_guards_is_noticed() {
    assert!(
        noticed(SimOptions { defect: Defect::IgnoreRevisions, ..SimOptions::default() }).is_some(),
        "the simulator is blind"
    );
}

#[test]
fn pr_03_canary_a_store_without_fencing_is_noticed() {
    assert!(
        noticed(SimOptions { defect: Defect::IgnoreTokens, ..SimOptions::default() }).is_some(),
        "the simulator is blind"
    );
}

#[test]
fn dr_02_canary_an_adapter_that_takes_silence_for_closed_is_noticed() {
    let options = SimOptions { adapter: Adapter::TakesSilenceForClosed, ..SimOptions::default() };
    assert!(noticed(options).is_some(), "the simulator is blind");
}
