//! `onceward dead-letters`: looks at work whose tries are used up, and sets it going again (LQ-05).
//!
//! Invariants: a replay of all first notes what is dead and then brings back each of those once; what dies again meanwhile
//! waits for the next call (A14). It stops at the first answer that did not come, because then somebody must look.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::api::{Api, Server, block_on, segment};
use crate::failure::Failure;
use crate::output::{self, Format};

/// Rows of a page.
const PAGE: usize = 200;
/// Most dead letters that one call lists or brings back.
const LETTERS_LIMIT: usize = 100_000;

/// The arguments of `dead-letters`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List them, queue by queue, oldest first
    List(Listing),
    /// Bring them back into their queues, with fresh tries
    Replay(Replaying),
}

#[derive(Debug, clap::Args)]
struct Listing {
    /// Only those of this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    #[command(flatten)]
    server: Server,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Replaying {
    /// Ids from the list
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// All that are dead now
    #[arg(long)]
    all: bool,
    /// With --all, only those of this queue
    #[arg(long, value_name = "NAME", requires = "all")]
    queue: Option<String>,
    #[command(flatten)]
    server: Server,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Does what was asked for.
///
/// # Errors
/// What the server refuses, or that it gave no answer.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List(listing) => list(listing),
        Action::Replay(replaying) => replay(replaying),
    }
}

fn list(listing: &Listing) -> Result<(), Failure> {
    let api = Api::of(&listing.server)?;
    let letters = block_on(all(&api, listing.queue.as_deref()))?;
    match Format::of(listing.json) {
        Format::Json => output::json(&json!({ "data": letters })),
        Format::Text => output::data(|out| letters.iter().try_for_each(|letter| write_letter(out, letter))),
    }
}

fn replay(replaying: &Replaying) -> Result<(), Failure> {
    let api = Api::of(&replaying.server)?;
    let ids = block_on(async {
        let ids = if replaying.all {
            let letters = all(&api, replaying.queue.as_deref()).await?;
            letters.iter().filter_map(|letter| letter["id"].as_str()).map(str::to_owned).collect()
        } else {
            replaying.ids.clone()
        };
        for id in &ids {
            api.post(&format!("/v1/ops/dead-letters/{}/replay", segment(id))).await?;
        }
        Ok(ids)
    })?;
    match Format::of(replaying.json) {
        Format::Json => output::json(&json!({ "replayed": ids })),
        Format::Text => output::data(|out| writeln!(out, "{} replayed", ids.len())),
    }
}

/// Every dead letter there is now, page by page.
async fn all(api: &Api, queue: Option<&str>) -> Result<Vec<Value>, Failure> {
    let wanted = queue.map(|name| format!("dead/{name}"));
    let mut letters: Vec<Value> = Vec::new();
    let mut after = String::new();
    while letters.len() < LETTERS_LIMIT {
        let mut page = api.get(&format!("/v1/ops/dead-letters?limit={PAGE}{after}")).await?;
        if let Value::Array(rows) = page["data"].take() {
            let belongs = |row: &Value| wanted.as_deref().is_none_or(|wanted| row["queue"] == wanted);
            letters.extend(rows.into_iter().filter(belongs));
        }
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", segment(next));
    }
    Ok(letters)
}

fn write_letter(out: &mut dyn Write, letter: &Value) -> io::Result<()> {
    let text = |name: &str| letter[name].as_str().unwrap_or_default();
    let queue = text("queue");
    writeln!(out, "{}  {}  {}", text("created_at"), queue.strip_prefix("dead/").unwrap_or(queue), text("id"))
}
