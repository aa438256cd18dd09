//! The reckoning: every order against the bank's statement.
//!
//! Invariants: a payment belongs to the order whose buyer was told its id; every order is looked at, and one that cannot be
//! judged is wrong; no money is left over. Read next: [`crate::outside::statement`], which says what agreement is.

use std::collections::BTreeMap;

use onceward_domain::time::{Millis, Timestamp};
use serde_json::Value;

use super::plan::{AROUND, Calling, Habit, Late};
use super::seen::Seen;
use super::{SKU, Torture};
use crate::client::Client;
use crate::failure::Failure;
use crate::outside::check::{Check, of_the_server};
use crate::outside::list::orders_of;
use crate::outside::statement::{self, Account, disagreement};

/// What the reckoning found.
pub(super) struct Findings {
    /// All checks.
    pub(super) checks: Vec<Check>,
    /// Orders that were compared.
    pub(super) orders: usize,
    /// How often interesting cases came about.
    pub(super) sometimes: BTreeMap<&'static str, u64>,
}

/// Holds every order against the bank.
///
/// # Errors
/// When the server does not answer.
pub(super) async fn compare(torture: &Torture<'_>, began: Timestamp) -> Result<Findings, Failure> {
    let mut client = torture.client();
    let seen = std::mem::take(&mut torture.lock().orders);
    let mut accounts = statement::read(&mut client, began).await?;
    let mut listed: BTreeMap<String, Value> = BTreeMap::new();
    for late in Late::ALL {
        for order in orders_of(&mut client, late.name()).await? {
            listed.insert(text(&order, "order_id").to_owned(), order);
        }
    }
    let (mut wrong, mut missing, mut near, mut sometimes) = (Vec::new(), Vec::new(), 0, BTreeMap::new());
    for one in &seen {
        let accounts: Vec<Account> =
            one.payments.iter().map(|payment| accounts.remove(payment).unwrap_or_default()).collect();
        let Some(order) = listed.get(&one.order) else {
            missing.push(format!("buyer-{} has no order", one.number));
            continue;
        };
        if let Some(fault) = disagreement(order, &accounts, one.back) {
            wrong.push(format!("{fault}; buyer-{}: {:?}", one.number, one.course));
        }
        near += usize::from(one.is_near);
        count(&mut sometimes, one, order, &accounts);
    }
    if seen.len() != listed.len() {
        missing.push(format!("{} buyers, {} orders", seen.len(), listed.len()));
    }
    let strangers: Vec<String> = accounts.keys().map(|payment| format!("{payment} is nobody's")).collect();
    let count = seen.len();
    let mut checks = vec![
        Check::of("order_and_bank_agree", &format!("{count} orders with the bank's statement"), &wrong),
        Check::of("every_buyer_has_one_order", &format!("{count} buyers"), &missing),
        Check::of("all_money_is_somebodys", "every payment of the statement", &strangers),
        paid_in_time(near, torture.wanted),
        nobody_has_to_look(&mut client).await?,
        stock_is_conserved(&mut client, &listed).await?,
        Check::of("answers_keep_their_promise", "every answer", &torture.lock().contradictions),
    ];
    checks.extend(of_the_server(&mut client).await?);
    Ok(Findings { checks, orders: count, sometimes })
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn count(sometimes: &mut BTreeMap<&'static str, u64>, seen: &Seen, order: &Value, accounts: &[Account]) {
    let mut met = |case: &'static str, is_met: bool| {
        if is_met {
            *sometimes.entry(case).or_default() += 1;
        }
    };
    let course = seen.course;
    let status = text(order, "status");
    let has_cancel = !order["cancel_reason"].is_null();
    let is_taken = accounts.iter().any(|one| !one.taken.is_empty());
    let cancel_due: Option<jiff::Timestamp> = text(order, "cancel_due_at").parse().ok();
    let due = Timestamp(cancel_due.map_or(0, jiff::Timestamp::as_millisecond));
    let taken_around = accounts
        .iter()
        .flat_map(|one| &one.taken)
        .any(|(at, _)| at.0.abs_diff(due.0) <= AROUND.0.unsigned_abs());
    let is_paid = matches!(status, "PAID" | "REFUNDED");
    met("through_the_gate", course.is_flash);
    met("bank_took_it_within_150_ms", taken_around);
    met("paid_and_kept", status == "PAID");
    met("paid_while_cancelling", is_paid && has_cancel);
    met("not_paid_and_cancelled", status == "CANCELLED" && !is_taken);
    met("given_back_after_the_cancel", status == "CANCELLED" && is_taken);
    met("refunded_on_request", status == "REFUNDED");
    met("refunded_in_part", status == "PAID" && seen.back > 0);
    met("found_without_a_callback", is_taken && course.calling == Calling::Drop && !seen.is_told_again);
    let is_lost = course.calling == Calling::Drop && !seen.is_told_again;
    met("late_money_found_by_the_second_confirmation", status == "CANCELLED" && is_taken && is_lost);
    met("callback_doubled", is_taken && course.calling == Calling::Duplicate);
    met("callback_late", is_taken && course.calling != Calling::Drop && course.delay > Millis(0));
    met(
        "paid_twice_given_back_once",
        course.habit == Habit::PaysTwice
            && accounts.iter().all(|one| one.taken.len() == 1)
            && accounts.len() == 2,
    );
    met(
        "second_refund_of_60_of_100_refused",
        course.habit == Habit::WantsTooMuchBack && seen.back > 0 && seen.too_much == 1,
    );
    met(
        "reinstate_rule_and_paid_by_force",
        course.late == Late::Reinstate && course.by_force && is_paid && order["cancelled_at"].is_null(),
    );
}

