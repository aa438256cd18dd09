//! Writes purchases and keeps their places unique.
//!
//! Invariant: (user, SKU, place) is unique over all places that are not negative. Within one set, places that
//! are given free count before places that are taken, whatever the order of the moves.

use onceward_domain::changes::{PurchaseMove, Step};
use onceward_domain::error::Error;
use onceward_domain::purchase::Purchase;

use super::Defect;
use super::apply::{lost, violated};
use super::rows::Rows;

impl Rows {
    /// Adds a purchase under a new handle.
    pub(super) fn add_purchase(&mut self, mut purchase: Purchase) -> Result<(), Error> {
        if self.purchases.contains(&purchase.id) {
            return Err(violated(format!("{:?} exists", purchase.id)));
        }
        if let Some(line) = purchase.lines.iter().find(|line| !self.skus.contains(&line.key)) {
            return Err(violated(format!("{:?} names the unknown {}", purchase.id, line.key)));
        }
        purchase.handle = self.number();
        self.by_handle.put(purchase.handle, purchase.id);
        for line in &purchase.lines {
            self.by_buyer.put((line.key.clone(), purchase.user.clone(), purchase.handle), purchase.id);
        }
        self.take_places(&purchase)?;
        self.purchases.put(purchase.id, purchase);
        Ok(())
    }

    /// Moves purchases, each on its own revision.
    pub(super) fn move_purchases(&mut self, moves: Vec<PurchaseMove>, defect: Defect) -> Result<(), Error> {
        let mut moved = Vec::with_capacity(moves.len());
        for change in moves {
            let before = self.purchases.get(&change.id);
            let before =
                before.filter(|row| row.revision == change.revision || defect == Defect::IgnoreRevisions);
            let before = before.ok_or_else(|| lost(format!("moving {:?}", change.id)))?.clone();
            let after = stepped(before.clone(), &change);
            self.free_places(&before);
            self.purchases.put(after.id, after.clone());
            moved.push(after);
        }
        for purchase in &moved {
            self.take_places(purchase)?;
        }
        Ok(())
    }

    fn free_places(&mut self, purchase: &Purchase) {
        for line in purchase.lines.iter().filter(|line| line.place >= 0) {
            self.places.remove(&(line.key.clone(), purchase.user.clone(), line.place));
        }
    }

    fn take_places(&mut self, purchase: &Purchase) -> Result<(), Error> {
        for line in purchase.lines.iter().filter(|line| line.place >= 0) {
            let place = (line.key.clone(), purchase.user.clone(), line.place);
            if self.places.contains(&place) {
                return Err(violated(format!("place {} of {} is taken", line.place, purchase.user)));
            }
            self.places.put(place, purchase.id);
        }
        Ok(())
    }
}

/// The purchase after a move. A single place is the first line's: only an order's move speaks of all lines.
fn stepped(mut purchase: Purchase, change: &PurchaseMove) -> Purchase {
    purchase.revision += 1;
    purchase.updated_at = change.at;
    match &change.step {
        Step::CreateOrder { reservation, inbox, order, place, unit_price } => {
            purchase.reservation = Some(*reservation);
            purchase.inbox = Some(*inbox);
            purchase.order = Some(order.clone());
            purchase.lines[0].place = *place;
            purchase.lines[0].unit_price = Some(*unit_price);
        }
        Step::Reservation { to, reason, inbox, place } => {
            purchase.reservation = Some(*to);
            purchase.reason = reason.or(purchase.reason);
            purchase.inbox = inbox.or(purchase.inbox);
            purchase.lines[0].place = *place;
        }
        Step::Inbox(inbox) => purchase.inbox = Some(*inbox),
        Step::Admission { to, compensation, place } => {
            purchase.admission = *to;
            purchase.compensation = compensation.or(purchase.compensation);
            purchase.lines[0].place = *place;
        }
        Step::Order { order, reservation, places } => {
            purchase.order = Some(order.clone());
            purchase.reservation = reservation.or(purchase.reservation);
            for (line, place) in purchase.lines.iter_mut().zip(places) {
                line.place = *place;
            }
        }
    }
    purchase
}
