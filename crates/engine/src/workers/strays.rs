//! Reservations that were refused for good before the gate lost them, and that it has let in again (FS-18).
//!
//! The gate then holds units for something that will never be an order, and nobody else would give them back: the compensation
//! was concluded long ago. Invariants: units go back only where the store says `COMPENSATED`; the gate's own state says whether
//! it still holds any, so to ask twice is harmless; a part of the gate that is away holds up nothing else. Nothing to do where the
//! gate lives in the store: it loses nothing.

use std::collections::BTreeSet;

use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::PurchaseId;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::{Compensate, CompensateCode};

use crate::engine::Engine;
use crate::observe;
use crate::outage::is_outage;

/// Gives back what the gate holds for those of these that the store has seen compensated. Answers of which it is not known that they
/// hold nothing any more, because their part of the gate was away: whoever asked asks again.
///
/// # Errors
/// The store's or the gate's; whoever asked asks again.
pub(crate) async fn give_back(engine: &Engine, ids: Vec<PurchaseId>) -> Result<BTreeSet<PurchaseId>, Error> {
    if ids.is_empty() || engine.admission().lives_in_store() {
        return Ok(BTreeSet::new());
    }
    let facts = engine.store().view(Need { purchases: ids, ..Need::default() }).await?;
    let ended = facts.purchases.into_values().filter(|row| row.reservation == Some(Reservation::Compensated));
    let command = |row: onceward_domain::purchase::Purchase| Compensate {
        purchase: row.id,
        key: row.lines[0].key.clone(),
        compensation: row.id.compensation(),
    };
    let commands: Vec<Compensate> = ended.map(command).collect();
    if commands.is_empty() {
        return Ok(BTreeSet::new());
    }
    let asked: Vec<PurchaseId> = commands.iter().map(|command| command.purchase).collect();
    let (mut given_back, mut kept) = (0, BTreeSet::new());
    for (id, code) in asked.into_iter().zip(engine.admission().compensate(commands).await?) {
        match code {
            Ok(code) => given_back += u64::from(code == CompensateCode::Applied),
            Err(error) if is_outage(&error) => {
                tracing::warn!(target: "onceward", event = "strays.kept", reservation = %id.reservation(), ?error);
                kept.insert(id);
            }
            // Asking again would change nothing, and nobody else is to wait for a defect: the gate's counters will show it.
            Err(error) => {
                tracing::error!(target: "onceward", event = "strays.defect", reservation = %id.reservation(), ?error);
            }
        }
    }
    observe::strays_given_back(given_back);
    Ok(kept)
}
