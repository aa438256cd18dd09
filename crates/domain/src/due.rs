//! Due work: the one queue that everything which must happen later goes through (design.md §6, LQ).
//!
//! Invariants: a member is in one lane once, or in that lane's exhausted set, never in both; a claim moves its due-time
//! to the lease's end, counts an attempt and hands out a token that no other claim ever gets; complete, retry, extend and
//! exhaust act only for that token. Deliberately absent: how long to wait and when to give up ([`crate::retry`]), and
//! the typed answers of the queue port ([`crate::decide::queue`]).

use std::fmt;
use std::sync::Arc;

use crate::id::PurchaseId;
use crate::time::{Millis, Timestamp};

/// A queue of its own inside the due-work table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(Arc<str>);

impl Lane {
    /// Reservations whose message must be sent (FS-05).
    pub const SEND_DUE: &'static str = "send_due";
    /// Reservations whose business deadline comes (FS-15).
    pub const DEADLINE: &'static str = "deadline";
    /// Open reservations of a gate that keeps them in memory, until their business deadline ([`crate::journal`]).
    pub const JOURNAL: &'static str = "journal";
    /// Unpaid orders whose time comes (OT-04).
    pub const ORDER_EXPIRY: &'static str = "order_expiry";
    /// Events on their way to the bus (FS-11).
    pub const OUTBOX: &'static str = "outbox";
    /// Payment attempts that the provider must hear of.
    pub const PAYMENT: &'static str = "payment";
    /// Callbacks that wait to be processed (OT-08).
    pub const CALLBACK: &'static str = "callback";
    /// Cancels that wait for the provider's word (OT-05), and paid orders of which another attempt is open (OT-07).
    pub const CANCELLATION: &'static str = "cancellation";
    /// Second confirmations after a cancel (OT-07).
    pub const CONFIRMATION: &'static str = "confirmation";
    /// Refunds that the provider must hear of (OT-09).
    pub const REFUND: &'static str = "refund";
    /// Group orders whose deadline or next attempt comes (GS-01).
    pub const SETTLEMENT: &'static str = "settlement";
    /// Compensation tasks (FS-12).
    pub const COMPENSATION: &'static str = "compensation";
    /// Notices that wait to be sent (LQ-05).
    pub const NOTICE: &'static str = "notice";
    /// Jobs that failed and wait for their next run (CL-06).
    pub const JOB_RETRY: &'static str = "job_retry";
    /// Processes whose consumers are far behind; each is due when what it said holds no longer (FS-17).
    pub const BEHIND: &'static str = "behind";
    /// What is put in and taken out in one step, to see whether the store takes writes. Nothing is ever found in it.
    pub const TRIAL: &'static str = "trial";
    /// Prefix of the lanes in which a store-backed bus keeps its messages.
    pub const BUS_PREFIX: &'static str = "bus/";
    /// Prefix of the lanes that hold dead letters.
    pub const DEAD_PREFIX: &'static str = "dead/";

    /// Every ordinary lane that has a name of its own.
    pub const KNOWN: [&'static str; 13] = [
        Self::SEND_DUE,
        Self::DEADLINE,
        Self::JOURNAL,
        Self::ORDER_EXPIRY,
        Self::OUTBOX,
        Self::PAYMENT,
        Self::CALLBACK,
        Self::CANCELLATION,
        Self::CONFIRMATION,
        Self::REFUND,
        Self::COMPENSATION,
        Self::SETTLEMENT,
        Self::NOTICE,
    ];

