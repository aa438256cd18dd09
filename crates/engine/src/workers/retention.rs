//! Retention (design.md §7): forgets records that nobody needs any more, by age.
//!
//! Invariants: what may go is decided by [`forget()`], inside the transaction in which it goes; the oldest are looked at
//! first, so the cost is that of what has come of age, not of what is kept; one that must stay does not hide those behind
//! it. Two machines at once forget a record once: one of them finds it gone. Deliberately absent: haste. Nobody waits for it.

use onceward_domain::decide::forget::{forget, need};
use onceward_domain::error::Error;
use onceward_domain::retention::{Aged, RecordKind};
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::Next;

/// Name of its transactions.
pub const NAME: &str = "forget";
/// How long between two looks, where the last one found nothing.
pub const INTERVAL: Millis = Millis(3_600_000);
/// Most records of one transaction: deleting them must not keep a buyer waiting.
const BATCH: u32 = 200;
/// Pages of one step and kind; so many records that must stay may lie before those that may go.
const PAGES_LIMIT: usize = 64;

/// Looks at the oldest records of every kind.
///
/// # Errors
/// The store's.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let Some(window) = engine.settings().retention else { return Ok(Next::Wait(None)) };
    let mut gone = 0;
    for kind in RecordKind::ALL {
        let some = forget_kind(engine, kind, window).await?;
        if some > 0 {
            observe::forgotten(kind, some);
        }
        gone += some;
    }
    Ok(if gone > 0 { Next::Again } else { Next::Wait(Some(INTERVAL)) })
}

/// Forgets what it may of one kind, and says how much that was.
async fn forget_kind(engine: &Engine, kind: RecordKind, window: Millis) -> Result<u64, Error> {
    let mut place = Aged::before_all(kind);
    let mut gone = 0;
    for _ in 0..PAGES_LIMIT {
        let page = engine.store().aged(BATCH, place).await?;
        let now = engine.store().now().await?;
        let is_over = |one: &&Aged| one.at.plus(window) <= now;
        let over: Vec<Aged> = page.iter().take_while(is_over).cloned().collect();
        let Some(last) = over.last() else { break };
        place = last.clone();
        gone += execute(engine, NAME, need(&over), move |facts| {
            let changes = forget(facts, &over, window);
            let some = u64::try_from(changes.forgotten.len()).unwrap_or(u64::MAX);
            Ok((changes, some))
        })
        .await?;
    }
    Ok(gone)
}
