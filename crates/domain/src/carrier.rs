//! How a bus packs messages into one carrier: a row of the store, or one message of a broker.
//!
//! Layout, for each message: id length (u16), id, key length (u16), key, payload length (u32), payload; big-endian.
//! Invariant: what was packed unpacks to the same messages, and a damaged body is an error, never a panic.

use std::sync::Arc;

use crate::error::{Code, Error};
use crate::ports::bus::Message;

/// Packs messages.
///
/// ```
/// use onceward_domain::carrier::{pack, unpack};
/// use onceward_domain::ports::bus::Message;
/// let message = Message { id: "m".into(), key: "k".into(), payload: b"{}".to_vec() };
/// assert_eq!(unpack(&pack(std::slice::from_ref(&message))).unwrap(), [message]);
/// ```
#[must_use]
pub fn pack(messages: &[Message]) -> Vec<u8> {
    let size = messages.iter().map(|one| 8 + one.id.len() + one.key.len() + one.payload.len()).sum();
    let mut body = Vec::with_capacity(size);
    for message in messages {
        for text in [&message.id, &message.key] {
            let length = u16::try_from(text.len()).expect("ids and keys are short");
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(text.as_bytes());
        }
        let length = u32::try_from(message.payload.len()).expect("payloads are far below 4 GiB");
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(&message.payload);
    }
    body
}

/// Unpacks what [`pack`] packed.
///
/// # Errors
/// [`Code::ConstraintViolated`] for a body that nobody here has packed.
pub fn unpack(mut body: &[u8]) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        let id = text(&mut body)?;
        let key = text(&mut body)?;
        let (length, rest) = body.split_first_chunk::<4>().ok_or_else(damaged)?;
        body = rest;
        let payload = take(&mut body, u32::from_be_bytes(*length) as usize)?.to_vec();
        messages.push(Message { id, key, payload });
    }
    Ok(messages)
}

fn text(body: &mut &[u8]) -> Result<Arc<str>, Error> {
    let (length, rest) = body.split_first_chunk::<2>().ok_or_else(damaged)?;
    *body = rest;
    let bytes = take(body, usize::from(u16::from_be_bytes(*length)))?;
    std::str::from_utf8(bytes).map(Arc::from).map_err(|_| damaged())
}

fn take<'a>(body: &mut &'a [u8], length: usize) -> Result<&'a [u8], Error> {
    let (taken, rest) = body.split_at_checked(length).ok_or_else(damaged)?;
    *body = rest;
    Ok(taken)
}

fn damaged() -> Error {
    Error::new(Code::ConstraintViolated, "unpacking a carrier whose body is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_body_is_an_error_at_every_length() {
        let message = Message { id: "id".into(), key: "key".into(), payload: b"payload".to_vec() };
        let body = pack(&[message.clone(), message]);
        assert_eq!(unpack(&body).unwrap().len(), 2);
        let half = body.len() / 2;
        for length in 1..body.len() {
            assert_eq!(unpack(&body[..length]).is_ok(), length == half, "{length}");
        }
    }
}
