//! The places of a buyer under the limit of a SKU: given free, taken, and held once.
//!
//! Invariants: among the places that are not negative, none is held twice, neither by two flash purchases nor by two
//! lines (an index each) nor by one of each (asked here after places were taken; places move under the lock of the SKU).
//! Within one set, all that is given free is free before anything is taken.

use onceward_domain::changes::{PurchaseMove, Step};
use onceward_domain::purchase::{Purchase, Route};
use uuid::Uuid;

use super::script::Script;
use crate::pipeline::params;
use crate::queries;
use crate::rows::uuid_of;
use crate::transact::{Places, Refusal};

/// What a place that is held twice is called.
const TWICE: &str = "a place of a buyer is held twice";

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

/// Whether a purchase may keep its places in its lines.
fn may_be_direct(change: &PurchaseMove, known: &Places) -> bool {
    known.get(&change.handle).is_none_or(Option::is_none)
}

/// Whether a purchase may keep its place in its row, and another one than the step gives it.
fn may_move(change: &PurchaseMove, wanted: i64, known: &Places) -> bool {
    match known.get(&change.handle) {
        Some(Some(place)) => *place != wanted,
        Some(None) => false,
        None => true,
    }
}

/// Gives the places free that moves do not keep. Where a set has one purchase, its own row is moved in one step anyway.
pub(super) async fn free<'a>(
    script: &mut Script<'a>,
    (added, moves): (&[Purchase], &[PurchaseMove]),
    known: &Places,
) -> Result<(), Refusal> {
    if added.len() + moves.len() > 1 {
        let moved = moves.iter().filter_map(|change| {
            let wanted = *places(&change.step).first()?;
            may_move(change, wanted, known).then_some((change.handle, wanted))
        });
        let (handles, wanted): (Vec<i64>, Vec<i64>) = moved.unzip();
        if !handles.is_empty() {
            script.any("giving places free", queries::PURCHASE_FREE, params![handles, wanted]).await?;
        }
    }
    let (handles, lines, wanted) = line_places(moves, known);
    if !handles.is_empty() {
        script.any("giving places free", queries::ORDER_LINE_FREE, params![handles, lines, wanted]).await?;
    }
    Ok(())
}

/// Takes the places of lines, and looks whether any is held twice now.
pub(super) async fn take<'a>(
    script: &mut Script<'a>,
    (added, moves): (&[Purchase], &[PurchaseMove]),
    known: &Places,
) -> Result<(), Refusal> {
    let (handles, lines, wanted) = line_places(moves, known);
    if !handles.is_empty() {
        script.any("taking places", queries::ORDER_LINE_MOVE_PLACE, params![handles, lines, wanted]).await?;
    }
    let new =
        |route| added.iter().filter(move |one| one.route == route && holds(one)).map(|one| uuid_of(one.id));
    let taken = |change: &&PurchaseMove| {
        places(&change.step).iter().any(|place| *place >= 0 && may_take(change, *place, known))
    };
    let moved = |change: &PurchaseMove| uuid_of(change.id);
    let flash: Vec<Uuid> = new(Route::Flash).chain(moves.iter().filter(taken).map(moved)).collect();
    if !flash.is_empty() {
        script.never("looking for a place", queries::PURCHASE_CLASH, params![flash], TWICE).await?;
    }
    let direct = moves.iter().filter(|change| may_be_direct(change, known)).filter(taken).map(moved);
    let direct: Vec<Uuid> = new(Route::Direct).chain(direct).collect();
    if !direct.is_empty() {
        script.never("looking for a place", queries::ORDER_LINE_CLASH, params![direct], TWICE).await?;
    }
    Ok(())
}

fn may_take(change: &PurchaseMove, place: i64, known: &Places) -> bool {
    may_be_direct(change, known) || may_move(change, place, known)
}

fn holds(purchase: &Purchase) -> bool {
    purchase.lines.iter().any(|line| line.place >= 0)
}

/// Handles, line numbers and places of what may be kept in lines.
fn line_places(moves: &[PurchaseMove], known: &Places) -> (Vec<i64>, Vec<i32>, Vec<i64>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for change in moves.iter().filter(|change| may_be_direct(change, known)) {
        for (line, place) in (0_i32..).zip(places(&change.step)) {
            columns.0.push(change.handle);
            columns.1.push(line);
            columns.2.push(*place);
        }
    }
    columns
}
