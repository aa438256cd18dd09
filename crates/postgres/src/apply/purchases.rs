//! Writing purchases: new rows, and guarded moves.
//!
//! Invariants: a flash purchase has exactly one line, kept in its row; a direct one has its lines beside it. Places that are
//! given free in a set are free before any is taken. A move that keeps the place writes it as it is, which touches no index.

use onceward_domain::changes::{ChangeSet, PurchaseMove, Step};
use onceward_domain::error::Error;
use onceward_domain::machine::reservation::Reservation as ReservationStatus;
use onceward_domain::money::Money;
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Reason, Route};
use uuid::Uuid;

use super::places;
use super::script::{Guarded, Loss, Script, column};
use crate::failure::defect;
use crate::pipeline::{Params, params};
use crate::queries;
use crate::refs::Names;
use crate::rows::{code, currency_code, position, route_code, uuid_of};
use crate::transact::{Places, Refusal};

pub(super) async fn write<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    changes: &'a ChangeSet,
    known: &Places,
) -> Result<(), Refusal> {
    let ChangeSet { new_purchases, purchases, .. } = changes;
    places::free(script, (new_purchases, purchases), known).await?;
    add(script, names, new_purchases).await?;
    change(script, purchases).await?;
    places::take(script, (new_purchases, purchases), known).await
}

async fn add<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    purchases: &'a [Purchase],
) -> Result<(), Refusal> {
    if purchases.is_empty() {
        return Ok(());
    }
    let rows: Vec<New<'a>> = purchases.iter().map(|one| New::of(names, one)).collect::<Result<_, _>>()?;
    let order = |one: &New<'a>| one.purchase.order.as_ref();
    macro_rules! each {
        ($one:ident => $value:expr) => {
            rows.iter().map(|$one| $value).collect::<Vec<_>>()
        };
    }
    let parameters = params![
        each!(one => uuid_of(one.purchase.id)),
        each!(one => one.purchase.revision),
        each!(one => one.purchase.user.as_str()),
        each!(one => one.purchase.request.as_str()),
        each!(one => route_code(one.purchase.route)),
        each!(one => one.sku_ref),
        each!(one => one.line.map(|line| i64::from(line.quantity))),
        each!(one => one.line.map(|line| line.place)),
        each!(one => code(one.purchase.admission)),
        each!(one => one.purchase.reservation.map(code)),
        each!(one => one.purchase.reason.map(|reason| position(&Reason::ALL, reason))),
        each!(one => one.purchase.reserved_at.0),
        each!(one => one.purchase.business_deadline.0),
        each!(one => one.purchase.updated_at.0),
        each!(one => one.purchase.inbox.map(|inbox| position(&InboxResult::ALL, inbox.result))),
        each!(one => one.purchase.inbox.as_ref().map(|inbox| inbox.payload_hash.as_slice())),
        each!(one => order(one).map(|order| code(order.status))),
        each!(one => one.currency),
        each!(one => one.line.and_then(|line| line.unit_price).map(|price| price.amount())),
        each!(one => one.total()),
        each!(one => order(one).map(|order| order.paid)),
        each!(one => order(one).map(|order| order.refunded)),
        each!(one => order(one).map(|order| order.created_at.0)),
        each!(one => order(one).map(|order| order.expires_at.0)),
        each!(one => order(one).map(|order| order.cancel_due_at.0)),
        each!(one => order(one).and_then(|order| order.paid_at).map(|at| at.0)),
        each!(one => order(one).and_then(|order| order.cancelled_at).map(|at| at.0)),
        each!(one => order(one).and_then(|order| order.cancel_reason.as_deref())),
        each!(one => one.purchase.compensation.map(|id| id.0)),
    ];
    let missing = (purchases.len(), "a purchase was not added");
    script.each("adding a purchase", queries::PURCHASE_INSERT, parameters, missing).await?;
    add_lines(script, names, purchases).await
}

/// A purchase with what its row says of its line.
struct New<'a> {
    purchase: &'a Purchase,
    line: Option<&'a Line>,
    sku_ref: Option<i32>,
    currency: Option<i16>,
}

impl<'a> New<'a> {
    fn of(names: &Names<'_>, purchase: &'a Purchase) -> Result<Self, Error> {
        let line = match (purchase.route, purchase.lines.as_slice()) {
            (Route::Flash, [line]) => Some(line),
            (Route::Flash, lines) => {
                return Err(defect(format!(
                    "{:?} came by admission with {} lines",
                    purchase.id,
                    lines.len()
                )));
            }
            (Route::Direct, []) => return Err(defect(format!("{:?} has no lines", purchase.id))),
            (Route::Direct, _) => None,
        };
        let sku_ref = line.map(|line| names.known_sku(&line.key)).transpose()?;
        Ok(Self { purchase, line, sku_ref, currency: currency(purchase)? })
    }

