//! The business deadline of reservations (FS-15): first a durable rejection, then its compensation.
//!
//! Invariant: only reservations without a decision are rejected; where an order exists, time has no say (DR-01).

use crate::changes::ChangeSet;
use crate::decide::Draft;
use crate::decide::create_order::{Refusal, reject};
use crate::error::Error;
use crate::event::OrderCreateRequested;
use crate::facts::Facts;
use crate::machine::reservation::{Reservation, ReservationEvent};
use crate::ports::admission::Birth;
use crate::purchase::Reason;

/// What became of an overdue reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Rejected now.
    Rejected,
    /// A decision already stood.
    Decided,
    /// Its deadline is still ahead by the store's clock.
    NotYet,
}

/// Rejects reservations whose deadline has passed and that nobody has decided on. `births` says of
/// each what the gate says ([`crate::ports::admission::Admission::births`]).
///
/// Needs `skus`, `buyers` and `purchases` of every reservation.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one batch would change a purchase twice.
pub fn pass_deadline(
    facts: &mut Facts,
    overdue: &[OrderCreateRequested],
    births: &[Birth],
) -> Result<(ChangeSet, Vec<Outcome>), Error> {
    let mut draft = Draft::default();
    let mut outcomes = Vec::with_capacity(overdue.len());
    for (message, birth) in overdue.iter().zip(births) {
        let decided = facts
            .purchases
            .get(&message.purchase)
            .and_then(|known| known.reservation)
            .is_some_and(|status| status != Reservation::Reserved);
        outcomes.push(if decided {
            Outcome::Decided
        } else if facts.now < message.business_deadline {
            Outcome::NotYet
        } else {
            let reason = Reason::BusinessDeadlineExceeded;
            let event = ReservationEvent::PassDeadline;
            reject(facts, &mut draft, message, Refusal { reason, event, inbox: None, birth: *birth })?;
            Outcome::Rejected
        });
    }
    Ok((draft.finish(facts), outcomes))
}
