//! What the demonstration shows at its end: one table for people, one object for programs, from the same figures.
//!
//! Invariant: no line of the table is wider than 80 columns.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::outside::check::Check;

const WIDTH: usize = 80;

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Units of the hot SKU.
    pub(crate) orders_asked_for: usize,
    /// Gives the same run again.
    pub(crate) seed: u64,
    /// Buyers who came.
    pub(crate) buyers: usize,
    /// Requests they sent.
    pub(crate) requests: u64,
    /// Reservations that were acknowledged.
    pub(crate) accepted: usize,
    /// Refusals by code.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Requests sent twice on purpose.
    pub(crate) repeats: u64,
    /// How often the server was killed.
    pub(crate) kills: usize,
    /// Requests whose answer was lost.
    pub(crate) lost_answers: u64,
    /// Those that got their answer when they were asked again.
    pub(crate) recovered_answers: u64,
    /// Answers that said to come back later.
    pub(crate) postponed_answers: u64,
    /// Orders in all.
    pub(crate) orders: usize,
    /// Live orders of the hot SKU.
    pub(crate) winners: usize,
    /// Direct orders.
    pub(crate) direct_orders: usize,
    /// Orders that buyers cancelled.
    pub(crate) cancelled: usize,
    /// Orders that expired unpaid.
    pub(crate) expired: usize,
    /// Orders that were paid, and keep their money.
    pub(crate) paid: usize,
    /// Orders that were cancelled, and whose money went back.
    pub(crate) given_back: usize,
    /// Shares of group orders that were charged, once each.
    pub(crate) shares_charged: usize,
    /// Shares that were declined.
    pub(crate) shares_declined: usize,
    /// Jobs that credits paid for.
    pub(crate) jobs: usize,
    /// Jobs whose cost was given back.
    pub(crate) jobs_refunded: usize,
    /// Jobs whose cost was taken again after that.
    pub(crate) jobs_reclaimed: usize,
    /// From the first buyer to the last check.
    pub(crate) elapsed_ms: u64,
    /// Bytes of the store on disk.
    pub(crate) store_bytes: u64,
    /// Whether every check holds.
    pub(crate) holds: bool,
    /// Every check.
    pub(crate) checks: Vec<Check>,
}

impl Report {
    /// Writes the table.
    ///
    /// # Errors
    /// When the writer fails.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let lost =
            format!("{} lost, {} recovered by asking again", self.lost_answers, self.recovered_answers);
        let lines = [
            ("units on sale", self.orders_asked_for.to_string()),
            (
                "buyers",
                format!("{}, with {} requests, {} sent twice", self.buyers, self.requests, self.repeats),
            ),
            ("kills (SIGKILL)", self.kills.to_string()),
            ("answers", lost),
            ("accepted", self.accepted.to_string()),
        ];
        for (name, value) in lines {
            line(out, name, &value)?;
        }
        for (code, count) in &self.refused {
            line(out, &format!("refused {code}"), &count.to_string())?;
        }
        line(out, "orders", &format!("{}, of them {} direct", self.orders, self.direct_orders))?;
        line(out, "winners", &self.winners.to_string())?;
        line(out, "cancelled", &format!("{} by buyers, {} unpaid", self.cancelled, self.expired))?;
        line(out, "payments", &format!("{} kept, {} given back", self.paid, self.given_back))?;
        let shares = format!("{} shares charged, {} declined", self.shares_charged, self.shares_declined);
        line(out, "group orders", &shares)?;
        let jobs = format!(
            "{}, {} refunded, {} of them reclaimed",
            self.jobs, self.jobs_refunded, self.jobs_reclaimed
        );
        line(out, "jobs for credits", &jobs)?;
        line(out, "store", &format!("{} KiB", self.store_bytes / 1024))?;
        line(out, "time", &format!("{:.1} s", self.elapsed_ms as f64 / 1000.0))?;
        line(out, "seed", &self.seed.to_string())?;
        writeln!(out)?;
        for check in &self.checks {
            let verdict = if check.holds { "holds" } else { "BROKEN" };
            writeln!(out, "{}", shortened(&format!("{verdict:<7}{:<32}{}", check.name, check.detail)))?;
            if !check.holds {
                writeln!(out, "{}", check.detail)?;
            }
        }
        let count = self.checks.iter().filter(|check| !check.holds).count();
        match count {
            0 => writeln!(out, "\nAll {} invariants hold.", self.checks.len()),
            _ => writeln!(out, "\n{count} of {} invariants are broken.", self.checks.len()),
        }
    }
}

fn line(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{}", shortened(&format!("{name:<27}{value}")))
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    text.chars().take(WIDTH - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_and_says_what_is_broken_in_full() {
        let check =
            |holds, detail: &str| Check { name: "a_name".to_owned(), holds, detail: detail.to_owned() };
        let long = "x".repeat(200);
        let report = Report {
            orders_asked_for: 2000,
            seed: u64::MAX,
            buyers: 3500,
            requests: 5000,
            accepted: 2100,
            refused: BTreeMap::from([("sold_out".to_owned(), 1400)]),
            repeats: 300,
            kills: 10,
            lost_answers: 40,
            recovered_answers: 40,
            postponed_answers: 0,
            orders: 2200,
            winners: 2000,
            direct_orders: 100,
            cancelled: 100,
            expired: 100,
            paid: 120,
            given_back: 40,
            shares_charged: 23,
            shares_declined: 1,
            jobs: 12,
            jobs_refunded: 9,
            jobs_reclaimed: 6,
            elapsed_ms: 12_345,
            store_bytes: 1 << 20,
            holds: false,
            checks: vec![check(true, &long), check(false, "what is wrong")],
        };
        let mut out = Vec::new();
        report.write_table(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        for part in ["12.3 s", "sold_out", "BROKEN", "what is wrong", "1 of 2 invariants are broken."] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
