//! The journal of a gate that keeps its open reservations in memory (design.md §10): one entry for each admitted batch.
//!
//! Layout, for each reservation: a byte that says whether activity and SKU are those of the one before, else both; id,
//! buyer, request, units, two times. Texts are a length byte and their bytes, numbers big-endian. Invariants: what was
//! packed unpacks to the same reservations; a damaged body is an error, never a panic. Deliberately absent: where the
//! entries lie ([`crate::due::Lane::JOURNAL`]). Read next: [`crate::decide::reserve::keep_in_journal`].

use crate::error::{Code, Error};
use crate::event::OrderCreateRequested;
use crate::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use crate::time::Timestamp;

const SAME_KEY: u8 = 0;
const NEW_KEY: u8 = 1;

/// Packs reservations, in their order.
///
/// ```
/// use onceward_domain::journal::{pack, unpack};
/// assert_eq!(unpack(&pack(&[])).unwrap(), []);
/// ```
#[must_use]
pub fn pack(reservations: &[OrderCreateRequested]) -> Vec<u8> {
    const USUAL_SIZE: usize = 80;
    let mut body = Vec::with_capacity(reservations.len() * USUAL_SIZE);
    let mut before: Option<&SkuKey> = None;
    for one in reservations {
        if before == Some(&one.key) {
            body.push(SAME_KEY);
        } else {
            body.push(NEW_KEY);
            put_text(&mut body, one.key.activity.as_str());
            put_text(&mut body, one.key.sku.as_str());
            before = Some(&one.key);
        }
        body.extend_from_slice(one.purchase.bytes());
        put_text(&mut body, one.user.as_str());
        put_text(&mut body, one.request.as_str());
        body.extend_from_slice(&one.quantity.to_be_bytes());
        body.extend_from_slice(&one.reserved_at.0.to_be_bytes());
        body.extend_from_slice(&one.business_deadline.0.to_be_bytes());
    }
    body
}

/// Unpacks what [`pack`] packed.
///
/// # Errors
/// [`Code::ConstraintViolated`] for a body that nobody here has packed.
pub fn unpack(body: &[u8]) -> Result<Vec<OrderCreateRequested>, Error> {
    let mut rest = body;
    let mut reservations: Vec<OrderCreateRequested> = Vec::new();
    while let Some((mark, tail)) = rest.split_first() {
        rest = tail;
        let key = match (*mark, reservations.last()) {
            (SAME_KEY, Some(before)) => before.key.clone(),
            (NEW_KEY, _) => SkuKey {
                activity: ActivityId::trusted(text(&mut rest)?),
                sku: SkuId::trusted(text(&mut rest)?),
            },
            _ => return Err(damaged()),
        };
        reservations.push(OrderCreateRequested {
            purchase: PurchaseId::from_bytes(take(&mut rest)?),
            key,
            user: UserId::trusted(text(&mut rest)?),
            request: RequestId::trusted(text(&mut rest)?),
            quantity: u32::from_be_bytes(take(&mut rest)?),
            reserved_at: Timestamp(i64::from_be_bytes(take(&mut rest)?)),
            business_deadline: Timestamp(i64::from_be_bytes(take(&mut rest)?)),
        });
    }
    Ok(reservations)
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.push(u8::try_from(text.len()).expect("ids are short"));
    body.extend_from_slice(text.as_bytes());
}

fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a str, Error> {
    let (length, tail) = rest.split_first().ok_or_else(damaged)?;
    let (bytes, tail) = tail.split_at_checked(usize::from(*length)).ok_or_else(damaged)?;
    *rest = tail;
    std::str::from_utf8(bytes).map_err(|_| damaged())
}

fn take<const SIZE: usize>(rest: &mut &[u8]) -> Result<[u8; SIZE], Error> {
    let (bytes, tail) = rest.split_first_chunk::<SIZE>().ok_or_else(damaged)?;
    *rest = tail;
    Ok(*bytes)
}

fn damaged() -> Error {
    Error::new(Code::ConstraintViolated, "unpacking a journal entry whose body is damaged")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn caller_id() -> impl Strategy<Value = String> {
        "[A-Za-z0-9._~:-]{1,64}"
    }

    prop_compose! {
        fn reservation()(
            id in any::<[u8; 16]>(), texts in [caller_id(), caller_id(), caller_id()], same in any::<bool>(),
            quantity in any::<u32>(), times in any::<[i64; 2]>(),
        ) -> OrderCreateRequested {
            let [sku, user, request] = texts;
            let sku = if same { "sku".to_owned() } else { sku };
            OrderCreateRequested {
                purchase: PurchaseId::from_bytes(id),
                key: SkuKey { activity: ActivityId::trusted("a"), sku: SkuId::trusted(&sku) },
                user: UserId::trusted(&user),
                request: RequestId::trusted(&request),
                quantity,
                reserved_at: Timestamp(times[0]),
                business_deadline: Timestamp(times[1]),
            }
        }
    }

    proptest! {
        #[test]
        fn fs_01_what_was_packed_is_unpacked(all in proptest::collection::vec(reservation(), 0..20)) {
            prop_assert_eq!(unpack(&pack(&all)).unwrap(), all);
        }

        #[test]
        fn a_damaged_body_is_an_error_and_never_a_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(read) = unpack(&body) {
                prop_assert_eq!(unpack(&pack(&read)).unwrap(), read);
            }
        }
    }
}
