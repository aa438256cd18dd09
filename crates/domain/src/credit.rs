//! Credits: accounts and the append-only entries that make them (reference 004).
//!
//! Invariants: an entry is never changed nor taken away; the numbers of an account's entries are 1, 2, 3 … without a gap,
//! their times never run backwards, and each says the balance after it, so the balance kept with the account can be proved
//! from them at any moment (CL-01). Sums are checked and never wrap. Deliberately absent: fractions, currencies, and a
//! stored entry id — it follows from account and number. Read next: [`crate::decide::credit`].

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::id::{AccountId, EntryId, IdKind, JobId, PurchaseId};
use crate::time::Timestamp;

/// Most credits that one entry moves: the bound of every amount (api.md, Conventions).
pub const CREDITS_LIMIT: i64 = 1_000_000_000_000_000;

/// Most that an account may be given, and most that it may be allowed to owe: the largest whole number that every JSON
/// reader keeps (2^53 − 1).
pub const BALANCE_LIMIT: i64 = 9_007_199_254_740_991;

/// Longest reference or reason, in bytes.
pub const NOTE_LIMIT: usize = 1024;

/// An amount of credits that somebody names: 1 to [`CREDITS_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Credits(i64);

/// Why an amount was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from 1 to 1000000000000000")]
pub struct CreditsError;

impl Credits {
    /// Checks and keeps an amount.
    ///
    /// ```
    /// use onceward_domain::credit::{CREDITS_LIMIT, Credits};
    /// assert_eq!(Credits::new(40).unwrap().amount(), 40);
    /// assert!(Credits::new(0).is_err());
    /// assert!(Credits::new(CREDITS_LIMIT + 1).is_err());
    /// ```
    ///
    /// # Errors
    /// [`CreditsError`] below 1 or above the limit.
    pub fn new(amount: i64) -> Result<Self, CreditsError> {
        if (1..=CREDITS_LIMIT).contains(&amount) { Ok(Self(amount)) } else { Err(CreditsError) }
    }

    /// How many.
    #[must_use]
    pub fn amount(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// −n: a job was opened, or something else was paid for.
    Charge,
    /// +n: the job failed.
    Refund,
    /// −n: the refunded job was delivered after all.
    Reclaim,
    /// +n: somebody gave credits.
    Grant,
    /// ±n: a person set something right.
    Adjust,
}

impl EntryKind {
    /// Every kind; the position is the code that stores keep.
    pub const ALL: [Self; 5] = [Self::Charge, Self::Refund, Self::Reclaim, Self::Grant, Self::Adjust];

    /// The kind's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Reclaim => "reclaim",
            Self::Grant => "grant",
            Self::Adjust => "adjust",
        }
    }

    /// Whether an entry of this kind may carry this amount.
    #[must_use]
    pub fn fits(self, amount: i64) -> bool {
        match self {
            Self::Charge | Self::Reclaim => amount < 0,
            Self::Refund | Self::Grant => amount > 0,
            Self::Adjust => amount != 0,
        }
    }
}

/// A credit account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Which.
    pub id: AccountId,
    /// The sum of its entries.
    pub balance: i64,
    /// How many there are; also the number of the last one.
    pub entries: i64,
    /// How far below zero a charge may take the balance; 0 for an account that may not be overdrawn (CL-07).
    pub overdraft: i64,
    /// When it was first heard of.
    pub created_at: Timestamp,
    /// Last change; never before the last entry.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

impl Account {
    /// An account without entries.
    #[must_use]
    pub fn empty(id: AccountId, now: Timestamp) -> Self {
        Self { id, balance: 0, entries: 0, overdraft: 0, created_at: now, updated_at: now, revision: 0 }
    }

    /// What may still be charged.
    #[must_use]
    pub fn available(&self) -> i64 {
        self.balance.saturating_add(self.overdraft)
    }

    /// How it stands now.
    #[must_use]
    pub fn standing(&self, as_of: Timestamp) -> Standing {
        Standing { balance: self.balance, entries: self.entries, as_of }
    }
}

/// How an account stood at a moment (CL-08).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The sum of the entries until then.
    pub balance: i64,
    /// How many there were.
    pub entries: i64,
    /// The moment.
    pub as_of: Timestamp,
}

/// One entry of the ledger. Append-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Of which account.
    pub account: AccountId,
    /// Its place in the account, from 1.
    pub number: i64,
    /// What it does.
    pub kind: EntryKind,
    /// How much, signed.
    pub amount: i64,
    /// The sum of this and all entries before it.
    pub balance_after: i64,
    /// For which job; with the kind it is unique, so a job is charged, refunded and reclaimed once each (CL-02).
    pub job: Option<JobId>,
    /// What the caller calls it; unique for an account's charges without a job.
    pub reference: Option<Arc<str>>,
    /// Why, for a refund or an adjustment.
    pub reason: Option<Arc<str>>,
    /// Who.
    pub actor: Arc<str>,
    /// When.
    pub at: Timestamp,
}

impl Entry {
    /// Its public id.
    #[must_use]
    pub fn id(&self) -> EntryId {
        entry_id(&self.account, self.number)
    }
}

const TAG_BYTES: usize = 16;
const NUMBER_BYTES: usize = 5;

/// The public id of an account's entry: bits of the account's name, and the entry's number. It is a pure function of the
/// two, so no store keeps it.
///
/// ```
/// use onceward_domain::{credit::entry_id, id::AccountId};
/// let account = AccountId::new("studio").unwrap();
/// assert_eq!(entry_id(&account, 7), entry_id(&account, 7));
/// assert_ne!(entry_id(&account, 7), entry_id(&account, 8));
/// ```
#[must_use]
pub fn entry_id(account: &AccountId, number: i64) -> EntryId {
    let digest = Sha256::digest(account.as_str().as_bytes());
    let mut bytes = [0_u8; TAG_BYTES];
    bytes.copy_from_slice(&digest[..TAG_BYTES]);
    // Room for 10^12 entries of one account; behind them an id would repeat, never an entry.
    bytes[TAG_BYTES - NUMBER_BYTES..].copy_from_slice(&number.to_be_bytes()[8 - NUMBER_BYTES..]);
    let base = PurchaseId::from_digest(bytes, digest[TAG_BYTES]);
    EntryId(Uuid::from_bytes(*base.with_kind(IdKind::CreditEntry).as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cl_01_ids_of_entries_are_all_different_and_say_what_they_name() {
        let mut ids = BTreeSet::new();
        for account in ["a", "b", "aa", "A"] {
            let account = AccountId::trusted(account);
            for number in (1..=300).chain([1 << 32, (1 << 40) - 1]) {
                let id = entry_id(&account, number);
                assert!(PurchaseId::of(id.0, IdKind::CreditEntry).is_ok());
                assert!(ids.insert(id));
            }
        }
    }

    #[test]
    fn cl_01_only_the_right_sign_fits_a_kind() {
        for (kind, fits) in EntryKind::ALL.into_iter().zip([
            (true, false),
            (false, true),
            (true, false),
            (false, true),
            (true, true),
        ]) {
            assert_eq!(
                (kind.fits(-1), kind.fits(1), kind.fits(0)),
                (fits.0, fits.1, false),
                "{}",
                kind.name()
            );
        }
    }
}
