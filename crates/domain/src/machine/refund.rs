//! A refund at a provider.
//!
//! Invariant: a refund that had no answer is asked about, never sent again under another id (C55). A refund
//! that the provider takes back days later leaves `SUCCEEDED` by a row of its own.

use super::{Machine, rows, states};

states! {
    /// State of a refund.
    Refund {
        /// Asked for; not yet confirmed.
        Pending "PENDING",
        /// The provider's answer was lost.
        Unknown "UNKNOWN",
        /// Money went back.
        Succeeded "SUCCEEDED",
        /// The provider refused.
        Failed "FAILED",
    }
}

/// What happens to a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundEvent {
    /// No answer came.
    LoseAnswer,
    /// The provider confirmed.
    Succeed,
    /// The provider refused, or took it back.
    Fail,
}

impl Machine for Refund {
    type Event = RefundEvent;
    type Effect = ();
    const NAME: &'static str = "refund";
    const DOC: &'static str = "A refund at a provider.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, RefundEvent>] = rows! {
        "answer_lost": Pending - LoseAnswer -> Unknown, when "the provider did not answer in time", effect (), message "";
        "succeeded": Pending - Succeed -> Succeeded, when "the provider confirmed", effect (), message "";
        "succeeded_after_unknown": Unknown - Succeed -> Succeeded, when "the provider said so when asked", effect (), message "";
        "failed": Pending - Fail -> Failed, when "the provider refused", effect (), message "";
        "failed_after_unknown": Unknown - Fail -> Failed, when "the provider said so when asked", effect (), message "";
        "returned": Succeeded - Fail -> Failed, when "the provider took it back later", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}
