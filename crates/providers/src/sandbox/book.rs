//! The bank's truth: a fold over what happened, and nothing else.
//!
//! Invariants: the book changes by [`Book::apply`] only, with entries that are in the journal or on their way there, so
//! reading the journal again gives the same book; entries state what happened and are never judged again. Deliberately
//! absent: forgetting. A sandbox is small; its book grows until its file is removed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use onceward_domain::id::{ChargeId, PaymentId, RefundId, UserId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::sandbox::{BankStatus, Mood, Moods, MoveKind, StatementLine};
use onceward_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::charge::BankCharge;

/// Money in a journal line or callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MoneyText {
    /// Minor units.
    pub(super) amount: i64,
    /// ISO 4217 code.
    pub(super) currency: String,
}

impl From<Money> for MoneyText {
    fn from(money: Money) -> Self {
        Self { amount: money.amount(), currency: money.currency().code().to_owned() }
    }
}

impl MoneyText {
    /// The amount, where it is one.
    pub(super) fn money(&self) -> Option<Money> {
        Money::new(self.amount, Currency::from_code(&self.currency)?).ok()
    }
}

/// What a callback is about; the names are the wire's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum News {
    #[serde(rename = "payment.succeeded")]
    PaymentSucceeded,
    #[serde(rename = "payment.failed")]
    PaymentFailed,
    #[serde(rename = "payment.processing")]
    PaymentProcessing,
    #[serde(rename = "payment.closed")]
    PaymentClosed,
    #[serde(rename = "refund.succeeded")]
    RefundSucceeded,
    #[serde(rename = "refund.failed")]
    RefundFailed,
}

/// A mood in a journal line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MoodText {
    Ok,
    Error,
    Timeout,
    TimeoutAfterEffect,
    Decline,
}

impl From<Mood> for MoodText {
    fn from(mood: Mood) -> Self {
        match mood {
            Mood::Ok => Self::Ok,
            Mood::Error => Self::Error,
            Mood::Timeout => Self::Timeout,
            Mood::TimeoutAfterEffect => Self::TimeoutAfterEffect,
            Mood::Decline => Self::Decline,
        }
    }
}

impl From<MoodText> for Mood {
    fn from(mood: MoodText) -> Self {
        match mood {
            MoodText::Ok => Self::Ok,
            MoodText::Error => Self::Error,
            MoodText::Timeout => Self::Timeout,
            MoodText::TimeoutAfterEffect => Self::TimeoutAfterEffect,
            MoodText::Decline => Self::Decline,
        }
    }
}

/// Something that happened. A journal line is a list of them that happened together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(super) enum Entry {
    /// A payment was announced. One that was closed before stays closed and learns its amount.
    Announced { payment: Uuid, amount: MoneyText },
    /// A payment was closed, perhaps before anybody announced it.
    Closed { payment: Uuid },
    /// A payment was declined.
    Declined { payment: Uuid },
    /// Money was taken.
    Taken { at: i64, payment: Uuid, transaction: String, amount: MoneyText },
    /// Money went back.
    GaveBack { at: i64, refund: Uuid, payment: Uuid, amount: MoneyText },
    /// A refund was refused.
    Refused { refund: Uuid, payment: Uuid, amount: MoneyText },
    /// A refund came back.
    Returned { at: i64, refund: Uuid },
    /// A customer was charged off-session.
    Charged { at: i64, charge: String, customer: String, transaction: String, amount: MoneyText },
    /// An off-session charge was refused.
    ChargeDeclined { charge: String, customer: String, amount: MoneyText },
    /// A callback waits.
    Call { event: String, news: News, subject: Uuid, due_at: i64, copies: u32 },
    /// One copy of a callback was taken.
    Called { event: String },
    /// A callback was given up.
    GaveUp { event: String },
    /// Moods were changed.
    Moods { query: MoodText, close: MoodText, charge: MoodText, refund: MoodText },
}

/// A payment in the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    /// What should be taken; nothing where it was closed before it was announced.
    pub(super) ordered: Option<Money>,
    /// State.
    pub(super) status: BankStatus,
    /// What was taken, under which transaction.
    pub(super) taken: Option<(Money, Arc<str>)>,
    /// What went back, in minor units.
    pub(super) refunded: i64,
}