fn paid_in_time(near: usize, wanted: usize) -> Check {
    let compared = format!("{near} of {wanted} orders paid within {} ms of their due-time", AROUND.0);
    let wrong = if near < wanted { vec![compared.clone()] } else { Vec::new() };
    Check::of("paid_around_the_due_time", &compared, &wrong)
}

/// Nothing of this needs a person: no case was opened.
async fn nobody_has_to_look(client: &mut Client<'_>) -> Result<Check, Failure> {
    let answer = client.get("/v1/ops/anomalies?limit=200").await?;
    let cases = answer.body["data"].as_array().map_or(&[][..], Vec::as_slice);
    let wrong: Vec<String> =
        cases.iter().map(|case| format!("{} of {}", text(case, "kind"), text(case, "subject"))).collect();
    Ok(Check::of("nobody_has_to_look", "no case was opened", &wrong))
}

/// Every unit is free or sold, and as many are sold as orders took money for good.
async fn stock_is_conserved(
    client: &mut Client<'_>,
    listed: &BTreeMap<String, Value>,
) -> Result<Check, Failure> {
    let mut wrong = Vec::new();
    for late in Late::ALL {
        let answer = client.get(&format!("/v1/activities/{}/skus/{SKU}", late.name())).await?;
        let stock = |name: &str| answer.body["stock"][name].as_i64().unwrap_or(i64::MIN / 8);
        let sold = listed
            .values()
            .filter(|order| order["lines"][0]["activity_id"] == late.name())
            .filter(|order| matches!(text(order, "status"), "PAID" | "REFUNDED"))
            .count();
        let is_right = stock("initial") == stock("available") + stock("occupied") + stock("sold")
            && stock("occupied") == 0
            && usize::try_from(stock("sold")) == Ok(sold);
        if !is_right {
            wrong.push(format!("{}: stock {} and {sold} sold", late.name(), answer.body["stock"]));
        }
        if answer.body["admission"]["available"] != answer.body["stock"]["available"] {
            wrong.push(format!("{}: the gate has {}", late.name(), answer.body["admission"]));
        }
    }
    Ok(Check::of("stock_is_conserved", "both SKUs: every unit is free or sold", &wrong))
}
