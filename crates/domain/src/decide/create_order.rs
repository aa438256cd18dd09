//! From messages to orders: the heart of the engine (FS-06 to FS-10).
//!
//! Invariants: a message's inbox entry, the stock it takes, the order, the reservation's move and the event are
//! one ChangeSet; a copy of a message changes nothing; another payload under a known id changes nothing and is
//! set aside; only a durable rejection refuses a late message — a passed deadline alone never does (DR-03, FS-07).
//! Read next: [`crate::changes`].

use std::sync::Arc;

use crate::changes::{ChangeSet, CompensationTask, Quarantined, Step};
use crate::decide::{Draft, free_place, freed_place};
use crate::due::{DueChange, Lane, pack_ids};
use crate::error::Error;
use crate::event::{Event, OrderCreateRequested};
use crate::facts::Facts;
use crate::id::{OrderId, PurchaseId};
use crate::machine::Machine;
use crate::machine::compensation::Compensation;
use crate::machine::order::{BIRTH, Order as OrderStatus};
use crate::machine::reservation::{Reservation, ReservationEvent};
use crate::ports::admission::Birth;
use crate::ports::deadline::Expiry;
use crate::purchase::{Inbox, InboxResult, Order, Purchase, Reason, Route};

/// A message that arrived, with what the inbox must remember of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// What it asks for.
    pub message: OrderCreateRequested,
    /// SHA-256 of its payload.
    pub payload_hash: [u8; 32],
    /// The payload, kept only where it must be set aside.
    pub payload: Arc<[u8]>,
    /// What the gate says of it, where the store has not heard of it.
    pub birth: Birth,
    /// Whether the gate may have lost the reservation and let the same request in again: then under the same ids, with
    /// another stamp (FS-18).
    pub gate_may_forget: bool,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// An order was created.
    Created(OrderId),
    /// The order was refused; a compensation is on its way.
    Rejected(Reason),
    /// A copy: this is what came of the first.
    Duplicate(InboxResult),
    /// A durable rejection or cancellation stood before it.
    Late,
    /// Another payload under the same id, or a message that contradicts its reservation: set aside.
    PayloadConflict,
    /// The store has no such SKU: set aside.
    UnknownSku,
    /// A person holds the reservation: nothing may touch it now.
    Frozen,
}

impl Outcome {
    /// For logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Rejected(_) => "rejected",
            Self::Duplicate(_) => "duplicate",
            Self::Late => "late_rejected",
            Self::PayloadConflict => "payload_conflict",
            Self::UnknownSku => "unknown_sku",
            Self::Frozen => "frozen",
        }
    }
}

/// Decides a batch of messages.
///
/// Needs `skus`, `buyers` and `purchases` of every message.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one batch would change a purchase twice.
pub fn create_orders(facts: &mut Facts, batch: &[Incoming]) -> Result<(ChangeSet, Vec<Outcome>), Error> {
    let mut draft = Draft::default();
    let mut outcomes = Vec::with_capacity(batch.len());
    for incoming in batch {
        let outcome = decide_one(facts, &mut draft, incoming)?;
        if let Outcome::Created(_) = outcome {
            let purchase = &facts.purchases[&incoming.message.purchase];
            let order = purchase.order.as_ref().expect("it was just created");
            draft.changes.expiries.push(Expiry { due_at: order.cancel_due_at, purchase: purchase.id });
        }
        outcomes.push(outcome);
    }
    Ok((draft.finish(facts), outcomes))
}

