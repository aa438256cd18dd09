//! The mutation list: each guard of payments, cancels, refunds, expiry and credit jobs is taken away in turn, and the check that it names
//! fails. With all guards in place every one of these checks passes.
//!
//! The checks are the ordinary tests of the house, in files that are part of this program too, so `cargo test` runs them as
//! they are; here each runs in a process of its own, with a variable that names the guard that is taken away. Complete it
//! is in both directions: [`missed_by`] has an arm for every guard, or it does not compile; and a condition in the decisions
//! about money that is no guard must be listed with its reason.
//!
//! `cargo test --package onceward-testkit --features mutants --test guards`

#![allow(clippy::duplicate_mod, reason = "each test file of the engine has its own copy of the house")]

#[path = "../../engine/tests/callbacks.rs"]
mod callbacks;
#[path = "../../domain/tests/credit_jobs.rs"]
mod credit_jobs;
mod interleavings;
#[path = "../../engine/tests/payment_rules.rs"]
mod payment_rules;
#[path = "../../engine/tests/payments.rs"]
mod payments;
#[path = "../../engine/tests/payments_at_once.rs"]
mod payments_at_once;
#[path = "../../providers/tests/signature.rs"]
mod signature;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use onceward_domain::guard::{Guard, REMOVED};

/// The check that fails where a guard is missing.
#[rustfmt::skip]
fn missed_by(guard: Guard) -> &'static str {
    match guard {
        Guard::KnownAttemptIsAnswered => "payment_rules::ot_03_dr_04_a_start_that_is_known_answers_its_attempt_whatever_became_of_it",
        Guard::OneAttemptIsOpen => "payments::ot_03_starting_a_payment_moves_the_order_at_once_and_once",
        Guard::OnlyAnUnpaidOrderIsPaidFor => "payment_rules::ot_03_only_an_unpaid_order_in_time_can_be_paid_for",
        Guard::NobodyStartsTooLate => "payment_rules::ot_03_only_an_unpaid_order_in_time_can_be_paid_for",
        Guard::StartMovesTheOrder => "payments_at_once::c_47_ot_03_a_start_and_a_cancel_or_two_starts_decided_on_the_same_facts_are_one",
        Guard::AmountAgrees => "payments::ot_08_c_105_a_wrong_amount_or_currency_never_pays",
        Guard::CurrencyAgrees => "payments::ot_08_c_105_a_wrong_amount_or_currency_never_pays",
        Guard::OneTransactionPerPayment => "payments::ot_08_a_second_transaction_of_one_payment_is_a_case",
        Guard::WrongAmountFreezes => "payments::ot_08_c_105_a_wrong_amount_or_currency_never_pays",
        Guard::MoneyOfAFrozenOrderIsACase => "payment_rules::ot_08_right_money_for_a_frozen_order_is_a_case",
        Guard::SecondMoneyGoesBack => "payments::c_56_money_that_came_twice_goes_back_once",
        Guard::LateMoneyIsACase => "payments::ot_07_c_31_c_32_late_money_follows_the_activitys_rule",
        Guard::LateMoneyGoesBack => "interleavings::ot_03_ot_07_every_interleaving_of_a_payment_and_a_cancel",
        Guard::ReinstatingNeedsStock => "payments::ot_07_c_31_c_32_late_money_follows_the_activitys_rule",
        Guard::ReinstatingKeepsTheLimit => "payment_rules::ot_07_late_money_does_not_bring_back_an_order_above_the_limit",
        Guard::PaidOrderIsNotCancelled => "payment_rules::ot_12_a_paid_order_cannot_be_cancelled",
        Guard::GraceIsKept => "payment_rules::ot_04_no_order_is_cancelled_before_its_due_time",
        Guard::CancelWaitsForProof => "interleavings::ot_03_ot_07_every_interleaving_of_a_payment_and_a_cancel",
        Guard::SilenceProvesNothing => "interleavings::ot_03_ot_07_every_interleaving_of_a_payment_and_a_cancel",
        Guard::MoneyBeatsThePendingCancel => "payments::dr_01_money_found_while_cancelling_pays_the_order_though_no_callback_came",
        Guard::SecondConfirmationIsPlanned => "interleavings::ot_03_ot_07_every_interleaving_of_a_payment_and_a_cancel",
        Guard::EndedAttemptsAreConfirmedToo => "payments::ot_07_money_for_a_declined_attempt_is_found_after_a_cancel_that_had_nothing_to_ask",
        Guard::SilentConfirmationIsRepeated => "payment_rules::ot_07_a_silent_second_confirmation_is_asked_again",
        Guard::OtherAttemptsAreSettled => "payments::ot_07_c_47_an_attempt_left_open_on_a_paid_order_is_closed_and_money_that_came_twice_goes_back_once",
        Guard::OtherAttemptsAreAskedAgain => "payments::ot_07_dr_02_a_silent_provider_is_asked_until_the_other_attempt_is_closed",
        Guard::KnownRefundIsAnswered => "payment_rules::ot_09_c_57_a_refund_that_is_known_is_answered",
        Guard::OnlyAPaidOrderIsRefunded => "payment_rules::ot_09_only_a_paid_order_gives_money_back_on_request",
        Guard::SomethingIsLeftToRefund => "payment_rules::ot_09_c_52_refunds_that_are_refused",
        Guard::OnlyTakenMoneyGoesBack => "payment_rules::ot_09_only_money_that_was_taken_goes_back",
        Guard::RefundKeepsTheCurrency => "payment_rules::ot_09_c_52_refunds_that_are_refused",
        Guard::RefundIsNotZero => "payment_rules::ot_09_c_52_refunds_that_are_refused",
        Guard::RefundsStayWithinWhatWasPaid => "payments::ot_09_c_51_c_52_c_57_refunds_never_pass_what_was_paid",
        Guard::RefundMovesTheOrder => "payments_at_once::ot_09_c_51_two_refunds_decided_on_the_same_sums_are_one",
        Guard::FailedRefundFreesItsAmount => "payment_rules::ot_09_a_refund_that_failed_can_be_asked_for_again",
        Guard::RefusedUnwantedRefundIsACase => "payment_rules::ot_07_a_refused_refund_of_unwanted_money_is_a_case",
        Guard::LastRefundEndsRefunding => "payment_rules::ot_09_an_order_is_being_refunded_until_its_last_refund_has_ended",
        Guard::OpenRefundReturnsNothing => "payments::ot_09_c_56_money_that_came_again_after_a_full_refund_and_a_silent_bank_leave_the_order_refunded",
        Guard::RefundsEndMovesTheOrder => "payments_at_once::ot_09_two_refunds_that_end_on_the_same_facts_do_not_leave_the_order_refunding",
        Guard::CloseIsNoProof => "interleavings::ot_03_ot_07_every_interleaving_of_a_payment_and_a_cancel",
        Guard::SilenceIsNoWord => "payments::ot_05_a_silent_provider_keeps_the_order_pending_however_long",
        Guard::ClosedAttemptsAreConfirmed => "payments::ot_07_c_30_money_forced_after_the_close_is_found_by_the_second_confirmation_and_given_back_once",
        Guard::SilentRefundIsRepeated => "payments::ot_09_c_55_a_refund_whose_answer_was_lost_is_one_refund",
        Guard::UnknownPaymentIsKept => "callbacks::ot_08_c_42_a_callback_before_its_order_is_kept_and_pays_later",
        Guard::EventIsKeptOnce => "callbacks::ot_08_c_91_one_event_with_two_bodies_is_a_case_and_the_second_is_not_applied",
        Guard::EventHasOneBody => "callbacks::ot_08_c_91_one_event_with_two_bodies_is_a_case_and_the_second_is_not_applied",
        Guard::OpenAttemptIsAskedAbout => "payments::c_50_a_declined_payment_whose_word_was_lost_does_not_block_the_buyer",
        Guard::SignatureHolds => "signature::ot_08_se_02_only_what_is_signed_counts",
        Guard::ChargeNeedsCredit => "credit_jobs::cl_07_a_job_that_cannot_be_paid_is_not_opened",
        Guard::JobKeepsItsTerms => "credit_jobs::cl_04_amounts_come_from_the_record_and_a_second_opening_must_be_equal",
        Guard::JobIsRefundedOnce => "credit_jobs::cl_06_tries_are_used_up_into_a_dead_letter_with_one_notice_and_only_a_person_replays",
        Guard::ReclaimNeedsARefund => "credit_jobs::cl_03_a_job_that_works_at_once_is_charged_and_nothing_else",
        Guard::JobIsReclaimedOnce => "credit_jobs::cl_02_cl_03_the_story_of_the_reference",
        Guard::StaleFailureSaysNothing => "credit_jobs::lq_02_f2_a_stale_token_moves_nothing_and_a_late_delivery_is_true_all_the_same",
        Guard::RunsAreLimited => "credit_jobs::cl_05_long_lives_of_jobs_end_at_the_cost_or_at_nothing",
        Guard::SignatureIsFresh => "signature::ot_08_se_02_only_what_is_fresh_counts",
    }
}

