//! Fail at each step (style 34), and the failpoints of reference 003 §13.3 that exist here, by name (PR-01).
//!
//! A run along a fixed path is repeated with one fault at every one of its port calls: death before the effect,
//! death after it, a lost answer, a lost call. Afterwards everything must have settled, with every invariant kept.

use onceward_testkit::sim::{Fault, Path, PathReport, run_path};

const FAULTS: [Fault; 4] = [Fault::CrashBefore, Fault::CrashAfter, Fault::LoseAnswer, Fault::LoseCall];

/// The path without a fault, which must hold by itself.
fn clean(path: Path) -> PathReport {
    let clean = run_path(path, None);
    assert!(clean.report.violations.is_empty(), "{:#?}", clean.report);
    clean
}

fn fail_at_each_step(path: Path) {
    let calls = clean(path).calls;
    for (number, name) in (0..).zip(&calls) {
        for fault in FAULTS {
            let found = run_path(path, Some((number, fault))).report;
            assert!(found.violations.is_empty(), "{fault:?} at call {number} ({name}): {found:#?}");
        }
    }
}

#[test]
fn pr_01_a_purchase_survives_a_fault_at_each_step() {
    fail_at_each_step(Path::Purchase);
}

#[test]
fn pr_01_a_rejection_survives_a_fault_at_each_step() {
    let met = clean(Path::Rejection).report.sometimes;
    for case in ["stock_short", "compensated", "direct_order"] {
        assert!(met.contains_key(case), "the path does not meet {case}: {met:?}");
    }
    fail_at_each_step(Path::Rejection);
}

/// Runs a path with a fault at the first call of this name.
fn fail_at(path: Path, call: &str, fault: Fault) -> PathReport {
    let calls = clean(path).calls;
    let number = calls.iter().position(|name| name == call);
    let number = number.unwrap_or_else(|| panic!("{call} is not among {calls:?}"));
    let found = run_path(path, Some((number as u64, fault)));
    assert!(found.report.violations.is_empty(), "{:#?}", found.report);
    found
}

fn met(found: &PathReport, case: &str) -> bool {
    found.report.sometimes.contains_key(case)
}

#[test]
fn pr_01_failpoint_after_redis_reserve() {
    let found = fail_at(Path::Purchase, "admission.reserve", Fault::CrashAfter);
    assert!(met(&found, "crash_after_effect") && met(&found, "line_broke") && met(&found, "order_created"));
}

#[test]
fn pr_01_failpoint_after_mq_send_before_redis_mark() {
    let found = fail_at(Path::Purchase, "bus.publish", Fault::CrashAfter);
    assert!(met(&found, "crash_after_effect") && met(&found, "claimed_again"));
}

/// Inside the transaction nothing of it can remain: the three failpoints are one abort.
#[test]
fn pr_01_failpoints_after_inbox_insert_after_pg_stock_decrement_after_order_insert() {
    let found = fail_at(Path::Purchase, "create_orders", Fault::CrashBefore);
    assert!(met(&found, "crash") && met(&found, "order_created"));
}

#[test]
fn pr_01_failpoint_after_pg_commit_before_ack() {
    let found = fail_at(Path::Purchase, "create_orders", Fault::CrashAfter);
    assert!(met(&found, "crash_after_effect") && met(&found, "claimed_again"));
}

#[test]
fn pr_01_failpoint_during_commit_response() {
    let landed = fail_at(Path::Purchase, "create_orders", Fault::LoseAnswer);
    assert!(met(&landed, "lost_answer") && met(&landed, "order_created"));
    let nothing = fail_at(Path::Purchase, "create_orders", Fault::LoseCall);
    assert!(met(&nothing, "lost_call") && met(&nothing, "order_created"));
}

#[test]
fn pr_01_failpoint_after_compensation_lua() {
    let found = fail_at(Path::Rejection, "admission.compensate", Fault::CrashAfter);
    assert!(met(&found, "crash_after_effect") && met(&found, "compensation_repeated"));
}
