//! Group orders: people who take part until a deadline, and what each of them is charged then (references 000, 001).
//!
//! Invariants: who takes part changes while the group is `OPEN` and its deadline has not come, by the store's clock (C82);
//! a participant's row is its charge: it is durable, with an id that never changes, before any provider hears of it
//! (GS-04). Deliberately absent: how charges are made ([`crate::decide::settle`]). Read next:
//! [`crate::machine::group`], [`crate::decide::group`].

use std::sync::Arc;

use crate::id::{ChargeId, GroupId, UserId};
use crate::machine::group::Group as GroupStatus;
use crate::machine::group_charge::GroupCharge;
use crate::money::{Currency, Money};
use crate::time::Timestamp;

/// Most participants of a group: what one answer shows and what one transaction can charge to wallets.
pub const PARTICIPANTS_LIMIT: u32 = 5_000;

/// The way to charge that is not a provider: the credit account whose id is the user's (api.md, Group orders).
pub const WALLET: &str = "wallet";

/// What a group's creator fixes for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTerms {
    /// Which.
    pub id: GroupId,
    /// Who is told when something goes wrong.
    pub leader: UserId,
    /// The first moment at which nobody may join or leave any more.
    pub deadline: Timestamp,
    /// [`WALLET`], or a provider's name.
    pub charge_via: Arc<str>,
    /// Of every participant's amount. A wallet is charged one credit for each of its minor units.
    pub currency: Currency,
    /// With fewer at the deadline the group is cancelled and nobody is charged (GS-07).
    pub min_participants: u32,
}

impl GroupTerms {
    /// Whether it is charged to wallets.
    #[must_use]
    pub fn is_via_wallet(&self) -> bool {
        &*self.charge_via == WALLET
    }
}

/// A group order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupOrder {
    /// What it was made with.
    pub terms: GroupTerms,
    /// Its place among all groups, by age; 0 until it is stored.
    pub handle: i64,
    /// State.
    pub status: GroupStatus,
    /// How many take part. It moves with every join and leave, so that its revision lets only one of a join and the close
    /// through.
    pub participants: u32,
    /// Attempts at settling since the deadline, or since a person asked for another round.
    pub attempts: u32,
    /// How often a person asked for another round (GS-06).
    pub retries: u32,
    /// When the next attempt is due, after one that failed.
    pub next_attempt_at: Option<Timestamp>,
    /// What stood in the way of the last attempt that failed.
    pub last_error: Option<Arc<str>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

impl GroupOrder {
    /// A group nobody has joined yet.
    #[must_use]
    pub fn new(terms: GroupTerms, now: Timestamp) -> Self {
        Self {
            terms,
            handle: 0,
            status: GroupStatus::Open,
            participants: 0,
            attempts: 0,
            retries: 0,
            next_attempt_at: None,
            last_error: None,
            created_at: now,
            updated_at: now,
            revision: 0,
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &GroupId {
        &self.terms.id
    }

    /// Whether people may join and leave at this moment: until one millisecond before the deadline (C82).
    #[must_use]
    pub fn may_change(&self, now: Timestamp) -> bool {
        self.status == GroupStatus::Open && now < self.terms.deadline
    }
}

/// Somebody who takes part, and the charge that settles it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// In which group.
    pub group: GroupId,
    /// Who.
    pub user: UserId,
    /// What is to be charged, more than nothing.
    pub amount: Money,
    /// State of the charge.
    pub charge: GroupCharge,
    /// The provider's transaction, or the wallet's entry, once money was taken.
    pub transaction: Option<Arc<str>>,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

impl Participant {
    /// The id of its charge, at the provider or as a wallet entry's reference.
    #[must_use]
    pub fn charge_id(&self) -> ChargeId {
        ChargeId::settling(&self.group, &self.user)
    }
}

/// One line of a group's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTransition {
    /// Of which group.
    pub group: GroupId,
    /// When.
    pub at: Timestamp,
    /// State before, if there was one.
    pub from: Option<&'static str>,
    /// State after.
    pub to: &'static str,
    /// Label of the table's row.
    pub cause: &'static str,
    /// Who: `engine`, or a person or key by name.
    pub actor: Arc<str>,
}
