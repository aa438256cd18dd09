//! Messages that ask for orders, as the plain ways take them, and their ids.
//!
//! Invariants: the n-th message of every run is the same; of its ids those that stand for digests are scattered, and those that a
//! service would make on the spot grow with time, since an index pays for the difference. Deliberately absent: chance.

/// Sixteen bytes, as a UUID has.
pub(in super::super) type Id = [u8; 16];

/// A message that asks for an order, decoded.
#[derive(Clone, Debug)]
pub(in super::super) struct Message {
    pub(in super::super) message_id: Id,
    pub(in super::super) reservation_id: Id,
    pub(in super::super) request_id: Id,
    pub(in super::super) order_id: Id,
    pub(in super::super) event_id: Id,
    pub(in super::super) user_id: i64,
    pub(in super::super) payload_hash: [u8; 32],
}

impl Message {
    /// The n-th message of a run: ids that stand for keyed digests (message, reservation) are scattered,
    /// those that a service would make on the spot (request, order, event) grow with time.
    pub(in super::super) fn nth(number: u64) -> Self {
        let mut payload_hash = [0; 32];
        payload_hash[..16].copy_from_slice(&scattered(number, 3));
        payload_hash[16..].copy_from_slice(&scattered(number, 4));
        Self {
            message_id: scattered(number, 1),
            reservation_id: scattered(number, 2),
            request_id: growing(number, 5),
            order_id: growing(number, 6),
            event_id: growing(number, 7),
            user_id: 80_000_001 + i64::try_from(number).unwrap_or(0),
            payload_hash,
        }
    }
}

/// An id whose every bit depends on the number and the kind.
fn scattered(number: u64, kind: u64) -> Id {
    let low = mix(number ^ mix(kind));
    let high = mix(low ^ kind);
    ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
}

/// An id that sorts by the number, with scattered low bits, as a version 7 UUID does.
fn growing(number: u64, kind: u64) -> Id {
    ((u128::from(number) << 64) | u128::from(mix(number ^ mix(kind)))).to_be_bytes()
}

/// The finaliser of splitmix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The lower-case hexadecimal form of an id, as keys and payloads carry it.
pub(super) fn hex(id: &Id) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
