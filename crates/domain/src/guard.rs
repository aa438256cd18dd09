//! The guards of money, by name: the conditions without which a payment, a cancel, a refund or a job would go wrong.
//!
//! Purpose: a guard that no test misses is no guard. Each stands here under a name, and a build with the feature `mutants` —
//! which only the tests of the testkit ask for — can take one of them away: the one that the variable
//! `ONCEWARD_REMOVED_GUARD` names. A test takes away each in turn and demands that the check which it names fails.
//!
//! Invariants: without the feature a guard is its condition and nothing else; there is nothing to switch. Deliberately
//! absent: what the machines' tables allow, which is proved cell by cell, and what a store refuses, which is proved by
//! the conformance suite and by stores that are broken on purpose.

macro_rules! guards {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A guard.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Guard {
            $($(#[$doc])* $name,)*
        }

        impl Guard {
            /// Every guard.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

guards! {
    /// A start that is known answers its attempt.
    KnownAttemptIsAnswered,
    /// While an attempt is open, a start answers that one (C47).
    OneAttemptIsOpen,
    /// Only an unpaid, live order can be paid for.
    OnlyAnUnpaidOrderIsPaidFor,
    /// Nobody starts to pay for an order whose time is up.
    NobodyStartsTooLate,
    /// Two starts, or a start and a cancel, decided on the same facts, are one (C47, OT-03).
    StartMovesTheOrder,
    /// Another amount than the order's never pays it (OT-08).
    AmountAgrees,
    /// Another currency neither.
    CurrencyAgrees,
    /// A second transaction for one attempt is told to a person.
    OneTransactionPerPayment,
    /// An order of which a wrong amount was taken is frozen.
    WrongAmountFreezes,
    /// Money that came while a person holds the order is told to that person.
    MoneyOfAFrozenOrderIsACase,
    /// Money that came twice goes back.
    SecondMoneyGoesBack,
    /// Money for a cancelled order is a case where the activity says so (OT-07).
    LateMoneyIsACase,
    /// Money for a cancelled order goes back where the activity says so (OT-07).
    LateMoneyGoesBack,
    /// An order comes back to life only with stock for it (OT-07).
    ReinstatingNeedsStock,
    /// And only while its buyer is under the limit.
    ReinstatingKeepsTheLimit,
    /// A paid order cannot be cancelled.
    PaidOrderIsNotCancelled,
    /// No order is cancelled before its due-time (OT-04).
    GraceIsKept,
    /// An order with an attempt that may bring money is not cancelled at once (OT-03).
    CancelWaitsForProof,
    /// A cancel after silence is not final (OT-05, DR-02).
    SilenceProvesNothing,
    /// Only what still waits for its cancel is cancelled: money that was found meanwhile wins (DR-01).
    MoneyBeatsThePendingCancel,
    /// The provider is asked once more after the cancel (OT-07).
    SecondConfirmationIsPlanned,
    /// And also after a cancel that had nothing to ask, where an attempt had ended before.
    EndedAttemptsAreConfirmedToo,
    /// A silent provider is asked again for its second confirmation.
    SilentConfirmationIsRepeated,
    /// Once an attempt has paid, the order's other attempts are closed, or asked about once more.
    OtherAttemptsAreSettled,
    /// Until each of them has had its last word.
    OtherAttemptsAreAskedAgain,
    /// A refund that is known is answered, not opened again (C57).
    KnownRefundIsAnswered,
    /// Only a paid order gives money back on request.
    OnlyAPaidOrderIsRefunded,
    /// Where nothing is left, nothing is refunded.
    SomethingIsLeftToRefund,
    /// Only money that was taken can go back.
    OnlyTakenMoneyGoesBack,
    /// A refund is in the order's currency.
    RefundKeepsTheCurrency,
    /// A refund of nothing is none (C52).
    RefundIsNotZero,
    /// Refunds never pass what was paid (OT-09).
    RefundsStayWithinWhatWasPaid,
    /// Two refunds decided on the same sums are one (C51).
    RefundMovesTheOrder,
    /// A refund that failed frees its amount.
    FailedRefundFreesItsAmount,
    /// A refund nobody asked for, and which the provider refuses, is told to a person.
    RefusedUnwantedRefundIsACase,
    /// An order is being refunded until its last refund has ended.
    LastRefundEndsRefunding,
    /// A refund under way returns nothing to a refunded order (DR-02).
    OpenRefundReturnsNothing,
    /// Two refunds that end on the same facts do not leave the order behind.
    RefundsEndMovesTheOrder,
    /// The provider's word after the close counts, not its answer to the close (OT-05).
    CloseIsNoProof,
    /// No answer is no answer (DR-02).
    SilenceIsNoWord,
    /// The second confirmation asks about attempts that were closed or declined, too (OT-07).
    ClosedAttemptsAreConfirmed,
    /// A refund without an answer is asked for again.
    SilentRefundIsRepeated,
    /// A callback about a payment nobody knows is kept and heard later (OT-08).
    UnknownPaymentIsKept,
    /// A callback is kept once per event.
    EventIsKeptOnce,
    /// One event with two bodies is told to a person (C91).
    EventHasOneBody,
    /// An open attempt is asked about before another is started.
    OpenAttemptIsAskedAbout,
    /// A callback counts only with a signature that holds (SE-02).
    SignatureHolds,
    /// And only inside its window.
    SignatureIsFresh,
    /// A job is opened only with credit for it (CL-07).
    ChargeNeedsCredit,
    /// A job that is known keeps its terms (CL-04).
    JobKeepsItsTerms,
    /// A job's cost is given back once (CL-02).
    JobIsRefundedOnce,
    /// What was never given back is not taken again (CL-02).
    ReclaimNeedsARefund,
    /// What was given back is taken again once (CL-02).
    JobIsReclaimedOnce,
    /// A failure that a former holder tells of says nothing of the job (LQ-02).
    StaleFailureSaysNothing,
    /// No run is handed out beyond those that a job may have (CL-06).
    RunsAreLimited,
}

impl Guard {
    /// Whether the guard lets this pass: where its condition holds.
    ///
    /// ```
    /// use onceward_domain::guard::Guard;
    /// assert!(Guard::AmountAgrees.holds(1 == 1));
    /// ```
    #[must_use]
    #[inline]
    pub fn holds(self, condition: bool) -> bool {
        condition || !self.stands()
    }

    /// Whether the guard is there at all: always, but in a build that takes guards away.
    #[cfg(not(feature = "mutants"))]
    #[must_use]
    #[inline]
    pub const fn stands(self) -> bool {
        true
    }

    /// Whether the guard is there: unless it is the one that is taken away.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn stands(self) -> bool {
        removed() != Some(self)
    }
}

/// Names the guard that is taken away.
#[cfg(feature = "mutants")]
pub const REMOVED: &str = "ONCEWARD_REMOVED_GUARD";

#[cfg(feature = "mutants")]
fn removed() -> Option<Guard> {
    static FOUND: std::sync::OnceLock<Option<Guard>> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| {
        let name = std::env::var(REMOVED).ok()?;
        let found = Guard::ALL.iter().copied().find(|guard| guard.name() == name);
        Some(found.expect("the variable names a guard"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_guard_stands_and_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Guard::ALL.iter().map(|guard| guard.name()).collect();
        assert_eq!(names.len(), Guard::ALL.len());
        for guard in Guard::ALL {
            assert!(guard.stands() && guard.holds(true) && !guard.holds(false), "{guard:?}");
        }
    }
}
