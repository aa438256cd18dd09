//! The task that gives a rejected reservation's units back to admission (FS-12, reference 003 §8.5).
//!
//! Invariant: a task is claimed many times and applied once; what cannot be applied safely ends in `MANUAL`.

use super::{Machine, rows, states};

states! {
    /// State of a compensation task.
    Compensation {
        /// Decided, not yet begun.
        Pending "PENDING",
        /// A worker holds it under a lease.
        Claimed "CLAIMED",
        /// Failed for now; waits for its back-off.
        Retry "RETRY",
        /// Admission confirmed.
        Applied "APPLIED",
        /// Reconciliation has seen both sides agree.
        Verified "VERIFIED",
        /// No safe automatic step is left.
        Manual "MANUAL",
    }
}

/// What happens to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompensationEvent {
    /// A worker took it.
    Claim,
    /// Admission did not answer, or is away.
    Postpone,
    /// Admission answered applied or already applied.
    Apply,
    /// Reconciliation confirmed it.
    Verify,
    /// Admission contradicts the store.
    GiveUp,
}

impl Machine for Compensation {
    type Event = CompensationEvent;
    type Effect = ();
    const NAME: &'static str = "compensation";
    const DOC: &'static str = "The task that gives a rejected reservation's units back to admission.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, CompensationEvent>] = rows! {
        "claimed": Pending - Claim -> Claimed, when "due", effect (), message "";
        "reclaimed": Claimed - Claim -> Claimed, when "the last lease ended", effect (), message "";
        "retried": Retry - Claim -> Claimed, when "the back-off has passed", effect (), message "";
        "postponed": Claimed - Postpone -> Retry, when "admission did not answer", effect (), message "";
        "applied": Claimed - Apply -> Applied, when "admission answered applied or already applied", effect (), message "";
        "verified": Applied - Verify -> Verified, when "reconciliation saw both sides agree", effect (), message "";
        "given_up": Claimed - GiveUp -> Manual, when "admission contradicts the store", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}
