//! Writing purchases: new rows, and guarded moves.
//!
//! Invariants: a flash purchase has exactly one line, kept in its row; a direct one has its lines beside it. A move
//! that keeps the place touches no index: the place is part of the guard, and only where it differs is it moved first.

use onceward_domain::changes::{PurchaseMove, Step};
use onceward_domain::error::Error;
use onceward_domain::machine::Machine;
use onceward_domain::machine::reservation::Reservation as ReservationStatus;
use onceward_domain::money::Money;
use onceward_domain::purchase::{Inbox, Line, Order, Purchase, Route};
use rusqlite::{CachedStatement, Connection, Params, params};

use super::Handles;
use super::places::{self, first_place};
use crate::failure::{defect, failed, guard_lost};
use crate::load::first;
use crate::queries;
use crate::refs::Refs;
use crate::rows::{get, inbox_code, reason_code, route_code};

pub(super) fn add(
    conn: &Connection,
    refs: &mut Refs,
    purchases: &[Purchase],
    handles: &mut Handles,
) -> Result<(), Error> {
    if purchases.is_empty() {
        return Ok(());
    }
    let any_direct = places::any_direct(conn)?;
    let mut statement = conn.prepare_cached(queries::PURCHASE_INSERT).map_err(failed("adding a purchase"))?;
    for purchase in purchases {
        let handle = insert(conn, refs, &mut statement, purchase)?;
        handles.remember(purchase.id, handle);
        if purchase.route == Route::Direct {
            insert_lines(conn, refs, handle, purchase)?;
            places::check_lines(conn, handle)?;
        } else if any_direct {
            places::check_row(conn, handle)?;
        }
    }
    Ok(())
}

fn insert(
    conn: &Connection,
    refs: &mut Refs,
    statement: &mut CachedStatement<'_>,
    purchase: &Purchase,
) -> Result<i64, Error> {
    let line = match (purchase.route, purchase.lines.as_slice()) {
        (Route::Flash, [line]) => Some(line),
        (Route::Flash, lines) => {
            return Err(defect(format!("{:?} came by admission with {} lines", purchase.id, lines.len())));
        }
        (Route::Direct, []) => return Err(defect(format!("{:?} has no lines", purchase.id))),
        (Route::Direct, _) => None,
    };
    let sku_ref = line.map(|line| refs.known_sku_ref(conn, &line.key)).transpose()?;
    let order = purchase.order.as_ref();
    let parameters = params![
        purchase.id.bytes(),
        purchase.revision,
        purchase.user.as_str(),
        purchase.request.as_str(),
        route_code(purchase.route),
        sku_ref,
        line.map(|line| line.quantity),
        line.map(|line| line.place),
        purchase.admission.code(),
        purchase.reservation.map(Machine::code),
        purchase.reason.map(reason_code),
        purchase.reserved_at.0,
        purchase.business_deadline.0,
        purchase.updated_at.0,
        purchase.inbox.map(|inbox| inbox_code(inbox.result)),
        purchase.inbox.as_ref().map(|inbox| &inbox.payload_hash),
        order.map(|order| order.status.code()),
        currency(purchase)?,
        line.and_then(|line| line.unit_price).map(|price| price.amount()),
        order.map(|order| order.total.amount()),
        order.map(|order| order.paid),
        order.map(|order| order.refunded),
        order.map(|order| order.created_at.0),
        order.map(|order| order.expires_at.0),
        order.map(|order| order.cancel_due_at.0),
        order.and_then(|order| order.paid_at).map(|at| at.0),
        order.and_then(|order| order.cancelled_at).map(|at| at.0),
        order.and_then(|order| order.cancel_reason.as_deref()),
        purchase.compensation.as_ref().map(|id| id.0.as_bytes()),
    ];
    statement.insert(parameters).map_err(failed("adding a purchase"))
}

/// The one currency of all amounts of a purchase, where it has amounts.
fn currency(purchase: &Purchase) -> Result<Option<u16>, Error> {
    let prices = purchase.lines.iter().filter_map(|line| line.unit_price);
    let mut amounts = purchase.order.as_ref().map(|order| order.total).into_iter().chain(prices);
    let Some(first) = amounts.next().map(|amount| amount.currency()) else { return Ok(None) };
    if amounts.any(|amount| amount.currency() != first) {
        return Err(defect(format!("{:?} mixes two currencies", purchase.id)));
    }
    Ok(Some(first.numeric()))
}

