//! Jobs that credits pay for, as rows.
//!
//! Invariants: a job that is there was charged, in the transaction that opened it; what it cost is recorded with it and
//! never changes, and every later entry takes its amount from there (CL-04); `is_reclaimed` implies `is_refunded`.
//! Deliberately absent: what a job does. Read next: [`crate::machine::job`], [`crate::decide::job`].

use std::sync::Arc;

use crate::credit::Credits;
use crate::due::Token;
use crate::id::{AccountId, JobId};
use crate::machine::job::Job as JobStatus;
use crate::time::Timestamp;

/// Most attempts that a job may be given.
pub const ATTEMPTS_LIMIT: u32 = 1_000;

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub id: JobId,
    /// Who pays.
    pub account: AccountId,
    /// What it costs.
    pub cost: Credits,
    /// How many runs it may have, the first one counted.
    pub max_attempts: u32,
    /// What its worker needs, as JSON text.
    pub payload: Option<Arc<str>>,
    /// State.
    pub status: JobStatus,
    /// Runs that were begun; a replay begins to count anew.
    pub attempts: u32,
    /// When it runs next, where it waits.
    pub not_before: Option<Timestamp>,
    /// The last claim under which it was given out.
    pub token: Option<Token>,
    /// Who claimed it last.
    pub worker: Option<Arc<str>>,
    /// What was last said of a failure.
    pub last_error: Option<Arc<str>>,
    /// Whether its cost was given back.
    pub is_refunded: bool,
    /// Whether it was taken again after that.
    pub is_reclaimed: bool,
    /// When it was opened.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

impl Job {
    /// What its entries add up to: −cost, or 0 while it is refunded and not reclaimed.
    #[must_use]
    pub fn net(&self) -> i64 {
        if self.is_refunded && !self.is_reclaimed { 0 } else { -self.cost.amount() }
    }
}
