//! The herald: sends notices to people (LQ-05), from the durable row, outside any transaction.
//!
//! Invariants: a notice is claimed under a lease, so two machines do not send it at one moment; one that did not arrive, or
//! whose arrival is unknown, is sent again with the same id, and is never given up; `SENT` is written with the end of the
//! claim. A node without a notifier claims nothing, so that one with it finds all. Read next:
//! [`onceward_domain::decide::notify`].

use futures_util::future::join_all;
use onceward_domain::decide::notify::{Outcome, Told, conclude, must_send};
use onceward_domain::due::{Claimed, Lane};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::NoticeId;
use onceward_domain::notice::Notice;
use onceward_domain::ports::notifier::Notifier;
use uuid::Uuid;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::{Next, claim_for_provider, wait_of, wait_until};

/// Claims notices, sends them, writes how it went.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let Some(notifier) = engine.notifier() else { return Ok(Next::Wait(None)) };
    let claimed = claim_for_provider(engine, Lane::NOTICE).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(Lane::new(Lane::NOTICE)).await?).await;
    }
    let notices: Vec<NoticeId> = claimed.iter().filter_map(notice_of).collect();
    let known = engine.store().view(Need { notices, ..Need::default() }).await?;
    let sending = claimed.iter().map(|entry| send(engine, notifier, &known, entry));
    let told: Vec<Told> = join_all(sending).await;
    match write(engine, told.clone()).await {
        Err(error) if error.class() == Class::Conflict && told.len() > 1 => {}
        outcome => return skip_lost(outcome).map(|()| Next::Again),
    }
    // One of them has lost its lease: one by one, so that it does not undo the others.
    for one in told {
        skip_lost(write(engine, vec![one]).await)?;
    }
    Ok(Next::Again)
}

/// The notice's id, as the entry's body keeps it.
fn notice_of(entry: &Claimed) -> Option<NoticeId> {
    Uuid::from_slice(&entry.body).ok().map(NoticeId)
}

async fn send(engine: &Engine, notifier: &dyn Notifier, known: &Facts, entry: &Claimed) -> Told {
    let notice = notice_of(entry).and_then(|id| known.notices.get(&id)).filter(|one| must_send(one));
    let outcome = match notice {
        Some(notice) => hand_over(engine, notifier, notice, entry).await,
        None => Outcome::Arrived,
    };
    Told { notice: notice_of(entry), held: entry.held.clone(), outcome }
}

async fn hand_over(engine: &Engine, notifier: &dyn Notifier, notice: &Notice, entry: &Claimed) -> Outcome {
    match notifier.notify(notice.clone()).await {
        Ok(()) => {
            observe::notified(notifier.name(), notice, "sent");
            Outcome::Arrived
        }
        Err(error) => {
            observe::notified(notifier.name(), notice, "failed");
            tracing::warn!(target: "onceward", event = "notice.failed", notice_id = %notice.id, error = ?error);
            Outcome::Again(wait_of(engine, entry))
        }
    }
}

async fn write(engine: &Engine, told: Vec<Told>) -> Result<(), Error> {
    let need = Need { notices: told.iter().filter_map(|one| one.notice).collect(), ..Need::default() };
    execute(engine, "notice.told", need, move |facts| Ok((conclude(facts, &told), ()))).await
}

/// A lost lease is no error: whoever holds it now writes the same.
fn skip_lost(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.class() == Class::Conflict => Ok(()),
        outcome => outcome,
    }
}
