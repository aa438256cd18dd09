//! Rows as domain values.
//!
//! Invariant: what was written comes back equal, or reading fails with a defect; nothing is guessed. The positions
//! below are those of the columns in `queries/purchase/*.sql`. Read next: `load`.

use std::sync::Arc;

use onceward_domain::error::Error;
use onceward_domain::id::{CompensationId, PurchaseId, RequestId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::money::{Currency, Money};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Reason, Route};
use onceward_domain::time::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Connection, Row};
use uuid::Uuid;

use crate::failure::{defect, failed};
use crate::queries;
use crate::refs::Refs;

/// Every route; the position is the stored code.
const ROUTES: [Route; 2] = [Route::Flash, Route::Direct];

mod column {
    pub(super) const SEQ: usize = 0;
    pub(super) const ID: usize = 1;
    pub(super) const REVISION: usize = 2;
    pub(super) const USER_ID: usize = 3;
    pub(super) const REQUEST_ID: usize = 4;
    pub(super) const ROUTE: usize = 5;
    pub(super) const SKU_REF: usize = 6;
    pub(super) const QUANTITY: usize = 7;
    pub(super) const PLACE: usize = 8;
    pub(super) const ADMISSION: usize = 9;
    pub(super) const RESERVATION: usize = 10;
    pub(super) const REASON: usize = 11;
    pub(super) const RESERVED_AT: usize = 12;
    pub(super) const BUSINESS_DEADLINE: usize = 13;
    pub(super) const UPDATED_AT: usize = 14;
    pub(super) const INBOX_RESULT: usize = 15;
    pub(super) const PAYLOAD_HASH: usize = 16;
    pub(super) const ORDER_STATUS: usize = 17;
    pub(super) const CURRENCY: usize = 18;
    pub(super) const UNIT_PRICE: usize = 19;
    pub(super) const TOTAL: usize = 20;
    pub(super) const PAID: usize = 21;
    pub(super) const REFUNDED: usize = 22;
    pub(super) const CREATED_AT: usize = 23;
    pub(super) const EXPIRES_AT: usize = 24;
    pub(super) const CANCEL_DUE_AT: usize = 25;
    pub(super) const PAID_AT: usize = 26;
    pub(super) const CANCELLED_AT: usize = 27;
    pub(super) const CANCEL_REASON: usize = 28;
    pub(super) const COMPENSATION: usize = 29;
}

/// A value of a column.
pub(crate) fn get<T: FromSql>(row: &Row<'_>, index: usize) -> Result<T, Error> {
    row.get(index).map_err(failed("reading a row"))
}

/// A count of a column.
pub(crate) fn count(row: &Row<'_>, index: usize) -> Result<u64, Error> {
    let value: i64 = get(row, index)?;
    u64::try_from(value).map_err(|cause| defect(format!("a count is {value}")).because(cause))
}

/// The position of a route.
pub(crate) fn route_code(route: Route) -> u8 {
    match route {
        Route::Flash => 0,
        Route::Direct => 1,
    }
}

/// The position of a reason.
pub(crate) fn reason_code(reason: Reason) -> u8 {
    position(&Reason::ALL, reason)
}

/// The position of an inbox result.
pub(crate) fn inbox_code(result: InboxResult) -> u8 {
    position(&InboxResult::ALL, result)
}

/// Where a value stands in the list of all; the lists have a handful of members.
pub(crate) fn position<T: PartialEq>(all: &[T], value: T) -> u8 {
    let found = all.iter().position(|known| *known == value);
    u8::try_from(found.expect("every value is listed")).expect("fewer than 256 values")
}

/// The state behind a stored number.
pub(crate) fn state<M: Machine>(code: u8) -> Result<M, Error> {
    M::from_code(code)
        .ok_or_else(|| defect(format!("a row holds state {code} of {}, which is unknown", M::NAME)))
}

/// The value at a stored position.
pub(crate) fn listed<T: Copy>(all: &[T], code: u8, what: &str) -> Result<T, Error> {
    all.get(usize::from(code))
        .copied()
        .ok_or_else(|| defect(format!("a row holds {what} {code}, which is unknown")))
}

/// An amount as it is stored.
pub(crate) fn money(amount: i64, currency: u16) -> Result<Money, Error> {
    let currency = Currency::from_numeric(currency)
        .ok_or_else(|| defect(format!("a row holds currency {currency}, which is unknown")))?;
    Money::new(amount, currency)
        .map_err(|cause| defect(format!("a row holds {amount} as an amount")).because(cause))
}

/// The id of a row with a whole purchase.
pub(crate) fn purchase_id(row: &Row<'_>) -> Result<PurchaseId, Error> {
    Ok(PurchaseId::from_bytes(get(row, column::ID)?))
}

