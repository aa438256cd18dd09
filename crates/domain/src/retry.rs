//! How long to wait after a failure, and when to give up (LQ-04).
//!
//! Invariants: attempts are counted at the claim, so one budget covers failures, crashes and leases that ran out (A4);
//! a wait is never longer than its place in the row says; the last attempt that is allowed is carried out, the next one
//! is refused (C65). Deliberately absent: a clock and chance; the caller passes a number to spread waits by.

use crate::time::{Millis, back_off};

/// A thousandth; [`RetryPolicy::jitter`] counts in them.
const WHOLE: u32 = 1000;
/// Longest wait after a try that is not counted, where the row has no longest.
const LONGEST_UNCOUNTED: Millis = Millis(60_000);

/// A row of waits, and how often work is tried at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Wait after the first failed attempt; each further one is twice as long.
    pub first: Millis,
    /// Longest wait.
    pub cap: Option<Millis>,
    /// The part of a wait, in thousandths, that may be taken off it, so that what failed together does not come back
    /// together.
    pub jitter: u32,
    /// Attempts that are allowed; none given: it is never given up.
    pub attempts: Option<u32>,
}

/// What follows after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It is tried again, this much later.
    Again(Millis),
    /// Tries are used up.
    Exhausted,
}

impl Default for RetryPolicy {
    /// Waits of 1, 2, 4, 8 and 16 seconds, then no more (LQ-04).
    fn default() -> Self {
        Self { first: Millis(1000), cap: None, jitter: 0, attempts: Some(6) }
    }
}

impl RetryPolicy {
    /// The same, never given up.
    #[must_use]
    pub fn for_ever(self) -> Self {
        Self { attempts: None, ..self }
    }

    /// The wait after an attempt of this number, counted from 1. `seed` differs from claim to claim
    /// ([`crate::due::Held::seed`]).
    ///
    /// ```
    /// use onceward_domain::retry::RetryPolicy;
    /// let policy = RetryPolicy::default();
    /// let waits: Vec<i64> = (1..=5).map(|attempt| policy.wait(attempt, 7).0).collect();
    /// assert_eq!(waits, [1000, 2000, 4000, 8000, 16_000]);
    /// ```
    #[must_use]
    pub fn wait(&self, attempts: u32, seed: u64) -> Millis {
        let whole = back_off(attempts, self.first, self.cap.unwrap_or(Millis(i64::MAX)));
        let drawn = i64::try_from(seed % u64::from(WHOLE + 1)).expect("it is at most a thousand");
        let part = i64::from(self.jitter.min(WHOLE)) * drawn;
        let whole_squared = i64::from(WHOLE) * i64::from(WHOLE);
        Millis(whole.0 - whole.0 / whole_squared * part - whole.0 % whole_squared * part / whole_squared)
    }

    /// The wait after a try that is not counted: a quarter of what the work has waited so far, within the bounds of the row.
    /// So waits grow without a counter, and whoever runs next goes on with the same.
    ///
    /// ```
    /// use onceward_domain::{retry::RetryPolicy, time::Millis};
    /// let policy = RetryPolicy { cap: Some(Millis(30_000)), ..RetryPolicy::default() };
    /// let waits = [0, 10_000, 1_000_000].map(|age| policy.wait_of_age(Millis(age)).0);
    /// assert_eq!(waits, [1_000, 2_500, 30_000]);
    /// ```
    #[must_use]
    pub fn wait_of_age(&self, age: Millis) -> Millis {
        let longest = self.cap.unwrap_or(LONGEST_UNCOUNTED).0.max(self.first.0);
        Millis((age.0 / 4).clamp(self.first.0, longest))
    }

    /// What follows after an attempt of this number failed.
    ///
    /// ```
    /// use onceward_domain::{retry::{After, RetryPolicy}, time::Millis};
    /// let policy = RetryPolicy::default();
    /// assert_eq!(policy.after(5, 0), After::Again(Millis(16_000)));
    /// assert_eq!(policy.after(6, 0), After::Exhausted);
    /// ```
    #[must_use]
    pub fn after(&self, attempts: u32, seed: u64) -> After {
        match self.attempts {
            Some(allowed) if attempts >= allowed => After::Exhausted,
            Some(_) | None => After::Again(self.wait(attempts, seed)),
        }
    }

    /// Whether a claim of this number is one too many: leases that ran out have used up the tries (LQ-03).
    #[must_use]
    pub fn is_spent(&self, attempts: u32) -> bool {
        self.attempts.is_some_and(|allowed| attempts > allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lq_04_waits_double_up_to_the_cap_and_jitter_only_shortens() {
        let capped = RetryPolicy { cap: Some(Millis(5_000)), ..RetryPolicy::default() };
        let waits: Vec<i64> = (1..=5).map(|attempt| capped.wait(attempt, 0).0).collect();
        assert_eq!(waits, [1000, 2000, 4000, 5000, 5000]);
        let spread = RetryPolicy { jitter: 500, ..RetryPolicy::default() };
        for attempt in 1..=5 {
            let whole = RetryPolicy::default().wait(attempt, 0).0;
            let drawn: Vec<i64> = (0..2_000).map(|seed| spread.wait(attempt, seed).0).collect();
            assert_eq!((drawn.iter().max(), drawn.iter().min()), (Some(&whole), Some(&(whole / 2))));
        }
        assert!(RetryPolicy::default().for_ever().wait(u32::MAX, 1).0 > 0, "a long row saturates");
    }

    #[test]
    fn c_65_a_4_the_last_allowed_attempt_runs_and_one_budget_covers_all() {
        let ten = RetryPolicy { attempts: Some(10), ..RetryPolicy::default() };
        // Two claims whose worker died are two attempts; eight are left.
        assert_eq!((3..=20).filter(|attempt| !ten.is_spent(*attempt)).count(), 8);
        assert_eq!((ten.is_spent(10), ten.is_spent(11)), (false, true));
        assert_eq!(ten.after(10, 0), After::Exhausted);
        assert!(!ten.for_ever().is_spent(u32::MAX));
    }
}
