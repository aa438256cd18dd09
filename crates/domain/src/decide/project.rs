//! Projecting the store's decisions to a gate that lives in the store (FS-13, reference 003 §13.4).
//!
//! Invariants: an event is applied at most once, because the purchase's own admission state (or the SKU's count
//! of adjustments) says whether it was; counters move in the same write. Events of one purchase may come in any
//! order: the table has rows for a cancellation that overtakes.

use crate::changes::{ChangeSet, Step};
use crate::decide::Draft;
use crate::error::Error;
use crate::event::{Event, Fact};
use crate::facts::Facts;
use crate::id::{PurchaseId, SkuKey};
use crate::machine::Machine;
use crate::machine::admission::AdmissionEvent;
use crate::ports::admission::Projected;

/// Projects a batch of events.
///
/// Needs `purchases` of every event and `buckets` of every line and adjustment.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one batch would change a purchase twice in different ways.
pub fn project(facts: &mut Facts, events: &[Event]) -> Result<(ChangeSet, Vec<Projected>), Error> {
    let mut draft = Draft::default();
    let mut outcomes = Vec::with_capacity(events.len());
    for event in events {
        outcomes.push(match &event.fact {
            Fact::OrderCreated { purchase, .. } => {
                project_move(facts, &mut draft, *purchase, AdmissionEvent::ProjectCreated)?
            }
            Fact::OrderCancelled { purchase, .. } => {
                project_move(facts, &mut draft, *purchase, AdmissionEvent::ProjectCancelled)?
            }
            Fact::OrderReinstated { purchase, .. } => {
                project_move(facts, &mut draft, *purchase, AdmissionEvent::ProjectReinstated)?
            }
            Fact::ReservationRejected { .. } | Fact::OrderPaid { .. } | Fact::OrderRefunded { .. } => {
                Projected::Nothing
            }
            Fact::StockAdjusted { key, delta, number } => adjust(facts, &mut draft, key, *delta, *number),
        });
    }
    Ok((draft.finish(facts), outcomes))
}

fn project_move(
    facts: &mut Facts,
    draft: &mut Draft,
    id: PurchaseId,
    event: AdmissionEvent,
) -> Result<Projected, Error> {
    let Some(purchase) = facts.purchases.get(&id).cloned() else {
        return Ok(Projected::Nothing);
    };
    let Some(row) = purchase.admission.next(event) else {
        return Ok(Projected::Nothing);
    };
    if purchase.lines.iter().any(|line| !facts.buckets.contains_key(&line.key)) {
        return Ok(Projected::TooEarly);
    }
    for line in &purchase.lines {
        draft.move_bucket(facts, &line.key, row.effect, line.quantity);
    }
    let place = purchase.lines[0].place;
    let step = Step::Admission { to: row.to, compensation: purchase.compensation, place };
    draft.move_purchase(facts, &purchase, step)?;
    facts.purchases.get_mut(&id).expect("it was found above").admission = row.to;
    Ok(Projected::Applied)
}

fn adjust(facts: &mut Facts, draft: &mut Draft, key: &SkuKey, delta: i64, number: u32) -> Projected {
    let Some(bucket) = facts.buckets.get_mut(key) else {
        return Projected::TooEarly;
    };
    if number <= bucket.adjustments {
        return Projected::Nothing;
    }
    if number != bucket.adjustments + 1 {
        return Projected::TooEarly;
    }
    bucket.adjustments = number;
    bucket.initial += delta;
    bucket.available += delta;
    draft.touch_bucket(key);
    Projected::Applied
}