/// A refund in the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BankRefund {
    /// Of which payment.
    pub(super) payment: PaymentId,
    /// How much.
    pub(super) amount: Money,
    /// Whether the money is with the buyer.
    pub(super) went_back: bool,
}

/// A callback that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// The bank's id of the event.
    pub(super) event: Arc<str>,
    /// What it tells.
    pub(super) news: News,
    /// Of which payment or refund.
    pub(super) subject: Uuid,
    /// Copies still to be sent.
    pub(super) copies: u32,
    /// Tries that failed since the bank was opened.
    pub(super) tries: u32,
}

/// The book.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) payments: HashMap<PaymentId, Account>,
    pub(super) refunds: HashMap<RefundId, BankRefund>,
    pub(super) charges: HashMap<ChargeId, BankCharge>,
    /// The charges of each customer that were taken, oldest first.
    pub(super) charged: HashMap<UserId, Vec<ChargeId>>,
    pub(super) moves: Vec<StatementLine>,
    pub(super) moods: Moods,
    /// Callbacks by due-time; the name tells those of one moment apart.
    calls: BTreeMap<(Timestamp, Arc<str>), Call>,
    due_of: HashMap<Arc<str>, Timestamp>,
    /// Callbacks ever asked for: part of their names.
    calls_made: u64,
}

impl Book {
    /// Takes in what happened together.
    pub(super) fn apply(&mut self, entries: &[Entry]) {
        for entry in entries {
            match entry {
                Entry::Announced { .. }
                | Entry::Closed { .. }
                | Entry::Declined { .. }
                | Entry::Taken { .. } => {
                    self.apply_to_payment(entry);
                }
                Entry::GaveBack { .. } | Entry::Refused { .. } | Entry::Returned { .. } => {
                    self.apply_to_refund(entry);
                }
                Entry::Charged { .. } | Entry::ChargeDeclined { .. } => self.apply_to_charge(entry),
                Entry::Call { .. } | Entry::Called { .. } | Entry::GaveUp { .. } => {
                    self.apply_to_calls(entry);
                }
                Entry::Moods { query, close, charge, refund } => {
                    self.moods = Moods {
                        query: (*query).into(),
                        close: (*close).into(),
                        charge: (*charge).into(),
                        refund: (*refund).into(),
                    };
                }
            }
        }
    }

    fn account(&mut self, payment: Uuid) -> &mut Account {
        let fresh = Account { ordered: None, status: BankStatus::Open, taken: None, refunded: 0 };
        self.payments.entry(PaymentId(payment)).or_insert(fresh)
    }

    fn apply_to_payment(&mut self, entry: &Entry) {
        match entry {
            Entry::Announced { payment, amount } => self.account(*payment).ordered = amount.money(),
            Entry::Closed { payment } => self.account(*payment).status = BankStatus::Closed,
            Entry::Declined { payment } => self.account(*payment).status = BankStatus::Failed,
            Entry::Taken { at, payment, transaction, amount } => {
                let Some(amount) = amount.money() else { return };
                let transaction: Arc<str> = Arc::from(transaction.as_str());
                let account = self.account(*payment);
                account.status = BankStatus::Succeeded;
                account.taken = Some((amount, transaction.clone()));
                self.moves.push(StatementLine {
                    at: Timestamp(*at),
                    kind: MoveKind::Payment,
                    payment: Some(PaymentId(*payment)),
                    refund: None,
                    charge: None,
                    transaction,
                    amount,
                });
            }
            Entry::GaveBack { .. }
            | Entry::Refused { .. }
            | Entry::Returned { .. }
            | Entry::Charged { .. }
            | Entry::ChargeDeclined { .. }
            | Entry::Call { .. }
            | Entry::Called { .. }
            | Entry::GaveUp { .. }
            | Entry::Moods { .. } => unreachable!("the caller sorts entries"),
        }
    }

