//! What a reservation costs here, against the plain way of the references: a hash of thirteen fields and five more keys, one
//! script call for each buyer (issue 5, design.md §10). For `onceward bench`; nothing that serves a sale calls this.
//!
//! Invariants: both ways have the same number of requests under way, over one connection each, on the same server; each
//! leaves its keys where they are until its memory is read, then removes them. Memory is the server's own count, so nobody
//! else may write to it meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward_domain::error::{Code, Error};
use onceward_domain::id::{PurchaseId, RequestId, SkuKey, UserId};
use onceward_domain::ports::admission::{Admission, Reserve, ReserveAnswer};
use redis::Value;
use tokio::time::Instant;

use crate::admission::RedisAdmission;
use crate::link::Link;
use crate::options::Options;
use crate::reply;
use crate::script;

const DOING: &str = "a measurement";
/// Keys that are removed in one call.
const KEYS_OF_ONE_CALL: usize = 1_000;

/// How much is done, and how.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// How many buyers come, each once; all of them are let in.
    pub buyers: u64,
    /// How many callers are under way at once.
    pub callers: u64,
    /// How many buyers a caller brings at once, as the front of the gate does; the plain way takes them one by one, all on
    /// their way before the first answer.
    pub batch: u64,
}

/// What it took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From the first request to the last answer.
    pub time: Duration,
    /// What the server has put by for it.
    pub bytes: u64,
}

impl Run {
    /// The buyers of one caller, by numbers that nobody else has.
    fn numbers(&self, caller: u64) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
        let part = self.buyers / self.callers;
        let (first, last, batch) = (caller * part, (caller + 1) * part, self.batch.max(1));
        (first..last).step_by(usize::try_from(batch).unwrap_or(1)).map(move |at| at..last.min(at + batch))
    }
}

/// A number's bits, spread.
fn spread(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn digest(number: u64) -> [u8; 16] {
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&spread(number).to_be_bytes());
    digest[8..].copy_from_slice(&spread(!number).to_be_bytes());
    digest
}

/// A request id as clients make them: the text of a UUID.
fn request(number: u64) -> String {
    PurchaseId::from_digest(digest(number ^ 0x5555_5555), 7).reservation().to_string()
}

fn user(number: u64) -> String {
    format!("u{number:07}")
}

/// Reserves through this gate, whose SKU has a unit for each buyer. The gate must be opened with the same options.
///
/// # Errors
/// What the gate answers; [`Code::Invalid`] where somebody is not let in.
pub async fn here(
    options: &Options,
    gate: Arc<RedisAdmission>,
    key: &SkuKey,
    run: Run,
) -> Result<Cost, Error> {
    let link = Link::new(options.clone());
    // Opened, so that neither the first sight of the sale nor the scripts are measured.
    gate.counters(key.clone()).await?;
    let before = used_memory(&link).await?;
    let started = Instant::now();
    let callers = (0..run.callers).map(|caller| {
        let (gate, key) = (Arc::clone(&gate), key.clone());
        tokio::spawn(async move {
            for part in run.numbers(caller) {
                let commands = part.map(|number| Reserve {
                    purchase: PurchaseId::from_digest(digest(number), 1),
                    older: Vec::new(),
                    key: key.clone(),
                    user: UserId::trusted(&user(number)),
                    request: RequestId::trusted(&request(number)),
                    quantity: 1,
                });
                let answers = gate.reserve(commands.collect()).await?;
                all_in(answers.iter().all(|one| matches!(one, ReserveAnswer::Queued { .. })))?;
            }
            Ok(())
        })
    });
    ended(join_all(callers).await)?;
    cost(&link, started, before, options).await
}

/// Reserves in the plain way.
///
/// # Errors
/// What Redis answers; [`Code::Invalid`] where somebody is not let in.
pub async fn plain(options: &Options, key: &SkuKey, run: Run) -> Result<Cost, Error> {
    let link = Arc::new(Link::new(options.clone()));
    let tag = format!("{}:{{plain:{}}}", options.prefix, key.sku);
    let mut stock = redis::cmd("SET");
    stock.arg(format!("{tag}:stock")).arg(run.buyers);
    link.call(&stock).await?;
    let before = used_memory(&link).await?;
    let started = Instant::now();
    let callers = (0..run.callers).map(|caller| {
        let (link, tag, key) = (Arc::clone(&link), tag.clone(), key.clone());
        tokio::spawn(async move {
            for part in run.numbers(caller) {
                let answers = join_all(part.map(|number| plain_one(&link, &tag, &key, number))).await;
                for answer in answers {
                    all_in(matches!(answer?, Value::Int(1)))?;
                }
            }
            Ok(())
        })
    });
    ended(join_all(callers).await)?;
    cost(&link, started, before, options).await
}

