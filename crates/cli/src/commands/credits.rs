//! `onceward credits`: looks at credit accounts and jobs, exports statements, gives credits and sets balances right (CL-08).
//!
//! Invariants: it goes through the API of a running server; what makes an entry has a key, so that a lost answer can be asked
//! for again; a statement is read page by page in the order of its entries and ends with the last one there is.
//! Read next: [`crate::api`].

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::api::{Api, Naming, Options, block_on, segment};
use crate::failure::Failure;
use crate::output::{self, Format};

/// Entries of a page.
const PAGE: usize = 200;
/// Most pages of one statement: ten million entries.
const PAGES_LIMIT: usize = 50_000;

/// The arguments of `credits`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show an account's balance, now or at a moment
    Show(Showing),
    /// Print an account's entries, oldest first
    Statement(Stating),
    /// Give credits
    Grant(Granting),
    /// Set a balance right; it is recorded who did, and why
    Adjust(Adjusting),
    /// Show a job
    Job(OfJob),
}

#[derive(Debug, clap::Args)]
struct OfAccount {
    /// The account's id
    account: String,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, clap::Args)]
struct Showing {
    #[command(flatten)]
    of: OfAccount,
    /// The moment, in RFC 3339
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Stating {
    #[command(flatten)]
    of: OfAccount,
    /// Print CSV instead of the table
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

#[derive(Debug, clap::Args)]
struct Granting {
    #[command(flatten)]
    of: OfAccount,
    /// How many
    amount: u64,
    /// What the giver calls it
    #[arg(long, value_name = "TEXT")]
    reference: String,
    #[command(flatten)]
    naming: Naming,
}

#[derive(Debug, clap::Args)]
struct Adjusting {
    #[command(flatten)]
    of: OfAccount,
    /// By how much, with a minus sign to take away
    #[arg(allow_negative_numbers = true)]
    amount: i64,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    naming: Naming,
}

#[derive(Debug, clap::Args)]
struct OfJob {
    /// The job's id
    job: String,
    #[command(flatten)]
    options: Options,
}

/// Does what was asked for.
///
/// # Errors
/// What the server refuses, or that it gave no answer.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Show(showing) => show(showing),
        Action::Statement(stating) => state(stating),
        Action::Grant(granting) => {
            let body = json!({ "amount": granting.amount, "reference": granting.reference });
            enter(&granting.of, "grants", &granting.naming, &body)
        }
        Action::Adjust(adjusting) => {
            let body = json!({ "amount": adjusting.amount, "reason": adjusting.reason });
            enter(&adjusting.of, "adjustments", &adjusting.naming, &body)
        }
        Action::Job(of) => show_job(of),
    }
}

fn path_of(account: &str) -> String {
    format!("/v1/accounts/{}", segment(account))
}

fn show(showing: &Showing) -> Result<(), Failure> {
    let of = &showing.of;
    let api = Api::of(&of.options.server)?;
    let at = showing.at.as_deref().map(|at| format!("?at={}", segment(at))).unwrap_or_default();
    let account = block_on(api.get(&format!("{}{at}", path_of(&of.account))))?;
    let lines =
        [("account", "account_id"), ("balance", "balance"), ("entries", "entries"), ("as of", "as_of")];
    print(&of.options, &account, &lines)
}

fn show_job(of: &OfJob) -> Result<(), Failure> {
    let api = Api::of(&of.options.server)?;
    let job = block_on(api.get(&format!("/v1/jobs/{}", segment(&of.job))))?;
    let lines = [
        ("job", "job_id"),
        ("account", "account_id"),
        ("status", "status"),
        ("cost", "cost"),
        ("net", "net"),
        ("refunded", "is_refunded"),
        ("reclaimed", "is_reclaimed"),
        ("attempts", "attempts"),
        ("at most", "max_attempts"),
        ("not before", "not_before"),
        ("last error", "last_error"),
    ];
    print(&of.options, &job, &lines)
}

