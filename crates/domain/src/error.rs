//! Errors, sorted by who acts next (design.md §4): five classes, never a sixth.
//!
//! Invariants: a class says whether the effect took place; a code is stable and documented; the text for the
//! operator is never shown to a caller. Deliberately absent: HTTP statuses (in `http`) and exit codes (in `cli`).

use std::error::Error as StdError;
use std::fmt;

use crate::time::Millis;

/// Did it take effect, and who acts next?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// No, a business answer: the caller changes the request.
    Rejected,
    /// No, someone else won: the engine reloads (bounded), then the caller.
    Conflict,
    /// No, and we know it: the same request after a back-off.
    Retryable,
    /// Perhaps: read back by id; repeat only with the same id.
    UnknownOutcome,
    /// Part of it, or a defect: a person.
    Manual,
}

macro_rules! codes {
    ($($name:ident $text:literal $class:ident $caller:literal;)*) => {
        /// Stable codes. The text form is part of the API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`: ", $caller)] $name,)*
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as callers see it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The class it belongs to.
            #[must_use]
            pub fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// What the caller is told.
            #[must_use]
            pub fn caller_text(self) -> &'static str {
                match self { $(Self::$name => $caller,)* }
            }
        }
    };
}

codes! {
    NotFound "not_found" Rejected "There is no such object.";
    Invalid "invalid" Rejected "A value is outside what is allowed.";
    SoldOut "sold_out" Rejected "Nothing is left to reserve.";
    LimitReached "limit_reached" Rejected "The buyer already holds as many as the limit allows.";
    NotOpen "not_open" Rejected "The sale is not open at this time.";
    RequestConflict "request_conflict" Rejected "This request id was used before with another body.";
    Differs "conflict" Rejected "The object exists with other values that may not change.";
    InsufficientStock "insufficient_stock" Rejected "There is not enough free stock.";
    OrderNotCancellable "order_not_cancellable" Rejected "The order can no longer be cancelled.";
    OrderNotPayable "order_not_payable" Rejected "The order cannot be paid in its present state.";
    OrderNotRefundable "order_not_refundable" Rejected "Nothing of the order can be refunded in its present state.";
    RefundExceedsPaid "refund_exceeds_paid" Rejected "The refund is more than what is left of the payment.";
    InsufficientCredit "insufficient_credit" Rejected "The account does not hold enough credit.";
    GroupClosed "group_closed" Rejected "The group order takes no changes any more.";
    GroupFull "group_full" Rejected "The group order has as many participants as it can have.";
    GroupNotRetryable "group_not_retryable" Rejected "Only a group order that has failed can be settled by hand.";
    LeaseLost "lease_lost" Rejected "The token is not the present one: somebody else has claimed the work since.";
    UnknownProvider "unknown_provider" Rejected "There is no such payment provider.";
    BadSignature "bad_signature" Rejected "The callback's signature does not hold.";
    IdempotencyKeyReused "idempotency_key_reused" Rejected "This idempotency key was used with another body.";
    IdempotencyInProgress "idempotency_in_progress" Rejected "The first request with this key is still running.";
    GuardLost "guard_lost" Conflict "Somebody else changed the object at the same moment.";
    Backlog "backlog" Retryable "Too much work is waiting; come back later.";
    Unavailable "unavailable" Retryable "The service cannot answer right now; nothing was changed.";
    OutcomeUnknown "outcome_unknown" UnknownOutcome "The answer was lost; ask again with the same ids.";
    ConstraintViolated "needs_operator" Manual "The request met a defect and was set aside for a person.";
}

/// What went wrong, in which class, with a text for the operator.
pub struct Error {
    code: Code,
    operator: String,
    state: Option<&'static str>,
    wait: Option<Millis>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with a text that says what was being attempted.
    ///
    /// ```
    /// use onceward_domain::error::{Class, Code, Error};
    /// let error = Error::new(Code::SoldOut, "reserving 1 of a/s");
    /// assert_eq!(error.class(), Class::Rejected);
    /// ```
    pub fn new(code: Code, operator: impl Into<String>) -> Self {
        Self { code, operator: operator.into(), state: None, wait: None, source: None }
    }

    /// The same, keeping the cause for the log.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same for so many callers who all met it; the cause stays with this one.
    ///
    /// ```
    /// use onceward_domain::error::{Code, Error};
    /// let all: Vec<Result<(), Error>> = Error::new(Code::Backlog, "reserving").for_each(2);
    /// assert!(all.iter().all(|one| one.as_ref().is_err_and(|error| error.code() == Code::Backlog)));
    /// ```
    #[must_use]
    pub fn for_each<T>(&self, count: usize) -> Vec<Result<T, Self>> {
        let again = |_| {
            Err(Self {
                code: self.code,
                operator: self.operator.clone(),
                state: self.state,
                wait: self.wait,
                source: None,
            })
        };
        (0..count).map(again).collect()
    }

    /// The same, naming the state that stood in the way; callers are shown it.
    #[must_use]
    pub fn in_state(mut self, state: &'static str) -> Self {
        self.state = Some(state);
        self
    }

    /// The same, saying when to come back; callers are told.
    #[must_use]
    pub fn to_be_repeated_after(mut self, wait: Millis) -> Self {
        self.wait = Some(wait);
        self
    }

    /// When to come back, where that is known.
    #[must_use]
    pub fn wait(&self) -> Option<Millis> {
        self.wait
    }

    /// The state that stood in the way, where a state did.
    #[must_use]
    pub fn state(&self) -> Option<&'static str> {
        self.state
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.code.class()
    }

    /// What was being attempted, for the operator.
    #[must_use]
    pub fn operator_text(&self) -> &str {
        &self.operator
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code.as_str(), self.operator)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")?;
        if let Some(source) = &self.source {
            write!(out, " (because {source})")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_speak() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert!(Code::ALL[index + 1..].iter().all(|other| other.as_str() != code.as_str()));
            assert!(code.caller_text().ends_with('.'));
        }
    }
}
