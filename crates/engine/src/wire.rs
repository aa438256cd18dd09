//! The wire format: JSON for the message that asks for an order, and for events.
//!
//! Invariants: encoding is a pure function of the content, field by field in a fixed order, so the same message
//! always has the same bytes and the same hash (FS-08); transport metadata (attempts, traces) is never part of
//! it. What does not decode is an error with a reason, never a panic.

use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::event::{Event, Fact, OrderCreateRequested, SCHEMA_VERSION};
use onceward_domain::id::{
    ActivityId, EventId, MessageId, OrderId, PaymentId, RefundId, RequestId, ReservationId, SkuId, SkuKey,
    UserId,
};
use onceward_domain::money::Money;
use onceward_domain::payment::Word;
use onceward_domain::ports::bus::Message;
use onceward_domain::purchase::{Line, Reason};
use onceward_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

const ORDER_CREATE_REQUESTED: &str = "ORDER_CREATE_REQUESTED";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireMessage<'a> {
    schema_version: u32,
    event_type: &'a str,
    message_id: Uuid,
    message_key: Uuid,
    reservation_id: Uuid,
    request_id: &'a str,
    activity_id: &'a str,
    sku_id: &'a str,
    user_id: &'a str,
    quantity: u32,
    reserved_at_ms: i64,
    business_deadline_ms: i64,
}

/// Encodes the request for an order as a bus message.
#[must_use]
pub fn encode_message(message: &OrderCreateRequested) -> Message {
    let id = message.purchase.message();
    let reservation = message.purchase.reservation();
    let wire = WireMessage {
        schema_version: SCHEMA_VERSION,
        event_type: ORDER_CREATE_REQUESTED,
        message_id: id.0,
        message_key: reservation.0,
        reservation_id: reservation.0,
        request_id: message.request.as_str(),
        activity_id: message.key.activity.as_str(),
        sku_id: message.key.sku.as_str(),
        user_id: message.user.as_str(),
        quantity: message.quantity,
        reserved_at_ms: message.reserved_at.0,
        business_deadline_ms: message.business_deadline.0,
    };
    let payload = serde_json::to_vec(&wire).expect("plain fields always encode");
    Message { id: Arc::from(id.to_string()), key: Arc::from(reservation.to_string()), payload }
}

/// Decodes the request for an order.
///
/// # Errors
/// [`Code::Invalid`] for a payload that is no such message, or whose ids do not belong together.
pub fn decode_message(payload: &[u8]) -> Result<OrderCreateRequested, Error> {
    let refuse = |why: &str| Error::new(Code::Invalid, format!("decoding an order message: {why}"));
    let wire: WireMessage<'_> =
        serde_json::from_slice(payload).map_err(|error| refuse(&error.to_string()))?;
    if wire.schema_version != SCHEMA_VERSION || wire.event_type != ORDER_CREATE_REQUESTED {
        return Err(refuse("unknown type or schema version"));
    }
    let purchase = ReservationId(wire.reservation_id).purchase().map_err(|_| refuse("bad reservation_id"))?;
    if MessageId(wire.message_id).purchase() != Ok(purchase) || wire.message_key != wire.reservation_id {
        return Err(refuse("ids do not belong together"));
    }
    if wire.quantity == 0 {
        return Err(refuse("quantity is zero"));
    }
    let id = |error: onceward_domain::id::IdError| refuse(&error.to_string());
    Ok(OrderCreateRequested {
        purchase,
        key: SkuKey {
            activity: ActivityId::new(wire.activity_id).map_err(id)?,
            sku: SkuId::new(wire.sku_id).map_err(id)?,
        },
        user: UserId::new(wire.user_id).map_err(id)?,
        request: RequestId::new(wire.request_id).map_err(id)?,
        quantity: wire.quantity,
        reserved_at: Timestamp(wire.reserved_at_ms),
        business_deadline: Timestamp(wire.business_deadline_ms),
    })
}

