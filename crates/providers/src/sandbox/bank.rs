//! The bank's rules: what it does when it is asked, told or played with.
//!
//! Invariants: one lock over book and journal, so lines are in the order of decisions; every answer, also one that only
//! looks, waits until what it tells is on disk; a refund is known by its id, a payment by its id, and each has its effect
//! once however often it is asked for. Deliberately absent: moods, which are the mouth's (`provider`), not the book's.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{PaymentId, RefundId, UserId};
use onceward_domain::money::Money;
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::provider::RefundOrder;
use onceward_domain::ports::sandbox::{
    Act, BankPayment, BankStatus, Calling, CustomerCharge, Deed, MoodChange, Moods, Sandbox, StatementLine,
};
use onceward_domain::time::{Millis, Timestamp};
use tokio::sync::Notify;
use uuid::Uuid;

use super::book::{Account, Book, Call, Entry, News};
use super::callback;
use super::journal::Journal;
use crate::signature::Signer;

/// How long a call waits where nobody answers (`provider.timeout_ms`).
pub const TIMEOUT: Duration = Duration::from_millis(2_000);

/// What [`Bank::open`] takes beside the file.
#[derive(Clone)]
pub struct BankOptions {
    /// Signs callbacks; the provider checks them with the same.
    pub signer: Signer,
    /// The bank's clock.
    pub clock: Arc<dyn Clock>,
    /// How long a caller waits where the bank does not answer.
    pub timeout: Duration,
}

/// A handle to the bank.
#[derive(Clone)]
pub struct Bank {
    inner: Arc<Inner>,
}

struct Inner {
    book: Mutex<Book>,
    journal: Journal,
    options: BankOptions,
    called: Notify,
}

impl Bank {
    /// Opens the bank with its journal at `path`.
    ///
    /// # Errors
    /// When the file cannot be had or is damaged.
    pub fn open(path: &Path, options: BankOptions) -> io::Result<Self> {
        let (journal, book) = Journal::open(path)?;
        let called = Notify::new();
        Ok(Self { inner: Arc::new(Inner { book: Mutex::new(book), journal, options, called }) })
    }

    /// Announces a payment; a repeat changes nothing. One that was closed before it came stays closed.
    ///
    /// # Errors
    /// [`Code::Differs`] for a repeat with another amount.
    pub async fn announce(&self, id: PaymentId, amount: Money) -> Result<(), Error> {
        let rule = |book: &Book| match book.payments.get(&id).and_then(|account| account.ordered) {
            Some(known) if known == amount => Ok(Vec::new()),
            Some(_) => Err(Error::new(Code::Differs, format!("announcing payment {id} with another amount"))),
            None => Ok(vec![Entry::Announced { payment: id.0, amount: amount.into() }]),
        };
        self.decide(rule, |_| ()).await
    }

    /// A payment, if the bank knows it.
    ///
    /// # Errors
    /// [`Code::OutcomeUnknown`] where the journal failed.
    pub async fn find(&self, id: PaymentId) -> Result<Option<BankPayment>, Error> {
        self.decide(|_| Ok(Vec::new()), |book| book.payments.get(&id).map(|account| view(id, account))).await
    }

    /// Closes a payment that is open, or that nobody announced yet, and answers it as it is then.
    ///
    /// # Errors
    /// [`Code::OutcomeUnknown`] where the journal failed.
    pub async fn close(&self, id: PaymentId) -> Result<BankPayment, Error> {
        let rule = |book: &Book| {
            let is_open = book.payments.get(&id).is_none_or(|account| account.status == BankStatus::Open);
            Ok(if is_open { vec![Entry::Closed { payment: id.0 }] } else { Vec::new() })
        };
        self.decide(rule, |book| view(id, &book.payments[&id])).await
    }

