//! A payment provider: somebody else's system, with a truth of its own.
//!
//! Invariants: every call names our id and may be repeated with it; no answer is an `UnknownOutcome`, never a failure
//! (DR-02); what it says is one [`Word`], whether it was asked or called back. Calls are made from durable rows, outside any
//! transaction.

use std::sync::Arc;

use crate::error::Error;
use crate::id::{ChargeId, PaymentId, RefundId, UserId};
use crate::money::Money;
use crate::payment::{ChargeWord, Word};
use crate::ports::Answer;
use crate::time::Timestamp;

/// What a buyer's client needs to pay, as the provider gave it: a JSON object.
pub type ClientData = Arc<str>;

/// A payment that the provider should expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentOrder {
    /// Our id.
    pub payment: PaymentId,
    /// How much.
    pub amount: Money,
}

/// Money that should go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundOrder {
    /// Our id; the provider's idempotency key.
    pub refund: RefundId,
    /// Of which attempt's money.
    pub payment: PaymentId,
    /// How much.
    pub amount: Money,
}

/// Money to take from a customer who is not there: the customer agreed to it before (GS-04).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeOrder {
    /// Our id; the provider's idempotency key.
    pub charge: ChargeId,
    /// From whom.
    pub customer: UserId,
    /// How much.
    pub amount: Money,
}

/// A callback as it came over the wire.
#[derive(Debug, Clone)]
pub struct RawCallback<'a> {
    /// Header names in lower case, with their values.
    pub headers: &'a [(String, String)],
    /// The raw body: signatures hold over bytes, not over what a parser made of them.
    pub body: &'a [u8],
    /// Our time, for the signature's window.
    pub now: Timestamp,
}

/// A callback whose signature held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The provider's id of the event.
    pub event: Arc<str>,
    /// What it says.
    pub word: Word,
}

/// A payment provider.
pub trait Provider: Send + Sync {
    /// Its name in the API and in rows.
    fn name(&self) -> &'static str;

    /// Announces a payment; a repeat gives the same.
    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData>;

    /// Asks about a payment.
    fn query(&self, payment: PaymentId) -> Answer<'_, Word>;

    /// Closes a payment; the answer is what it was then. "Closed" is no proof that no money comes (OT-07).
    fn close(&self, payment: PaymentId) -> Answer<'_, Word>;

    /// Gives money back; a repeat with the same id is the same refund.
    fn refund(&self, order: RefundOrder) -> Answer<'_, Word>;

    /// Takes money off-session; a repeat with the same id is the same charge. [`crate::error::Code::Differs`] for a known id
    /// with another customer or amount.
    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord>;

    /// Asks about an off-session charge.
    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord>;

    /// Checks a callback's signature and reads it.
    ///
    /// # Errors
    /// [`crate::error::Code::BadSignature`], or [`crate::error::Code::Invalid`] for a signed body nobody can read.
    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error>;
}
