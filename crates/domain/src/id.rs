//! Identifiers: the ones callers own and the ones Onceward makes.
//!
//! Invariants: a caller-owned id is 1–64 characters of `A-Z a-z 0-9 . _ ~ : -` once it exists as a value;
//! every id that Onceward makes is a UUID of version 8 whose bits are recomputable (see [`crate::derive`]).
//! Deliberately absent: random ids. Nothing here draws randomness; batch ids come in through the `Ids` port.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// Longest caller-owned id, in characters (api.md, Conventions).
pub const CALLER_ID_LIMIT: usize = 64;

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text has more than [`CALLER_ID_LIMIT`] characters.
    #[error("must have at most 64 characters")]
    TooLong,
    /// A character outside the allowed set.
    #[error("may hold only A-Z a-z 0-9 . _ ~ : -")]
    BadCharacter,
    /// Not a UUID that Onceward made for this kind of object.
    #[error("is not an id of this kind")]
    WrongKind,
}

/// Checks a text against the rule for caller-owned ids.
///
/// ```
/// use onceward_domain::id::check_caller_id;
/// assert!(check_caller_id("user-7").is_ok());
/// assert!(check_caller_id("no spaces").is_err());
/// ```
///
/// # Errors
/// Says which part of the rule the text breaks.
pub fn check_caller_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:-".contains(&byte);
    if !text.bytes().all(allowed) {
        return Err(IdError::BadCharacter);
    }
    if text.len() > CALLER_ID_LIMIT {
        return Err(IdError::TooLong);
    }
    Ok(())
}

macro_rules! caller_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and keeps the text.
            ///
            /// # Errors
            /// [`IdError`] where the text is not 1–64 allowed characters.
            pub fn new(text: &str) -> Result<Self, IdError> {
                check_caller_id(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// Takes back a text that a store of ours has kept; it was checked when it came in.
            #[must_use]
            pub fn trusted(text: &str) -> Self {
                Self(Arc::from(text))
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({})", stringify!($name), &self.0)
            }
        }
    };
}

caller_id!(
    /// A sale, named by the caller.
    ActivityId
);
caller_id!(
    /// A stock-keeping unit, named by the caller, unique inside its activity.
    SkuId
);
caller_id!(
    /// A buyer, named by the caller.
    UserId
);
caller_id!(
    /// A group order, named by the caller.
    GroupId
);
caller_id!(
    /// One intent of one buyer, named by the caller; a retry carries the same one.
    RequestId
);

caller_id!(
    /// A credit account, named by the caller. A buyer's wallet is the account with the buyer's id (api.md, Group orders).
    AccountId
);
caller_id!(
    /// A job that credits pay for, named by the caller.
    JobId
);

/// An activity and one of its SKUs: what stock, buckets and limits hang on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SkuKey {
    /// The sale.
    pub activity: ActivityId,
    /// The SKU inside it.
    pub sku: SkuId,
}

impl fmt::Display for SkuKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.activity, self.sku)
    }
}

/// What a made id names. The four bits live in the UUID, so one stored value answers for all of them:
/// an id that is a pure function of another needs no second index (design.md §10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum IdKind {
    /// A reservation, and the purchase row that keeps it.
    Reservation = 0,
    /// The order that comes of a reservation, or a direct order.
    Order = 1,
    /// The `ORDER_CREATE_REQUESTED` message of schema version 1.
    OrderCreateV1 = 2,
    /// The compensation of a reservation; also its idempotency key.
    Compensation = 3,
    /// The event `ORDER_CREATED`.
    EventOrderCreated = 4,
    /// The event `ORDER_CANCELLED`.
    EventOrderCancelled = 5,
    /// The event `RESERVATION_REJECTED`.
    EventReservationRejected = 6,
    /// A stock adjustment and its event.
    StockAdjustment = 7,
    /// A payment attempt; its bits are its own, not its order's.
    Payment = 8,
    /// A refund; its bits are its own, not its order's.
    Refund = 9,
    /// The event `ORDER_PAID`.
    EventOrderPaid = 10,
    /// The event `ORDER_REFUNDED`.
    EventOrderRefunded = 11,
    /// The event `ORDER_REINSTATED`.
    EventOrderReinstated = 12,
    /// A credit ledger entry; its bits follow from its account and number.
    CreditEntry = 13,
}

