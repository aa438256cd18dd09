//! The bodies of the broker trigger's messages: orders that are due at about the same time, 24 bytes each.
//!
//! Invariants: what was packed is unpacked as it was; a body that is none of ours names nobody who exists. Deliberately
//! absent: a version. An order's id and its time have one form, and a message lives for half a day at most.

use onceward_domain::id::PurchaseId;
use onceward_domain::ports::deadline::Expiry;
use onceward_domain::time::{Millis, Timestamp};

/// Most orders of one message: 24 bytes each.
const ORDERS_OF_ONE: usize = 512;
/// Orders whose times are further apart than this do not share a message, because it comes at the earliest of them.
const SPAN: Millis = Millis(1_000);
const ID_BYTES: usize = 16;
const ENTRY_BYTES: usize = ID_BYTES + 8;

/// Orders that share a message.
pub(crate) fn parts_of(mut expiries: Vec<Expiry>) -> Vec<Vec<Expiry>> {
    expiries.sort_unstable();
    let mut parts: Vec<Vec<Expiry>> = Vec::new();
    for one in expiries {
        match parts.last_mut() {
            Some(part) if part.len() < ORDERS_OF_ONE && one.due_at <= part[0].due_at.plus(SPAN) => {
                part.push(one);
            }
            _ => parts.push(vec![one]),
        }
    }
    parts
}

/// The body of a message that names these orders.
pub(crate) fn pack(expiries: &[Expiry]) -> Vec<u8> {
    let mut body = Vec::with_capacity(expiries.len() * ENTRY_BYTES);
    for one in expiries {
        body.extend_from_slice(one.purchase.bytes());
        body.extend_from_slice(&one.due_at.0.to_be_bytes());
    }
    body
}

/// The orders that a body names. What somebody else has put into the topic names no orders, or some that nobody finds: harmless.
pub(crate) fn unpack(body: &[u8]) -> Vec<Expiry> {
    let (entries, _stump) = body.as_chunks::<ENTRY_BYTES>();
    let read = |entry: &[u8; ENTRY_BYTES]| {
        let (id, due_at) = entry.split_first_chunk::<ID_BYTES>()?;
        let due_at = Timestamp(i64::from_be_bytes(due_at.try_into().ok()?));
        Some(Expiry { due_at, purchase: PurchaseId::from_bytes(*id) })
    };
    entries.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry(number: u8, due_at: i64) -> Expiry {
        Expiry { due_at: Timestamp(due_at), purchase: PurchaseId::from_digest([number; 16], 1) }
    }

    #[test]
    fn ot_10_what_was_packed_is_unpacked_and_a_strange_body_names_nobody() {
        let all = vec![expiry(1, 5), expiry(2, i64::MAX), expiry(3, 0)];
        assert_eq!(unpack(&pack(&all)), all);
        assert_eq!(unpack(b"not of ours"), []);
        assert_eq!(unpack(&[]), []);
    }

    #[test]
    fn ot_10_orders_share_a_message_where_their_times_are_close() {
        let sizes = |expiries: Vec<Expiry>| parts_of(expiries).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(
            sizes(vec![expiry(1, 0), expiry(2, 5_000), expiry(3, 1_000), expiry(4, 1_001)]),
            [2, 1, 1]
        );
        let many = (0..1_100).map(|number| expiry(u8::try_from(number % 250).unwrap(), 7)).collect();
        assert_eq!(sizes(many), [ORDERS_OF_ONE, ORDERS_OF_ONE, 1_100 - 2 * ORDERS_OF_ONE]);
        assert_eq!(sizes(Vec::new()), [] as [usize; 0]);
    }
}