    /// Gives money back, once per refund id, and answers whether it went.
    ///
    /// # Errors
    /// [`Code::Differs`] for a known id with another payment or amount.
    pub async fn refund(&self, order: RefundOrder, policy: Policy) -> Result<bool, Error> {
        let at = self.now().0;
        let rule = |book: &Book| {
            if let Some(known) = book.refunds.get(&order.refund) {
                if known.payment == order.payment && known.amount == order.amount {
                    return Ok(Vec::new());
                }
                let about = format!("asking for refund {} with another payment or amount", order.refund);
                return Err(Error::new(Code::Differs, about));
            }
            let (refund, payment, amount) = (order.refund.0, order.payment.0, order.amount.into());
            let goes = policy == Policy::Fair && can_give_back(book, &order);
            Ok(vec![if goes {
                Entry::GaveBack { at, refund, payment, amount }
            } else {
                Entry::Refused { refund, payment, amount }
            }])
        };
        self.decide(rule, |book| book.refunds[&order.refund].went_back).await
    }

    /// Takes a refund back that had gone through, as real providers do days later, and calls back.
    ///
    /// # Errors
    /// [`Code::NotFound`] where no such money went back.
    pub async fn return_refund(&self, id: RefundId, calling: Calling) -> Result<(), Error> {
        let now = self.now();
        let rule = |book: &Book| {
            if !book.refunds.get(&id).is_some_and(|refund| refund.went_back) {
                return Err(Error::new(Code::NotFound, format!("taking refund {id} back")));
            }
            let call = call(book, News::RefundFailed, id.0, calling, now);
            Ok(std::iter::once(Entry::Returned { at: now.0, refund: id.0 }).chain(call).collect())
        };
        self.decide(rule, |_| ()).await
    }

    /// Decides under the lock, looks at the outcome there, and answers it once it is on disk.
    pub(super) async fn decide<T>(
        &self,
        rule: impl FnOnce(&Book) -> Result<Vec<Entry>, Error>,
        look: impl FnOnce(&Book) -> T,
    ) -> Result<T, Error> {
        let (line, outcome, is_calling) = {
            let mut book = self.book();
            let entries = rule(&book)?;
            book.apply(&entries);
            let journal = &self.inner.journal;
            // What only looks may see what is not on disk yet, so it waits for it as well.
            let line = if entries.is_empty() { journal.last() } else { journal.append(&entries) };
            let is_calling = entries.iter().any(|entry| matches!(entry, Entry::Call { .. }));
            (line, look(&book), is_calling)
        };
        self.inner.journal.durable(line).await?;
        if is_calling {
            self.inner.called.notify_one();
        }
        Ok(outcome)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Only `apply` changes it, and what it is given was decided before.
        self.inner.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    pub(super) fn options(&self) -> &BankOptions {
        &self.inner.options
    }

    pub(super) fn moods(&self) -> Moods {
        self.book().moods
    }

    /// Woken when a callback was asked for.
    pub(super) fn called(&self) -> &Notify {
        &self.inner.called
    }

    /// Callbacks that are due, with their bodies; and when the next one is.
    pub(super) async fn due_calls(
        &self,
        limit: usize,
    ) -> Result<(Vec<(Call, Vec<u8>)>, Option<Timestamp>), Error> {
        let now = self.now();
        let look = |book: &Book| {
            let calls = book.due_calls(now, limit);
            let calls = calls.into_iter().map(|call| (callback::body(book, &call), call));
            (calls.map(|(body, call)| (call, body)).collect(), book.next_call())
        };
        self.decide(|_| Ok(Vec::new()), look).await
    }

    /// Notes that copies of a callback were taken, or that it is given up. Nobody waits for the disk: a callback whose
    /// note is lost is sent again, and a callback may always come again.
    pub(super) fn note(&self, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        let mut book = self.book();
        book.apply(entries);
        self.inner.journal.append(entries);
    }

    /// Tries a callback again later.
    pub(super) fn put_off(&self, event: &str, wait: Millis) {
        let due_at = self.now().plus(wait);
        self.book().put_off(event, due_at);
    }
}

/// How a refund or a charge that nobody asked for before is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// A refund by what is left of the payment; a charge is taken.
    Fair,
    /// It is refused for good.
    Decline,
}

fn can_give_back(book: &Book, order: &RefundOrder) -> bool {
    let account = book.payments.get(&order.payment);
    let Some((account, (taken, _))) = account.and_then(|one| one.taken.as_ref().map(|taken| (one, taken)))
    else {
        return false;
    };
    let amount = order.amount;
    amount.currency() == taken.currency() && amount.amount() <= taken.amount() - account.refunded
}

