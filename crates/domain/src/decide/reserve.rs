//! Letting buyers in, for a gate that lives in the store (FS-01, FS-02, FS-19, FS-20).
//!
//! Order of checks (api.md): known request, open, limit, stock. Invariants: a repeat of a known request changes
//! nothing and is recognised before stock is looked at, so the last winner's retry never hears "sold out" (C11);
//! each admitted batch leaves one `send_due` and one `deadline` entry in the same write.

use crate::changes::ChangeSet;
use crate::decide::{Draft, free_place};
use crate::due::{DueChange, Lane, Member, pack_ids};
use crate::event::OrderCreateRequested;
use crate::facts::Facts;
use crate::id::PurchaseId;
use crate::journal;
use crate::machine::Machine;
use crate::machine::admission::{Admission, AdmissionEvent};
use crate::ports::admission::{Reserve, ReserveAnswer};
use crate::purchase::{Purchase, Route};
use crate::time::Timestamp;

/// Decides a batch of reservations; `member` names its due entries.
///
/// Needs `skus`, `buckets` and `buyers` of every command, and its `purchases` under every key.
#[must_use]
pub fn reserve(facts: &mut Facts, commands: &[Reserve], member: &Member) -> (ChangeSet, Vec<ReserveAnswer>) {
    let mut draft = Draft::default();
    let mut admitted: Vec<PurchaseId> = Vec::new();
    let mut earliest = Timestamp(i64::MAX);
    let mut answers = Vec::with_capacity(commands.len());
    for command in commands {
        let answer = match refuse(facts, command) {
            Some(refusal) => refusal,
            None => {
                let purchase = admit(facts, &mut draft, command);
                admitted.push(purchase.id);
                earliest = earliest.min(purchase.business_deadline);
                ReserveAnswer::Queued { reservation: purchase.id.reservation() }
            }
        };
        answers.push(answer);
    }
    if !admitted.is_empty() {
        let body = pack_ids(&admitted);
        for (lane, due_at) in [(Lane::SEND_DUE, facts.now), (Lane::DEADLINE, earliest)] {
            let put =
                DueChange::Put { lane: Lane::new(lane), member: member.clone(), due_at, body: body.clone() };
            draft.changes.due.push(put);
        }
    }
    (draft.finish(facts), answers)
}

/// Turns a decided batch into what a gate writes that keeps open reservations in memory: no rows, but one journal entry
/// that says all of them and is due at the earliest deadline. Gives back what the gate must remember.
pub fn keep_in_journal(changes: &mut ChangeSet) -> Vec<Purchase> {
    let admitted = std::mem::take(&mut changes.new_purchases);
    let reservations: Vec<OrderCreateRequested> = admitted.iter().map(OrderCreateRequested::of).collect();
    for change in &mut changes.due {
        if let DueChange::Put { lane, body, .. } = change
            && lane.as_str() == Lane::DEADLINE
        {
            *lane = Lane::new(Lane::JOURNAL);
            *body = journal::pack(&reservations);
        }
    }
    admitted
}

fn refuse(facts: &Facts, command: &Reserve) -> Option<ReserveAnswer> {
    let (Some(sku), Some(bucket)) = (facts.skus.get(&command.key), facts.buckets.get(&command.key)) else {
        return Some(ReserveAnswer::Unknown);
    };
    let Some(activity) = facts.activities.get(&command.key.activity) else {
        return Some(ReserveAnswer::Unknown);
    };
    if let Some(known) = known_request(facts, command) {
        return Some(known);
    }
    if !activity.is_open(facts.now) {
        return Some(ReserveAnswer::NotOpen);
    }
    let frees = activity.cancelled_frees_limit;
    let mut held = 0_u64;
    let mut live = None;
    for purchase in facts.purchases_of(&command.key, &command.user).filter(|one| one.is_admitted(frees)) {
        held += u64::from(purchase.units_of(&command.key));
        live = Some(purchase);
    }
    if held + u64::from(command.quantity) > u64::from(sku.per_user_limit) {
        let only = live.filter(|one| sku.per_user_limit == 1 && one.route == Route::Flash);
        return Some(ReserveAnswer::LimitReached { live: only.map(|one| one.id.reservation()) });
    }
    if bucket.available < i64::from(command.quantity) {
        return Some(ReserveAnswer::SoldOut);
    }
    None
}

fn known_request(facts: &Facts, command: &Reserve) -> Option<ReserveAnswer> {
    recognise(command.names().find_map(|id| facts.purchases.get(id))?, command)
}

/// What a request hears whose reservation is known; none where that one is another's (FS-02).
#[must_use]
pub fn recognise(known: &Purchase, command: &Reserve) -> Option<ReserveAnswer> {
    let is_the_same = known.user == command.user && known.request == command.request;
    if !is_the_same || known.units_of(&command.key) == 0 {
        return None;
    }
    if known.units_of(&command.key) != command.quantity {
        return Some(ReserveAnswer::RequestConflict);
    }
    Some(ReserveAnswer::Repeat { reservation: known.id.reservation(), status: known.reservation_status() })
}

fn admit(facts: &mut Facts, draft: &mut Draft, command: &Reserve) -> Purchase {
    let row = Admission::Absent.next(AdmissionEvent::Reserve).expect("admitting starts the machine");
    draft.move_bucket(facts, &command.key, row.effect, command.quantity);
    let activity = &facts.activities[&command.key.activity];
    let message = OrderCreateRequested {
        purchase: command.purchase,
        key: command.key.clone(),
        user: command.user.clone(),
        request: command.request.clone(),
        quantity: command.quantity,
        reserved_at: facts.now,
        business_deadline: facts.now.plus(activity.reservation_deadline),
    };
    let place = free_place(facts, &command.key, &command.user, command.quantity);
    let purchase = Purchase::open(message, row.to, place, facts.now);
    facts.remember(purchase.clone());
    draft.changes.new_purchases.push(purchase.clone());
    purchase
}
