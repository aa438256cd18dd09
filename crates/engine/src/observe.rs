//! Metrics and log events by the names of reference 003 §12, in one place.
//!
//! Invariants: metric names start with `onceward_`; no label takes an id; log events carry ids as fields and never
//! a secret. Deliberately absent: an exporter — the HTTP crate renders what is counted here.

use metrics::{counter, describe_counter, gauge, histogram};
use onceward_domain::decide::pay::Heard;
use onceward_domain::decide::settle::Ended;
use onceward_domain::due::{Lane, LaneStatus};
use onceward_domain::error::Error;
use onceward_domain::governor::Passage;
use onceward_domain::id::{GroupId, PurchaseId};
use onceward_domain::notice::Notice;
use onceward_domain::ports::admission::Rebuilds;
use onceward_domain::retention::RecordKind;
use onceward_domain::time::Timestamp;

use crate::governor::View;
use crate::operations::queue::known_lanes;

/// Histogram: how often an entry was claimed for sending.
pub const SEND_ATTEMPTS: &str = "onceward_reservation_send_attempts_histogram";
/// Histogram: how often an outbox entry was claimed.
pub const OUTBOX_ATTEMPTS: &str = "onceward_outbox_attempt_count";

/// Counters that are there from the start, so that an alert on one has a zero to compare with.
const COUNTERS: [(&str, &str); 26] = [
    ("onceward_reservation_created_total", "Buyers who were let in."),
    ("onceward_reservation_backlog_refused_total", "Buyers who were refused while admission was closed."),
    ("onceward_admission_closed_total", "Times that admission was closed because of what waits behind it."),
    ("onceward_reservation_sent_total", "Order messages the bus acknowledged."),
    ("onceward_reservation_resend_total", "Order messages sent again by the scanner."),
    ("onceward_reservation_send_unknown_total", "Sends that had no answer."),
    ("onceward_reservation_send_lease_expired_total", "Send claims that came back after their lease."),
    ("onceward_reservation_deadline_total", "Reservations rejected at their business deadline."),
    ("onceward_inbox_duplicate_total", "Messages the inbox knew."),
    ("onceward_inbox_payload_conflict_total", "Messages whose id was known with another payload."),
    ("onceward_db_commit_unknown_total", "Commits whose answer was lost."),
    ("onceward_db_final_stock_reject_total", "Orders refused because the stock of record was short."),
    ("onceward_order_user_unique_conflict_total", "Orders refused by the per-user limit."),
    ("onceward_outbox_lease_expired_total", "Outbox claims that came back after their lease."),
    ("onceward_outbox_manual_total", "Outbox entries set aside for a person."),
    ("onceward_compensation_already_applied_total", "Compensations the gate had applied before."),
    (
        "onceward_reservation_stray_given_back_total",
        "Units given back of refused reservations that a gate had lost and let in again.",
    ),
    ("onceward_admission_rebuilt_total", "Times that this node made a bucket of a gate anew from the store."),
    ("onceward_compensation_redis_missing_total", "Compensations whose reservation the gate does not know."),
    ("onceward_compensation_state_conflict_total", "Compensations the gate's state forbids."),
    ("onceward_order_expired_total", "Orders whose time was up, unpaid."),
    ("onceward_deadline_signal_lost_total", "Due orders that the sweep found, not the deadline trigger."),
    ("onceward_record_forgotten_total", "Refusals, callbacks and notices that were forgotten by age."),
    (
        "onceward_admission_bucket_retired_total",
        "Buckets of the gate that went when their sale was long past.",
    ),
    ("onceward_payment_cancel_race_total", "Money that met a cancellation, or came twice."),
    (
        "onceward_payment_contradiction_total",
        "Payments of a wrong amount, or of a transaction that is taken.",
    ),
];

/// Describes the counters and starts them at zero.
pub fn register() {
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
        counter!(name).increment(0);
    }
}

/// Buyers were let in.
pub fn reservations_created(count: u64) {
    counter!("onceward_reservation_created_total").increment(count);
    tracing::debug!(target: "onceward", event = "reservation.created", count);
}

/// Buyers were refused, because admission is closed.
pub fn reservations_refused(count: u64) {
    counter!("onceward_reservation_backlog_refused_total").increment(count);
}

