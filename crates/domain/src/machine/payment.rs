//! A payment attempt at a provider.
//!
//! Invariant: `UNKNOWN` never becomes `FAILED` by waiting (C41); only the provider's word ends an attempt, and
//! "closed" is not final: money may still arrive (OT-07).

use super::{Machine, rows, states};

states! {
    /// State of a payment attempt.
    Payment {
        /// Asked for; the provider has not answered yet.
        Pending "PENDING",
        /// The provider's answer was lost.
        Unknown "UNKNOWN",
        /// Money was taken.
        Succeeded "SUCCEEDED",
        /// The provider declined.
        Failed "FAILED",
        /// Closed at the provider without money.
        Closed "CLOSED",
    }
}

/// What happens to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentEvent {
    /// No answer came.
    LoseAnswer,
    /// The provider proved success.
    Succeed,
    /// The provider declined.
    Fail,
    /// The provider closed it.
    Close,
}

impl Machine for Payment {
    type Event = PaymentEvent;
    type Effect = ();
    const NAME: &'static str = "payment";
    const DOC: &'static str = "A payment attempt at a provider.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, PaymentEvent>] = rows! {
        "answer_lost": Pending - LoseAnswer -> Unknown, when "the provider did not answer in time", effect (), message "";
        "succeeded": Pending - Succeed -> Succeeded, when "signature, amount and currency agree", effect (), message "";
        "succeeded_after_unknown": Unknown - Succeed -> Succeeded, when "the provider said so when asked", effect (), message "";
        "succeeded_after_close": Closed - Succeed -> Succeeded, when "money moved although the attempt was closed", effect (), message "";
        "succeeded_after_failure": Failed - Succeed -> Succeeded, when "the provider corrected itself", effect (), message "";
        "failed": Pending - Fail -> Failed, when "the provider declined", effect (), message "";
        "failed_after_unknown": Unknown - Fail -> Failed, when "the provider said so when asked", effect (), message "";
        "closed": Pending - Close -> Closed, when "the provider closed it without money", effect (), message "";
        "closed_after_unknown": Unknown - Close -> Closed, when "the provider closed it without money", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}
