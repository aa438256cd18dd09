//! A participant's charge in a group order.
//!
//! Invariants: a charge is `UNKNOWN` in a durable row before its provider is called, so a crash in the middle is one more
//! lost answer; `UNKNOWN` never becomes anything by waiting, only by the provider's word (GS-04, DR-02). What is final stays:
//! under its id a declined charge is declined for good.

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
        /// The provider was, or is being, asked; its word has not been heard.
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
    /// A provider is about to be asked.
    Ask,
    /// The provider did not take the request.
    Miss,
}

impl Machine for GroupCharge {
    type Event = GroupChargeEvent;
    type Effect = ();
    const NAME: &'static str = "group_charge";
    const DOC: &'static str = "A participant's charge in a group order.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, GroupChargeEvent>] = rows! {
        "due": None - FallDue -> Pending, when "the group closed", effect (), message "";
        "asked": Pending - Ask -> Unknown, when "its request is about to be sent", effect (), message "";
        "not_taken": Unknown - Miss -> Pending, when "the provider did not take the first request", effect (), message "";
        "charged": Pending - Succeed -> Charged, when "the wallet held enough", effect (), message "";
        "declined": Pending - Decline -> Declined, when "the wallet did not hold enough", effect (), message "";
        "charged_by_provider": Unknown - Succeed -> Charged, when "its word agrees with the amount", effect (), message "";
        "declined_by_provider": Unknown - Decline -> Declined, when "it refused for good", effect (), message "";
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