/// The governor looked: what it said before, and what it says now.
pub fn governed(before: View, after: View) {
    gauge!("onceward_admission_open").set(f64::from(u8::from(after.passage == Passage::Open)));
    if let Some(sight) = after.sight {
        gauge!("onceward_backlog_undecided").set(sight.undecided as f64);
        gauge!("onceward_backlog_pace_per_second").set(sight.pace.unwrap_or(0) as f64 / 1_000.0);
        gauge!("onceward_backlog_drain_seconds")
            .set(sight.drain().map_or(0.0, |drain| drain.0 as f64 / 1_000.0));
    }
    match (before.passage, after.passage) {
        (Passage::Open, Passage::Closed(trouble)) => {
            counter!("onceward_admission_closed_total").increment(1);
            tracing::warn!(target: "onceward", event = "admission.closed", reason = trouble.name(), sight = ?after.sight);
        }
        (Passage::Closed(_), Passage::Open) => {
            tracing::info!(target: "onceward", event = "admission.opened", sight = ?after.sight);
        }
        (Passage::Open, Passage::Open) | (Passage::Closed(_), Passage::Closed(_)) => {}
    }
}

/// Whether deadlines are paused, because consumers are far behind.
pub fn deadlines_paused(paused: bool) {
    gauge!("onceward_reservation_deadlines_paused").set(f64::from(u8::from(paused)));
}

/// Messages were sent; `resent` of them not for the first time.
pub fn messages_sent(sent: u64, resent: u64, unknown: u64) {
    counter!("onceward_reservation_sent_total").increment(sent);
    if resent > 0 {
        counter!("onceward_reservation_resend_total").increment(resent);
        tracing::info!(target: "onceward", event = "reservation.mq_resend_claimed", count = resent);
    }
    if unknown > 0 {
        counter!("onceward_reservation_send_unknown_total").increment(unknown);
        tracing::warn!(target: "onceward", event = "reservation.mq_send_unknown", count = unknown);
    }
}

/// The consumer decided on messages.
pub fn messages_consumed(result: &'static str, count: u64) {
    counter!("onceward_order_consume_total", "result" => result).increment(count);
    match result {
        "duplicate" => {
            counter!("onceward_inbox_duplicate_total").increment(count);
            tracing::info!(target: "onceward", event = "order.consumer_duplicate", count);
        }
        "payload_conflict" => {
            counter!("onceward_inbox_payload_conflict_total").increment(count);
            tracing::error!(target: "onceward", event = "order.payload_conflict", count, "set aside for a person");
        }
        "created" => tracing::debug!(target: "onceward", event = "order.transaction_committed", count),
        _ => {}
    }
}

/// The store of record refused an order.
pub fn order_refused(reason: &'static str) {
    match reason {
        "STOCK_SHORT" => counter!("onceward_db_final_stock_reject_total").increment(1),
        "USER_LIMIT" => counter!("onceward_order_user_unique_conflict_total").increment(1),
        _ => counter!("onceward_reservation_deadline_total").increment(1),
    }
}

/// Orders were ended because their time was up; `lost` of them were found by the sweep, not by the deadline trigger.
pub fn orders_expired(count: u64, lost: u64) {
    counter!("onceward_order_expired_total").increment(count);
    if lost > 0 {
        counter!("onceward_deadline_signal_lost_total").increment(lost);
        tracing::info!(target: "onceward", event = "deadline.signal_lost", count = lost, "found by the sweep");
    }
}

/// Lines of a provider's statement were read.
pub fn statement_lines(provider: &'static str, verdict: &'static str, count: u64) {
    counter!("onceward_statement_lines_total", "provider" => provider, "verdict" => verdict).increment(count);
}

/// A commit's answer was lost.
pub fn commit_unknown(error: &Error) {
    counter!("onceward_db_commit_unknown_total").increment(1);
    tracing::warn!(target: "onceward", event = "order.commit_unknown", error = %error);
}

