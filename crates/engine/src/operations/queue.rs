//! What an operator does with due work: looks at queues, pauses them, looks at dead letters and sets them going again.
//!
//! Invariants: only queues that the engine knows, or that have members, are paused; a dead letter is brought back by a
//! person only, each exhaustion once. Deliberately absent: removing work; that goes through what the work is about.

use std::collections::BTreeSet;
use std::sync::Arc;

use onceward_domain::due::{Lane, LaneStatus, Member, Waiting};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::notice::Notice;
use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::due_queue::{Exhaustion, Replayed};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::operations::job;
use crate::store_bus::{aside_of, lane_of};

/// So far the unsent reservations of a gate outside of the store are counted.
const UNSENT_LIMIT: u64 = 100_000;

/// One queue with its exhausted set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// The lane.
    pub lane: LaneStatus,
    /// Members whose tries are used up.
    pub exhausted: u64,
}

/// The lanes that are there whether or not they have members.
#[must_use]
pub fn known_lanes() -> BTreeSet<Lane> {
    let named = Lane::KNOWN.iter().map(|name| Lane::new(name));
    named.chain(Topic::ALL.into_iter().map(lane_of)).chain([aside_of(Topic::Events)]).collect()
}

/// Every queue, by name, and the store's time.
///
/// # Errors
/// The store's.
pub async fn queues(engine: &Engine) -> Result<(Timestamp, Vec<QueueStatus>), Error> {
    let mut found = engine.store().lanes().await?;
    found.retain(|one| one.lane.is_work());
    let mut names = known_lanes();
    names.extend(found.iter().map(|one| one.lane.living().unwrap_or_else(|| one.lane.clone())));
    let status = |lane: Lane| {
        let of = |wanted: &Lane| found.iter().find(|one| one.lane == *wanted).cloned();
        let exhausted = of(&lane.dead_letters()).map_or(0, |dead| dead.size);
        QueueStatus { lane: of(&lane).unwrap_or_else(|| LaneStatus::empty(lane)), exhausted }
    };
    let mut queues: Vec<QueueStatus> = names.into_iter().map(status).collect();
    let send_due = queues.iter_mut().find(|one| one.lane.lane.as_str() == Lane::SEND_DUE);
    // What waits in a gate that lives elsewhere is no lane of the store. One that is away must not hide the others.
    if let Some(queue) = send_due.filter(|_| !engine.admission().lives_in_store())
        && let Ok(unsent) = engine.admission().unsent(UNSENT_LIMIT).await
    {
        queue.lane.size = unsent.reservations;
    }
    Ok((engine.store().now().await?, queues))
}

/// Stops giving out a queue, or gives it out again; a repeat is harmless.
///
/// # Errors
/// [`Code::NotFound`] for a queue that nobody knows; the store's.
pub async fn set_paused(engine: &Engine, name: &str, paused: bool, actor: &str) -> Result<(), Error> {
    let lane = Lane::new(name);
    let (_, all) = queues(engine).await?;
    if !all.iter().any(|one| one.lane.lane == lane) {
        return Err(Error::new(Code::NotFound, format!("pausing or resuming queue {name}")));
    }
    tracing::info!(target: "onceward", event = "queue.paused", queue = name, paused, actor);
    if paused {
        engine.queue().pause(lane.clone()).await?;
        engine.pauses().learn(&lane, true);
        return Ok(());
    }
    engine.queue().resume(lane.clone()).await?;
    engine.pauses().learn(&lane, false);
    engine.signals().wake_all();
    Ok(())
}

/// Dead letters of every lane, lane by lane, oldest first. `after` is `<lane>|<member>` of the page before.
///
/// # Errors
/// [`Code::Invalid`] for an `after` that no page gave; the store's.
pub async fn dead_letters(engine: &Engine, limit: u32, after: Option<&str>) -> Result<Vec<Waiting>, Error> {
    let unknown = || Error::new(Code::Invalid, "listing dead letters after an unknown cursor");
    let start = after.map(|cursor| cursor.split_once('|').ok_or_else(unknown)).transpose()?;
    let mut found = Vec::new();
    for lane in dead_lanes(engine).await? {
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

async fn dead_lanes(engine: &Engine) -> Result<Vec<Lane>, Error> {
    let mut lanes: Vec<Lane> = engine.store().lanes().await?.into_iter().map(|one| one.lane).collect();
    lanes.retain(|lane| lane.living().is_some());
    lanes.sort();
    Ok(lanes)
}

/// Puts a dead letter back into its lane, with fresh tries: only a person does this. Where two lanes have one of that name,
/// both go.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn replay_dead_letter(engine: &Engine, member: &str, actor: &str) -> Result<(), Error> {
    let member: Member = Arc::from(member);
    let about = || format!("replaying dead letter {member}");
    let due = dead_lanes(engine).await?.into_iter().map(|lane| (lane, member.clone())).collect();
    let facts = engine.store().view(Need { due, ..Need::default() }).await?;
    let mut revived = false;
    for ((dead, _), entry) in &facts.due {
        let lane = dead.living().ok_or_else(|| Error::new(Code::NotFound, about()))?;
        let which = vec![Exhaustion { member: member.clone(), token: entry.token }];
        // A job waits for its next run again in the same step.
        let answers = match lane.as_str() {
            Lane::JOB_RETRY => job::replay(engine, which).await?,
            _ => engine.queue().replay(lane.clone(), which).await?,
        };
        if answers.contains(&Replayed::Revived) {
            tracing::info!(target: "onceward", event = "dead_letter.replayed", %member, actor, %lane);
            revived = true;
        }
    }
    if !revived {
        return Err(Error::new(Code::NotFound, about()));
    }
    engine.signals().wake_all();
    Ok(())
}

/// Notices with their handles, newest first.
///
/// # Errors
/// The store's.
pub async fn notices(engine: &Engine, page: PageRequest) -> Result<Vec<(i64, Notice)>, Error> {
    engine.store().list_notices(page).await
}