    fn apply_to_refund(&mut self, entry: &Entry) {
        match entry {
            Entry::GaveBack { at, refund, payment, amount } => {
                let Some(amount) = amount.money() else { return };
                let (id, payment) = (RefundId(*refund), PaymentId(*payment));
                self.refunds.insert(id, BankRefund { payment, amount, went_back: true });
                self.move_back(MoveKind::Refund, Timestamp(*at), id);
            }
            Entry::Refused { refund, payment, amount } => {
                let Some(amount) = amount.money() else { return };
                let refused = BankRefund { payment: PaymentId(*payment), amount, went_back: false };
                self.refunds.insert(RefundId(*refund), refused);
            }
            Entry::Returned { at, refund } => {
                let id = RefundId(*refund);
                if let Some(known) = self.refunds.get_mut(&id) {
                    known.went_back = false;
                    self.move_back(MoveKind::RefundReturned, Timestamp(*at), id);
                }
            }
            Entry::Announced { .. }
            | Entry::Closed { .. }
            | Entry::Declined { .. }
            | Entry::Taken { .. }
            | Entry::Charged { .. }
            | Entry::ChargeDeclined { .. }
            | Entry::Call { .. }
            | Entry::Called { .. }
            | Entry::GaveUp { .. }
            | Entry::Moods { .. } => unreachable!("the caller sorts entries"),
        }
    }

    fn move_back(&mut self, kind: MoveKind, at: Timestamp, id: RefundId) {
        let BankRefund { payment, amount, .. } = self.refunds[&id].clone();
        let account = self.account(payment.0);
        account.refunded += if kind == MoveKind::Refund { amount.amount() } else { -amount.amount() };
        let transaction = account.taken.as_ref().map_or_else(|| Arc::from(""), |(_, id)| id.clone());
        self.moves.push(StatementLine {
            at,
            kind,
            payment: Some(payment),
            refund: Some(id),
            charge: None,
            transaction,
            amount,
        });
    }

    fn apply_to_calls(&mut self, entry: &Entry) {
        match entry {
            Entry::Call { event, news, subject, due_at, copies } => {
                let event: Arc<str> = Arc::from(event.as_str());
                let call =
                    Call { event: event.clone(), news: *news, subject: *subject, copies: *copies, tries: 0 };
                self.calls_made += 1;
                self.due_of.insert(event.clone(), Timestamp(*due_at));
                self.calls.insert((Timestamp(*due_at), event), call);
            }
            Entry::Called { event } => {
                let Some(mut call) = self.take_call(event) else { return };
                call.0.copies = call.0.copies.saturating_sub(1);
                if call.0.copies > 0 {
                    self.put_call(call.0, call.1);
                }
            }
            Entry::GaveUp { event } => drop(self.take_call(event)),
            Entry::Announced { .. }
            | Entry::Closed { .. }
            | Entry::Declined { .. }
            | Entry::Taken { .. }
            | Entry::GaveBack { .. }
            | Entry::Refused { .. }
            | Entry::Returned { .. }
            | Entry::Charged { .. }
            | Entry::ChargeDeclined { .. }
            | Entry::Moods { .. } => unreachable!("the caller sorts entries"),
        }
    }

    fn take_call(&mut self, event: &str) -> Option<(Call, Timestamp)> {
        let (event, due_at) = self.due_of.remove_entry(event)?;
        self.calls.remove(&(due_at, event)).map(|call| (call, due_at))
    }

    fn put_call(&mut self, call: Call, due_at: Timestamp) {
        self.due_of.insert(call.event.clone(), due_at);
        self.calls.insert((due_at, call.event.clone()), call);
    }

    /// A name for the next callback.
    pub(super) fn next_event(&self, subject: Uuid) -> String {
        format!("evt-{}-{subject}", self.calls_made + 1)
    }

    /// Callbacks that are due, oldest first.
    pub(super) fn due_calls(&self, now: Timestamp, limit: usize) -> Vec<Call> {
        let due = self.calls.iter().take_while(|((due_at, _), _)| *due_at <= now);
        due.map(|(_, call)| call.clone()).take(limit).collect()
    }

    /// When the next callback is due.
    pub(super) fn next_call(&self) -> Option<Timestamp> {
        self.calls.keys().next().map(|(due_at, _)| *due_at)
    }

    /// Puts a callback off. Not an entry: a bank that is opened again tries again at once.
    pub(super) fn put_off(&mut self, event: &str, due_at: Timestamp) {
        if let Some((mut call, _)) = self.take_call(event) {
            call.tries += 1;
            self.put_call(call, due_at);
        }
    }
}