fn insert_lines(conn: &Connection, refs: &mut Refs, handle: i64, purchase: &Purchase) -> Result<(), Error> {
    let doing = failed("adding a line of an order");
    let mut statement = conn.prepare_cached(queries::ORDER_LINE_INSERT).map_err(&doing)?;
    for (number, line) in (0_i64..).zip(&purchase.lines) {
        let Line { key, quantity, place, unit_price } = line;
        let sku_ref = refs.known_sku_ref(conn, key)?;
        let price = unit_price.map(|price| price.amount());
        let parameters = params![handle, number, purchase.user.as_str(), sku_ref, quantity, place, price];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

/// Moves purchases, each on the revision it was decided on. Places that are given free count before places that are
/// taken, whatever the order of the moves.
pub(super) fn change(conn: &Connection, moves: &[PurchaseMove], handles: &mut Handles) -> Result<(), Error> {
    let mut missed = Vec::new();
    for change in moves {
        handles.remember(change.id, change.handle);
        if write(conn, change, first_place(&change.step))? != 1 {
            missed.push(change);
        }
    }
    // Each of these has another place, is direct (its places are in its lines), or has lost its guard.
    let mut pending = Vec::with_capacity(missed.len());
    for change in missed {
        pending.push((change, places::leave(conn, change)?));
    }
    for (change, kept) in pending {
        let place = places::take(conn, change, kept)?;
        if write(conn, change, place)? != 1 {
            return Err(lost(conn, change)?);
        }
    }
    Ok(())
}

/// Writes a step where the guard holds: the revision, and the place that the row keeps. Says how many rows were hit.
fn write(conn: &Connection, change: &PurchaseMove, place: Option<i64>) -> Result<usize, Error> {
    let guard = (change.handle, change.id.bytes(), change.revision, place);
    let at = change.at.0;
    match &change.step {
        Step::CreateOrder { reservation, inbox, order, place: _, unit_price } => {
            if unit_price.currency() != order.total.currency() {
                return Err(defect(format!("{:?} mixes two currencies", change.id)));
            }
            create_order(conn, (*reservation, inbox, order, *unit_price), at, guard)
        }
        Step::Reservation { to, reason, inbox, place: _ } => {
            let parameters = params![
                to.code(),
                reason.map(reason_code),
                inbox.map(|inbox| inbox_code(inbox.result)),
                inbox.as_ref().map(|inbox| &inbox.payload_hash),
                at,
                guard.0,
                guard.1,
                guard.2,
                guard.3,
            ];
            execute(conn, queries::PURCHASE_MOVE_RESERVATION, parameters)
        }
        Step::Inbox(Inbox { payload_hash, result }) => {
            let parameters = params![inbox_code(*result), payload_hash, at, guard.0, guard.1, guard.2];
            execute(conn, queries::PURCHASE_MOVE_INBOX, parameters)
        }
        Step::Admission { to, compensation, place: _ } => {
            let marker = compensation.as_ref().map(|id| id.0.as_bytes());
            let parameters = params![to.code(), marker, at, guard.0, guard.1, guard.2, guard.3];
            execute(conn, queries::PURCHASE_MOVE_ADMISSION, parameters)
        }
        Step::Order { order, reservation, places: _ } => move_order(conn, order, *reservation, at, guard),
    }
}

/// Handle, id, revision, and the place that the row keeps.
type Guard<'a> = (i64, &'a [u8; 16], i64, Option<i64>);

type Birth<'a> = (ReservationStatus, &'a Inbox, &'a Order, Money);

fn execute(conn: &Connection, sql: &str, parameters: impl Params) -> Result<usize, Error> {
    let doing = failed("changing a purchase");
    conn.prepare_cached(sql).map_err(&doing)?.execute(parameters).map_err(&doing)
}

fn create_order(conn: &Connection, birth: Birth<'_>, at: i64, guard: Guard<'_>) -> Result<usize, Error> {
    let (reservation, inbox, order, unit_price) = birth;
    let parameters = params![
        reservation.code(),
        inbox_code(inbox.result),
        inbox.payload_hash,
        order.status.code(),
        order.total.currency().numeric(),
        unit_price.amount(),
        order.total.amount(),
        order.paid,
        order.refunded,
        order.created_at.0,
        order.expires_at.0,
        order.cancel_due_at.0,
        order.paid_at.map(|at| at.0),
        order.cancelled_at.map(|at| at.0),
        order.cancel_reason.as_deref(),
        at,
        guard.0,
        guard.1,
        guard.2,
        guard.3,
    ];
    execute(conn, queries::PURCHASE_CREATE_ORDER, parameters)
}

fn move_order(
    conn: &Connection,
    order: &Order,
    reservation: Option<ReservationStatus>,
    at: i64,
    guard: Guard<'_>,
) -> Result<usize, Error> {
    let parameters = params![
        reservation.map(Machine::code),
        order.status.code(),
        order.total.currency().numeric(),
        order.total.amount(),
        order.paid,
        order.refunded,
        order.created_at.0,
        order.expires_at.0,
        order.cancel_due_at.0,
        order.paid_at.map(|at| at.0),
        order.cancelled_at.map(|at| at.0),
        order.cancel_reason.as_deref(),
        at,
        guard.0,
        guard.1,
        guard.2,
        guard.3,
    ];
    execute(conn, queries::PURCHASE_MOVE_ORDER, parameters)
}

/// What is there instead of what a change was decided on.
pub(super) fn lost(conn: &Connection, change: &PurchaseMove) -> Result<Error, Error> {
    let (id, handle, revision) = (change.id, change.handle, change.revision);
    let there = first(conn, queries::PURCHASE_PEEK, [id.bytes()], "reading what is there instead", |row| {
        let states: [Option<u8>; 3] = [get(row, 2)?, get(row, 3)?, get(row, 4)?];
        Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, states))
    })?;
    let decided = format!("{id:?} was decided on at handle {handle}, revision {revision}");
    Ok(guard_lost(match there {
        Some((handle, revision, [admission, reservation, order])) => format!(
            "{decided}; it is at handle {handle}, revision {revision}, with the state codes admission {admission:?}, \
             reservation {reservation:?}, order {order:?}"
        ),
        None => format!("{decided}; it is not there"),
    }))
}
