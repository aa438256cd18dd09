//! Retention (design.md §7): forgets records that nobody needs any more, by age.
//!
//! Invariants: what may go is decided by [`forget()`], inside the transaction in which it goes; the oldest are looked at
//! first, so the cost is that of what has come of age, not of what is kept; what must stay costs a look and no transaction,
//! and does not hide what lies behind it. Two machines at once forget a record once: one of them finds it gone. Deliberately
//! absent: haste. Nobody waits for it, so it rests after every batch, and buyers find the store free.

use onceward_domain::decide::forget::{forget, need};
use onceward_domain::error::Error;
use onceward_domain::retention::{Aged, RecordKind, is_over};
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::Next;

/// Name of its transactions.
pub const NAME: &str = "forget";
/// How long between two looks, where the last one found nothing.
pub const INTERVAL: Millis = Millis(3_600_000);
/// The rest after a batch.
pub const REST: Millis = Millis(100);
/// Most records of one transaction.
const BATCH: u32 = 200;
/// Pages of one kind that are looked through for one that may go: so many records that must stay may lie before it.
const PAGES_LIMIT: usize = 1_000;

/// Forgets a batch of the first kind that has one; where none has, the gate lets go of sales that are past (FS-14).
///
/// # Errors
/// The store's.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let Some(window) = engine.settings().retention else { return Ok(Next::Wait(None)) };
    for kind in RecordKind::ALL {
        let gone = forget_some(engine, kind, window).await?;
        if gone > 0 {
            observe::forgotten(kind, gone);
            return Ok(Next::Wait(Some(REST)));
        }
    }
    let buckets = engine.admission().retire().await?;
    if buckets > 0 {
        observe::retired(buckets);
    }
    Ok(Next::Wait(Some(INTERVAL)))
}

/// Forgets what it may of the first page that has something, and says how much that was.
async fn forget_some(engine: &Engine, kind: RecordKind, window: Millis) -> Result<u64, Error> {
    let mut place = Aged::before_all(kind);
    for _ in 0..PAGES_LIMIT {
        let page = engine.store().aged(BATCH, place).await?;
        let now = engine.store().now().await?;
        let goes = |one: &&Aged| is_over(one.at, window, now);
        let over: Vec<Aged> = page.iter().take_while(goes).cloned().collect();
        let Some(last) = over.last() else { break };
        place = last.clone();
        if forget(&engine.store().view(need(&over)).await?, &over, window).is_empty() {
            continue;
        }
        let gone = execute(engine, NAME, need(&over), move |facts| {
            let changes = forget(facts, &over, window);
            let gone = u64::try_from(changes.forgotten.len()).unwrap_or(u64::MAX);
            Ok((changes, gone))
        })
        .await?;
        if gone > 0 {
            return Ok(gone);
        }
    }
    Ok(0)
}
