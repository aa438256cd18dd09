//! `onceward groups`: looks at group orders, and settles one that failed (GS-06).
//!
//! Invariants: it goes through the API of a running server; whoever settles is recorded there by the name of the API key; a
//! wish to settle has a key, so that a lost answer can be asked for again. Read next: [`crate::api`].

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::api::{Api, Naming, Options, block_on, segment};
use crate::failure::Failure;
use crate::output::{self, Format};

/// Rows of a page.
const PAGE: usize = 200;
/// Most group orders that one call lists.
const GROUPS_LIMIT: usize = 100_000;

/// The arguments of `groups`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List them, newest first
    List(Listing),
    /// Show one: its state, who takes part, what happened
    Show(OfGroup),
    /// Give one that failed another round of attempts
    Settle(Settling),
}

#[derive(Debug, clap::Args)]
struct Listing {
    /// Only those in this state: OPEN, CLOSED, SETTLED, FAILED or CANCELLED
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, clap::Args)]
struct OfGroup {
    /// The group's id
    group: String,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, clap::Args)]
struct Settling {
    #[command(flatten)]
    of: OfGroup,
    #[command(flatten)]
    naming: Naming,
}

/// Does what was asked for.
///
/// # Errors
/// What the server refuses, or that it gave no answer.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List(listing) => list(listing),
        Action::Show(of) => show(of),
        Action::Settle(settling) => settle(settling),
    }
}

fn list(listing: &Listing) -> Result<(), Failure> {
    let api = Api::of(&listing.options.server)?;
    let groups = block_on(all(&api, listing.status.as_deref()))?;
    match Format::of(listing.options.json) {
        Format::Json => output::json(&json!({ "data": groups })),
        Format::Text => output::data(|out| write_table(out, &groups)),
    }
}

/// Every group order there is now, page by page.
async fn all(api: &Api, status: Option<&str>) -> Result<Vec<Value>, Failure> {
    let status = status.map(|status| format!("&status={}", segment(status))).unwrap_or_default();
    let mut groups = Vec::new();
    let mut after = String::new();
    while groups.len() < GROUPS_LIMIT {
        let mut page = api.get(&format!("/v1/groups?limit={PAGE}{status}{after}")).await?;
        if let Value::Array(rows) = page["data"].take() {
            groups.extend(rows);
        }
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", segment(next));
    }
    Ok(groups)
}

fn show(of: &OfGroup) -> Result<(), Failure> {
    let api = Api::of(&of.options.server)?;
    let path = format!("/v1/groups/{}", segment(&of.group));
    let (mut group, mut timeline) = block_on(async {
        let group = api.get(&path).await?;
        Ok((group, api.get(&format!("{path}/timeline")).await?))
    })?;
    match Format::of(of.options.json) {
        Format::Json => {
            group["timeline"] = timeline["data"].take();
            output::json(&group)
        }
        Format::Text => output::data(|out| write_group(out, &group, &timeline["data"])),
    }
}

fn settle(settling: &Settling) -> Result<(), Failure> {
    let of = &settling.of;
    let (api, key) = (Api::of(&of.options.server)?, settling.naming.key()?);
    let path = format!("/v1/groups/{}/settle", segment(&of.group));
    let group = block_on(api.post_once(&path, &key, &json!({})))?;
    match Format::of(of.options.json) {
        Format::Json => output::json(&group),
        Format::Text => {
            output::data(|out| writeln!(out, "{} is {} and is tried again", of.group, text(&group, "status")))
        }
    }
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or("-")
}

/// At most 80 columns wide, as long as no id is longer than 25 characters; ids are never cut.
fn write_table(out: &mut dyn Write, groups: &[Value]) -> io::Result<()> {
    writeln!(out, "{:<9} {:>6} {:>8}  {:<24}  group", "status", "people", "attempts", "deadline")?;
    for group in groups {
        writeln!(
            out,
            "{:<9} {:>6} {:>8}  {:<24}  {}",
            text(group, "status"),
            group["participant_count"],
            group["attempts"],
            text(group, "deadline"),
            text(group, "group_id"),
        )?;
    }
    Ok(())
}

fn write_group(out: &mut dyn Write, group: &Value, timeline: &Value) -> io::Result<()> {
    let people = group["participants"].as_array().map_or(&[][..], Vec::as_slice);
    let lines = [
        ("group", text(group, "group_id").to_owned()),
        ("status", text(group, "status").to_owned()),
        ("deadline", text(group, "deadline").to_owned()),
        ("leader", text(group, "leader_user_id").to_owned()),
        ("charged via", format!("{}, {}", text(group, "charge_via"), text(group, "currency"))),
        ("people", format!("{}, at least {}", people.len(), group["min_participants"])),
        ("attempts", group["attempts"].to_string()),
        ("next attempt", text(group, "next_attempt_at").to_owned()),
        ("last error", text(group, "last_error").to_owned()),
    ];
    for (name, value) in lines {
        writeln!(out, "{name:<13}{value}")?;
    }
    if !people.is_empty() {
        writeln!(out, "\n{:>16} {:<8}  participant", "minor units", "charge")?;
    }
    for one in people {
        let amount = one["amount"]["amount"].to_string();
        writeln!(out, "{amount:>16} {:<8}  {}", text(one, "charge"), text(one, "user_id"))?;
    }
    writeln!(out, "\n{:<24}  {:<9} {:<9}  cause", "at", "from", "to")?;
    for line in timeline.as_array().into_iter().flatten() {
        let (at, from, to) = (text(line, "at"), text(line, "from"), text(line, "to"));
        writeln!(out, "{at:<24}  {from:<9} {to:<9}  {}, by {}", text(line, "cause"), text(line, "actor"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_fit_eighty_columns() {
        let at = "2026-11-11T00:01:00.000Z";
        let group = json!({
            "group_id": "a-group-of-twenty-five-xx", "status": "CANCELLED", "leader_user_id": "lea", "deadline": at,
            "charge_via": "sandbox", "currency": "CNY", "min_participants": 5_000, "participant_count": 5_000,
            "attempts": 12_345, "next_attempt_at": at, "last_error": null,
            "participants": [{ "user_id": "u".repeat(40), "amount": { "amount": 1_000_000_000_000_000_i64, "currency": "CNY" }, "charge": "DECLINED" }],
        });
        let line = json!({ "at": at, "from": "CANCELLED", "to": "CANCELLED", "cause": "settled_by_hand", "actor": "engine" });
        let mut bytes = Vec::new();
        write_table(&mut bytes, std::slice::from_ref(&group)).unwrap();
        write_group(&mut bytes, &group, &json!([line])).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80) && text.contains("DECLINED"), "{text}");
    }
}
