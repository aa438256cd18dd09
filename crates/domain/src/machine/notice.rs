//! A notice to people (LQ-05).
//!
//! Invariant: a notice whose sending failed, or had no answer, is still `PENDING` and is sent again under its id; `SENT` is
//! final, so nobody is told twice by two machines. Deliberately absent: giving up.

use super::{Machine, rows, states};

states! {
    /// State of a notice.
    Notice {
        /// Not known to have arrived.
        Pending "PENDING",
        /// Taken by the notifier.
        Sent "SENT",
    }
}

/// What happens to a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeEvent {
    /// The notifier took it.
    Send,
}

impl Machine for Notice {
    type Event = NoticeEvent;
    type Effect = ();
    const NAME: &'static str = "notice";
    const DOC: &'static str = "A notice to a group's leader or to the administrators.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, NoticeEvent>] = rows! {
        "sent": Pending - Send -> Sent, when "the notifier took it", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}
