//! The places of a buyer under the limit of a SKU: given free, taken, and held once.
//!
//! Invariants: among the places that are not negative, none is held twice, neither by two flash purchases nor by two
//! lines (an index each) nor by one of each (checked here after a place was taken, under the write lock). Within one
//! set, all that is given free is free before anything is taken.

use onceward_domain::changes::{PurchaseMove, Step};
use onceward_domain::error::Error;
use rusqlite::{Connection, params};

use super::purchases::lost;
use crate::failure::{defect, failed};
use crate::load::first;
use crate::queries;
use crate::rows::get;

/// More lines than an order may have; numbers the temporary places.
const LINES_LIMIT: i64 = 1 << 16;

/// Where a purchase keeps its places.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept {
    /// In its own row: it came through admission.
    InRow,
    /// In its lines: it is direct.
    InLines,
}

/// The place of the first line after a step.
pub(super) fn first_place(step: &Step) -> Option<i64> {
    places(step).first().copied()
}

/// The places after a step; where it names one, it is the first line's.
fn places(step: &Step) -> &[i64] {
    match step {
        Step::CreateOrder { place, .. } | Step::Reservation { place, .. } | Step::Admission { place, .. } => {
            std::slice::from_ref(place)
        }
        Step::Order { places, .. } => places,
        Step::Inbox(_) => &[],
    }
}

/// A place that nobody else has, for as long as the set is being written.
fn nowhere(handle: i64, line: i64) -> i64 {
    i64::MIN.saturating_add(handle.saturating_mul(LINES_LIMIT)).saturating_add(line)
}

/// Gives the places free that a change does not keep. The guard of the change is lost where there is nothing to move.
pub(super) fn leave(conn: &Connection, change: &PurchaseMove) -> Result<Kept, Error> {
    let doing = failed("giving places free");
    let mut row = conn.prepare_cached(queries::PURCHASE_MOVE_PLACE).map_err(&doing)?;
    let (handle, wanted) = (change.handle, first_place(&change.step));
    let guard = params![nowhere(handle, 0), handle, change.id.bytes(), change.revision, wanted];
    if row.execute(guard).map_err(&doing)? == 1 {
        return Ok(Kept::InRow);
    }
    let line = first(conn, queries::ORDER_LINE_OF_PURCHASE, [handle], "looking for lines", |_| Ok(()))?;
    if line.is_none() {
        return Err(lost(conn, change)?);
    }
    let mut lines = conn.prepare_cached(queries::ORDER_LINE_MOVE_PLACE).map_err(&doing)?;
    for (line, wanted) in (0_i64..).zip(places(&change.step)) {
        lines.execute((nowhere(handle, line), handle, line, wanted)).map_err(&doing)?;
    }
    Ok(Kept::InLines)
}

/// Takes the places of a change, and says which one the row of the purchase now keeps.
pub(super) fn take(conn: &Connection, change: &PurchaseMove, kept: Kept) -> Result<Option<i64>, Error> {
    let doing = failed("taking places");
    let handle = change.handle;
    match kept {
        Kept::InRow => {
            let place = first_place(&change.step);
            let mut row = conn.prepare_cached(queries::PURCHASE_MOVE_PLACE).map_err(&doing)?;
            let guard = params![place, handle, change.id.bytes(), change.revision, place];
            row.execute(guard).map_err(&doing)?;
            if place.is_some_and(|place| place >= 0) && any_direct(conn)? {
                check_row(conn, handle)?;
            }
            Ok(place)
        }
        Kept::InLines => {
            let mut lines = conn.prepare_cached(queries::ORDER_LINE_MOVE_PLACE).map_err(&doing)?;
            for (line, place) in (0_i64..).zip(places(&change.step)) {
                lines.execute((place, handle, line, place)).map_err(&doing)?;
            }
            check_lines(conn, handle)?;
            Ok(None)
        }
    }
}

/// Whether the store has ever seen a direct order.
pub(super) fn any_direct(conn: &Connection) -> Result<bool, Error> {
    let any = first(conn, queries::ORDER_LINE_ANY, [], "looking for direct orders", |row| get(row, 0))?;
    Ok(any.unwrap_or(false))
}

/// Refuses a flash purchase whose place a direct order holds.
pub(super) fn check_row(conn: &Connection, handle: i64) -> Result<(), Error> {
    refuse_clash(conn, queries::PURCHASE_CLASH, handle)
}

/// Refuses a direct order with a place that a flash purchase holds.
pub(super) fn check_lines(conn: &Connection, handle: i64) -> Result<(), Error> {
    refuse_clash(conn, queries::ORDER_LINE_CLASH, handle)
}

fn refuse_clash(conn: &Connection, sql: &str, handle: i64) -> Result<(), Error> {
    let clash =
        first(conn, sql, [handle], "looking for a place that is held twice", |row| get::<i64>(row, 0))?;
    match clash {
        Some(place) => Err(defect(format!("place {place} of the buyer of purchase {handle} is held twice"))),
        None => Ok(()),
    }
}
