//! Giving rows to reservations that only the journal of an embedded gate states, so that a gate over rows can go on with them
//! (design.md, "From one gate to another").
//!
//! Invariants: a reservation gets its row once, because the journal entry goes in the same transaction; the counters of its
//! bucket stay as they are, because they count it already; its deadline goes on as it was. Read next:
//! [`crate::decide::reserve::keep_in_journal`], which is the way back.

use crate::changes::ChangeSet;
use crate::decide::free_place;
use crate::due::{DueChange, Lane, Member, pack_ids};
use crate::error::Error;
use crate::facts::Facts;
use crate::id::PurchaseId;
use crate::journal;
use crate::machine::Machine;
use crate::machine::admission::{Admission, AdmissionEvent};
use crate::purchase::Purchase;
use crate::time::Timestamp;

/// Adopts what is open of a journal entry. The outcome says of how many reservations; none where the entry is not there any
/// more.
///
/// Needs the entry among `due`, and `purchases` and `buyers` of every reservation in it.
///
/// # Errors
/// Where the entry's body is damaged.
pub fn adopt(facts: &mut Facts, member: &Member) -> Result<(ChangeSet, usize), Error> {
    let lane = Lane::new(Lane::JOURNAL);
    let mut changes = ChangeSet::default();
    let Some(entry) = facts.due.get(&(lane.clone(), member.clone())) else { return Ok((changes, 0)) };
    let reserved = Admission::Absent.next(AdmissionEvent::Reserve).expect("admitting starts the machine").to;
    let (mut adopted, mut earliest) = (Vec::<PurchaseId>::new(), Timestamp(i64::MAX));
    for one in journal::unpack(&entry.body)? {
        if facts.purchases.contains_key(&one.purchase) {
            continue;
        }
        let place = free_place(facts, &one.key, &one.user, one.quantity);
        earliest = earliest.min(one.business_deadline);
        let reserved_at = one.reserved_at;
        let purchase = Purchase::open(one, reserved, place, reserved_at);
        adopted.push(purchase.id);
        facts.remember(purchase.clone());
        changes.new_purchases.push(purchase);
    }
    if !adopted.is_empty() {
        changes.due.push(DueChange::Put {
            lane: Lane::new(Lane::DEADLINE),
            member: member.clone(),
            due_at: earliest,
            body: pack_ids(&adopted),
        });
    }
    changes.due.push(DueChange::Remove { lane, member: member.clone() });
    Ok((changes, adopted.len()))
}