const KIND_BYTE: usize = 6;
const KEY_VERSION_BYTE: usize = 7;
const VARIANT_BYTE: usize = 8;
const VERSION_8: u8 = 0x80;

/// The 110 derived bits and the key version that all ids of one purchase share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PurchaseId(Uuid);

impl PurchaseId {
    /// Builds the id from derived bytes; version, variant, kind and key version overwrite their own bits.
    #[must_use]
    pub fn from_digest(mut digest: [u8; 16], key_version: u8) -> Self {
        digest[KIND_BYTE] = VERSION_8 | IdKind::Reservation as u8;
        digest[KEY_VERSION_BYTE] = key_version;
        digest[VARIANT_BYTE] = (digest[VARIANT_BYTE] & 0x3f) | 0x80;
        Self(Uuid::from_bytes(digest))
    }

    /// Takes back the 16 bytes that [`Self::bytes`] gave.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The 16 bytes under which stores keep it.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Which secret the id was derived with (FS-03: the key version is kept).
    #[must_use]
    pub fn key_version(&self) -> u8 {
        self.0.as_bytes()[KEY_VERSION_BYTE]
    }

    /// The same bits under another kind.
    #[must_use]
    pub fn with_kind(&self, kind: IdKind) -> Uuid {
        let mut bytes = *self.0.as_bytes();
        bytes[KIND_BYTE] = VERSION_8 | kind as u8;
        Uuid::from_bytes(bytes)
    }

    /// Reads the purchase out of an id of the given kind.
    ///
    /// # Errors
    /// [`IdError::WrongKind`] for a UUID that cannot be such an id.
    pub fn of(id: Uuid, kind: IdKind) -> Result<Self, IdError> {
        let mut bytes = *id.as_bytes();
        let is_ours = bytes[KIND_BYTE] == VERSION_8 | kind as u8 && bytes[VARIANT_BYTE] & 0xc0 == 0x80;
        if !is_ours {
            return Err(IdError::WrongKind);
        }
        bytes[KIND_BYTE] = VERSION_8;
        Ok(Self(Uuid::from_bytes(bytes)))
    }

    /// The reservation's public id.
    #[must_use]
    pub fn reservation(&self) -> ReservationId {
        ReservationId(self.with_kind(IdKind::Reservation))
    }

    /// The order's public id.
    #[must_use]
    pub fn order(&self) -> OrderId {
        OrderId(self.with_kind(IdKind::Order))
    }

    /// The id of the message that asks for the order.
    #[must_use]
    pub fn message(&self) -> MessageId {
        MessageId(self.with_kind(IdKind::OrderCreateV1))
    }

    /// The id, and idempotency key, of the reservation's compensation.
    #[must_use]
    pub fn compensation(&self) -> CompensationId {
        CompensationId(self.with_kind(IdKind::Compensation))
    }

    /// The id of an event about this purchase.
    #[must_use]
    pub fn event(&self, kind: IdKind) -> EventId {
        EventId(self.with_kind(kind))
    }
}

impl fmt::Debug for PurchaseId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PurchaseId({})", self.0)
    }
}

macro_rules! made_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

made_id!(
    /// Public id of a reservation.
    ReservationId
);
made_id!(
    /// Public id of an order.
    OrderId
);
made_id!(
    /// Business id of a message: ours, never the broker's.
    MessageId
);
made_id!(
    /// Public id of an event.
    EventId
);
made_id!(
    /// Id of a compensation, and its idempotency key.
    CompensationId
);
made_id!(
    /// Id of a stock adjustment.
    AdjustmentId
);
made_id!(
    /// Public id of a payment attempt.
    PaymentId
);
made_id!(
    /// Public id of a refund; also its idempotency key at the provider.
    RefundId
);
made_id!(
    /// Public id of a notice; receivers know a repeat by it.
    NoticeId
);