    /// The total, where it is not unit price times quantity.
    fn total(&self) -> Option<i64> {
        let total = self.purchase.order.as_ref()?.total.amount();
        let usual = self.line.and_then(|line| {
            line.unit_price.and_then(|price| price.amount().checked_mul(i64::from(line.quantity)))
        });
        (usual != Some(total)).then_some(total)
    }
}

/// The one currency of all amounts of a purchase, where it has amounts.
fn currency(purchase: &Purchase) -> Result<Option<i16>, Error> {
    let prices = purchase.lines.iter().filter_map(|line| line.unit_price);
    let mut amounts = purchase.order.as_ref().map(|order| order.total).into_iter().chain(prices);
    let Some(first) = amounts.next().map(|amount| amount.currency()) else { return Ok(None) };
    if amounts.any(|amount| amount.currency() != first) {
        return Err(defect(format!("{:?} mixes two currencies", purchase.id)));
    }
    Ok(Some(currency_code(first)))
}

async fn add_lines<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    purchases: &'a [Purchase],
) -> Result<(), Refusal> {
    let mut rows: Vec<(Uuid, i32, i32, &Line)> = Vec::new();
    for purchase in purchases.iter().filter(|one| one.route == Route::Direct) {
        for (number, line) in (0_i32..).zip(&purchase.lines) {
            rows.push((uuid_of(purchase.id), number, names.known_sku(&line.key)?, line));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let parameters = params![
        rows.iter().map(|row| row.0).collect::<Vec<_>>(),
        rows.iter().map(|row| row.1).collect::<Vec<_>>(),
        rows.iter().map(|row| row.2).collect::<Vec<_>>(),
        rows.iter().map(|row| i64::from(row.3.quantity)).collect::<Vec<_>>(),
        rows.iter().map(|row| row.3.place).collect::<Vec<_>>(),
        rows.iter().map(|row| row.3.unit_price.map(|price| price.amount())).collect::<Vec<_>>(),
    ];
    let missing = (rows.len(), "a line names a purchase that is not there");
    script.each("adding a line of an order", queries::ORDER_LINE_INSERT, parameters, missing).await
}

/// Moves purchases, each on the revision it was decided on, all that are alike in one statement.
async fn change<'a>(script: &mut Script<'a>, moves: &'a [PurchaseMove]) -> Result<(), Refusal> {
    let mut sorted = Sorted::default();
    for change in moves {
        sorted.add(change)?;
    }
    let Sorted { births, reservations, inboxes, admissions, orders } = sorted;
    create_orders(script, births).await?;
    move_reservations(script, reservations).await?;
    move_inboxes(script, inboxes).await?;
    move_admissions(script, admissions).await?;
    move_orders(script, orders).await
}

/// A move, with the reservation's state, the inbox entry, the order, the place and the price after it.
type Birth<'a> = (&'a PurchaseMove, ReservationStatus, &'a Inbox, &'a Order, i64, Money);

/// A move, with the reservation's state, the reason, the inbox entry and the place after it.
type Turn<'a> = (&'a PurchaseMove, ReservationStatus, Option<Reason>, Option<&'a Inbox>, i64);

/// Moves by what they change.
#[derive(Default)]
struct Sorted<'a> {
    births: Vec<Birth<'a>>,
    reservations: Vec<Turn<'a>>,
    inboxes: Vec<(&'a PurchaseMove, &'a Inbox)>,
    admissions: Vec<(&'a PurchaseMove, i16, Option<Uuid>, i64)>,
    orders: Vec<(&'a PurchaseMove, &'a Order, Option<ReservationStatus>, Option<i64>)>,
}

impl<'a> Sorted<'a> {
    fn add(&mut self, change: &'a PurchaseMove) -> Result<(), Error> {
        match &change.step {
            Step::CreateOrder { reservation, inbox, order, place, unit_price } => {
                if unit_price.currency() != order.total.currency() {
                    return Err(defect(format!("{:?} mixes two currencies", change.id)));
                }
                self.births.push((change, *reservation, inbox, order, *place, *unit_price));
            }
            Step::Reservation { to, reason, inbox, place } => {
                self.reservations.push((change, *to, *reason, inbox.as_ref(), *place));
            }
            Step::Inbox(inbox) => self.inboxes.push((change, inbox)),
            Step::Admission { to, compensation, place } => {
                self.admissions.push((change, code(*to), compensation.map(|id| id.0), *place));
            }
            Step::Order { order, reservation, places } => {
                self.orders.push((change, order, *reservation, places.first().copied()));
            }
        }
        Ok(())
    }
}

/// Writes moves, each on the revision that it was decided on. `values` stand behind handles, ids, revisions and times.
async fn write_moves<'a>(
    script: &mut Script<'a>,
    (doing, sql): (&'static str, &'static str),
    moves: Vec<&'a PurchaseMove>,
    values: Params<'a>,
) -> Result<(), Refusal> {
    if moves.is_empty() {
        return Ok(());
    }
    let mut parameters = params![
        column(&moves, |change| change.handle),
        column(&moves, |change| uuid_of(change.id)),
        column(&moves, |change| change.revision),
        column(&moves, |change| change.at.0),
    ];
    parameters.extend(values);
    let count = moves.len();
    script.guarded(doing, sql, parameters, (count, lost(moves))).await
}