/// Conditions of the decisions about money that are no guards, each with its reason. A line is named by a part of it.
const NO_GUARDS: &[(&str, &str)] = &[
    (
        "if let Some(row) = order.status.next(OrderEvent::StartPayment)",
        "the order's table decides; here it may also stay",
    ),
    ("if after != order || Guard::", "a guard"),
    ("order.status.next(OrderEvent::Pay)", "the order's table decides"),
    ("find(|one| one.is_open())", "finds what the guards below are about"),
    (
        "let Some(purchase) = purchase.filter(|one| one.order.is_some())",
        "an attempt always has an order: a defect, told as one",
    ),
    (
        "if rule == LatePayment::Reinstate && can_lock_again",
        "the activity's rule; its guards are in can_lock_again",
    ),
    (".filter(|one| one.id != purchase.id && one.holds_a_place", "what the limit counts: FS-20"),
    ("if line.place < 0", "a freed place is taken again; a kept one stays (FS-20)"),
    ("purchase.reservation.and_then(|status| status.next(", "the reservation's table decides"),
    ("filter(|status| purchase.reservation != Some(*status))", "only what moved is written"),
    ("filter(|after| before.reservation != Some(*after))", "only what moved is written"),
    ("fresh.into_iter().find(|one| one.id == payment.id)", "the last state of a set counts"),
    ("if order.status.next(OrderEvent::Expire).is_none()", "the order's table decides"),
    (".is_some_and(|activity| activity.cancelled_frees_limit)", "the activity's rule: FS-20"),
    (
        "any(|one| !matches!(one.status, PaymentStatus::Failed | PaymentStatus::Closed))",
        "what the guards of a cancel ask",
    ),
    (".filter(|one| one.id != paid_by)", "the attempt that paid has had its last word"),
    ("if others.any(Payment::is_open)", "an open one is closed first; both ways end in a confirmation"),
    ("let paid = facts.purchases.get(&asked.purchase).filter(", "what the guard below asks"),
    ("matches!(status, Some(OrderStatus::Paid", "what the guard below asks"),
    (
        "paid.filter(|_| !asked.words.is_empty())",
        "where nothing was asked, whatever planned the round has planned the confirmation",
    ),
    ("is_certain &= !matches!(word", "what the guard below asks"),
    (
        "if let Some(row) = order.status.next(OrderEvent::StartRefund)",
        "the order's table decides; here it may also stay",
    ),
    (
        "filter(|one| one.payment == payment.id && one.counts())",
        "what the sum is of; FailedRefundFreesItsAmount is in counts",
    ),
    ("if let Some(purchase) = facts.purchases.get(&after.purchase)", "a refund always has an order"),
    ("if order.refunded == order.paid", "which row of the table: all is back, or not"),
    ("if let Some(row) = event.and_then(", "the order's table decides"),
    ("if row.to == OrderStatus::Refunded", "only then is there something to tell"),
    ("if order.refunded < order.paid && Guard::", "a guard"),
    ("filter(|one| one.purchase == command.purchase)", "an attempt of another order is none of this one's"),
    (".holds(matches!(order.status,", "a guard, on the line before"),
    ("if known { Heard::Nothing }", "both are answers; what follows is UnknownPaymentIsKept's"),
    ("if !is_right {", "what the guards on the lines before found"),
    ("let pending = facts.purchases.get(&asked.purchase).filter(", "a guard, in the lines that follow"),
    ("facts.payments_of(command.purchase).find(has_money)", "which attempt's money goes back"),
    ("if !is_an_amount {", "what the guards on the lines before found"),
];

