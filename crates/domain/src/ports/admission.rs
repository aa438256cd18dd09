//! Admission: the gate in front of the store (FS-01).
//!
//! Invariants: `reserve` is one atomic step per reservation and durable (as far as the adapter promises) when it
//! answers; a claim for sending moves the entry's due-time to the lease end and never removes it (FS-05); counters
//! move with the state they belong to, in the same step (FS-13). Where admission lives in the store, it has no
//! clock, no crash and no loss of its own.

use crate::catalogue::Bucket;
use crate::due::Held;
use crate::error::Error;
use crate::event::{Event, OrderCreateRequested};
use crate::id::{CompensationId, PurchaseId, RequestId, ReservationId, SkuKey, UserId};
use crate::machine::admission::Admission as AdmissionStatus;
use crate::machine::reservation::Reservation as ReservationStatus;
use crate::machine::transport::Transport;
use crate::ports::Answer;
use crate::purchase::Purchase;
use crate::time::{Millis, Timestamp};

/// A buyer at the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// Derived from the request; see [`crate::derive::KeyRing::reservation`].
    pub purchase: PurchaseId,
    /// What older keys would have derived: the request may be known under one of these (FS-03).
    pub older: Vec<PurchaseId>,
    /// Activity and SKU.
    pub key: SkuKey,
    /// The buyer.
    pub user: UserId,
    /// The buyer's intent.
    pub request: RequestId,
    /// Units, at least 1.
    pub quantity: u32,
}

impl Reserve {
    /// The ids under which this request may be known, the present one first (FS-03).
    pub fn names(&self) -> impl Iterator<Item = &PurchaseId> {
        std::iter::once(&self.purchase).chain(&self.older)
    }
}

/// A part of a gate, which answers, closes or hangs by itself (FS-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part(pub u64);

impl Part {
    /// Of a gate that has no parts.
    pub const WHOLE: Self = Self(0);
}

/// The gate's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveAnswer {
    /// Let in, just now.
    Queued {
        /// The new reservation.
        reservation: ReservationId,
    },
    /// This request was known: its reservation, and what admission knows of it.
    Repeat {
        /// The first reservation.
        reservation: ReservationId,
        /// Its state as far as it is known here.
        status: ReservationStatus,
    },
    /// The same request id came with another body (FS-02).
    RequestConflict,
    /// There is no such activity or SKU.
    Unknown,
    /// Outside the sale's hours.
    NotOpen,
    /// The buyer holds as many as allowed.
    LimitReached {
        /// The live reservation, where the limit is one.
        live: Option<ReservationId>,
    },
    /// Nothing left.
    SoldOut,
}

/// Reservations claimed for sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendClaim {
    /// The claim; settle with it.
    pub held: Held,
    /// How many claims there were.
    pub attempts: u32,
    /// When the oldest of them was reserved.
    pub oldest: Timestamp,
    /// The messages, rebuilt from the reservations (FS-03: same ids, same content).
    pub messages: Vec<OrderCreateRequested>,
}

/// How a claim for sending ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendSettlement {
    /// Every message was acknowledged.
    Sent(Held),
    /// These are to be sent again after a while; the others were acknowledged.
    Again {
        /// The claim.
        held: Held,
        /// Which.
        unsent: Vec<PurchaseId>,
        /// After this long.
        wait: Millis,
    },
}

/// The seven answers of a compensation (reference 003 §9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompensateCode {
    /// 1: units were given back now.
    Applied,
    /// 2: they had been given back before.
    AlreadyApplied,
    /// −1: the reservation is missing; nothing may be added blindly.
    Missing,
    /// −2: another reservation is kept under this key.
    IdMismatch,
    /// −3: the reservation has an order.
    OrderExists,
    /// −4: its state does not allow it.
    WrongState,
    /// −5: another compensation is marked.
    MarkerConflict,
}

impl CompensateCode {
    /// Every answer, in the order of the reference.
    pub const ALL: [Self; 7] = [
        Self::Applied,
        Self::AlreadyApplied,
        Self::Missing,
        Self::IdMismatch,
        Self::OrderExists,
        Self::WrongState,
        Self::MarkerConflict,
    ];

