//! Reservations that were refused for good before the gate lost them, and that it has let in again (FS-18).
//!
//! The gate then holds units for something that will never be an order, and nobody else would give them back: the compensation
//! was concluded long ago. Invariants: units go back only where the store says `COMPENSATED`; the gate's own state says whether
//! it still holds any, so to ask twice is harmless. Nothing to do where the gate lives in the store: it loses nothing.

use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::PurchaseId;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::{Compensate, CompensateCode};

use crate::engine::Engine;
use crate::observe;

/// Gives back what the gate holds for those of these that the store has seen compensated.
///
/// # Errors
/// The store's or the gate's; whoever asked asks again.
pub(crate) async fn give_back(engine: &Engine, ids: Vec<PurchaseId>) -> Result<(), Error> {
    if ids.is_empty() || engine.admission().lives_in_store() {
        return Ok(());
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
        return Ok(());
    }
    let codes = engine.admission().compensate(commands).await?;
    let given_back = codes.iter().filter(|code| **code == CompensateCode::Applied).count();
    observe::strays_given_back(given_back as u64);
    Ok(())
}
