//! What an operator asks: invariants, overview, dead letters, readiness.

use std::sync::Arc;

use onceward_domain::audit;
pub use onceward_domain::audit::Check;
use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{DueChange, Lane, LaneStatus, Waiting};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::execute::execute;

/// Most pages of dead letters that a look-up by name walks.
const PAGES_LIMIT: u32 = 1_000;

/// The engine at a glance.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The store's time.
    pub now: Timestamp,
    /// Every lane with something in it.
    pub lanes: Vec<LaneStatus>,
    /// Sums over everything.
    pub tally: Tally,
}

/// Judges every invariant now, from the store.
///
/// # Errors
/// The store's.
pub async fn invariants(engine: &Engine) -> Result<Vec<Check>, Error> {
    Ok(audit::judge(&engine.store().tally().await?))
}

/// Lanes and sums.
///
/// # Errors
/// The store's.
pub async fn overview(engine: &Engine) -> Result<Overview, Error> {
    let lanes = engine.store().lanes().await?;
    let tally = engine.store().tally().await?;
    Ok(Overview { now: tally.now, lanes, tally })
}

/// Whether the store answers.
///
/// # Errors
/// The store's.
pub async fn ready(engine: &Engine) -> Result<(), Error> {
    engine.store().now().await.map(|_| ())
}

/// Dead letters of every lane, lane by lane, oldest first. `after` is `<lane>|<member>` of the page before.
///
/// # Errors
/// [`Code::Invalid`] for an `after` that no page gave; the store's.
pub async fn dead_letters(engine: &Engine, limit: u32, after: Option<&str>) -> Result<Vec<Waiting>, Error> {
    let start =
        match after {
            None => None,
            Some(cursor) => {
                let split = cursor.rsplit_once('|');
                Some(split.ok_or_else(|| {
                    Error::new(Code::Invalid, "listing dead letters after an unknown cursor")
                })?)
            }
        };
    let mut lanes: Vec<Lane> = engine.store().lanes().await?.into_iter().map(|one| one.lane).collect();
    lanes.retain(|lane| lane.as_str().starts_with(Lane::DEAD_PREFIX));
    lanes.sort();
    let mut found = Vec::new();
    for lane in lanes {
        let member: Option<Arc<str>> = match start {
            Some((first, _)) if lane.as_str() < first => continue,
            Some((first, member)) if lane.as_str() == first => Some(Arc::from(member)),
            _ => None,
        };
        let room = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if room == 0 {
            break;
        }
        found.extend(engine.store().list_due(lane, room, member).await?);
    }
    Ok(found)
}

/// Puts a dead letter back into its lane, with fresh tries: only a person does this.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn replay_dead_letter(engine: &Engine, member: &str, actor: &str) -> Result<(), Error> {
    let letter = find_dead_letter(engine, member).await?;
    let back = letter.lane.as_str().trim_start_matches(Lane::DEAD_PREFIX).to_owned();
    tracing::info!(target: "onceward", event = "dead_letter.replayed", member, actor, lane = back);
    execute(engine, "replay_dead_letter", Need::default(), move |facts: &mut Facts| {
        let put = DueChange::Put {
            lane: Lane::new(&back),
            member: letter.member.clone(),
            due_at: facts.now,
            body: letter.body.clone(),
        };
        let remove = DueChange::Remove { lane: letter.lane.clone(), member: letter.member.clone() };
        Ok((ChangeSet { due: vec![put, remove], ..ChangeSet::default() }, ()))
    })
    .await?;
    engine.signals().wake_all();
    Ok(())
}

async fn find_dead_letter(engine: &Engine, member: &str) -> Result<Waiting, Error> {
    let mut after: Option<String> = None;
    for _page in 0..PAGES_LIMIT {
        let page = dead_letters(engine, 200, after.as_deref()).await?;
        if let Some(found) = page.iter().find(|one| &*one.member == member) {
            return Ok(found.clone());
        }
        let Some(last) = page.last() else { break };
        after = Some(format!("{}|{}", last.lane, last.member));
    }
    Err(Error::new(Code::NotFound, format!("looking for dead letter {member}")))
}
