//! Rows as domain values.
//!
//! Invariant: what was written comes back equal, or reading fails with a defect; nothing is guessed. The positions
//! below are those of the columns in `queries/purchase/*.sql`. Read next: `purchases`, `load`.

use std::sync::Arc;

use onceward_domain::error::Error;
use onceward_domain::id::{CompensationId, PurchaseId, RequestId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::money::{Currency, Money};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Reason, Route};
use onceward_domain::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::failure::{defect, failed};

/// Every route; the position is the stored code.
const ROUTES: [Route; 2] = [Route::Flash, Route::Direct];

pub(crate) mod column {
    //! Where the columns of a whole purchase stand.

    pub(crate) const SEQ: usize = 0;
    pub(crate) const ID: usize = 1;
    pub(crate) const REVISION: usize = 2;
    pub(crate) const USER_ID: usize = 3;
    pub(crate) const REQUEST_ID: usize = 4;
    pub(crate) const ROUTE: usize = 5;
    pub(crate) const SKU_REF: usize = 6;
    pub(crate) const QUANTITY: usize = 7;
    pub(crate) const PLACE: usize = 8;
    pub(crate) const ADMISSION: usize = 9;
    pub(crate) const RESERVATION: usize = 10;
    pub(crate) const REASON: usize = 11;
    pub(crate) const RESERVED_AT: usize = 12;
    pub(crate) const BUSINESS_DEADLINE: usize = 13;
    pub(crate) const UPDATED_AT: usize = 14;
    pub(crate) const INBOX_RESULT: usize = 15;
    pub(crate) const PAYLOAD_HASH: usize = 16;
    pub(crate) const ORDER_STATUS: usize = 17;
    pub(crate) const CURRENCY: usize = 18;
    pub(crate) const UNIT_PRICE: usize = 19;
    pub(crate) const TOTAL: usize = 20;
    pub(crate) const PAID: usize = 21;
    pub(crate) const REFUNDED: usize = 22;
    pub(crate) const CREATED_AT: usize = 23;
    pub(crate) const EXPIRES_AT: usize = 24;
    pub(crate) const CANCEL_DUE_AT: usize = 25;
    pub(crate) const PAID_AT: usize = 26;
    pub(crate) const CANCELLED_AT: usize = 27;
    pub(crate) const CANCEL_REASON: usize = 28;
    pub(crate) const COMPENSATION: usize = 29;
    /// Which of the pairs that were asked for it belongs to, in the statements that ask by buyers.
    pub(crate) const ASKED: usize = 30;
}

/// A value of a column.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Error> {
    row.try_get(index).map_err(failed("reading a row"))
}

/// A text of a column.
pub(crate) fn text(row: &Row, index: usize) -> Result<&str, Error> {
    get(row, index)
}

/// A text of a column, kept.
pub(crate) fn kept(row: &Row, index: usize) -> Result<Arc<str>, Error> {
    text(row, index).map(Arc::from)
}

/// A text of a column, kept, where there is one.
pub(crate) fn kept_if(row: &Row, index: usize) -> Result<Option<Arc<str>>, Error> {
    Ok(get::<Option<&str>>(row, index)?.map(Arc::from))
}

/// A time of a column.
pub(crate) fn time(row: &Row, index: usize) -> Result<Timestamp, Error> {
    get(row, index).map(Timestamp)
}

/// A time of a column, where there is one.
pub(crate) fn time_if(row: &Row, index: usize) -> Result<Option<Timestamp>, Error> {
    Ok(get::<Option<i64>>(row, index)?.map(Timestamp))
}

/// A whole number of a column in the domain's own width.
pub(crate) fn number<T: TryFrom<i64>>(row: &Row, index: usize) -> Result<T, Error> {
    let value: i64 = get(row, index)?;
    T::try_from(value).map_err(|_| defect(format!("a row holds the number {value} where it cannot be")))
}

/// A digest of a column.
pub(crate) fn digest(row: &Row, index: usize) -> Result<[u8; 32], Error> {
    let bytes: &[u8] = get(row, index)?;
    bytes.try_into().map_err(|_| defect(format!("a row holds a digest of {} bytes", bytes.len())))
}

/// The stored number of a route.
pub(crate) fn route_code(route: Route) -> i16 {
    match route {
        Route::Flash => 0,
        Route::Direct => 1,
    }
}

/// Where a value stands in the list of all; the lists have a handful of members.
pub(crate) fn position<T: PartialEq>(all: &[T], value: T) -> i16 {
    let found = all.iter().position(|known| *known == value);
    i16::try_from(found.expect("every value is listed")).expect("fewer than 256 values")
}

/// The stored number of a state.
pub(crate) fn code<M: Machine>(state: M) -> i16 {
    i16::from(state.code())
}

/// The stored number of a currency.
pub(crate) fn currency_code(currency: Currency) -> i16 {
    i16::try_from(currency.numeric()).expect("a currency's number has three digits")
}

/// The state of a column.
pub(crate) fn state<M: Machine>(row: &Row, index: usize) -> Result<M, Error> {
    state_of(get(row, index)?)
}

/// The state of a column, where there is one.
pub(crate) fn state_if<M: Machine>(row: &Row, index: usize) -> Result<Option<M>, Error> {
    get::<Option<i16>>(row, index)?.map(state_of).transpose()
}