fn decide_one(facts: &mut Facts, draft: &mut Draft, incoming: &Incoming) -> Result<Outcome, Error> {
    let message = &incoming.message;
    if let Some(known) = facts.purchases.get(&message.purchase) {
        let agrees = agrees_with(known, message);
        let earlier = known.inbox;
        let is_let_in_again = incoming.gate_may_forget && message.reserved_at != known.reserved_at;
        let differs = earlier.is_some_and(|inbox| inbox.payload_hash != incoming.payload_hash);
        if !agrees || (differs && !is_let_in_again) {
            set_aside(facts, draft, incoming, "payload_conflict");
            return Ok(Outcome::PayloadConflict);
        }
        if let Some(inbox) = earlier {
            return Ok(Outcome::Duplicate(inbox.result));
        }
        let status = known.reservation.unwrap_or(Reservation::Reserved);
        if status.refuses_late_messages() {
            let inbox = Inbox { payload_hash: incoming.payload_hash, result: InboxResult::LateRejected };
            return record_late(facts, draft, message.purchase, inbox);
        }
        if status == Reservation::ManualReview {
            return Ok(Outcome::Frozen);
        }
    } else if incoming.birth == Birth::Contradicted {
        set_aside(facts, draft, incoming, "payload_conflict");
        return Ok(Outcome::PayloadConflict);
    }
    if !facts.skus.contains_key(&message.key) || !facts.activities.contains_key(&message.key.activity) {
        set_aside(facts, draft, incoming, "unknown_sku");
        return Ok(Outcome::UnknownSku);
    }
    match objection(facts, message) {
        Some(reason) => {
            let inbox = Inbox { payload_hash: incoming.payload_hash, result: InboxResult::OrderRejected };
            let refusal = Refusal {
                reason,
                event: ReservationEvent::Reject,
                inbox: Some(inbox),
                birth: incoming.birth,
            };
            reject(facts, draft, message, refusal)?;
            Ok(Outcome::Rejected(reason))
        }
        None => create(facts, draft, incoming),
    }
}

fn agrees_with(known: &Purchase, message: &OrderCreateRequested) -> bool {
    known.route == Route::Flash
        && known.user == message.user
        && known.request == message.request
        && known.lines.len() == 1
        && known.lines[0].key == message.key
        && known.lines[0].quantity == message.quantity
}

fn set_aside(facts: &Facts, draft: &mut Draft, incoming: &Incoming, reason: &'static str) {
    draft.changes.quarantined.push(Quarantined {
        message_id: Arc::from(incoming.message.purchase.message().to_string()),
        payload_hash: incoming.payload_hash,
        reason,
        payload: incoming.payload.to_vec(),
        at: facts.now,
    });
}

fn record_late(facts: &mut Facts, draft: &mut Draft, id: PurchaseId, inbox: Inbox) -> Result<Outcome, Error> {
    draft.move_purchase(facts, &facts.purchases[&id], Step::Inbox(inbox))?;
    facts.purchases.get_mut(&id).expect("it was found above").inbox = Some(inbox);
    Ok(Outcome::Late)
}

/// Why the store of record refuses the order, if it does (FS-09). The limit is asked first: a buyer who
/// already has the goods hears that, not "sold out".
fn objection(facts: &Facts, message: &OrderCreateRequested) -> Option<Reason> {
    let sku = &facts.skus[&message.key];
    let frees = facts.activities[&message.key.activity].cancelled_frees_limit;
    let held: u64 = facts
        .purchases_of(&message.key, &message.user)
        .filter(|one| one.id != message.purchase && one.holds_a_place(frees))
        .map(|one| u64::from(one.units_of(&message.key)))
        .sum();
    if held + u64::from(message.quantity) > u64::from(sku.per_user_limit) {
        return Some(Reason::UserLimit);
    }
    if sku.stock.available < i64::from(message.quantity) {
        return Some(Reason::StockShort);
    }
    None
}