#[derive(Serialize, Deserialize)]
struct WireLine {
    activity_id: String,
    sku_id: String,
    quantity: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    unit_amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    currency: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WireEvent {
    schema_version: u32,
    event_id: Uuid,
    event_type: String,
    key: String,
    at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    order_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    reservation_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    reason_code: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    lines: Vec<WireLine>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    delta: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    number: Option<u32>,
}

/// Encodes the events of one decision as one JSON array: an outbox entry.
#[must_use]
pub fn encode_events(events: &[Event]) -> Vec<u8> {
    let wire: Vec<WireEvent> = events.iter().map(to_wire).collect();
    serde_json::to_vec(&wire).expect("plain fields always encode")
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    event_id: &'a str,
    #[serde(borrow)]
    key: &'a str,
}

/// Splits an outbox entry into one bus message per event, without decoding more than ids and keys.
///
/// # Errors
/// [`Code::ConstraintViolated`] for an entry that nobody here has encoded.
pub fn split_events(body: &[u8]) -> Result<Vec<Message>, Error> {
    let damaged = |error: serde_json::Error| {
        Error::new(Code::ConstraintViolated, "splitting an outbox entry").because(error)
    };
    let events: Vec<&RawValue> = serde_json::from_slice(body).map_err(damaged)?;
    events
        .into_iter()
        .map(|raw| {
            let head: Head<'_> = serde_json::from_str(raw.get()).map_err(damaged)?;
            let payload = raw.get().as_bytes().to_vec();
            Ok(Message { id: Arc::from(head.event_id), key: Arc::from(head.key), payload })
        })
        .collect()
}

/// Decodes one event.
///
/// # Errors
/// [`Code::Invalid`] for a payload that is no event of ours.
pub fn decode_event(payload: &[u8]) -> Result<Event, Error> {
    let refuse = |why: &str| Error::new(Code::Invalid, format!("decoding an event: {why}"));
    let wire: WireEvent = serde_json::from_slice(payload).map_err(|error| refuse(&error.to_string()))?;
    let order =
        || wire.order_id.and_then(|id| OrderId(id).purchase().ok()).ok_or_else(|| refuse("bad order_id"));
    let user = || wire.user_id.as_deref().map(UserId::trusted).ok_or_else(|| refuse("no user_id"));
    let lines = || {
        wire.lines.iter().map(from_wire_line).collect::<Option<Vec<_>>>().ok_or_else(|| refuse("bad line"))
    };
    let fact = match wire.event_type.as_str() {
        "ORDER_CREATED" => Fact::OrderCreated { purchase: order()?, user: user()?, lines: lines()? },
        "ORDER_CANCELLED" => Fact::OrderCancelled { purchase: order()?, user: user()?, lines: lines()? },
        "ORDER_REINSTATED" => Fact::OrderReinstated { purchase: order()?, user: user()?, lines: lines()? },
        "ORDER_PAID" => Fact::OrderPaid { purchase: order()?, user: user()? },
        "ORDER_REFUNDED" => Fact::OrderRefunded { purchase: order()?, user: user()? },
        "RESERVATION_REJECTED" => {
            let id = wire.reservation_id.ok_or_else(|| refuse("no reservation_id"))?;
            let purchase = ReservationId(id).purchase().map_err(|_| refuse("bad reservation_id"))?;
            let code = wire.reason_code.as_deref();
            let reason = Reason::ALL.into_iter().find(|reason| Some(reason.name()) == code);
            Fact::ReservationRejected {
                purchase,
                user: user()?,
                reason: reason.ok_or_else(|| refuse("bad reason"))?,
            }
        }
        "STOCK_ADJUSTED" => {
            let [line] = wire.lines.as_slice() else { return Err(refuse("one line is needed")) };
            let (Some(delta), Some(number)) = (wire.delta, wire.number) else {
                return Err(refuse("no delta"));
            };
            Fact::StockAdjusted { key: key_of(line), delta, number }
        }
        _ => return Err(refuse("unknown event_type")),
    };
    Ok(Event { id: EventId(wire.event_id), at: Timestamp(wire.at_ms), fact })
}

fn to_wire(event: &Event) -> WireEvent {
    let mut wire = WireEvent {
        schema_version: SCHEMA_VERSION,
        event_id: event.id.0,
        event_type: event.fact.event_type().to_owned(),
        key: String::new(),
        at_ms: event.at.0,
        order_id: None,
        reservation_id: None,
        user_id: None,
        reason_code: None,
        lines: Vec::new(),
        delta: None,
        number: None,
    };
    match &event.fact {
        Fact::OrderCreated { purchase, user, lines }
        | Fact::OrderCancelled { purchase, user, lines }
        | Fact::OrderReinstated { purchase, user, lines } => {
            wire.key = purchase.order().to_string();
            wire.order_id = Some(purchase.order().0);
            wire.user_id = Some(user.as_str().to_owned());
            wire.lines = lines.iter().map(to_wire_line).collect();
        }
        Fact::OrderPaid { purchase, user } | Fact::OrderRefunded { purchase, user } => {
            wire.key = purchase.order().to_string();
            wire.order_id = Some(purchase.order().0);
            wire.user_id = Some(user.as_str().to_owned());
        }
        Fact::ReservationRejected { purchase, user, reason } => {
            wire.key = purchase.order().to_string();
            wire.reservation_id = Some(purchase.reservation().0);
            wire.user_id = Some(user.as_str().to_owned());
            wire.reason_code = Some(reason.name().to_owned());
        }
        Fact::StockAdjusted { key, delta, number } => {
            wire.key = key.to_string();
            wire.lines = vec![WireLine {
                activity_id: key.activity.as_str().to_owned(),
                sku_id: key.sku.as_str().to_owned(),
                quantity: 0,
                unit_amount: None,
                currency: None,
            }];
            wire.delta = Some(*delta);
            wire.number = Some(*number);
        }
    }
    wire
}

fn to_wire_line(line: &Line) -> WireLine {
    WireLine {
        activity_id: line.key.activity.as_str().to_owned(),
        sku_id: line.key.sku.as_str().to_owned(),
        quantity: line.quantity,
        unit_amount: line.unit_price.map(|price| price.amount()),
        currency: line.unit_price.map(|price| price.currency().code().to_owned()),
    }
}

fn key_of(line: &WireLine) -> SkuKey {
    SkuKey { activity: ActivityId::trusted(&line.activity_id), sku: SkuId::trusted(&line.sku_id) }
}

fn from_wire_line(line: &WireLine) -> Option<Line> {
    let unit_price = match (line.unit_amount, line.currency.as_deref()) {
        (Some(amount), Some(code)) => Some(Money::parse(amount, code).ok()?),
        _ => None,
    };
    Some(Line { key: key_of(line), quantity: line.quantity, place: 0, unit_price })
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireWord {
    word: String,
    id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    transaction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    currency: Option<String>,
}

/// Encodes a provider's word, as the callback lane keeps it.
#[must_use]
pub fn encode_word(word: &Word) -> Vec<u8> {
    let plain = |word: &str, id: Uuid| WireWord {
        word: word.to_owned(),
        id,
        transaction: None,
        amount: None,
        currency: None,
    };
    let wire = match word {
        Word::Succeeded { payment, transaction, amount } => WireWord {
            transaction: Some(transaction.to_string()),
            amount: Some(amount.amount()),
            currency: Some(amount.currency().code().to_owned()),
            ..plain("succeeded", payment.0)
        },
        Word::Failed { payment } => plain("failed", payment.0),
        Word::Closed { payment } => plain("closed", payment.0),
        Word::Processing { payment } => plain("processing", payment.0),
        Word::Silent { payment } => plain("silent", payment.0),
        Word::Refunded { refund } => plain("refunded", refund.0),
        Word::RefundFailed { refund } => plain("refund_failed", refund.0),
        Word::RefundSilent { refund } => plain("refund_silent", refund.0),
    };
    serde_json::to_vec(&wire).expect("plain fields always encode")
}

/// Decodes what [`encode_word`] encoded.
///
/// # Errors
/// [`Code::Invalid`] for anything else.
pub fn decode_word(body: &[u8]) -> Result<Word, Error> {
    let refuse = |why: &str| Error::new(Code::Invalid, format!("decoding a provider's word: {why}"));
    let wire: WireWord = serde_json::from_slice(body).map_err(|error| refuse(&error.to_string()))?;
    let (payment, refund) = (PaymentId(wire.id), RefundId(wire.id));
    Ok(match wire.word.as_str() {
        "succeeded" => {
            let code = wire.currency.as_deref().unwrap_or_default();
            let amount = Money::parse(wire.amount.unwrap_or(-1), code).map_err(|_| refuse("bad amount"))?;
            let transaction = wire.transaction.ok_or_else(|| refuse("no transaction"))?;
            Word::Succeeded { payment, transaction: Arc::from(transaction), amount }
        }
        "failed" => Word::Failed { payment },
        "closed" => Word::Closed { payment },
        "processing" => Word::Processing { payment },
        "silent" => Word::Silent { payment },
        "refunded" => Word::Refunded { refund },
        "refund_failed" => Word::RefundFailed { refund },
        "refund_silent" => Word::RefundSilent { refund },
        _ => return Err(refuse("unknown word")),
    })
}