fn state_of<M: Machine>(code: i16) -> Result<M, Error> {
    let found = u8::try_from(code).ok().and_then(M::from_code);
    found.ok_or_else(|| defect(format!("a row holds state {code} of {}, which is unknown", M::NAME)))
}

/// The value at a stored position.
pub(crate) fn listed<T: Copy>(all: &[T], code: i16, what: &str) -> Result<T, Error> {
    let found = usize::try_from(code).ok().and_then(|index| all.get(index));
    found.copied().ok_or_else(|| defect(format!("a row holds {what} {code}, which is unknown")))
}

/// An amount as it is stored.
pub(crate) fn money(amount: i64, currency: i16) -> Result<Money, Error> {
    let found = u16::try_from(currency).ok().and_then(Currency::from_numeric);
    let currency =
        found.ok_or_else(|| defect(format!("a row holds currency {currency}, which is unknown")))?;
    Money::new(amount, currency)
        .map_err(|cause| defect(format!("a row holds {amount} as an amount")).because(cause))
}

/// A purchase's id of a column.
pub(crate) fn purchase_id(row: &Row, index: usize) -> Result<PurchaseId, Error> {
    Ok(PurchaseId::from_bytes(get::<Uuid>(row, index)?.into_bytes()))
}

/// An id as the server knows it.
pub(crate) fn uuid_of(id: PurchaseId) -> Uuid {
    Uuid::from_bytes(*id.bytes())
}

/// A whole purchase, with the key of its own line, or with the lines that were read apart.
pub(crate) fn purchase(row: &Row, key: Option<SkuKey>, lines: Vec<Line>) -> Result<Purchase, Error> {
    let currency: Option<i16> = get(row, column::CURRENCY)?;
    let lines = match key {
        Some(key) => vec![flash_line(key, currency, row)?],
        None => lines,
    };
    let reason: Option<i16> = get(row, column::REASON)?;
    Ok(Purchase {
        id: purchase_id(row, column::ID)?,
        handle: get(row, column::SEQ)?,
        route: listed(&ROUTES, get(row, column::ROUTE)?, "route")?,
        user: UserId::trusted(text(row, column::USER_ID)?),
        request: RequestId::trusted(text(row, column::REQUEST_ID)?),
        lines,
        admission: state(row, column::ADMISSION)?,
        compensation: get::<Option<Uuid>>(row, column::COMPENSATION)?.map(CompensationId),
        reservation: state_if(row, column::RESERVATION)?,
        reason: reason.map(|code| listed(&Reason::ALL, code, "reason")).transpose()?,
        reserved_at: time(row, column::RESERVED_AT)?,
        business_deadline: time(row, column::BUSINESS_DEADLINE)?,
        inbox: inbox(row)?,
        order: order(row, currency)?,
        updated_at: time(row, column::UPDATED_AT)?,
        revision: get(row, column::REVISION)?,
    })
}

fn flash_line(key: SkuKey, currency: Option<i16>, row: &Row) -> Result<Line, Error> {
    Ok(Line {
        key,
        quantity: number(row, column::QUANTITY)?,
        place: get(row, column::PLACE)?,
        unit_price: price(get(row, column::UNIT_PRICE)?, currency)?,
    })
}

/// The price of a unit, where there is one.
pub(crate) fn price(amount: Option<i64>, currency: Option<i16>) -> Result<Option<Money>, Error> {
    match (amount, currency) {
        (Some(amount), Some(currency)) => Ok(Some(money(amount, currency)?)),
        (None, _) => Ok(None),
        (Some(_), None) => Err(defect("a row holds a price without a currency")),
    }
}

fn inbox(row: &Row) -> Result<Option<Inbox>, Error> {
    let Some(code) = get::<Option<i16>>(row, column::INBOX_RESULT)? else { return Ok(None) };
    let result = listed(&InboxResult::ALL, code, "inbox result")?;
    Ok(Some(Inbox { payload_hash: digest(row, column::PAYLOAD_HASH)?, result }))
}

fn order(row: &Row, currency: Option<i16>) -> Result<Option<Order>, Error> {
    let Some(status) = state_if(row, column::ORDER_STATUS)? else { return Ok(None) };
    let currency = currency.ok_or_else(|| defect("a row holds an order without a currency"))?;
    Ok(Some(Order {
        status,
        total: money(total(row)?, currency)?,
        paid: get(row, column::PAID)?,
        refunded: get(row, column::REFUNDED)?,
        created_at: time(row, column::CREATED_AT)?,
        expires_at: time(row, column::EXPIRES_AT)?,
        cancel_due_at: time(row, column::CANCEL_DUE_AT)?,
        paid_at: time_if(row, column::PAID_AT)?,
        cancelled_at: time_if(row, column::CANCELLED_AT)?,
        cancel_reason: kept_if(row, column::CANCEL_REASON)?,
    }))
}

/// What is to be paid; left out of the row where it is unit price times quantity.
fn total(row: &Row) -> Result<i64, Error> {
    if let Some(total) = get(row, column::TOTAL)? {
        return Ok(total);
    }
    let (price, quantity): (Option<i64>, Option<i64>) =
        (get(row, column::UNIT_PRICE)?, get(row, column::QUANTITY)?);
    let total = price.zip(quantity).and_then(|(price, quantity)| price.checked_mul(quantity));
    total.ok_or_else(|| defect("a row holds an order without a total"))
}
