//! Direct orders: several lines, no admission, stock locked in the same transaction; all lines or none (OT-02, C7).
//!
//! The buyer and the request id are the key. Order of checks: known request, open, limit, stock.

use crate::changes::ChangeSet;
use crate::decide::{Draft, free_place};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::facts::Facts;
use crate::id::{PurchaseId, RequestId, SkuKey, UserId};
use crate::machine::admission::Admission;
use crate::machine::order::{BIRTH, Order as OrderStatus};
use crate::money::Money;
use crate::ports::deadline::Expiry;
use crate::purchase::{Line, Order, Purchase, Route};
use crate::time::{Millis, Timestamp};

/// Most lines of one order.
pub const LINES_LIMIT: usize = 50;

/// A buyer's direct order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceOrder {
    /// Derived from buyer and request; see [`crate::derive::KeyRing::direct_order`].
    pub purchase: PurchaseId,
    /// The buyer.
    pub user: UserId,
    /// The buyer's intent.
    pub request: RequestId,
    /// SKUs and units, each SKU once.
    pub lines: Vec<(SkuKey, u32)>,
}

/// The order, and whether it was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The order.
    pub purchase: Purchase,
    /// Whether the request was known.
    pub repeated: bool,
}

/// Decides a direct order.
///
/// Needs `purchases`, and `skus` and `buyers` of every line.
///
/// # Errors
/// [`Code::RequestConflict`], [`Code::Invalid`], [`Code::NotFound`], [`Code::NotOpen`], [`Code::LimitReached`] or
/// [`Code::InsufficientStock`]; nothing is changed then.
pub fn place(facts: &mut Facts, command: &PlaceOrder) -> Result<(ChangeSet, Placed), Error> {
    if let Some(known) = facts.purchases.get(&command.purchase) {
        let same = known.lines.len() == command.lines.len()
            && known
                .lines
                .iter()
                .zip(&command.lines)
                .all(|(line, (key, units))| line.key == *key && line.quantity == *units);
        if !same {
            return Err(Error::new(Code::RequestConflict, about(command)));
        }
        return Ok((ChangeSet::default(), Placed { purchase: known.clone(), repeated: true }));
    }
    let (total, currency_window) = check(facts, command)?;
    let purchase = build(facts, command, total, currency_window);
    let mut draft = Draft::default();
    for line in &purchase.lines {
        draft.move_stock(facts, &line.key, BIRTH, line.quantity);
    }
    let order = purchase.order.as_ref().expect("a direct order is born with its order");
    draft.changes.expiries.push(Expiry { due_at: order.cancel_due_at, purchase: purchase.id });
    let event = Event::order_created(purchase.id, purchase.user.clone(), purchase.lines.clone(), facts.now);
    draft.changes.events.push(event);
    draft.changes.new_purchases.push(purchase.clone());
    facts.remember(purchase.clone());
    Ok((draft.finish(facts), Placed { purchase, repeated: false }))
}

fn about(command: &PlaceOrder) -> String {
    format!("direct order {}", command.purchase.order())
}

/// How long the order may stay unpaid: the shortest window of its activities, with that activity's grace.
#[derive(Clone, Copy)]
struct Window {
    payment: Millis,
    grace: Millis,
}

fn check(facts: &Facts, command: &PlaceOrder) -> Result<(Money, Window), Error> {
    if command.lines.is_empty() || command.lines.len() > LINES_LIMIT {
        return Err(Error::new(Code::Invalid, about(command)));
    }
    let mut total: Option<Money> = None;
    let mut window: Option<Window> = None;
    for (index, (key, quantity)) in command.lines.iter().enumerate() {
        if *quantity == 0 || command.lines[..index].iter().any(|(earlier, _)| earlier == key) {
            return Err(Error::new(Code::Invalid, about(command)));
        }
        let sku = facts.skus.get(key).ok_or_else(|| Error::new(Code::NotFound, about(command)))?;
        let activity =
            facts.activities.get(&key.activity).ok_or_else(|| Error::new(Code::NotFound, about(command)))?;
        if !activity.is_open(facts.now) {
            return Err(Error::new(Code::NotOpen, about(command)));
        }
        let price = sku.price.times(*quantity).map_err(|error| invalid(command, error))?;
        total = Some(match total {
            Some(sum) => sum.plus(&price).map_err(|error| invalid(command, error))?,
            None => price,
        });
        if window.is_none_or(|shortest| activity.payment_window < shortest.payment) {
            window = Some(Window { payment: activity.payment_window, grace: activity.cancel_grace });
        }
    }
    for (key, quantity) in &command.lines {
        check_limit(facts, command, key, *quantity)?;
    }
    for (key, quantity) in &command.lines {
        if facts.skus[key].stock.available < i64::from(*quantity) {
            return Err(Error::new(Code::InsufficientStock, about(command)));
        }
    }
    Ok((total.expect("there is a line"), window.expect("there is a line")))
}

fn invalid(command: &PlaceOrder, error: crate::money::MoneyError) -> Error {
    Error::new(Code::Invalid, about(command)).because(error)
}

fn check_limit(facts: &Facts, command: &PlaceOrder, key: &SkuKey, quantity: u32) -> Result<(), Error> {
    let frees = facts.activities[&key.activity].cancelled_frees_limit;
    let held: u64 = facts
        .purchases_of(key, &command.user)
        .filter(|one| one.holds_a_place(frees))
        .map(|one| u64::from(one.units_of(key)))
        .sum();
    if held + u64::from(quantity) > u64::from(facts.skus[key].per_user_limit) {
        return Err(Error::new(Code::LimitReached, about(command)));
    }
    Ok(())
}

fn build(facts: &Facts, command: &PlaceOrder, total: Money, window: Window) -> Purchase {
    let lines = command
        .lines
        .iter()
        .map(|(key, quantity)| Line {
            key: key.clone(),
            quantity: *quantity,
            place: free_place(facts, key, &command.user, *quantity),
            unit_price: Some(facts.skus[key].price),
        })
        .collect();
    let expires_at: Timestamp = facts.now.plus(window.payment);
    Purchase {
        id: command.purchase,
        handle: 0,
        route: Route::Direct,
        user: command.user.clone(),
        request: command.request.clone(),
        lines,
        admission: Admission::Absent,
        compensation: None,
        reservation: None,
        reason: None,
        reserved_at: facts.now,
        business_deadline: facts.now,
        inbox: None,
        order: Some(Order {
            status: OrderStatus::Created,
            total,
            paid: 0,
            refunded: 0,
            created_at: facts.now,
            expires_at,
            cancel_due_at: expires_at.plus(window.grace),
            paid_at: None,
            cancelled_at: None,
            cancel_reason: None,
        }),
        updated_at: facts.now,
        revision: 0,
    }
}
