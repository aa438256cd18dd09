//! A group order.
//!
//! Invariants: there is one way to `SETTLED`, from `CLOSED`, and only the transaction that goes it charges wallets (GS-03);
//! the engine never leaves `FAILED`, a person does (GS-06). The reference lets `FAILED` settle at once; here a retry
//! brings the group back to `CLOSED` first, so that it shows that it is being settled and may fail again.

use super::{Machine, rows, states};

states! {
    /// State of a group order.
    Group {
        /// People may join and leave until the deadline.
        Open "OPEN",
        /// The deadline has come; its charges are being made.
        Closed "CLOSED",
        /// Every charge is final.
        Settled "SETTLED",
        /// Tries are used up; a person may ask for another round.
        Failed "FAILED",
        /// Too few took part; nobody was charged.
        Cancelled "CANCELLED",
    }
}

/// What happens to a group order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupEvent {
    /// The deadline came.
    Close,
    /// The deadline came, for too few.
    Cancel,
    /// The last charge became final.
    Settle,
    /// The last attempt failed.
    Fail,
    /// A person asked for another round.
    Retry,
}

impl Machine for Group {
    type Event = GroupEvent;
    type Effect = ();
    const NAME: &'static str = "group";
    const DOC: &'static str = "A group order, from its first participant to its last charge.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, GroupEvent>] = rows! {
        "closed": Open - Close -> Closed, when "the deadline has come and enough take part", effect (), message "";
        "cancelled": Open - Cancel -> Cancelled, when "the deadline has come and too few take part", effect (), message "";
        "settled": Closed - Settle -> Settled, when "every charge is final", effect (), message "";
        "failed": Closed - Fail -> Failed, when "the attempts are used up", effect (), message "";
        "retried": Failed - Retry -> Closed, when "a person asked", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}

impl Group {
    /// Whether nothing has been charged and nothing is being charged.
    #[must_use]
    pub fn is_before_close(self) -> bool {
        matches!(self, Self::Open | Self::Cancelled)
    }

    /// Whether the engine has something left to do at a scheduled time.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::Open | Self::Closed)
    }
}
