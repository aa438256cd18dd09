//! The bank's own account of everything, and whether an order agrees with it.
//!
//! Invariants: the bank's side is made from its moves of money alone, ours from what the API answers of the order; agreement is
//! one of three: paid and kept, not paid, or given back exactly once.

use std::collections::BTreeMap;

use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::{Millis, Timestamp};
use serde_json::Value;

use crate::client::Client;
use crate::failure::Failure;
use crate::time::{SystemClock, rfc3339};

/// So much of a statement is asked for at a time: what happens in it bounds the answer's length.
const SLICE: Millis = Millis(1_000);

/// The bank's moves of one payment's money.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// When it was taken, and how much.
    pub(crate) taken: Vec<(Timestamp, i64)>,
    /// What went back, by refund.
    given: BTreeMap<String, i64>,
    moves_back: usize,
}

/// Accounts by payment.
pub(crate) type Accounts = BTreeMap<String, Account>;

/// Reads the statement from this time on.
///
/// # Errors
/// When it cannot be had, or not be understood.
pub(crate) async fn read(client: &mut Client<'_>, from: Timestamp) -> Result<Accounts, Failure> {
    let mut accounts = Accounts::new();
    let (mut from, end) = (from, SystemClock.now().plus(SLICE));
    while from < end {
        let to = from.plus(SLICE);
        let path = format!("/sandbox/statement?from={}&to={}", rfc3339(from), rfc3339(to));
        let answer = client.get(&path).await?;
        let unreadable = || Failure::Other(format!("a line of the statement is {}", answer.short()));
        let csv = answer.body.as_str().filter(|_| answer.status == 200).ok_or_else(unreadable)?;
        for line in csv.lines().skip(1) {
            note(&mut accounts, line).ok_or_else(unreadable)?;
        }
        from = to;
    }
    Ok(accounts)
}

fn note(accounts: &mut Accounts, line: &str) -> Option<()> {
    let fields: Vec<&str> = line.split(',').collect();
    let [at, kind, payment, refund, _transaction, amount, _currency, _charge] = fields[..] else {
        return None;
    };
    // What was taken from a customer who was not there belongs to no payment.
    if kind == "charge" {
        return Some(());
    }
    let at: jiff::Timestamp = at.parse().ok()?;
    let amount: i64 = amount.parse().ok()?;
    let account = accounts.entry(payment.to_owned()).or_default();
    match kind {
        "payment" => account.taken.push((Timestamp(at.as_millisecond()), amount)),
        "refund" => {
            account.moves_back += 1;
            *account.given.entry(refund.to_owned()).or_default() += amount;
        }
        _ => return None,
    }
    Some(())
}

/// Why an order and the accounts of its payments do not agree, if they do not. `asked_back` is what the buyer was promised back.
pub(crate) fn disagreement(order: &Value, accounts: &[Account], asked_back: i64) -> Option<String> {
    let taken: i64 = accounts.iter().flat_map(|one| &one.taken).map(|(_, amount)| amount).sum();
    let given: i64 = accounts.iter().flat_map(|one| one.given.values()).sum();
    let times_taken: usize = accounts.iter().map(|one| one.taken.len()).sum();
    let moves_back: usize = accounts.iter().map(|one| one.moves_back).sum();
    let refunds: usize = accounts.iter().map(|one| one.given.len()).sum();
    let amount = |name: &str| order[name]["amount"].as_i64().unwrap_or(i64::MIN);
    let (total, paid, refunded, kept) = (amount("total"), amount("paid"), amount("refunded"), taken - given);
    let once_each = accounts.iter().all(|one| one.taken.len() <= 1) && moves_back == refunds;
    let status = order["status"].as_str().unwrap_or_default();
    let is_settled = match status {
        // Whatever came twice went back, and what the buyer wanted back.
        "PAID" => kept == total - asked_back && kept > 0,
        "REFUNDED" => kept == 0 && asked_back == total,
        "CANCELLED" => kept == 0 && asked_back == 0 && moves_back == times_taken,
        _ => false,
    };
    let agrees = paid == taken && refunded == given && once_each && is_settled;
    (!agrees).then(|| {
        format!(
            "order {} is {status} (paid {paid}, refunded {refunded}, {asked_back} of it asked for); the bank took {taken} \
             in {times_taken} and gave back {given} in {moves_back}",
            order["order_id"].as_str().unwrap_or("?")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn three_ends_agree_and_everything_else_does_not() {
        let line =
            |kind: &str, refund: &str| format!("2026-01-01T00:00:00.000Z,{kind},p,{refund},t,100,CNY,");
        let bank = |lines: &[String]| {
            let mut accounts = Accounts::new();
            assert!(lines.iter().all(|line| note(&mut accounts, line).is_some()));
            [accounts.remove("p").unwrap_or_default()]
        };
        let (pay, back, other) = (line("payment", ""), line("refund", "r"), line("refund", "s"));
        let money = |amount: i64| json!({"amount": amount, "currency": "CNY"});
        let order = |status: &str, paid: i64, refunded: i64| json!({"status": status, "total": money(100), "paid": money(paid), "refunded": money(refunded)});
        let table = [
            (order("PAID", 100, 0), vec![pay.clone()], 0, true),
            (order("CANCELLED", 0, 0), vec![], 0, true),
            (order("CANCELLED", 100, 100), vec![pay.clone(), back.clone()], 0, true),
            (order("REFUNDED", 100, 100), vec![pay.clone(), back.clone()], 100, true),
            (order("CANCELLED", 0, 0), vec![pay.clone()], 0, false),
            (order("CANCELLED", 100, 0), vec![pay.clone()], 0, false),
            (order("PAID", 0, 0), vec![], 0, false),
            (order("PAYING", 0, 0), vec![], 0, false),
            (order("PAID", 100, 0), vec![pay.clone(), pay.clone()], 0, false),
            (order("CANCELLED", 100, 200), vec![pay.clone(), back.clone(), other], 0, false),
            (order("CANCELLED", 100, 200), vec![pay, back.clone(), back], 0, false),
        ];
        for (order, lines, asked, agrees) in table {
            let found = disagreement(&order, &bank(&lines), asked);
            assert_eq!(found.is_none(), agrees, "{order} {lines:?}: {found:?}");
        }
    }
}
