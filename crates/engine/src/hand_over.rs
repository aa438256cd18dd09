//! From one gate and bus to another: what a store holds for those that live in it, and what becomes of that.
//!
//! An embedded gate remembers its open reservations over a journal, one that several nodes share keeps them as rows, and Redis
//! keeps them elsewhere. Invariants: what the journal states gets rows before a gate over rows lets anybody in, and a repeat
//! changes nothing; a gate outside of the store must not begin while its own still holds something, because nobody would ever
//! look at it again. What is left on the bus is the forwarder's. Deliberately absent: bringing open reservations into Redis;
//! they are decided first. Read next:
//! [`onceward_domain::decide::adopt`], [`crate::journal_admission`].

use std::sync::Arc;

use onceward_domain::decide::adopt::adopt;
use onceward_domain::due::{Lane, Member, unpack_ids};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::PurchaseId;
use onceward_domain::journal;
use onceward_domain::ports::store::Store;

use crate::execute::transact;

/// Entries that are looked at in one call.
const ENTRIES_OF_ONE_READ: u32 = 64;

/// Gives rows to the open reservations of a journal, and says to how many.
///
/// # Errors
/// The store's; a repeat goes on where it stopped.
pub async fn adopt_journal(store: &dyn Store) -> Result<usize, Error> {
    let lane = Lane::new(Lane::JOURNAL);
    let mut adopted = 0;
    loop {
        // What was adopted is not there any more, so the first page is always the next one.
        let page = store.list_due(lane.clone(), ENTRIES_OF_ONE_READ, None).await?;
        if page.is_empty() {
            return Ok(adopted);
        }
        for entry in page {
            let reservations = journal::unpack(&entry.body)?;
            let need = Need {
                purchases: reservations.iter().map(|one| one.purchase).collect(),
                buyers: reservations.iter().map(|one| (one.key.clone(), one.user.clone())).collect(),
                due: vec![(lane.clone(), entry.member.clone())],
                ..Need::default()
            };
            let member = entry.member;
            let decide = move |facts: &mut Facts| adopt(facts, &member);
            adopted += transact(store, "admission.adopt", need, decide).await?;
        }
    }
}

/// Whether the gate in the store holds open reservations: unsent ones, or ones that nobody has decided on.
///
/// # Errors
/// The store's.
pub async fn holds_open_reservations(store: &dyn Store) -> Result<bool, Error> {
    if !store.list_due(Lane::new(Lane::SEND_DUE), 1, None).await?.is_empty() {
        return Ok(true);
    }
    for name in [Lane::JOURNAL, Lane::DEADLINE] {
        let mut after: Option<Member> = None;
        loop {
            let page = store.list_due(Lane::new(name), ENTRIES_OF_ONE_READ, after.take()).await?;
            for entry in &page {
                let ids = match name {
                    Lane::JOURNAL => journal::unpack(&entry.body)?.iter().map(|one| one.purchase).collect(),
                    _ => unpack_ids(&entry.body),
                };
                if any_undecided(store, ids).await? {
                    return Ok(true);
                }
            }
            match page.last() {
                Some(last) => after = Some(Arc::clone(&last.member)),
                None => break,
            }
        }
    }
    Ok(false)
}

async fn any_undecided(store: &dyn Store, ids: Vec<PurchaseId>) -> Result<bool, Error> {
    let facts = store.view(Need { purchases: ids.clone(), ..Need::default() }).await?;
    let is_decided = |id: &PurchaseId| facts.purchases.get(id).is_some_and(|row| row.reservation.is_some());
    Ok(!ids.iter().all(is_decided))
}