    /// Lanes in which nothing waits to be done: what they hold is said, not to be worked off, and is nobody's to look after.
    const TECHNICAL: [&'static str; 2] = [Self::BEHIND, Self::TRIAL];

    /// Whether what is in it is work that waits.
    #[must_use]
    pub fn is_work(&self) -> bool {
        !Self::TECHNICAL.contains(&self.as_str())
    }

    /// A lane by name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The lane in which this lane's dead letters wait for a person.
    #[must_use]
    pub fn dead_letters(&self) -> Self {
        Self(Arc::from(format!("{}{}", Self::DEAD_PREFIX, self.0).as_str()))
    }

    /// The lane whose exhausted set this is; none where it is an ordinary lane.
    ///
    /// ```
    /// use onceward_domain::due::Lane;
    /// let lane = Lane::new("outbox");
    /// assert_eq!(lane.dead_letters().living(), Some(lane.clone()));
    /// assert_eq!(lane.living(), None);
    /// ```
    #[must_use]
    pub fn living(&self) -> Option<Self> {
        self.0.strip_prefix(Self::DEAD_PREFIX).map(Self::new)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A member's name, unique inside its lane.
pub type Member = Arc<str>;

/// A fencing token: never handed out twice by one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub i64);

impl Token {
    /// Stands where no claim was made; no claim has it.
    pub const NONE: Self = Self(0);
}

/// A change of due work, carried out with the transaction it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueChange {
    /// Adds a member; where it exists, be it exhausted, nothing happens (so that a repeat is harmless).
    Put {
        /// Where.
        lane: Lane,
        /// Who.
        member: Member,
        /// When.
        due_at: Timestamp,
        /// What the worker needs.
        body: Vec<u8>,
    },
    /// Removes a member that the token still holds; else the whole transaction loses its guard.
    Complete(Held),
    /// Gives a held member back for later, keeping its attempts.
    Retry {
        /// The claim.
        held: Held,
        /// When again.
        due_at: Timestamp,
        /// A smaller body, where part of it is done.
        body: Option<Vec<u8>>,
        /// Whether the attempt is taken back: a graceful hand-back does not charge one (A5).
        charge: Charge,
    },
    /// Lengthens a lease.
    Extend {
        /// The claim.
        held: Held,
        /// New end.
        lease_until: Timestamp,
    },
    /// Removes a member whoever holds it.
    Remove {
        /// Where.
        lane: Lane,
        /// Who.
        member: Member,
    },
    /// Tries are used up: moves a held member into its lane's exhausted set, with its counter cleared (LQ-04). Whoever
    /// decides this writes the notice in the same set of changes ([`crate::notice::work_exhausted`]).
    Exhaust(Held),
    /// Makes a part of a held member's body an exhausted member of its own; where that is there already, nothing
    /// happens. The held member itself is settled by another change of the same set.
    SetAside {
        /// The claim that met it.
        held: Held,
        /// Who.
        member: Member,
        /// Its part of the body.
        body: Vec<u8>,
    },
    /// Moves an exhausted member back into its lane, with fresh tries; else the whole transaction loses its guard.
    /// Only a person asks for this.
    Replay {
        /// The lane it comes back to.
        lane: Lane,
        /// Who.
        member: Member,
        /// The claim under which it was exhausted: an exhaustion is replayed once.
        token: Token,
        /// When it is due.
        due_at: Timestamp,
    },
    /// Moves the due-time of a member that waits; else the whole transaction loses its guard.
    Reschedule {
        /// Where.
        lane: Lane,
        /// Who.
        member: Member,
        /// When.
        due_at: Timestamp,
    },
    /// Nothing of the lane is given out until it is resumed; what is out may be settled.
    Pause(Lane),
    /// The lane is given out again.
    Resume(Lane),
}

/// Whether a hand-back costs an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// The attempt counted at the claim stays counted.
    Keep,
    /// It is taken back.
    Refund,
}

/// A claim, as its holder names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Where.
    pub lane: Lane,
    /// Who.
    pub member: Member,
    /// The fencing token of the claim.
    pub token: Token,
}

impl Held {
    /// A number that differs from claim to claim, to spread waits by ([`crate::retry::RetryPolicy::jitter`]).
    #[must_use]
    pub fn seed(&self) -> u64 {
        let name = self.member.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut mixed = name ^ self.token.0.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }
}