/// A whole purchase. Its lines are read from where they are.
pub(crate) fn purchase(conn: &Connection, refs: &mut Refs, row: &Row<'_>) -> Result<Purchase, Error> {
    let handle: i64 = get(row, column::SEQ)?;
    let currency: Option<u16> = get(row, column::CURRENCY)?;
    let lines = match get::<Option<i64>>(row, column::SKU_REF)? {
        Some(sku_ref) => vec![flash_line(refs.sku_key(conn, sku_ref)?, currency, row)?],
        None => order_lines(conn, refs, handle, currency)?,
    };
    let reservation: Option<u8> = get(row, column::RESERVATION)?;
    let reason: Option<u8> = get(row, column::REASON)?;
    let compensation: Option<[u8; 16]> = get(row, column::COMPENSATION)?;
    Ok(Purchase {
        id: purchase_id(row)?,
        handle,
        route: listed(&ROUTES, get(row, column::ROUTE)?, "route")?,
        user: UserId::trusted(text(row, column::USER_ID)?),
        request: RequestId::trusted(text(row, column::REQUEST_ID)?),
        lines,
        admission: state(get(row, column::ADMISSION)?)?,
        compensation: compensation.map(|bytes| CompensationId(Uuid::from_bytes(bytes))),
        reservation: reservation.map(state).transpose()?,
        reason: reason.map(|code| listed(&Reason::ALL, code, "reason")).transpose()?,
        reserved_at: Timestamp(get(row, column::RESERVED_AT)?),
        business_deadline: Timestamp(get(row, column::BUSINESS_DEADLINE)?),
        inbox: inbox(row)?,
        order: order(row, currency)?,
        updated_at: Timestamp(get(row, column::UPDATED_AT)?),
        revision: get(row, column::REVISION)?,
    })
}

fn text<'a>(row: &'a Row<'_>, index: usize) -> Result<&'a str, Error> {
    let value = row.get_ref(index).map_err(failed("reading a row"))?;
    value.as_str().map_err(|cause| defect("a row holds a text that is none").because(cause))
}

fn flash_line(key: SkuKey, currency: Option<u16>, row: &Row<'_>) -> Result<Line, Error> {
    Ok(Line {
        key,
        quantity: get(row, column::QUANTITY)?,
        place: get(row, column::PLACE)?,
        unit_price: price(get(row, column::UNIT_PRICE)?, currency)?,
    })
}

fn order_lines(
    conn: &Connection,
    refs: &mut Refs,
    handle: i64,
    currency: Option<u16>,
) -> Result<Vec<Line>, Error> {
    let doing = failed("loading the lines of an order");
    let mut statement = conn.prepare_cached(queries::ORDER_LINE_OF_PURCHASE).map_err(&doing)?;
    let mut rows = statement.query([handle]).map_err(&doing)?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next().map_err(&doing)? {
        lines.push(Line {
            key: refs.sku_key(conn, get(row, 0)?)?,
            quantity: get(row, 1)?,
            place: get(row, 2)?,
            unit_price: price(get(row, 3)?, currency)?,
        });
    }
    Ok(lines)
}

fn price(amount: Option<i64>, currency: Option<u16>) -> Result<Option<Money>, Error> {
    match (amount, currency) {
        (Some(amount), Some(currency)) => Ok(Some(money(amount, currency)?)),
        (None, _) => Ok(None),
        (Some(_), None) => Err(defect("a row holds a price without a currency")),
    }
}

fn inbox(row: &Row<'_>) -> Result<Option<Inbox>, Error> {
    let Some(code) = get::<Option<u8>>(row, column::INBOX_RESULT)? else { return Ok(None) };
    let result = listed(&InboxResult::ALL, code, "inbox result")?;
    Ok(Some(Inbox { payload_hash: get(row, column::PAYLOAD_HASH)?, result }))
}

fn order(row: &Row<'_>, currency: Option<u16>) -> Result<Option<Order>, Error> {
    let Some(code) = get::<Option<u8>>(row, column::ORDER_STATUS)? else { return Ok(None) };
    let currency = currency.ok_or_else(|| defect("a row holds an order without a currency"))?;
    let cancel_reason: Option<Arc<str>> = get(row, column::CANCEL_REASON)?;
    Ok(Some(Order {
        status: state(code)?,
        total: money(get(row, column::TOTAL)?, currency)?,
        paid: get(row, column::PAID)?,
        refunded: get(row, column::REFUNDED)?,
        created_at: Timestamp(get(row, column::CREATED_AT)?),
        expires_at: Timestamp(get(row, column::EXPIRES_AT)?),
        cancel_due_at: Timestamp(get(row, column::CANCEL_DUE_AT)?),
        paid_at: get::<Option<i64>>(row, column::PAID_AT)?.map(Timestamp),
        cancelled_at: get::<Option<i64>>(row, column::CANCELLED_AT)?.map(Timestamp),
        cancel_reason,
    }))
}
