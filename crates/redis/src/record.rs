//! What a bucket keeps of a reservation: one field, from which everything can be told again (FS-01, FS-03).
//!
//! Layout: state (a digit), stamp of the batch (8 bytes, microseconds), then the tail: units (4 bytes), `f` for flash or `d`
//! for direct, length of the buyer's id, the buyer's id, the request. A request that is a UUID in its usual form takes 17
//! bytes. Numbers are big-endian. Invariant: two tails are equal exactly where buyer, request, units and route are.

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{PurchaseId, RequestId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::Admission;
use onceward_domain::purchase::{Line, Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};

const AS_TEXT: u8 = 0;
const AS_UUID: u8 = 1;
const UUID_BYTES: usize = 16;
const UUID_TEXT: usize = 36;
const MICROS: i64 = 1_000;
/// Where no claim has been made, a line holds no place.
const NO_PLACE: i64 = -1;

/// A record, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) state: Admission,
    pub(crate) reserved_at: Timestamp,
    pub(crate) quantity: u32,
    pub(crate) route: Route,
    pub(crate) user: UserId,
    pub(crate) request: RequestId,
}

/// The digit of a state: its place in the machine's list.
pub(crate) fn digit_of(state: Admission) -> u8 {
    let place = Admission::STATES.iter().position(|one| *one == state).expect("a list holds every state");
    b'0' + u8::try_from(place).expect("there are few states")
}

/// The state of a digit.
pub(crate) fn state_of(digit: u8) -> Option<Admission> {
    Admission::STATES.get(usize::from(digit.checked_sub(b'0')?)).copied()
}

/// What stands behind state and stamp.
pub(crate) fn tail_of(quantity: u32, route: Route, user: &UserId, request: &RequestId) -> Vec<u8> {
    let mut tail = Vec::with_capacity(7 + user.as_str().len() + UUID_TEXT);
    tail.extend_from_slice(&quantity.to_be_bytes());
    tail.push(match route {
        Route::Flash => b'f',
        Route::Direct => b'd',
    });
    tail.push(u8::try_from(user.as_str().len()).expect("ids are short"));
    tail.extend_from_slice(user.as_str().as_bytes());
    match uuid_of(request.as_str()) {
        Some(bytes) => {
            tail.push(AS_UUID);
            tail.extend_from_slice(&bytes);
        }
        None => {
            tail.push(AS_TEXT);
            tail.extend_from_slice(request.as_str().as_bytes());
        }
    }
    tail
}

/// The record of a purchase that the store knows and the bucket does not; its state is put in by the script.
pub(crate) fn record_of(purchase: &Purchase, line: &Line) -> Vec<u8> {
    let mut record = vec![digit_of(Admission::Absent)];
    record.extend_from_slice(&purchase.reserved_at.0.saturating_mul(MICROS).to_be_bytes());
    record.extend(tail_of(line.quantity, purchase.route, &purchase.user, &purchase.request));
    record
}

impl Record {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let damaged =
            || Error::new(Code::ConstraintViolated, "reading a reservation whose record is damaged");
        let (digit, rest) = bytes.split_first().ok_or_else(damaged)?;
        let (stamp, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (quantity, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let (route, rest) = rest.split_first().ok_or_else(damaged)?;
        let (length, rest) = rest.split_first().ok_or_else(damaged)?;
        let (user, rest) = rest.split_at_checked(usize::from(*length)).ok_or_else(damaged)?;
        let (form, request) = rest.split_first().ok_or_else(damaged)?;
        let user = std::str::from_utf8(user).map_err(|_| damaged())?;
        let request = match *form {
            AS_UUID => text_of(request).ok_or_else(damaged)?,
            _ => std::str::from_utf8(request).map_err(|_| damaged())?.to_owned(),
        };
        Ok(Self {
            state: state_of(*digit).ok_or_else(damaged)?,
            reserved_at: Timestamp(i64::from_be_bytes(*stamp) / MICROS),
            quantity: u32::from_be_bytes(*quantity),
            route: if *route == b'd' { Route::Direct } else { Route::Flash },
            user: UserId::trusted(user),
            request: RequestId::trusted(&request),
        })
    }

    /// The purchase that it stands for, as far as the gate knows it.
    pub(crate) fn purchase(self, id: PurchaseId, key: &SkuKey, wait: Millis) -> Purchase {
        let line = Line { key: key.clone(), quantity: self.quantity, place: NO_PLACE, unit_price: None };
        Purchase {
            id,
            handle: 0,
            route: self.route,
            user: self.user,
            request: self.request,
            lines: vec![line],
            admission: self.state,
            compensation: (self.state == Admission::Compensated).then(|| id.compensation()),
            reservation: None,
            reason: None,
            reserved_at: self.reserved_at,
            business_deadline: self.reserved_at.plus(wait),
            inbox: None,
            order: None,
            updated_at: self.reserved_at,
            revision: 0,
        }
    }
}

/// The bytes of a text that is a UUID in lower case with its four hyphens.
fn uuid_of(text: &str) -> Option<[u8; UUID_BYTES]> {
    if text.len() != UUID_TEXT {
        return None;
    }
    let mut bytes = [0; UUID_BYTES];
    let mut digits = 0;
    for (at, letter) in text.bytes().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if letter != b'-' {
                return None;
            }
            continue;
        }
        let value = match letter {
            b'0'..=b'9' => letter - b'0',
            b'a'..=b'f' => letter - b'a' + 10,
            _ => return None,
        };
        bytes[digits / 2] = bytes[digits / 2] << 4 | value;
        digits += 1;
    }
    Some(bytes)
}

fn text_of(bytes: &[u8]) -> Option<String> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes: &[u8; UUID_BYTES] = bytes.try_into().ok()?;
    let mut text = String::with_capacity(UUID_TEXT);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 15)]));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fs_01_every_field_comes_back() {
        let requests = [
            "r",
            "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
            "0190A1B2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
            "0190a1b2c3d4",
        ];
        for (request, route) in requests.into_iter().zip([Route::Flash, Route::Direct].into_iter().cycle()) {
            let (user, request) = (UserId::trusted("user-7"), RequestId::trusted(request));
            let mut bytes = vec![digit_of(Admission::Reserved)];
            bytes.extend_from_slice(&1_767_225_600_123_456_i64.to_be_bytes());
            bytes.extend(tail_of(3, route, &user, &request));
            let reserved_at = Timestamp(1_767_225_600_123);
            let expected =
                Record { state: Admission::Reserved, reserved_at, quantity: 3, route, user, request };
            assert_eq!(Record::read(&bytes).unwrap(), expected);
            for end in 0..16 {
                assert!(Record::read(&bytes[..end]).is_err(), "a stump of {end} is no record");
            }
        }
    }

    #[test]
    fn fs_02_a_tail_tells_bodies_apart() {
        let tail = |quantity, user, request| {
            tail_of(quantity, Route::Flash, &UserId::trusted(user), &RequestId::trusted(request))
        };
        assert_eq!(tail(1, "u", "r"), tail(1, "u", "r"));
        for other in [tail(2, "u", "r"), tail(1, "ur", ""), tail(1, "v", "r"), tail(1, "u", "q")] {
            assert_ne!(other, tail(1, "u", "r"));
        }
        assert_eq!(tail(1, "user-007", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b").len(), 31);
    }

    #[test]
    fn states_and_digits_are_one() {
        for state in Admission::STATES {
            assert_eq!(state_of(digit_of(*state)), Some(*state));
        }
        assert_eq!((digit_of(Admission::Absent), digit_of(Admission::Reserved)), (b'0', b'1'));
        assert_eq!(state_of(b'9'), None);
    }
}