const DECISIONS: [&str; 3] = ["pay", "cancel", "refund"];

#[test]
fn every_condition_about_money_is_a_guard_or_says_why_not() {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut unexplained = Vec::new();
    for decision in DECISIONS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../domain/src/decide/{decision}.rs"));
        let text = std::fs::read_to_string(path).expect("the decisions are there");
        for line in text.lines().map(str::trim).filter(|line| is_condition(line)) {
            let reason = NO_GUARDS.iter().find(|(part, _)| line.contains(part));
            match reason {
                Some((part, _)) => drop(used.insert(part)),
                None if line.contains("Guard::") => {}
                None => unexplained.push(format!("{decision}.rs: {line}")),
            }
        }
    }
    assert!(unexplained.is_empty(), "neither guards nor explained:\n{}", unexplained.join("\n"));
    let stale: Vec<&str> =
        NO_GUARDS.iter().map(|(part, _)| *part).filter(|part| !used.contains(part)).collect();
    assert!(stale.is_empty(), "explained and not there: {stale:#?}");
}

/// Whether a line of Rust chooses, as rustfmt writes it.
fn is_condition(line: &str) -> bool {
    let is_code = !line.starts_with("//");
    is_code
        && (line.contains("if ")
            || [".filter(", ".find(", "matches!(", "is_some_and("].iter().any(|part| line.contains(part)))
}

/// Runs one check in a process of its own, with at most one guard taken away. Answers whether it passed.
fn passes(check: &str, removed: Option<Guard>) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.args(["--exact", check, "--test-threads", "1"]).env_remove(REMOVED);
    if let Some(guard) = removed {
        command.env(REMOVED, guard.name());
    }
    let output = command.output().expect("this program can be run");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // A check that was renamed runs no test, and that would look like one that passes.
    assert!(said.contains("running 1 test"), "there is no check `{check}`: {said}");
    output.status.success()
}

#[test]
fn ot_03_ot_09_without_any_one_guard_a_named_check_fails() {
    let checks: BTreeSet<&str> = Guard::ALL.iter().map(|guard| missed_by(*guard)).collect();
    let failing: Vec<&str> = checks.into_iter().filter(|check| !passes(check, None)).collect();
    assert!(failing.is_empty(), "these fail with all guards in place: {failing:#?}");
    let unmissed: Vec<&Guard> =
        Guard::ALL.iter().filter(|guard| passes(missed_by(**guard), Some(**guard))).collect();
    assert!(unmissed.is_empty(), "nobody misses these: {unmissed:?}");
}
