//! An outbox entry: the events of one transaction on their way to the bus (FS-11).
//!
//! Invariant: `SENT` is written only by the relay that still holds the lease; an unknown send goes to `RETRY`
//! with the same event ids. The state is derived from the entry's lease and attempts; it is not a column.

use super::{Machine, rows, states};

states! {
    /// State of an outbox entry.
    Outbox {
        /// Waiting for the relay.
        Pending "PENDING",
        /// A relay holds it under a lease.
        Sending "SENDING",
        /// The send failed or had no answer.
        Retry "RETRY",
        /// The bus acknowledged it.
        Sent "SENT",
        /// Tries are used up.
        Manual "MANUAL",
    }
}

/// What happens to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxEvent {
    /// A relay claimed it.
    Claim,
    /// The bus acknowledged it.
    Acknowledge,
    /// The send failed or had no answer.
    Postpone,
    /// Tries are used up.
    GiveUp,
}

impl Machine for Outbox {
    type Event = OutboxEvent;
    type Effect = ();
    const NAME: &'static str = "outbox";
    const DOC: &'static str = "The events of one transaction on their way to the bus.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, OutboxEvent>] = rows! {
        "claimed": Pending - Claim -> Sending, when "it is at the head of its lane", effect (), message "";
        "reclaimed": Sending - Claim -> Sending, when "the last lease ended", effect (), message "";
        "retried": Retry - Claim -> Sending, when "the back-off has passed", effect (), message "";
        "sent": Sending - Acknowledge -> Sent, when "the lease is still the relay's own", effect (), message "";
        "postponed": Sending - Postpone -> Retry, when "the send failed or had no answer", effect (), message "";
        "given_up": Sending - GiveUp -> Manual, when "tries are used up", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}