/// In which order a lane gives out its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// Whatever is due, earliest first.
    ByDue,
    /// Strictly in the order of arrival: while the head is leased or waiting, nothing behind it is given out.
    Strict,
}

/// A request for due members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Where.
    pub lane: Lane,
    /// At most this many.
    pub limit: u32,
    /// How long the lease lasts, from the moment of the claim (F5).
    pub lease: Millis,
    /// In which order.
    pub sequence: Sequence,
}

/// A claimed member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Lane, member and token.
    pub held: Held,
    /// How many claims there were, this one counted.
    pub attempts: u32,
    /// When it had been due.
    pub due_at: Timestamp,
    /// When it was put in.
    pub created_at: Timestamp,
    /// When the lease ends.
    pub lease_until: Timestamp,
    /// What was put in.
    pub body: Vec<u8>,
}

/// A member that waits, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Where.
    pub lane: Lane,
    /// Who.
    pub member: Member,
    /// When it is due, or when its lease ends.
    pub due_at: Timestamp,
    /// When it was put in.
    pub created_at: Timestamp,
    /// How many claims there were.
    pub attempts: u32,
    /// Whether a lease is running.
    pub leased: bool,
    /// The last claim; zero where there was none. Of an exhausted member it names the exhaustion.
    pub token: Token,
    /// What was put in.
    pub body: Vec<u8>,
}

/// A member as a decision sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueEntry {
    /// When it is due, or when its lease ends.
    pub due_at: Timestamp,
    /// When it was put in.
    pub created_at: Timestamp,
    /// How many claims there were.
    pub attempts: u32,
    /// The last claim; zero where there was none.
    pub token: Token,
    /// Whether that claim still holds it: until it is settled, or somebody else claims it after the lease.
    pub is_held: bool,
    /// What was put in.
    pub body: Vec<u8>,
}

impl DueEntry {
    /// A member that is put in now, and that nobody has claimed.
    #[must_use]
    pub fn new(due_at: Timestamp, now: Timestamp, body: Vec<u8>) -> Self {
        Self { due_at, created_at: now, attempts: 0, token: Token::NONE, is_held: false, body }
    }

    /// Whether this claim still holds it.
    #[must_use]
    pub fn is_held_by(&self, token: Token) -> bool {
        self.is_held && self.token == token
    }
}

/// One lane at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneStatus {
    /// Which.
    pub lane: Lane,
    /// Members in it.
    pub size: u64,
    /// Members under a lease.
    pub leased: u64,
    /// Earliest due-time (or lease end).
    pub next_due: Option<Timestamp>,
    /// When the oldest member was put in.
    pub oldest: Option<Timestamp>,
    /// Whether nothing of it is given out.
    pub paused: bool,
    /// When something of it was last given out.
    pub last_claim: Option<Timestamp>,
}

impl LaneStatus {
    /// A lane with nothing in it.
    #[must_use]
    pub fn empty(lane: Lane) -> Self {
        Self { lane, size: 0, leased: 0, next_due: None, oldest: None, paused: false, last_claim: None }
    }
}

const ID_BYTES: usize = 16;

/// Packs purchase ids into a body, 16 bytes each.
#[must_use]
pub fn pack_ids(ids: &[PurchaseId]) -> Vec<u8> {
    ids.iter().flat_map(|id| *id.bytes()).collect()
}

/// Unpacks what [`pack_ids`] packed; a trailing stump is ignored.
///
/// ```
/// use onceward_domain::{due::{pack_ids, unpack_ids}, id::PurchaseId};
/// let ids = vec![PurchaseId::from_digest([1; 16], 1), PurchaseId::from_digest([2; 16], 1)];
/// assert_eq!(unpack_ids(&pack_ids(&ids)), ids);
/// ```
#[must_use]
pub fn unpack_ids(body: &[u8]) -> Vec<PurchaseId> {
    let (whole, _stump) = body.as_chunks::<ID_BYTES>();
    whole.iter().map(|bytes| PurchaseId::from_bytes(*bytes)).collect()
}