fn create(facts: &mut Facts, draft: &mut Draft, incoming: &Incoming) -> Result<Outcome, Error> {
    let message = &incoming.message;
    let sku = &facts.skus[&message.key];
    let Ok(total) = sku.price.times(message.quantity) else {
        set_aside(facts, draft, incoming, "total_out_of_range");
        return Ok(Outcome::PayloadConflict);
    };
    let activity = &facts.activities[&message.key.activity];
    let expires_at = facts.now.plus(activity.payment_window);
    let order = Order {
        status: OrderStatus::Created,
        total,
        paid: 0,
        refunded: 0,
        created_at: facts.now,
        expires_at,
        cancel_due_at: expires_at.plus(activity.cancel_grace),
        paid_at: None,
        cancelled_at: None,
        cancel_reason: None,
    };
    let unit_price = sku.price;
    let row = Reservation::Reserved
        .next(ReservationEvent::CreateOrder)
        .expect("a reserved one may become an order");
    let inbox = Inbox { payload_hash: incoming.payload_hash, result: InboxResult::OrderCreated };
    draft.move_stock(facts, &message.key, BIRTH, message.quantity);
    let known = facts.purchases.get(&message.purchase).cloned();
    let is_new = known.is_none();
    let mut purchase = known.unwrap_or_else(|| unheard_of(facts, message, incoming.birth));
    if !is_new {
        draft.move_purchase(
            facts,
            &purchase,
            Step::CreateOrder {
                reservation: row.to,
                inbox,
                order: order.clone(),
                place: purchase.lines[0].place,
                unit_price,
            },
        )?;
    }
    purchase.reservation = Some(row.to);
    purchase.inbox = Some(inbox);
    purchase.lines[0].unit_price = Some(unit_price);
    purchase.order = Some(order);
    purchase.updated_at = facts.now;
    let event = Event::order_created(purchase.id, purchase.user.clone(), purchase.lines.clone(), facts.now);
    draft.changes.events.push(event);
    if is_new {
        draft.changes.new_purchases.push(purchase.clone());
    }
    let id = purchase.id.order();
    facts.remember(purchase);
    Ok(Outcome::Created(id))
}

/// A reservation that only the gate has known until now.
fn unheard_of(facts: &Facts, message: &OrderCreateRequested, birth: Birth) -> Purchase {
    let place = free_place(facts, &message.key, &message.user, message.quantity);
    Purchase::open(message.clone(), birth.admission(), place, facts.now)
}

/// Why and how a reservation is refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) event: ReservationEvent,
    /// The message that caused it, if one did.
    pub(super) inbox: Option<Inbox>,
    /// What the gate says of it, where the store has not heard of it.
    pub(super) birth: Birth,
}

/// Writes a durable rejection with its compensation task and event (FS-09, FS-15).
pub(super) fn reject(
    facts: &mut Facts,
    draft: &mut Draft,
    message: &OrderCreateRequested,
    refusal: Refusal,
) -> Result<(), Error> {
    let Refusal { reason, event, inbox, birth } = refusal;
    let row = Reservation::Reserved.next(event).expect("a reserved one may be refused");
    let known = facts.purchases.get(&message.purchase).cloned();
    let is_new = known.is_none();
    let mut purchase = known.unwrap_or_else(|| unheard_of(facts, message, birth));
    if is_new {
        // Where the gate's state is kept in the row, the buyer's place is held until the gate gives the units back.
        if birth != Birth::Reserved {
            purchase.lines[0].place = freed_place(purchase.id);
        }
    } else {
        let place = purchase.lines[0].place;
        let step = Step::Reservation { to: row.to, reason: Some(reason), inbox, place };
        draft.move_purchase(facts, &purchase, step)?;
    }
    purchase.reservation = Some(row.to);
    purchase.reason = Some(reason);
    purchase.inbox = inbox;
    purchase.updated_at = facts.now;
    let engine: Arc<str> = Arc::from(super::ENGINE);
    draft.note(facts, purchase.id, row, &engine, Some(Arc::from(reason.name())));
    draft.changes.events.push(Event::rejected(purchase.id, purchase.user.clone(), reason, facts.now));
    draft.changes.new_compensations.push(CompensationTask {
        purchase: purchase.id,
        status: Compensation::Pending,
        attempts: 0,
        last_result: None,
        created_at: facts.now,
        updated_at: facts.now,
        revision: 0,
    });
    draft.changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::COMPENSATION),
        member: Arc::from(purchase.id.compensation().to_string()),
        due_at: facts.now,
        body: pack_ids(&[purchase.id]),
    });
    if is_new {
        draft.changes.new_purchases.push(purchase.clone());
    }
    facts.remember(purchase);
    Ok(())
}