/// The relay sent an outbox entry, or did not.
pub fn outbox_sent(result: &'static str, count: u64) {
    counter!("onceward_outbox_send_total", "result" => result).increment(count);
    match result {
        "unknown" => tracing::warn!(target: "onceward", event = "outbox.send_unknown", count),
        "manual" => {
            counter!("onceward_outbox_manual_total").increment(count);
            tracing::error!(target: "onceward", event = "outbox.manual", count);
        }
        _ => tracing::debug!(target: "onceward", event = "outbox.claimed", count),
    }
}

/// A turn at settling a group order ended.
pub fn group_turn(group: &GroupId, ended: Ended) {
    let result = match ended {
        Ended::Nothing => "nothing",
        Ended::Cancelled => "cancelled",
        Ended::Settled => "settled",
        Ended::HandedBack => "handed_back",
        Ended::Postponed => "postponed",
        Ended::Failed => "failed",
    };
    counter!("onceward_group_turn_total", "result" => result).increment(1);
    match ended {
        Ended::Failed => {
            tracing::error!(target: "onceward", event = "group.failed", group_id = %group, "waits for a person");
        }
        Ended::Postponed => tracing::warn!(target: "onceward", event = "group.postponed", group_id = %group),
        Ended::Cancelled | Ended::Settled => {
            tracing::info!(target: "onceward", event = "group.ended", group_id = %group, result);
        }
        Ended::Nothing | Ended::HandedBack => {
            tracing::debug!(target: "onceward", event = "group.turn", group_id = %group, result);
        }
    }
}

/// A turn at settling a group order met an error.
pub fn settlement_troubled(group: &GroupId, error: &Error) {
    tracing::warn!(target: "onceward", event = "group.troubled", group_id = %group, error = ?error);
}

/// A compensation was answered by the gate.
pub fn compensation(purchase: PurchaseId, result: &'static str) {
    counter!("onceward_compensation_total", "result" => result).increment(1);
    let compensation_id = purchase.compensation();
    match result {
        "COMPENSATED" => {
            tracing::info!(target: "onceward", event = "compensation.redis_applied", %compensation_id)
        }
        "ALREADY_COMPENSATED" => {
            counter!("onceward_compensation_already_applied_total").increment(1);
            tracing::info!(target: "onceward", event = "compensation.already_applied", %compensation_id);
        }
        "RESERVATION_MISSING" => {
            counter!("onceward_compensation_redis_missing_total").increment(1);
            tracing::error!(target: "onceward", event = "compensation.redis_missing", %compensation_id);
        }
        "NO_ANSWER" => {
            tracing::warn!(target: "onceward", event = "compensation.no_answer", %compensation_id);
        }
        _ => {
            counter!("onceward_compensation_state_conflict_total").increment(1);
            tracing::error!(target: "onceward", event = "compensation.state_conflict", %compensation_id, result);
        }
    }
}

/// A compensation was authorized by the store.
pub fn compensation_authorized(purchase: PurchaseId) {
    let compensation_id = purchase.compensation();
    tracing::info!(target: "onceward", event = "compensation.authorized", %compensation_id);
}

/// A gate gave back what it held for reservations that it had lost and let in again.
pub fn strays_given_back(count: u64) {
    if count > 0 {
        counter!("onceward_reservation_stray_given_back_total").increment(count);
        tracing::info!(target: "onceward", event = "reservation.stray_given_back", count);
    }
}

/// How often this node has made parts of the gate anew, and how many of them it is at now.
pub fn rebuilds(rebuilds: Rebuilds) {
    counter!("onceward_admission_rebuilt_total").absolute(rebuilds.done);
    gauge!("onceward_admission_rebuilding").set(rebuilds.running as f64);
}

/// A payment provider gave no answer.
pub fn provider_silent(provider: &'static str, error: &Error) {
    counter!("onceward_provider_silent_total", "provider" => provider).increment(1);
    tracing::warn!(target: "onceward", event = "payment.provider_silent", provider, error = ?error);
}

/// What a provider said was heard. Money that nobody wanted any more has met a cancellation, or came twice.
pub fn heard(heard: Heard, source: &'static str) {
    match heard {
        Heard::Unwanted => {
            counter!("onceward_payment_cancel_race_total").increment(1);
            tracing::warn!(target: "onceward", event = "payment.cancel_race_detected", source);
        }
        Heard::Contradiction => {
            counter!("onceward_payment_contradiction_total").increment(1);
            tracing::error!(target: "onceward", event = "payment.contradiction", source, "a case for a person");
        }
        Heard::Applied | Heard::Nothing | Heard::UnknownPayment => {}
    }
}