/// Makes an entry and shows it.
fn enter(of: &OfAccount, route: &str, naming: &Naming, body: &Value) -> Result<(), Failure> {
    let (api, key) = (Api::of(&of.options.server)?, naming.key()?);
    let path = format!("{}/{route}", path_of(&of.account));
    let entry = block_on(api.post_once(&path, &key, body))?;
    let lines = [
        ("entry", "entry_id"),
        ("account", "account_id"),
        ("type", "type"),
        ("amount", "amount"),
        ("balance", "balance_after"),
        ("at", "created_at"),
        ("by", "actor"),
    ];
    print(&of.options, &entry, &lines)
}

/// One object, as it is or as lines of name and value.
fn print(options: &Options, object: &Value, lines: &[(&str, &str)]) -> Result<(), Failure> {
    match Format::of(options.json) {
        Format::Json => output::json(object),
        Format::Text => output::data(|out| {
            lines.iter().try_for_each(|(name, field)| writeln!(out, "{name:<11}{}", shown(&object[*field])))
        }),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn state(stating: &Stating) -> Result<(), Failure> {
    let of = &stating.of;
    let api = Api::of(&of.options.server)?;
    let first = format!("{}/statement?limit={PAGE}", path_of(&of.account));
    if stating.csv {
        let text = block_on(whole_csv(&api, first))?;
        return output::data(|out| out.write_all(text.as_bytes()));
    }
    let entries = block_on(whole(&api, &first))?;
    match Format::of(of.options.json) {
        Format::Json => output::json(&json!({ "data": entries })),
        Format::Text => output::data(|out| write_entries(out, &entries)),
    }
}

/// Every entry there is now, page by page.
async fn whole(api: &Api, first: &str) -> Result<Vec<Value>, Failure> {
    let mut entries = Vec::new();
    let mut after = String::new();
    for _ in 0..PAGES_LIMIT {
        let mut page = api.get(&format!("{first}{after}")).await?;
        if let Value::Array(rows) = page["data"].take() {
            entries.extend(rows);
        }
        let Some(next) = page["next"].as_str() else { return Ok(entries) };
        after = format!("&after={}", segment(next));
    }
    Err(Failure::Other("the statement does not end".to_owned()))
}

/// The same as the server writes it in CSV, under one head.
async fn whole_csv(api: &Api, first: String) -> Result<String, Failure> {
    let mut whole = String::new();
    let mut path = first;
    for _ in 0..PAGES_LIMIT {
        let (page, next) = api.get_csv(&path).await?;
        let rows =
            if whole.is_empty() { page.as_str() } else { page.split_once('\n').map_or("", |(_, rows)| rows) };
        whole.push_str(rows);
        match next {
            Some(next) => path = next,
            None => return Ok(whole),
        }
    }
    Err(Failure::Other("the statement does not end".to_owned()))
}

/// At most 80 columns wide, as long as what an entry is for is short; texts that somebody chose are never cut.
fn write_entries(out: &mut dyn Write, entries: &[Value]) -> io::Result<()> {
    writeln!(out, "{:<24} {:<7} {:>12} {:>13}  for", "at", "type", "amount", "balance")?;
    for entry in entries {
        let purpose = ["job_id", "reference", "reason"].into_iter().find_map(|name| entry[name].as_str());
        writeln!(
            out,
            "{:<24} {:<7} {:>12} {:>13}  {}",
            shown(&entry["created_at"]),
            shown(&entry["type"]),
            shown(&entry["amount"]),
            shown(&entry["balance_after"]),
            purpose.unwrap_or_default(),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_eighty_columns() {
        let entry = json!({
            "created_at": "2026-11-11T00:01:00.000Z", "type": "reclaim", "amount": -1_000_000_000_i64,
            "balance_after": -9_999_999_999_i64, "job_id": "render-1234567890", "reference": null, "reason": null,
        });
        let mut bytes = Vec::new();
        write_entries(&mut bytes, &[entry]).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80) && text.contains("render-"), "{text}");
    }
}
