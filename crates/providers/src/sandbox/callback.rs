//! The bodies of callbacks: what the bank writes and the engine's side reads.
//!
//! Invariants: a body is made when it is sent, from the book as it is then; an unknown field is ignored, because
//! providers add them; a signed body that lacks what its type needs is unreadable, never guessed at.

use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{PaymentId, RefundId};
use onceward_domain::payment::Word;
use onceward_domain::ports::provider::Verified;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::book::{Book, Call, MoneyText, News};

#[derive(Serialize, Deserialize)]
struct Body {
    event_id: String,
    #[serde(rename = "type")]
    news: News,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payment_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refund_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    amount: Option<MoneyText>,
}

/// Writes the body of a callback.
pub(super) fn body(book: &Book, call: &Call) -> Vec<u8> {
    let mut body = Body {
        event_id: call.event.to_string(),
        news: call.news,
        payment_id: None,
        refund_id: None,
        transaction_id: None,
        amount: None,
    };
    match call.news {
        News::PaymentSucceeded | News::PaymentFailed | News::PaymentProcessing | News::PaymentClosed => {
            body.payment_id = Some(call.subject);
            let account = book.payments.get(&PaymentId(call.subject));
            let taken = account.and_then(|account| account.taken.as_ref());
            body.transaction_id = taken.map(|(_, transaction)| transaction.to_string());
            let ordered = account.and_then(|account| account.ordered);
            body.amount = taken.map(|(amount, _)| *amount).or(ordered).map(MoneyText::from);
        }
        News::RefundSucceeded | News::RefundFailed => {
            body.refund_id = Some(call.subject);
            let refund = book.refunds.get(&RefundId(call.subject));
            body.amount = refund.map(|refund| refund.amount.into());
        }
    }
    serde_json::to_vec(&body).expect("a body is texts and numbers")
}

/// Reads a body whose signature held. `event` is the id that was signed beside it.
pub(super) fn read(event: &str, body: &[u8]) -> Result<Verified, Error> {
    let unreadable = || Error::new(Code::Invalid, format!("reading callback {event}"));
    let body: Body = serde_json::from_slice(body).map_err(|error| unreadable().because(error))?;
    if body.event_id != event {
        return Err(unreadable());
    }
    let word = word_of(&body).ok_or_else(unreadable)?;
    Ok(Verified { event: Arc::from(event), word })
}

fn word_of(body: &Body) -> Option<Word> {
    let payment = || body.payment_id.map(PaymentId);
    let refund = || body.refund_id.map(RefundId);
    Some(match body.news {
        News::PaymentSucceeded => Word::Succeeded {
            payment: payment()?,
            transaction: Arc::from(body.transaction_id.as_deref().filter(|id| !id.is_empty())?),
            amount: body.amount.as_ref()?.money()?,
        },
        News::PaymentFailed => Word::Failed { payment: payment()? },
        News::PaymentProcessing => Word::Processing { payment: payment()? },
        News::PaymentClosed => Word::Closed { payment: payment()? },
        News::RefundSucceeded => Word::Refunded { refund: refund()? },
        News::RefundFailed => Word::RefundFailed { refund: refund()? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ot_08_bodies_are_read_whole_or_not_at_all() {
        let id = Uuid::from_bytes([7; 16]);
        let payment = format!(r#""event_id":"e","payment_id":"{id}""#);
        let refund = format!(r#""event_id":"e","refund_id":"{id}""#);
        let taken = r#""transaction_id":"t","amount":{"amount":5,"currency":"CNY"}"#;
        let table = [
            (format!(r#"{{{payment},"type":"payment.succeeded",{taken}}}"#), true),
            (format!(r#"{{{payment},"type":"payment.succeeded",{taken},"new":[1]}}"#), true),
            (format!(r#"{{{payment},"type":"payment.succeeded"}}"#), false),
            (format!(r#"{{{payment},"type":"payment.succeeded",{}}}"#, taken.replace("CNY", "XXQ")), false),
            (format!(r#"{{{payment},"type":"payment.succeeded",{}}}"#, taken.replace(":5", ":-5")), false),
            (format!(r#"{{{payment},"type":"payment.succeeded",{}}}"#, taken.replace(":5", ":5.5")), false),
            (format!(r#"{{{payment},"type":"payment.failed"}}"#), true),
            (format!(r#"{{{payment},"type":"payment.processing"}}"#), true),
            (format!(r#"{{{payment},"type":"payment.closed"}}"#), true),
            (format!(r#"{{{payment},"type":"payment.stolen"}}"#), false),
            (format!(r#"{{{payment},"type":"refund.failed"}}"#), false),
            (format!(r#"{{{refund},"type":"refund.succeeded"}}"#), true),
            (format!(r#"{{{refund},"type":"refund.failed"}}"#), true),
            (format!(r#"{{"event_id":"other","refund_id":"{id}","type":"refund.failed"}}"#), false),
            ("[]".to_owned(), false),
            (String::new(), false),
        ];
        for (text, is_read) in table {
            let read = read("e", text.as_bytes());
            assert_eq!(read.is_ok(), is_read, "{text}");
            assert!(read.is_ok_and(|verified| &*verified.event == "e") == is_read);
        }
    }
}
