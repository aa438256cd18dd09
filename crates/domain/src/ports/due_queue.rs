//! The leased due-work queue (LQ-01 to LQ-08, design.md §6).
//!
//! Invariants: a member is in one place — waiting, leased, or exhausted; a claim counts an attempt and hands out a token
//! that never repeats; only the present token completes, retries, extends or hands back, and whoever has lost it hears
//! so as an answer and changes nothing; tries that are used up, by failures or by leases that ran out, move the member
//! into the exhausted set and leave exactly one notice, in the same step. Due-times are judged by the queue's own clock
//! (DR-06).
//!
//! Work that belongs to a store transaction makes the same moves as [`crate::due::DueChange`]s of its ChangeSet, so that a
//! decision and its move in the queue commit together. Deliberately absent: what the work is.

use crate::due::{Claimed, Held, Lane, LaneStatus, Member, Token, Waiting};
use crate::ports::Answer;
use crate::retry::RetryPolicy;
use crate::time::{Millis, Timestamp};

/// Most members that one call puts, settles, removes or replays.
pub const QUEUE_BATCH_LIMIT: usize = 1_000;

/// When new work is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// At this time by the queue's clock, however late it is put in (K3).
    At(Timestamp),
    /// This long after it was put in.
    After(Millis),
}

/// Work to put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWork {
    /// Its name, unique in the lane. An id that is used again for a later period includes the period (A15).
    pub member: Member,
    /// When.
    pub due: Due,
    /// What the worker needs. Queues never look into it (A8).
    pub body: Vec<u8>,
}

/// What became of work that was put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is in now.
    Added,
    /// It is in already, as it was.
    There,
    /// It is exhausted; a person replays it.
    Exhausted,
}

/// A request for due work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimWork {
    /// Where.
    pub lane: Lane,
    /// At most this many.
    pub limit: u32,
    /// How long the lease lasts, from the moment of the claim (F5).
    pub lease: Millis,
    /// Members whose leases have used up these tries are exhausted instead of given out.
    pub policy: RetryPolicy,
}

/// How a claim ends, or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Done: the member is gone.
    Complete(Held),
    /// It failed: again after the policy's wait, or exhausted.
    Retry {
        /// The claim.
        held: Held,
        /// The waits.
        policy: RetryPolicy,
    },
    /// The lease goes on for this long, from now.
    Extend {
        /// The claim.
        held: Held,
        /// How long.
        lease: Millis,
    },
    /// Given back untouched, for after this long; the attempt is not charged (A5).
    HandBack {
        /// The claim.
        held: Held,
        /// How long to wait.
        wait: Millis,
    },
}

impl Settlement {
    /// The claim it is about.
    #[must_use]
    pub fn held(&self) -> &Held {
        match self {
            Self::Complete(held)
            | Self::Retry { held, .. }
            | Self::Extend { held, .. }
            | Self::HandBack { held, .. } => held,
        }
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The member is gone.
    Completed,
    /// It is due again at this time.
    Again(Timestamp),
    /// The lease ends at this time.
    Extended(Timestamp),
    /// Its tries are used up: it is in the exhausted set, and there is a notice.
    Exhausted,
    /// The token is not the present one any more: nothing was changed.
    LeaseLost,
}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone. Whoever held it will hear that the lease is lost (K1).
    Removed,
    /// It was not there.
    Absent,
}

/// What became of a wish for another due-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescheduled {
    /// It is due then.
    Moved,
    /// A claim holds it; whoever holds it decides when it comes again.
    Leased,
    /// It is not there.
    Absent,
}

/// What became of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// It is due now, with fresh tries.
    Revived,
    /// It is not exhausted, or not by that claim any more: a later death waits for the next call (A14).
    Absent,
}

/// An exhausted member, as a replay names it: a member may be exhausted again after it was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Exhaustion {
    /// Who.
    pub member: Member,
    /// The last claim before it was exhausted.
    pub token: Token,
}

/// Where adapters differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the notice of an exhaustion is a row of the store at once. Where not, [`DueQueue::to_announce`] gives out
    /// what still has to become one.
    pub notices_at_once: bool,
    /// Whether a claim whose lease has ended, and that nobody took over yet, may still be settled.
    pub settles_after_lease: bool,
}

/// The queue.
pub trait DueQueue: Send + Sync {
    /// Where it differs from others.
    fn capabilities(&self) -> Capabilities;

    /// Puts work in; one answer each, in order.
    fn put(&self, lane: Lane, work: Vec<NewWork>) -> Answer<'_, Vec<Put>>;

    /// Claims due work, earliest first; of a paused lane, none.
    fn claim(&self, request: ClaimWork) -> Answer<'_, Vec<Claimed>>;

    /// Ends claims, or lengthens them; one answer each, in order. One that has lost its lease does not touch the others.
    fn settle(&self, settlements: Vec<Settlement>) -> Answer<'_, Vec<Settled>>;

    /// Takes work out, whoever holds it; one answer each, in order. Exhausted members stay.
    fn remove(&self, lane: Lane, members: Vec<Member>) -> Answer<'_, Vec<Removed>>;

    /// Gives waiting work another due-time.
    fn reschedule(&self, lane: Lane, member: Member, due: Due) -> Answer<'_, Rescheduled>;

    /// Stops giving out a lane; a repeat is harmless.
    fn pause(&self, lane: Lane) -> Answer<'_, ()>;

    /// Gives it out again; a repeat is harmless.
    fn resume(&self, lane: Lane) -> Answer<'_, ()>;

    /// One lane at a glance.
    fn status(&self, lane: Lane) -> Answer<'_, LaneStatus>;

    /// Earliest due-time or lease end; none where nothing will be given out.
    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>>;

    /// Members of a lane, oldest first; `after` is the last one of the page before.
    fn list(&self, lane: Lane, limit: u32, after: Option<Member>) -> Answer<'_, Vec<Waiting>>;

    /// Its exhausted members, likewise; their `due_at` is when they were exhausted.
    fn exhausted(&self, lane: Lane, limit: u32, after: Option<Member>) -> Answer<'_, Vec<Waiting>>;

    /// Brings exhausted members back, each once; one answer each, in order. Only a person asks for this.
    fn replay(&self, lane: Lane, which: Vec<Exhaustion>) -> Answer<'_, Vec<Replayed>>;

    /// Exhaustions of a lane whose notice is not a row of the store yet; always none where notices are made at once.
    fn to_announce(&self, lane: Lane, limit: u32) -> Answer<'_, Vec<Exhaustion>>;

    /// Says that the notices of these are rows now; a repeat is harmless.
    fn announced(&self, lane: Lane, which: Vec<Exhaustion>) -> Answer<'_, ()>;
}