    /// The answer for a reservation in this state that no compensation is marked on yet.
    #[must_use]
    pub fn unmarked(state: AdmissionStatus) -> Self {
        match state {
            AdmissionStatus::Reserved => Self::Applied,
            AdmissionStatus::Compensated => Self::AlreadyApplied,
            AdmissionStatus::OrderCreated | AdmissionStatus::Reinstated => Self::OrderExists,
            AdmissionStatus::Cancelled | AdmissionStatus::Absent => Self::WrongState,
        }
    }

    /// The integer code.
    #[must_use]
    pub fn code(self) -> i8 {
        match self {
            Self::Applied => 1,
            Self::AlreadyApplied => 2,
            Self::Missing => -1,
            Self::IdMismatch => -2,
            Self::OrderExists => -3,
            Self::WrongState => -4,
            Self::MarkerConflict => -5,
        }
    }

    /// The name for logs, metrics and `last_result`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Applied => "COMPENSATED",
            Self::AlreadyApplied => "ALREADY_COMPENSATED",
            Self::Missing => "RESERVATION_MISSING",
            Self::IdMismatch => "RESERVATION_ID_MISMATCH",
            Self::OrderExists => "ORDER_ALREADY_EXISTS",
            Self::WrongState => "INVALID_STATUS",
            Self::MarkerConflict => "COMPENSATION_ID_CONFLICT",
        }
    }
}

/// A durable compensation decision, to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensate {
    /// Whose units.
    pub purchase: PurchaseId,
    /// Of what.
    pub key: SkuKey,
    /// The decision's id.
    pub compensation: CompensationId,
}

/// What became of one projected event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Projected {
    /// Counters moved.
    Applied,
    /// It had been projected before, or concerns nothing here.
    Nothing,
    /// An earlier event of the same SKU is still missing: bring it again later.
    TooEarly,
}

/// Reservations whose business deadline has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueClaim {
    /// The claim; settle with it.
    pub held: Held,
    /// The reservations that are due, as messages (the store may never have heard of them).
    pub reservations: Vec<OrderCreateRequested>,
    /// The ones of the same entry whose deadline is still ahead, with the earliest of their deadlines.
    pub remaining: Option<(Timestamp, Vec<PurchaseId>)>,
}

/// What admission knows of one reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionView {
    /// The reservation.
    pub purchase: Purchase,
    /// How far its message has travelled.
    pub transport: Transport,
}

/// What waits for its message to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsent {
    /// Reservations.
    pub reservations: u64,
    /// How long the oldest of them has waited, by the gate's clock; none where nothing waits.
    pub oldest: Option<Millis>,
}

/// How a gate stands for one SKU, told without changing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its counters, summed over the buckets that are there; none where none is.
    pub counters: Option<Bucket>,
    /// How many buckets the SKU has.
    pub buckets: u16,
    /// How many of them let nobody in: they were never opened, or have lost writes. Whoever comes next has them rebuilt.
    pub closed: u16,
    /// The newest epoch that a bucket was opened under; 0 where the gate lives in the store, which has none.
    pub epoch: i64,
    /// Whether the gate has let go of it (FS-14): then the counters are the stock of record, and no bucket is there.
    pub is_retired: bool,
}

/// What a node does about a gate that has lost writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rebuilds {
    /// Buckets that it is making anew now; nobody is let in there.
    pub running: u64,
    /// How often it has opened one.
    pub done: u64,
}

/// What the gate says of a reservation that has no row yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Birth {
    /// The gate keeps its state elsewhere, or never let anybody in under this id.
    Absent,
    /// It is open, as the message says; the gate will look for its state in the row.
    Reserved,
    /// It is open, and not as the message says: the message is not the gate's.
    Contradicted,
}

impl Birth {
    /// The gate's state in the new row.
    #[must_use]
    pub fn admission(self) -> AdmissionStatus {
        match self {
            Self::Reserved => AdmissionStatus::Reserved,
            Self::Absent | Self::Contradicted => AdmissionStatus::Absent,
        }
    }
}