async fn plain_one(link: &Link, tag: &str, key: &SkuKey, number: u64) -> Result<Value, Error> {
    let id = PurchaseId::from_digest(digest(number), 1);
    let (reservation, message) = (id.reservation().to_string(), id.message().to_string());
    let (user, request) = (user(number), request(number));
    let keys = [
        format!("{tag}:stock"),
        format!("{tag}:reservation:{reservation}"),
        format!("{tag}:request:{user}:{request}"),
        format!("{tag}:user:{user}"),
        format!("{tag}:send_due"),
        format!("{tag}:counter"),
    ];
    let keys = keys.each_ref().map(String::as_str);
    let arguments =
        [key.activity.as_str(), key.sku.as_str(), &user, &request, &reservation, &message].map(str::as_bytes);
    link.run(&script::PLAIN, &keys, &arguments).await
}

/// Removes every key under the prefix of these options; the server frees their memory when it has time.
///
/// # Errors
/// What Redis answers.
pub async fn clear(options: &Options) -> Result<(), Error> {
    remove_all(&Link::new(options.clone()), &options.prefix, "UNLINK").await
}

/// Tells the server how to sync its append-only file: `always`, `everysec` or `no`. Answers how it was before.
///
/// # Errors
/// What Redis answers.
pub async fn sync(options: &Options, how: &str) -> Result<String, Error> {
    const SETTING: &str = "appendfsync";
    let link = Link::new(options.clone());
    let answer = reply::list(DOING, link.call(redis::cmd("CONFIG").arg("GET").arg(SETTING)).await?)?;
    let before = reply::all_bytes(DOING, answer)?.pop().ok_or_else(|| reply::unexpected(DOING))?;
    link.call(redis::cmd("CONFIG").arg("SET").arg(SETTING).arg(how)).await?;
    reply::text(DOING, &before).map(str::to_owned)
}

fn all_in(are_in: bool) -> Result<(), Error> {
    if are_in { Ok(()) } else { Err(Error::new(Code::Invalid, "measuring: a buyer was not let in")) }
}

fn ended(callers: Vec<Result<Result<(), Error>, tokio::task::JoinError>>) -> Result<(), Error> {
    for caller in callers {
        caller.map_err(|cause| Error::new(Code::OutcomeUnknown, "measuring").because(cause))??;
    }
    Ok(())
}

async fn cost(link: &Link, started: Instant, before: u64, options: &Options) -> Result<Cost, Error> {
    let time = started.elapsed();
    let bytes = used_memory(link).await?.saturating_sub(before);
    // At once: what the server still has to free would be counted in the next measurement.
    remove_all(link, &options.prefix, "DEL").await?;
    Ok(Cost { time, bytes })
}

async fn used_memory(link: &Link) -> Result<u64, Error> {
    let answer = reply::bytes(DOING, link.call(redis::cmd("INFO").arg("memory")).await?)?;
    let line = reply::text(DOING, &answer)?.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|number| number.trim().parse().ok()).ok_or_else(|| reply::unexpected(DOING))
}

async fn remove_all(link: &Link, prefix: &str, verb: &str) -> Result<(), Error> {
    let mut cursor = b"0".to_vec();
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(format!("{prefix}:*")).arg("COUNT").arg(KEYS_OF_ONE_CALL);
        let mut parts = reply::list(DOING, link.call(&scan).await?)?.into_iter();
        let (Some(next), Some(keys)) = (parts.next(), parts.next()) else {
            return Err(reply::unexpected(DOING));
        };
        let keys = reply::all_bytes(DOING, reply::list(DOING, keys)?)?;
        if !keys.is_empty() {
            let mut remove = redis::cmd(verb);
            remove.arg(keys);
            link.call(&remove).await?;
        }
        cursor = reply::bytes(DOING, next)?;
        if cursor == b"0" {
            return Ok(());
        }
    }
}
