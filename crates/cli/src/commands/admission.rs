//! `onceward admission`: looks how the gate stands, and has it made anew from the store (FS-18).
//!
//! Invariants: it goes through the API of a running server; looking changes nothing; a rebuild may be said again. With `--all`
//! it stops at the first answer that did not come, because then somebody must look; nothing that there is is left out in silence.
//! Read next: [`crate::api`].

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::api::{Api, Options, block_on, segment};
use crate::failure::Failure;
use crate::output::{self, Format};

/// Rows of a page.
const PAGE: usize = 200;
/// Most pages that one call goes through: more SKUs than any shop sells, and a server whose list has no end is found out.
const PAGES_LIMIT: usize = 50_000;

/// The arguments of `admission`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show how the gate stands, for one SKU or for all
    Status(Looking),
    /// Bring the gate back to what the store has decided, and open it
    Rebuild(Rebuilding),
}

#[derive(Debug, clap::Args)]
struct Looking {
    /// The activity's id
    #[arg(requires = "sku")]
    activity: Option<String>,
    /// The SKU's id
    sku: Option<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, clap::Args)]
struct Rebuilding {
    /// The activity's id
    #[arg(required_unless_present = "all", conflicts_with = "all", requires = "sku")]
    activity: Option<String>,
    /// The SKU's id
    #[arg(conflicts_with = "all")]
    sku: Option<String>,
    /// Every SKU that there is
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    options: Options,
}

/// Does what was asked for.
///
/// # Errors
/// What the server refuses, or that it gave no answer.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Status(looking) => status(looking),
        Action::Rebuild(rebuilding) => rebuild(rebuilding),
    }
}

fn status(looking: &Looking) -> Result<(), Failure> {
    let api = Api::of(&looking.options.server)?;
    let format = Format::of(looking.options.json);
    if let (Some(activity), Some(sku)) = (&looking.activity, &looking.sku) {
        let gate = block_on(api.get(&path_of(activity, sku)))?;
        return match format {
            Format::Json => output::json(&gate),
            Format::Text => output::data(|out| write_gate(out, &gate)),
        };
    }
    let gates = block_on(all(&api))?;
    match format {
        Format::Json => output::json(&json!({ "data": gates })),
        Format::Text => output::data(|out| write_table(out, &gates)),
    }
}

fn rebuild(rebuilding: &Rebuilding) -> Result<(), Failure> {
    let api = Api::of(&rebuilding.options.server)?;
    let format = Format::of(rebuilding.options.json);
    if let (Some(activity), Some(sku)) = (&rebuilding.activity, &rebuilding.sku) {
        let gate = block_on(api.post(&format!("{}/rebuild", path_of(activity, sku))))?;
        return match format {
            Format::Json => output::json(&gate),
            Format::Text => output::data(|out| write_gate(out, &gate)),
        };
    }
    let gates = block_on(async {
        let mut rebuilt = Vec::new();
        for gate in all(&api).await? {
            let path = path_of(text(&gate, "activity_id"), text(&gate, "sku_id"));
            rebuilt.push(api.post(&format!("{path}/rebuild")).await?);
        }
        Ok(rebuilt)
    })?;
    match format {
        Format::Json => output::json(&json!({ "data": gates })),
        Format::Text => output::data(|out| write_table(out, &gates)),
    }
}

fn path_of(activity: &str, sku: &str) -> String {
    format!("/v1/ops/admission/{}/{}", segment(activity), segment(sku))
}

/// How the gate stands for every SKU, page by page.
async fn all(api: &Api) -> Result<Vec<Value>, Failure> {
    let mut gates = Vec::new();
    let mut after = String::new();
    for _page in 0..PAGES_LIMIT {
        let mut page = api.get(&format!("/v1/ops/admission?limit={PAGE}{after}")).await?;
        if let Value::Array(rows) = page["data"].take() {
            gates.extend(rows);
        }
        let Some(next) = page["next"].as_str() else { return Ok(gates) };
        after = format!("&after={}", segment(next));
    }
    let seen = gates.len();
    Err(Failure::Other(format!(
        "the list of SKUs has no end: {seen} were read, and nothing was done; name one"
    )))
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn state_of(gate: &Value) -> &'static str {
    match (&gate["open"], &gate["retired"]) {
        (Value::Bool(true), _) => "open",
        (_, Value::Bool(true)) => "past",
        _ => "closed",
    }
}

/// What a gate that is not there counts is not known.
fn count(gate: &Value, name: &str) -> String {
    gate["admission"][name].as_i64().map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// At most 80 columns wide, as long as activity and SKU together are no longer than 30 characters; ids are never cut.
fn write_table(out: &mut dyn Write, gates: &[Value]) -> io::Result<()> {
    writeln!(
        out,
        "{:<6} {:>5} {:>10} {:>10} {:>10}  sku",
        "gate", "epoch", "available", "reserved", "committed"
    )?;
    for gate in gates {
        writeln!(
            out,
            "{:<6} {:>5} {:>10} {:>10} {:>10}  {}/{}",
            state_of(gate),
            gate["epoch"],
            count(gate, "available"),
            count(gate, "open_reserved"),
            count(gate, "committed"),
            text(gate, "activity_id"),
            text(gate, "sku_id"),
        )?;
    }
    Ok(())
}

fn write_gate(out: &mut dyn Write, gate: &Value) -> io::Result<()> {
    let place = if gate["in_store"] == true { "in the store" } else { "apart from the store" };
    let stock = &gate["stock"];
    let lines = [
        ("sku", format!("{}/{}", text(gate, "activity_id"), text(gate, "sku_id"))),
        ("gate", format!("{}, {place}", state_of(gate))),
        ("epoch", gate["epoch"].to_string()),
        ("buckets", format!("{}, {} closed", gate["buckets"], gate["closed_buckets"])),
        ("available", count(gate, "available")),
        ("reserved", count(gate, "open_reserved")),
        ("committed", count(gate, "committed")),
        (
            "stock",
            format!(
                "{}: {} free, {} occupied, {} sold",
                stock["initial"], stock["available"], stock["occupied"], stock["sold"]
            ),
        ),
    ];
    lines.into_iter().try_for_each(|(name, value)| writeln!(out, "{name:<11}{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_fit_eighty_columns() {
        let gate = json!({
            "activity_id": "an-activity", "sku_id": "a-stock-keeping-unit", "open": false, "in_store": false, "buckets": 64,
            "closed_buckets": 64, "epoch": 12_345,
            "stock": { "initial": 1_000_000_000, "available": 1_000_000_000, "occupied": 0, "sold": 0 },
            "admission": { "available": -1_000_000_000, "open_reserved": 1_000_000_000, "committed": 1_000_000_000 },
        });
        let mut bytes = Vec::new();
        write_table(&mut bytes, std::slice::from_ref(&gate)).unwrap();
        write_gate(&mut bytes, &gate).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80) && text.contains("closed"), "{text}");
        let lost = json!({ "activity_id": "a", "sku_id": "s", "open": false, "epoch": 0, "admission": null });
        let mut bytes = Vec::new();
        write_table(&mut bytes, &[lost]).unwrap();
        assert!(String::from_utf8(bytes).unwrap().contains(" -  a/s"), "what is not known is no number");
        assert_eq!(state_of(&json!({ "open": false, "retired": true })), "past");
    }
}