/// The gate.
pub trait Admission: Send + Sync {
    /// Lets buyers in, or says why not; one answer per command, in order, as if they had come one by one.
    fn reserve(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<ReserveAnswer>>;

    /// The same, with an answer or an error of its own for each: where a gate is in parts, one that lets nobody in fails those who
    /// came to it, and nobody else (FS-18, FS-19).
    fn reserve_each(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<Result<ReserveAnswer, Error>>> {
        Box::pin(async move {
            let count = commands.len();
            Ok(match self.reserve(commands).await {
                Ok(answers) => answers.into_iter().map(Ok).collect(),
                Err(error) => error.for_each(count),
            })
        })
    }

    /// The part of the gate that this command goes to. It is asked for every buyer, and so waits for nothing and knows it at once;
    /// equal commands go to the same part while the process lives, unless the gate has heard of the sale meanwhile.
    fn part(&self, _command: &Reserve) -> Part {
        Part::WHOLE
    }

    /// What is known of a reservation.
    fn find(&self, purchase: PurchaseId) -> Answer<'_, Option<AdmissionView>>;

    /// The same where it is known whose it is: no part of the gate is asked but the one that would have it.
    fn find_at(
        &self,
        purchase: PurchaseId,
        _key: &SkuKey,
        _user: &UserId,
    ) -> Answer<'_, Option<AdmissionView>> {
        self.find(purchase)
    }

    /// Claims reservations whose message is due (FS-05). A part of a gate that does not answer hides what lies in it from claims, counts
    /// and due-times; an error is for where nothing can be had of any part.
    fn claim_send(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<SendClaim>>;

    /// Ends claims; a claim whose lease was lost is skipped. Answers how many were still held.
    fn settle_send(&self, settlements: Vec<SendSettlement>) -> Answer<'_, u32>;

    /// Earliest time at which `claim_send` would find something.
    fn next_send(&self) -> Answer<'_, Option<Timestamp>>;

    /// What waits to be sent, whether or not it is due, claimed or held back; counting may stop once it has passed `limit`
    /// (FS-16).
    fn unsent(&self, limit: u64) -> Answer<'_, Unsent>;

    /// Claims reservations whose business deadline has come (FS-15).
    fn claim_overdue(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<OverdueClaim>>;

    /// Ends overdue claims after their rejections are durable; what remains waits for its own deadline.
    fn settle_overdue(&self, claims: Vec<OverdueClaim>) -> Answer<'_, u32>;

    /// Earliest time at which `claim_overdue` would find something.
    fn next_overdue(&self) -> Answer<'_, Option<Timestamp>>;

    /// Projects decisions of the store, each at most once (FS-13); an answer or an error of its own for each event, in order: a
    /// part of a gate that does not answer fails what concerns it, and nothing else (FS-19). An error for all says nothing of any.
    fn project(&self, events: Vec<Event>) -> Answer<'_, Vec<Result<Projected, Error>>>;

    /// Carries out durable compensations, each at most once (FS-12); an answer or an error of its own for each, in order.
    fn compensate(&self, commands: Vec<Compensate>) -> Answer<'_, Vec<Result<CompensateCode, Error>>>;

    /// Whether the gate's counters are rows of the store of record, made in the SKU's own transaction.
    fn lives_in_store(&self) -> bool;

    /// How each of these reservations is to be written, where the store first hears of it by its message or its deadline.
    fn births(&self, messages: Vec<OrderCreateRequested>) -> Answer<'_, Vec<Birth>> {
        Box::pin(async move { Ok(vec![Birth::Absent; messages.len()]) })
    }

    /// Brings the gate's counters, marks and limits of a SKU back to what the store has decided, and opens it under a new
    /// epoch (FS-18). Reservations that the gate still knows are kept. Nothing to do where the gate lives in the store.
    fn rebuild(&self, _key: SkuKey) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Lets go of SKUs that are past ([`crate::retention::is_past`]) and that nobody waits at any more; answers how many buckets went.
    /// Nothing to do where the gate lives in the store, whose rows are the record.
    fn retire(&self) -> Answer<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// The counters of a SKU.
    fn counters(&self, key: SkuKey) -> Answer<'_, Option<Bucket>>;

    /// How the gate stands for a SKU; none where there is no such SKU.
    fn standing(&self, key: SkuKey) -> Answer<'_, Option<Standing>> {
        Box::pin(async move {
            let counters = self.counters(key).await?;
            Ok(counters.map(|one| Standing {
                counters: Some(one),
                buckets: 1,
                closed: 0,
                epoch: 0,
                is_retired: false,
            }))
        })
    }

    /// What this node is making anew, and how often it has; never, where the gate lives in the store.
    fn rebuilds(&self) -> Rebuilds {
        Rebuilds::default()
    }
}
