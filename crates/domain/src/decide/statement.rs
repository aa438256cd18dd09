//! Reading a provider's statement against our book (OT-07; RC-02): the last way to learn of money that nobody told of.
//!
//! A line says the same as a callback would, so it is heard by the same rule, [`super::pay`]. Invariants: lines are compared
//! one by one, with this payment and this refund, never by a net sum that may leave something out (C117); a difference is a
//! case for a person and mends nothing; reading the same statement again changes nothing. Deliberately absent: the
//! statement's format, which is the reader's.

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::decide::Draft;
use crate::decide::pay::{Heard, hear_into};
use crate::error::Error;
use crate::facts::Facts;
use crate::id::{PaymentId, RefundId};
use crate::machine::refund::Refund as RefundStatus;
use crate::money::Money;
use crate::payment::{CaseKind, Refund, Word};

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Money was taken, under this transaction of the provider's.
    Taken {
        /// The provider's id.
        transaction: Arc<str>,
    },
    /// Money went back.
    WentBack {
        /// Under which refund.
        refund: RefundId,
        /// Whether a later line of the same statement says that it came back.
        came_back: bool,
    },
    /// Money that had gone back came back to us.
    CameBack {
        /// Of which refund.
        refund: RefundId,
    },
}

/// One line of a provider's statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// About which payment.
    pub payment: PaymentId,
    /// What happened.
    pub said: Said,
    /// How much money moved.
    pub amount: Money,
}

/// What a line came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Our book says the same.
    Matched,
    /// It was news, and is in our book now.
    NewlyHeard,
    /// We know no such payment or refund at this provider: a case.
    Unknown,
    /// Our book says something else: a case.
    Mismatched,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Matched, Self::NewlyHeard, Self::Unknown, Self::Mismatched];

    /// The verdict's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::NewlyHeard => "newly_heard",
            Self::Unknown => "unknown",
            Self::Mismatched => "mismatched",
        }
    }
}

/// Hears lines of this provider's statement; one verdict each, in order. No two may be about one order: a set changes a
/// purchase and a refund once.
///
/// Needs the `payments` and `refunds` they name, and of the orders behind them what [`super::pay::hear`] needs.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one decision would change a purchase twice in different ways.
pub fn hear(
    facts: &mut Facts,
    provider: &str,
    entries: &[Entry],
    source: &Arc<str>,
) -> Result<(ChangeSet, Vec<Verdict>), Error> {
    let mut draft = Draft::default();
    let mut verdicts = Vec::with_capacity(entries.len());
    for entry in entries {
        verdicts.push(hear_one(facts, &mut draft, provider, entry, source)?);
    }
    Ok((draft.finish(facts), verdicts))
}

/// States of a refund that agree with "it went back" where a later line says that it came back; where none does, the first.
const RETURNED: [RefundStatus; 2] = [RefundStatus::Succeeded, RefundStatus::Failed];

fn hear_one(
    facts: &mut Facts,
    draft: &mut Draft,
    provider: &str,
    entry: &Entry,
    source: &Arc<str>,
) -> Result<Verdict, Error> {
    // Another provider's payment is none of this one's.
    if facts.payments.get(&entry.payment).is_none_or(|payment| &*payment.provider != provider) {
        return Ok(unknown(facts, draft, provider, entry));
    }
    let (refund, word, agrees): (_, _, &[RefundStatus]) = match &entry.said {
        Said::Taken { transaction } => {
            let transaction = transaction.clone();
            let word = Word::Succeeded { payment: entry.payment, transaction, amount: entry.amount };
            return Ok(verdict_of(hear_into(facts, draft, &word, source)?));
        }
        Said::WentBack { refund, came_back } => {
            let agrees = if *came_back { &RETURNED[..] } else { &RETURNED[..1] };
            (*refund, Word::Refunded { refund: *refund }, agrees)
        }
        Said::CameBack { refund } => {
            (*refund, Word::RefundFailed { refund: *refund }, &[RefundStatus::Failed])
        }
    };
    let Some(known) = facts.refunds.get(&refund).cloned() else {
        return Ok(unknown(facts, draft, provider, entry));
    };
    if known.payment != entry.payment || known.amount != entry.amount {
        return Ok(differ(facts, draft, &known, entry));
    }
    let heard = hear_into(facts, draft, &word, source)?;
    if heard == Heard::Nothing && !agrees.contains(&known.status) {
        return Ok(differ(facts, draft, &known, entry));
    }
    Ok(verdict_of(heard))
}

fn verdict_of(heard: Heard) -> Verdict {
    match heard {
        Heard::Nothing => Verdict::Matched,
        Heard::Applied | Heard::Unwanted => Verdict::NewlyHeard,
        Heard::Contradiction => Verdict::Mismatched,
        Heard::UnknownPayment => Verdict::Unknown,
    }
}

/// Money of which our book knows nothing: told with what the provider calls it, for a person to look for it there.
fn unknown(facts: &Facts, draft: &mut Draft, provider: &str, entry: &Entry) -> Verdict {
    let (what, named) = match &entry.said {
        Said::Taken { transaction } => ("takes", transaction.to_string()),
        Said::WentBack { refund, .. } => ("gives back", format!("{refund}")),
        Said::CameBack { refund } => ("gets back again", format!("{refund}/returned")),
    };
    let detail = format!(
        "the statement of {provider} {what} {} as {named}, for payment {}, which our book does not have there",
        entry.amount, entry.payment
    );
    draft.open_case(facts, CaseKind::StatementUnknown, format!("{provider}:{named}"), detail);
    Verdict::Unknown
}

/// A gap between the books: told, not mended (C117).
fn differ(facts: &Facts, draft: &mut Draft, known: &Refund, entry: &Entry) -> Verdict {
    let detail = format!(
        "the statement moves {} for this refund of payment {}; our book has {} of payment {}, {:?}",
        entry.amount, entry.payment, known.amount, known.payment, known.status
    );
    draft.open_case(facts, CaseKind::AmountMismatch, known.id.to_string(), detail);
    Verdict::Mismatched
}
