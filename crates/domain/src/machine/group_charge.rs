//! A participant's charge in a group order.
//!
//! Invariant: `UNKNOWN` never becomes anything by waiting; only the word of who was charged ends it (GS-04, DR-02). What is
//! final stays: under its id a declined charge is declined for good.

use super::{Machine, rows, states};

states! {
    /// State of a participant's charge.
    GroupCharge {
        /// The group is open: there is nothing to charge yet.
        None "NONE",
        /// The deadline has come: to be charged.
        Pending "PENDING",
        /// Money was taken.
        Charged "CHARGED",
        /// Refused for good.
        Declined "DECLINED",
        /// The answer was lost.
        Unknown "UNKNOWN",
    }
}

/// What happens to a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupChargeEvent {
    /// The group closed.
    FallDue,
    /// Money was taken.
    Succeed,
    /// It was refused for good.
    Decline,
    /// No answer came.
    LoseAnswer,
}

impl Machine for GroupCharge {
    type Event = GroupChargeEvent;
    type Effect = ();
    const NAME: &'static str = "group_charge";
    const DOC: &'static str = "A participant's charge in a group order.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, GroupChargeEvent>] = rows! {
        "due": None - FallDue -> Pending, when "the group closed", effect (), message "";
        "charged": Pending - Succeed -> Charged, when "the amount agrees", effect (), message "";
        "charged_after_unknown": Unknown - Succeed -> Charged, when "the provider said so when asked", effect (), message "";
        "declined": Pending - Decline -> Declined, when "refused for good", effect (), message "";
        "declined_after_unknown": Unknown - Decline -> Declined, when "the provider said so when asked", effect (), message "";
        "answer_lost": Pending - LoseAnswer -> Unknown, when "the provider did not answer in time", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}

impl GroupCharge {
    /// Whether it may still be made, or may have been made without our knowing.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Unknown)
    }
}