fn lost<'a>(moves: Vec<&'a PurchaseMove>) -> impl FnOnce() -> Loss + Send + 'a {
    move || Loss::Revision {
        what: "purchase",
        peek: queries::PURCHASE_PEEK,
        rows: moves
            .into_iter()
            .map(|change| Guarded {
                shown: format!("{:?} at handle {}", change.id, change.handle),
                key: params![uuid_of(change.id)],
                revision: change.revision,
            })
            .collect(),
    }
}

async fn create_orders<'a>(script: &mut Script<'a>, rows: Vec<Birth<'a>>) -> Result<(), Refusal> {
    let moves = column(&rows, |row| row.0);
    let values = params![
        column(&rows, |row| row.4),
        column(&rows, |row| code(row.1)),
        column(&rows, |row| position(&InboxResult::ALL, row.2.result)),
        rows.iter().map(|row| row.2.payload_hash.as_slice()).collect::<Vec<_>>(),
        column(&rows, |row| code(row.3.status)),
        column(&rows, |row| currency_code(row.3.total.currency())),
        column(&rows, |row| row.5.amount()),
        column(&rows, |row| row.3.total.amount()),
        column(&rows, |row| row.3.paid),
        column(&rows, |row| row.3.refunded),
        column(&rows, |row| row.3.created_at.0),
        column(&rows, |row| row.3.expires_at.0),
        column(&rows, |row| row.3.cancel_due_at.0),
        column(&rows, |row| row.3.paid_at.map(|at| at.0)),
        column(&rows, |row| row.3.cancelled_at.map(|at| at.0)),
        rows.iter().map(|row| row.3.cancel_reason.as_deref()).collect::<Vec<_>>(),
    ];
    write_moves(script, ("writing the birth of an order", queries::PURCHASE_CREATE_ORDER), moves, values)
        .await
}

async fn move_reservations<'a>(script: &mut Script<'a>, rows: Vec<Turn<'a>>) -> Result<(), Refusal> {
    let moves = column(&rows, |row| row.0);
    let values = params![
        column(&rows, |row| row.4),
        column(&rows, |row| code(row.1)),
        column(&rows, |row| row.2.map(|reason| position(&Reason::ALL, reason))),
        column(&rows, |row| row.3.map(|inbox| position(&InboxResult::ALL, inbox.result))),
        rows.iter().map(|row| row.3.map(|inbox| inbox.payload_hash.as_slice())).collect::<Vec<_>>(),
    ];
    write_moves(script, ("moving a reservation", queries::PURCHASE_MOVE_RESERVATION), moves, values).await
}

async fn move_inboxes<'a>(
    script: &mut Script<'a>,
    rows: Vec<(&'a PurchaseMove, &'a Inbox)>,
) -> Result<(), Refusal> {
    let moves = column(&rows, |row| row.0);
    let values = params![
        column(&rows, |row| position(&InboxResult::ALL, row.1.result)),
        rows.iter().map(|row| row.1.payload_hash.as_slice()).collect::<Vec<_>>(),
    ];
    write_moves(script, ("noting what came of a message", queries::PURCHASE_MOVE_INBOX), moves, values).await
}

async fn move_admissions<'a>(
    script: &mut Script<'a>,
    rows: Vec<(&'a PurchaseMove, i16, Option<Uuid>, i64)>,
) -> Result<(), Refusal> {
    let moves = column(&rows, |row| row.0);
    let values = params![column(&rows, |row| row.3), column(&rows, |row| row.1), column(&rows, |row| row.2),];
    write_moves(script, ("moving admission's view", queries::PURCHASE_MOVE_ADMISSION), moves, values).await
}

async fn move_orders<'a>(
    script: &mut Script<'a>,
    rows: Vec<(&'a PurchaseMove, &'a Order, Option<ReservationStatus>, Option<i64>)>,
) -> Result<(), Refusal> {
    let moves = column(&rows, |row| row.0);
    let values = params![
        column(&rows, |row| row.3),
        column(&rows, |row| row.2.map(code)),
        column(&rows, |row| code(row.1.status)),
        column(&rows, |row| currency_code(row.1.total.currency())),
        column(&rows, |row| row.1.total.amount()),
        column(&rows, |row| row.1.paid),
        column(&rows, |row| row.1.refunded),
        column(&rows, |row| row.1.created_at.0),
        column(&rows, |row| row.1.expires_at.0),
        column(&rows, |row| row.1.cancel_due_at.0),
        column(&rows, |row| row.1.paid_at.map(|at| at.0)),
        column(&rows, |row| row.1.cancelled_at.map(|at| at.0)),
        rows.iter().map(|row| row.1.cancel_reason.as_deref()).collect::<Vec<_>>(),
    ];
    write_moves(script, ("moving an order", queries::PURCHASE_MOVE_ORDER), moves, values).await
}
