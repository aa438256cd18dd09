//! What a journalled gate remembers: its open reservations, by id and by buyer.
//!
//! Invariant: both maps hold the same reservations. Deliberately absent: any rule, and any reservation that the store has
//! decided on for longer than it takes to be told.

use std::collections::HashMap;

use onceward_domain::event::OrderCreateRequested;
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::machine::admission::Admission;
use onceward_domain::ports::admission::Reserve;
use onceward_domain::purchase::Purchase;

/// The open reservations.
#[derive(Debug, Default)]
pub(crate) struct OpenReservations {
    by_id: HashMap<PurchaseId, Purchase>,
    by_buyer: HashMap<(SkuKey, UserId), Vec<PurchaseId>>,
}

impl OpenReservations {
    /// Adds what a journal entry tells, in its order. Places are given anew: only which of them are taken matters.
    pub(crate) fn extend(&mut self, reservations: impl IntoIterator<Item = OrderCreateRequested>) {
        for one in reservations {
            let held = self.by_buyer.get(&(one.key.clone(), one.user.clone()));
            let place =
                held.into_iter().flatten().map(|id| i64::from(self.by_id[id].lines[0].quantity)).sum();
            let reserved_at = one.reserved_at;
            self.remember(Purchase::open(one, Admission::Reserved, place, reserved_at));
        }
    }

    /// Adds one that was just admitted.
    pub(crate) fn remember(&mut self, purchase: Purchase) {
        let buyer = (purchase.lines[0].key.clone(), purchase.user.clone());
        self.by_buyer.entry(buyer).or_default().push(purchase.id);
        self.by_id.insert(purchase.id, purchase);
    }

    /// Removes one that has a row by now, or does nothing.
    pub(crate) fn forget(&mut self, id: PurchaseId) {
        let Some(purchase) = self.by_id.remove(&id) else { return };
        let buyer = (purchase.lines[0].key.clone(), purchase.user);
        if let Some(ids) = self.by_buyer.get_mut(&buyer) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_buyer.remove(&buyer);
            }
        }
    }

    /// One of them.
    pub(crate) fn get(&self, id: PurchaseId) -> Option<&Purchase> {
        self.by_id.get(&id)
    }

    /// Those that a decision on these commands must know: of the same buyers, or under the same ids.
    pub(crate) fn concerning(&self, commands: &[Reserve]) -> Vec<Purchase> {
        let mut found: Vec<PurchaseId> = Vec::new();
        for command in commands {
            let buyer = (command.key.clone(), command.user.clone());
            found.extend(self.by_buyer.get(&buyer).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found.iter().map(|id| self.by_id[id].clone()).collect()
    }
}
