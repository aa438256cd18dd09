//! How far a reservation's message has travelled (FS-04); kept apart from the business state.
//!
//! Invariant: `UNKNOWN` is never read as "not sent" (DR-02): it leads back to `PUBLISHING` with the same id.

use super::{Machine, rows, states};

states! {
    /// Transport state of a reservation's message.
    Transport {
        /// Waiting to be sent.
        Pending "PENDING",
        /// Claimed by a scanner under a lease.
        Publishing "PUBLISHING",
        /// At least one send was acknowledged.
        Published "PUBLISHED",
        /// A send had no answer.
        Unknown "UNKNOWN",
    }
}

/// What happens to the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportEvent {
    /// A scanner claimed it.
    Claim,
    /// The broker acknowledged it.
    Acknowledge,
    /// No answer came.
    LoseAnswer,
    /// The broker refused it, or the scanner handed it back.
    Release,
}

impl Machine for Transport {
    type Event = TransportEvent;
    type Effect = ();
    const NAME: &'static str = "transport";
    const DOC: &'static str = "How far a reservation's message has travelled.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, TransportEvent>] = rows! {
        "send_claimed": Pending - Claim -> Publishing, when "send_due has come", effect (), message "";
        "resend_claimed": Unknown - Claim -> Publishing, when "the back-off has passed", effect (), message "";
        "lease_reclaimed": Publishing - Claim -> Publishing, when "the lease of the last scanner ended", effect (), message "";
        "send_acknowledged": Publishing - Acknowledge -> Published, when "the lease is still the scanner's own", effect (), message "ORDER_CREATE_REQUESTED";
        "send_unknown": Publishing - LoseAnswer -> Unknown, when "the send timed out", effect (), message "";
        "send_released": Publishing - Release -> Pending, when "the broker refused, or the scanner stops", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}
