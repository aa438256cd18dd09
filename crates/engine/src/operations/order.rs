//! Orders: place one directly, look, list, cancel.

use std::sync::Arc;

use onceward_domain::changes::Transition;
use onceward_domain::decide;
use onceward_domain::decide::cancel::CancelRequest;
pub use onceward_domain::decide::direct_order::Placed;
use onceward_domain::decide::direct_order::{LINES_LIMIT, PlaceOrder};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::{OrderId, PurchaseId, RequestId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
pub use onceward_domain::ports::store::{OrderFilter, PageRequest};
use onceward_domain::purchase::{Purchase, Route};

use crate::engine::Engine;
use crate::execute::execute;

/// A buyer's direct order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectOrder {
    /// The buyer.
    pub user: UserId,
    /// The buyer's intent.
    pub request: RequestId,
    /// SKUs and units.
    pub lines: Vec<(SkuKey, u32)>,
}

/// Places a direct order (OT-02); a repeat answers the first one.
///
/// # Errors
/// [`Code::RequestConflict`], [`Code::Invalid`], [`Code::NotFound`], [`Code::NotOpen`], [`Code::LimitReached`],
/// [`Code::InsufficientStock`].
pub async fn place(engine: &Engine, order: DirectOrder) -> Result<Placed, Error> {
    let DirectOrder { user, request, lines } = order;
    if lines.is_empty() || lines.len() > LINES_LIMIT {
        return Err(Error::new(Code::Invalid, "a direct order needs 1 to 50 lines"));
    }
    let purchase = engine.keys().direct_order(&user, &request);
    let need = Need {
        skus: lines.iter().map(|(key, _)| key.clone()).collect(),
        purchases: vec![purchase],
        buyers: lines.iter().map(|(key, _)| (key.clone(), user.clone())).collect(),
        ..Need::default()
    };
    let command = PlaceOrder { purchase, user, request, lines };
    let placed =
        execute(engine, "place_order", need, move |facts| decide::direct_order::place(facts, &command))
            .await?;
    if !placed.repeated {
        engine.signals().relay.notify_one();
    }
    Ok(placed)
}

/// Looks at an order.
///
/// # Errors
/// [`Code::NotFound`].
pub async fn get(engine: &Engine, id: OrderId) -> Result<Purchase, Error> {
    let purchase = id.purchase().map_err(|_| absent(id))?;
    load(engine, purchase).await?.ok_or_else(|| absent(id))
}

fn absent(id: OrderId) -> Error {
    Error::new(Code::NotFound, format!("looking at order {id}"))
}

async fn load(engine: &Engine, id: PurchaseId) -> Result<Option<Purchase>, Error> {
    let mut facts = engine.store().view(Need { purchases: vec![id], ..Need::default() }).await?;
    Ok(facts.purchases.remove(&id).filter(|purchase| purchase.order.is_some()))
}

/// Lists orders, newest first.
///
/// # Errors
/// The store's.
pub async fn list(engine: &Engine, filter: OrderFilter, page: PageRequest) -> Result<Vec<Purchase>, Error> {
    engine.store().list_orders(filter, page).await
}

/// An order's history, oldest first: what its row states, and what was noted since.
///
/// # Errors
/// [`Code::NotFound`].
pub async fn timeline(engine: &Engine, id: OrderId) -> Result<Vec<Transition>, Error> {
    let purchase = get(engine, id).await?;
    let mut history = births(&purchase);
    history.extend(engine.store().transitions(purchase.id).await?);
    Ok(history)
}

/// The first lines of history need no rows of their own: the purchase states them.
fn births(purchase: &Purchase) -> Vec<Transition> {
    let Some(order) = &purchase.order else { return Vec::new() };
    let actor: Arc<str> = Arc::from(decide::ENGINE);
    let line = |at, kind, from, to, cause, reference: String| Transition {
        purchase: purchase.id,
        at,
        kind,
        from,
        to,
        cause,
        actor: actor.clone(),
        reference: Some(Arc::from(reference)),
    };
    let mut history = Vec::new();
    if purchase.route == Route::Flash {
        let (reserved, created) = (Reservation::Reserved.name(), Reservation::OrderCreated.name());
        let reference = purchase.id.reservation().to_string();
        history.push(line(purchase.reserved_at, Reservation::NAME, None, reserved, "admitted", reference));
        let message = purchase.id.message().to_string();
        let from = Some(reserved);
        history.push(line(order.created_at, Reservation::NAME, from, created, "order_created", message));
    }
    let cause = if purchase.route == Route::Flash { "order_created" } else { "placed" };
    let reference = purchase.request.to_string();
    history.push(line(
        order.created_at,
        OrderStatus::NAME,
        None,
        OrderStatus::Created.name(),
        cause,
        reference,
    ));
    history
}

/// Cancels an order on request (OT-12).
///
/// # Errors
/// [`Code::NotFound`]; [`Code::OrderNotCancellable`] once money was taken.
pub async fn cancel(
    engine: &Engine,
    id: OrderId,
    reason: Arc<str>,
    actor: Arc<str>,
) -> Result<Purchase, Error> {
    let known = get(engine, id).await?;
    let request = CancelRequest { purchase: known.id, reason, actor };
    let need = Need {
        skus: known.lines.iter().map(|line| line.key.clone()).collect(),
        purchases: vec![known.id],
        attempts: vec![known.id],
        ..Need::default()
    };
    let after =
        execute(engine, "cancel_order", need, move |facts| decide::cancel::cancel(facts, &request)).await?;
    engine.signals().relay.notify_one();
    engine.signals().cancel.notify_one();
    Ok(after)
}
