//! Applying what a decision wants written: all of a [`ChangeSet`], or an error and a rollback by the caller.
//!
//! Invariants: what is forgotten goes first; then the order is that of the tables' references, catalogue first; every
//! guarded write hits exactly one row or the set is refused; a new row that exists already is refused by its constraint.
//! `events` are refused: the engine has turned them into an outbox entry in `due`. Read next: `purchases`, then `history`.

mod catalogue;
mod credit;
mod group;
mod history;
mod money;
mod places;
mod purchases;

use std::collections::HashMap;

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Error;
use onceward_domain::id::PurchaseId;
use onceward_domain::time::Timestamp;
use rusqlite::Connection;

pub(crate) use catalogue::revision_lost;

use crate::failure::defect;
use crate::load::first;
use crate::refs::Refs;
use crate::rows::get;
use crate::{due, notice, queries, retention};

/// Writes a set of changes inside the caller's transaction.
pub(crate) fn apply(
    conn: &Connection,
    refs: &mut Refs,
    changes: &ChangeSet,
    now: Timestamp,
) -> Result<(), Error> {
    if !changes.events.is_empty() {
        return Err(defect("events reached the store that should be in an outbox entry"));
    }
    retention::forget(conn, &changes.forgotten)?;
    catalogue::put_activities(conn, &changes.activities)?;
    catalogue::add_skus(conn, refs, &changes.new_skus)?;
    catalogue::change_terms(conn, refs, &changes.changed_skus)?;
    catalogue::move_stock(conn, refs, &changes.stock)?;
    catalogue::add_buckets(conn, refs, &changes.new_buckets)?;
    catalogue::move_buckets(conn, refs, &changes.buckets)?;

    let mut handles = Handles::for_changes(changes);
    purchases::add(conn, refs, &changes.new_purchases, &mut handles)?;
    purchases::change(conn, &changes.purchases, &mut handles)?;

    money::write(conn, changes, &mut handles)?;
    group::write(conn, refs, changes)?;
    credit::write(conn, refs, changes)?;

    history::add_compensations(conn, &changes.new_compensations, &mut handles)?;
    history::move_compensations(conn, &changes.compensations, &mut handles)?;
    history::add_stock_entries(conn, refs, &changes.stock_entries, &mut handles)?;
    history::add_transitions(conn, refs, &changes.transitions, &mut handles)?;
    history::quarantine(conn, &changes.quarantined)?;
    history::keep_answers(conn, &changes.answers)?;
    notice::write(conn, changes)?;
    due::change(conn, refs, &changes.due, now)
}

/// The handles of the purchases that a set touches, for the rows that point to them.
struct Handles {
    known: HashMap<PurchaseId, i64>,
    /// Nothing in the set points to a purchase, so nothing need be remembered.
    idle: bool,
}

impl Handles {
    fn for_changes(changes: &ChangeSet) -> Self {
        let idle = changes.new_compensations.is_empty()
            && changes.compensations.is_empty()
            && changes.stock_entries.is_empty()
            && changes.transitions.is_empty()
            && changes.new_payments.is_empty()
            && changes.new_refunds.is_empty();
        Self { known: HashMap::new(), idle }
    }

    fn remember(&mut self, id: PurchaseId, handle: i64) {
        if !self.idle {
            self.known.insert(id, handle);
        }
    }

    /// The handle of a purchase that a new row names.
    fn of(&mut self, conn: &Connection, id: PurchaseId) -> Result<i64, Error> {
        let found = self.find(conn, id)?;
        found.ok_or_else(|| defect(format!("a new row names {id:?}, which is not there")))
    }

    fn find(&mut self, conn: &Connection, id: PurchaseId) -> Result<Option<i64>, Error> {
        if let Some(handle) = self.known.get(&id) {
            return Ok(Some(*handle));
        }
        let doing = "finding a purchase by its id";
        let found = first(conn, queries::PURCHASE_SEQ_OF, [id.bytes()], doing, |row| get(row, 0))?;
        self.known.extend(found.map(|handle| (id, handle)));
        Ok(found)
    }
}