impl NoticeId {
    /// The id that follows from what the notice is about: equal texts give equal ids, so a notice is made once.
    #[must_use]
    pub fn from_digest(digest: [u8; 32]) -> Self {
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes[KIND_BYTE] = VERSION_8 | (bytes[KIND_BYTE] & 0x0f);
        bytes[VARIANT_BYTE] = 0x80 | (bytes[VARIANT_BYTE] & 0x3f);
        Self(Uuid::from_bytes(bytes))
    }
}

/// Id of an off-session charge, and its idempotency key at the provider (GS-04).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChargeId(Arc<str>);

impl ChargeId {
    /// The charge that settles a participant's part of a group order: `settle:{group}:{user}`. Ids may hold colons, so the
    /// group's are written `%3A`: two participants of two groups never share a charge.
    ///
    /// ```
    /// use onceward_domain::id::{ChargeId, GroupId, UserId};
    /// let charge = |group, user| ChargeId::settling(&GroupId::trusted(group), &UserId::trusted(user));
    /// assert_eq!(charge("g-1", "u:2").as_str(), "settle:g-1:u:2");
    /// assert_ne!(charge("a:b", "c"), charge("a", "b:c"));
    /// ```
    #[must_use]
    pub fn settling(group: &GroupId, user: &UserId) -> Self {
        Self(Arc::from(format!("settle:{}:{user}", group.as_str().replace(':', "%3A"))))
    }

    /// Takes back a text that [`Self::as_str`] gave.
    #[must_use]
    pub fn trusted(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChargeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for ChargeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ChargeId({})", &self.0)
    }
}

made_id!(
    /// Public id of a credit ledger entry; see [`crate::credit::entry_id`].
    EntryId
);

impl PaymentId {
    /// Whether the UUID can be a payment's at all.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        PurchaseId::of(self.0, IdKind::Payment).is_ok()
    }
}

impl ReservationId {
    /// The purchase behind the id.
    ///
    /// # Errors
    /// [`IdError::WrongKind`] where the UUID is not a reservation's.
    pub fn purchase(&self) -> Result<PurchaseId, IdError> {
        PurchaseId::of(self.0, IdKind::Reservation)
    }
}

impl OrderId {
    /// The purchase behind the id.
    ///
    /// # Errors
    /// [`IdError::WrongKind`] where the UUID is not an order's.
    pub fn purchase(&self) -> Result<PurchaseId, IdError> {
        PurchaseId::of(self.0, IdKind::Order)
    }
}

impl MessageId {
    /// The purchase behind the id.
    ///
    /// # Errors
    /// [`IdError::WrongKind`] where the UUID is not an order-create message's.
    pub fn purchase(&self) -> Result<PurchaseId, IdError> {
        PurchaseId::of(self.0, IdKind::OrderCreateV1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fs_03_one_purchase_answers_for_all_its_ids() {
        let purchase = PurchaseId::from_digest([0xab; 16], 3);
        assert_eq!(purchase.key_version(), 3);
        assert_eq!(purchase.reservation().purchase(), Ok(purchase));
        assert_eq!(purchase.order().purchase(), Ok(purchase));
        assert_eq!(purchase.message().purchase(), Ok(purchase));
        assert_ne!(purchase.reservation().0, purchase.order().0);
        assert_eq!(OrderId(purchase.reservation().0).purchase(), Err(IdError::WrongKind));
        assert_eq!(purchase.order().0.get_version_num(), 8);
    }

    #[test]
    fn c_115_caller_ids_are_kept_whole_or_refused() {
        let table: [(&str, Result<(), IdError>); 6] = [
            ("a", Ok(())),
            ("Az09._~:-", Ok(())),
            ("", Err(IdError::Empty)),
            ("sp ace", Err(IdError::BadCharacter)),
            ("nul\0", Err(IdError::BadCharacter)),
            ("🛒", Err(IdError::BadCharacter)),
        ];
        for (text, expected) in table {
            assert_eq!(check_caller_id(text), expected, "{text:?}");
        }
        assert_eq!(check_caller_id(&"x".repeat(64)), Ok(()));
        assert_eq!(check_caller_id(&"x".repeat(65)), Err(IdError::TooLong));
    }
}