/// A notice was handed over, or was not.
pub fn notified(notifier: &'static str, notice: &Notice, result: &'static str) {
    counter!("onceward_notice_total", "notifier" => notifier, "result" => result).increment(1);
    tracing::info!(target: "onceward", event = "notice.handed_over", notice_id = %notice.id, kind = notice.kind.name(), result);
}

/// Records whose window is over were forgotten.
pub fn forgotten(kind: RecordKind, count: u64) {
    counter!("onceward_record_forgotten_total").increment(count);
    tracing::info!(target: "onceward", event = "record.forgotten", kind = kind.name(), count);
}

/// The gate has let go of sales that are past.
pub fn retired(buckets: u64) {
    counter!("onceward_admission_bucket_retired_total").increment(buckets);
}

/// An entry was claimed for sending or relaying, for the how-manieth time.
pub fn claimed(lane: &str, attempts: u32) {
    let attempts_of_lane = if lane == Lane::OUTBOX { OUTBOX_ATTEMPTS } else { SEND_ATTEMPTS };
    histogram!(attempts_of_lane).record(f64::from(attempts));
    tracing::debug!(target: "onceward", event = "reservation.mq_send_started", lane, attempts);
    if attempts > 1 {
        let name = match lane {
            Lane::OUTBOX => "onceward_outbox_lease_expired_total",
            _ => "onceward_reservation_send_lease_expired_total",
        };
        counter!(name).increment(1);
    }
}

/// Sizes and ages of the lanes, as of the store's time.
pub fn lanes(now: Timestamp, lanes: &[LaneStatus]) {
    let known = [
        (Lane::SEND_DUE, "onceward_reservation_send_pending", "onceward_reservation_send_oldest_age_seconds"),
        (Lane::OUTBOX, "onceward_outbox_pending", "onceward_outbox_oldest_age_seconds"),
        (Lane::COMPENSATION, "onceward_compensation_pending", "onceward_compensation_oldest_age_seconds"),
    ];
    for (name, size_gauge, age_gauge) in known {
        let status = lanes.iter().find(|one| one.lane.as_str() == name);
        let oldest = status.and_then(|one| one.oldest);
        gauge!(size_gauge).set(status.map_or(0.0, |one| one.size as f64));
        gauge!(age_gauge).set(oldest.map_or(0.0, |at| now.since(at).0 as f64 / 1000.0));
    }
    for lane in known_lanes() {
        // One that has become empty is told too, or its last figures would stand for ever.
        let one = lanes.iter().find(|one| one.lane == lane).cloned();
        let (one, queue) = (one.unwrap_or_else(|| LaneStatus::empty(lane.clone())), lane.to_string());
        let seconds = |at: Option<Timestamp>| at.map_or(0.0, |at| now.since(at).0 as f64 / 1000.0);
        gauge!("onceward_queue_size", "queue" => queue.clone()).set(one.size as f64);
        gauge!("onceward_queue_leased", "queue" => queue.clone()).set(one.leased as f64);
        gauge!("onceward_queue_overdue_seconds", "queue" => queue.clone()).set(seconds(one.next_due));
        gauge!("onceward_queue_last_claim_age_seconds", "queue" => queue).set(seconds(one.last_claim));
    }
    let dead: u64 =
        lanes.iter().filter(|one| one.lane.as_str().starts_with(Lane::DEAD_PREFIX)).map(|one| one.size).sum();
    gauge!("onceward_dead_letters").set(dead as f64);
}

/// How far the invariants are off: zero everywhere is health.
pub fn invariant_deltas(store: i64, gate: i64, across: i64) {
    gauge!("onceward_inventory_pg_invariant_delta").set(store as f64);
    gauge!("onceward_inventory_redis_invariant_delta").set(gate as f64);
    gauge!("onceward_inventory_cross_system_delta").set(across as f64);
    if store != 0 || gate != 0 {
        tracing::error!(target: "onceward", event = "reconcile.anomaly_detected", store, gate, across);
    }
}
