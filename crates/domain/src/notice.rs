//! Notices: what the engine tells people of its own accord (LQ-05).
//!
//! Invariants: a notice is a row before anybody is told; its id follows from what it is about, the occasion and who is
//! told, so that a decision that runs twice makes it once; a receiver knows a repeat by the id. Deliberately absent: how
//! it is sent ([`crate::ports::notifier`]), and names or addresses of people. Read next: [`crate::machine::notice`].

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::due::{Lane, Token};
use crate::id::{NoticeId, PurchaseId, UserId};
use crate::machine::notice::Notice as NoticeStatus;
use crate::time::Timestamp;

/// What a notice says. The list is open: a new kind needs a name and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoticeKind {
    /// Due work has used up its tries and waits for a person.
    WorkExhausted,
    /// The gate contradicts the store about a compensation, so that no safe step is left.
    CompensationGivenUp,
    /// A group order could not be settled.
    GroupFailed,
    /// A group order was cancelled; nobody was charged.
    GroupCancelled,
    /// A group order was settled, and some charges were declined.
    GroupChargeDeclined,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::WorkExhausted,
        Self::GroupFailed,
        Self::GroupCancelled,
        Self::GroupChargeDeclined,
        Self::CompensationGivenUp,
    ];

    /// The kind's stable name, in rows and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkExhausted => "work.exhausted",
            Self::CompensationGivenUp => "compensation.given_up",
            Self::GroupFailed => "group.failed",
            Self::GroupCancelled => "group.cancelled",
            Self::GroupChargeDeclined => "group.charge_declined",
        }
    }
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Recipient {
    /// Those who run the engine.
    Administrators,
    /// A person, such as a group's leader.
    User(UserId),
}

/// One notice to one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its id.
    pub id: NoticeId,
    /// What it says.
    pub kind: NoticeKind,
    /// Id of what it is about.
    pub subject: Arc<str>,
    /// Who is told.
    pub recipient: Recipient,
    /// A sentence for a person, with ids and no personal data (SE-05).
    pub detail: Arc<str>,
    /// State.
    pub status: NoticeStatus,
    /// When it was decided.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

/// What a notice is made of.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// What it says.
    pub kind: NoticeKind,
    /// Id of what it is about.
    pub subject: &'a str,
    /// What tells this occasion from another one of the same subject, such as the token of the last claim or the number
    /// of a try: the same occasion is told once.
    pub occasion: &'a str,
    /// A sentence for a person.
    pub detail: &'a str,
}

impl Notice {
    /// A notice to be sent.
    ///
    /// ```
    /// use onceward_domain::{notice::{About, Notice, NoticeKind, Recipient}, time::Timestamp};
    /// let about = About { kind: NoticeKind::GroupFailed, subject: "g1", occasion: "try 6", detail: "…" };
    /// let first = Notice::new(about, Recipient::Administrators, Timestamp(1));
    /// let again = Notice::new(about, Recipient::Administrators, Timestamp(2));
    /// let other = Notice::new(About { occasion: "try 7", ..about }, Recipient::Administrators, Timestamp(2));
    /// assert_eq!(first.id, again.id);
    /// assert_ne!(first.id, other.id);
    /// ```
    #[must_use]
    pub fn new(about: About<'_>, recipient: Recipient, now: Timestamp) -> Self {
        Self {
            id: id_of(about, &recipient),
            kind: about.kind,
            subject: Arc::from(about.subject),
            recipient,
            detail: Arc::from(about.detail),
            status: NoticeStatus::Pending,
            created_at: now,
            updated_at: now,
            revision: 0,
        }
    }
}

/// The notice of due work that was exhausted: to the administrators, once per exhaustion.
#[must_use]
pub fn work_exhausted(lane: &Lane, member: &str, token: Token, now: Timestamp) -> Notice {
    let subject = subject_of(lane, member);
    let detail = format!("The tries of {member} in queue {lane} are used up; it waits to be replayed.");
    let occasion = token.0.to_string();
    let about =
        About { kind: NoticeKind::WorkExhausted, subject: &subject, occasion: &occasion, detail: &detail };
    Notice::new(about, Recipient::Administrators, now)
}

/// The notice of a compensation that a person must decide on: to the administrators, once per claim that met it.
#[must_use]
pub fn compensation_given_up(purchase: PurchaseId, answer: &str, token: Token, now: Timestamp) -> Notice {
    let subject = purchase.reservation().to_string();
    let detail =
        format!("The gate answered {answer} to the compensation of {subject}; nothing was given back.");
    let occasion = token.0.to_string();
    let kind = NoticeKind::CompensationGivenUp;
    let about = About { kind, subject: &subject, occasion: &occasion, detail: &detail };
    Notice::new(about, Recipient::Administrators, now)
}

/// How notices name a member of due work.
#[must_use]
pub fn subject_of(lane: &Lane, member: &str) -> String {
    format!("{lane}|{member}")
}

/// Lengths stand before the texts, so that no two different notices meet in one digest.
fn id_of(about: About<'_>, recipient: &Recipient) -> NoticeId {
    let (whom, user) = match recipient {
        Recipient::Administrators => ("administrators", ""),
        Recipient::User(user) => ("user", user.as_str()),
    };
    let mut digest = Sha256::new();
    for part in [about.kind.name(), about.subject, about.occasion, whom, user] {
        digest.update(part.len().to_be_bytes());
        digest.update(part.as_bytes());
    }
    NoticeId::from_digest(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lq_05_each_recipient_and_each_occasion_has_a_notice_of_its_own() {
        let lane = Lane::new("settlement");
        let of = |member: &str, token: i64| work_exhausted(&lane, member, Token(token), Timestamp(1)).id;
        assert_eq!(of("g1", 5), of("g1", 5));
        assert_ne!(of("g1", 5), of("g1", 6));
        assert_ne!(of("g1", 15), of("g11", 5), "parts are kept apart");
        let about = About { kind: NoticeKind::GroupFailed, subject: "g1", occasion: "1", detail: "" };
        let to = |recipient| Notice::new(about, recipient, Timestamp(1)).id;
        let named = Recipient::User(UserId::trusted("administrators"));
        assert_ne!(to(Recipient::Administrators), to(named));
        assert_eq!(to(Recipient::Administrators).0.get_version_num(), 8);
    }
}