fn view(id: PaymentId, account: &Account) -> BankPayment {
    let amount = account.taken.as_ref().map(|(amount, _)| *amount).or(account.ordered);
    BankPayment {
        id,
        status: account.status,
        amount,
        refunded: amount.and_then(|amount| Money::new(account.refunded, amount.currency()).ok()),
        transaction: account.taken.as_ref().map(|(_, transaction)| transaction.clone()),
    }
}

fn call(book: &Book, news: News, subject: Uuid, calling: Calling, due_at: Timestamp) -> Option<Entry> {
    let copies = match calling {
        Calling::Send => 1,
        Calling::Duplicate => 2,
        Calling::Drop => return None,
    };
    Some(Entry::Call { event: book.next_event(subject), news, subject, due_at: due_at.0, copies })
}

/// What an act does to a payment, callback not counted.
fn judge(id: PaymentId, account: &Account, deed: Deed, now: Timestamp) -> Result<Option<Entry>, Error> {
    let refused = || {
        let about = format!("playing with payment {id}, which is {}", account.status.name());
        Error::new(Code::Differs, about)
    };
    match deed {
        Deed::Succeed { amount, force } => {
            if let Some((taken, _)) = &account.taken {
                // Told once more: the money moved, and only the callback goes again.
                return if amount.is_none_or(|amount| amount == *taken) { Ok(None) } else { Err(refused()) };
            }
            let amount = amount.or(account.ordered).ok_or_else(refused)?;
            if account.status != BankStatus::Open && !force {
                return Err(refused());
            }
            let transaction = format!("txn-{id}");
            Ok(Some(Entry::Taken { at: now.0, payment: id.0, transaction, amount: amount.into() }))
        }
        Deed::Fail => match account.status {
            BankStatus::Open => Ok(Some(Entry::Declined { payment: id.0 })),
            BankStatus::Failed => Ok(None),
            BankStatus::Succeeded | BankStatus::Closed => Err(refused()),
        },
    }
}

impl Sandbox for Bank {
    fn payment(&self, id: PaymentId) -> Answer<'_, BankPayment> {
        Box::pin(async move {
            let found = self.find(id).await?;
            found.ok_or_else(|| Error::new(Code::NotFound, format!("looking at payment {id} in the sandbox")))
        })
    }

    fn play(&self, id: PaymentId, act: Act) -> Answer<'_, BankPayment> {
        Box::pin(async move {
            let now = self.now();
            let rule = move |book: &Book| {
                let account = book.payments.get(&id);
                let absent = || Error::new(Code::NotFound, format!("playing with payment {id}"));
                let done = judge(id, account.ok_or_else(absent)?, act.deed, now)?;
                let news = match act.deed {
                    Deed::Succeed { .. } => News::PaymentSucceeded,
                    Deed::Fail => News::PaymentFailed,
                };
                let call = call(book, news, id.0, act.calling, now.plus(act.delay));
                Ok(done.into_iter().chain(call).collect())
            };
            self.decide(rule, |book| view(id, &book.payments[&id])).await
        })
    }

    fn set_moods(&self, change: MoodChange) -> Answer<'_, Moods> {
        Box::pin(async move {
            let rule = move |book: &Book| {
                let known = book.moods;
                Ok(vec![Entry::Moods {
                    query: change.query.unwrap_or(known.query).into(),
                    close: change.close.unwrap_or(known.close).into(),
                    charge: change.charge.unwrap_or(known.charge).into(),
                    refund: change.refund.unwrap_or(known.refund).into(),
                }])
            };
            self.decide(rule, |book| book.moods).await
        })
    }

    fn statement(&self, from: Timestamp, to: Timestamp) -> Answer<'_, Vec<StatementLine>> {
        Box::pin(async move {
            let look = |book: &Book| {
                let within = book.moves.iter().filter(|line| (from..to).contains(&line.at));
                within.cloned().collect()
            };
            self.decide(|_| Ok(Vec::new()), look).await
        })
    }

    fn charges(&self, customer: UserId) -> Answer<'_, Vec<CustomerCharge>> {
        Box::pin(async move { self.customer_charges(&customer).await })
    }
}
