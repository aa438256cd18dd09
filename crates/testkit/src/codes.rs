//! What a store's tables say of the domain's lists: the checks of their columns.
//!
//! Invariant: a list of the domain that a column keeps is named here once, for every store. Deliberately absent: the columns
//! themselves; each store has a schema of its own.

use onceward_domain::catalogue::LatePayment;
use onceward_domain::credit::EntryKind;
use onceward_domain::machine::{
    Machine, admission, compensation, group, group_charge, job, notice, order, payment, refund, reservation,
};
use onceward_domain::payment::{CaseKind, RefundCause};
use onceward_domain::purchase::{InboxResult, Reason};

/// Says whether the tables of this SQL allow exactly the codes that the domain has.
///
/// # Panics
/// Where a table or a check is missing, or a check allows other codes.
pub fn checks_allow_exactly_the_codes(schema: &str) {
    for (table, column, values) in [
        ("purchase", "admission", admission::Admission::STATES.len()),
        ("purchase", "reservation", reservation::Reservation::STATES.len()),
        ("purchase", "order_status", order::Order::STATES.len()),
        ("purchase", "reason", Reason::ALL.len()),
        ("purchase", "inbox_result", InboxResult::ALL.len()),
        ("compensation_task", "status", compensation::Compensation::STATES.len()),
        ("payment", "status", payment::Payment::STATES.len()),
        ("refund", "status", refund::Refund::STATES.len()),
        ("refund", "cause", RefundCause::ALL.len()),
        ("notice", "status", notice::Notice::STATES.len()),
        ("group_order", "status", group::Group::STATES.len()),
        ("participant", "charge", group_charge::GroupCharge::STATES.len()),
        ("open_case", "kind", CaseKind::ALL.len()),
        ("job", "status", job::Job::STATES.len()),
        ("credit_entry", "kind", EntryKind::ALL.len()),
        ("activity", "late_payment", LatePayment::ALL.len()),
    ] {
        let begins = format!("CREATE TABLE {table} (");
        let (_, rest) = schema.split_once(&begins).unwrap_or_else(|| panic!("no table {table}"));
        let (body, _) = rest.split_once(";\n").expect("a statement ends");
        let check = format!("CHECK ({column} BETWEEN 0 AND {})", values - 1);
        assert!(body.contains(&check), "{table} lacks {check}");
    }
}
