//! A job that credits pay for (reference 004).
//!
//! Invariants: what was delivered stays delivered, and nothing that comes later gives its credits back; every other state
//! can still be delivered, also after the job was given up (CL-05). The effects are attempted each time; the job's own
//! marks decide whether they take place (CL-02, CL-03). Deliberately absent: a time-out of the first run. Whoever runs a
//! job says that it failed, and a claim of a later run ends with its lease.

use super::{Effect, Machine, rows, states};

states! {
    /// State of a job.
    Job {
        /// Somebody runs it: who opened it, or who claimed it from the retry lane.
        Running "RUNNING",
        /// It failed and waits for its next run.
        WaitingRetry "WAITING_RETRY",
        /// Its result was delivered.
        Delivered "DELIVERED",
        /// It failed for good.
        Failed "FAILED",
        /// Its tries are used up; only a person sets it going again.
        DeadLetter "DEAD_LETTER",
    }
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEvent {
    /// A run failed and another one may work.
    Retry,
    /// A run failed and no other one can work.
    Fail,
    /// A run failed, or its lease ended, and no tries are left.
    Exhaust,
    /// A worker takes it from the retry lane.
    Claim,
    /// A run delivered.
    Succeed,
    /// A person sets it going again.
    Replay,
}

/// What a move does to the ledger, where the job's marks allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerEffect {
    /// Nothing.
    None,
    /// `refund` +cost, unless it was refunded before.
    Refund,
    /// `reclaim` −cost, if it was refunded and not reclaimed.
    Reclaim,
}

impl Effect for LedgerEffect {
    fn describe(&self) -> String {
        match self {
            Self::None => "",
            Self::Refund => "refund +cost, once",
            Self::Reclaim => "reclaim −cost, once, if refunded",
        }
        .to_owned()
    }
}

impl Machine for Job {
    type Event = JobEvent;
    type Effect = LedgerEffect;
    const NAME: &'static str = "job";
    const DOC: &'static str = "A job that credits pay for: charged before it runs, refunded when it fails, reclaimed when it is delivered after all.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, JobEvent, LedgerEffect>] = rows! {
        "failed_will_retry": Running - Retry -> WaitingRetry, when "the failure may pass and tries are left", effect LedgerEffect::Refund, message "";
        "failed": Running - Fail -> Failed, when "no other run can work", effect LedgerEffect::Refund, message "";
        "exhausted": Running - Exhaust -> DeadLetter, when "the run failed, or its lease ended, and no tries are left", effect LedgerEffect::Refund, message "work.exhausted";
        "claimed_again": Running - Claim -> Running, when "the lease of the run before ended and tries are left", effect LedgerEffect::None, message "";
        "claimed": WaitingRetry - Claim -> Running, when "its time has come", effect LedgerEffect::None, message "";
        "failed_while_waiting": WaitingRetry - Fail -> Failed, when "no other run can work", effect LedgerEffect::Refund, message "";
        "delivered": Running - Succeed -> Delivered, when "", effect LedgerEffect::Reclaim, message "";
        "recovered_while_waiting": WaitingRetry - Succeed -> Delivered, when "the run that was taken for failed had delivered", effect LedgerEffect::Reclaim, message "";
        "recovered_after_failure": Failed - Succeed -> Delivered, when "the run that was taken for failed had delivered", effect LedgerEffect::Reclaim, message "";
        "recovered_from_dead_letter": DeadLetter - Succeed -> Delivered, when "a run that was given up had delivered", effect LedgerEffect::Reclaim, message "";
        "replayed": DeadLetter - Replay -> WaitingRetry, when "a person asks", effect LedgerEffect::None, message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}

impl Job {
    /// Whether there is no further run, whatever a person does.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Delivered | Self::Failed)
    }
}
