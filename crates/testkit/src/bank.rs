//! A bank to test with: a provider with a truth of its own, that can be told to be silent at the worst moment.
//!
//! Invariants: a payment's money moves once; a refund's or a charge's id is its key; what it says when asked is its truth, unless it says
//! nothing. Deliberately absent: signatures and HTTP (the sandbox provider has them), and time; in the
//! simulator it stands behind a line that is worse than it is.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ChargeId, PaymentId, RefundId, UserId};
use onceward_domain::money::Money;
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};

/// How the bank answers one kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mood {
    /// As it should.
    #[default]
    Ok,
    /// It refuses to talk; nothing happened.
    Away,
    /// Nothing happened, and no answer comes.
    Silent,
    /// It did what was asked; no answer comes.
    SilentAfterEffect,
}

/// Where a payment stands at the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Money may come.
    Open,
    /// Money came.
    Succeeded,
    /// Declined.
    Failed,
    /// Closed without money.
    Closed,
}

/// A payment, as the bank knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Where it stands.
    pub standing: Standing,
    /// What was, or is to be, taken.
    pub amount: Money,
    /// What went back.
    pub refunded: i64,
    /// Whether money came although the bank had called it declined or closed.
    pub is_forced: bool,
}

/// A refund, as the bank knows it.
#[derive(Debug, Clone)]
struct Giving {
    payment: PaymentId,
    amount: i64,
    word: Word,
}

/// An off-session charge, as the bank knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charged {
    /// From whom.
    pub customer: UserId,
    /// How much.
    pub amount: Money,
    /// How often money moved under its id: once, or never where it was declined. More would be the fault that ids prevent.
    pub times: u32,
}

impl Charged {
    fn word(&self, id: &ChargeId) -> ChargeWord {
        if self.times == 0 {
            return ChargeWord::Declined;
        }
        ChargeWord::Taken { transaction: Arc::from(format!("txn-{id}")), amount: self.amount }
    }
}

#[derive(Debug, Clone, Default)]
struct Books {
    payments: BTreeMap<PaymentId, Account>,
    refunds: BTreeMap<RefundId, Giving>,
    query: Mood,
    close: Mood,
    refund: Mood,
    refuses_refunds: bool,
    charges: BTreeMap<ChargeId, Charged>,
    charge: Mood,
    declines_charges: bool,
}

/// The bank.
#[derive(Debug, Default)]
pub struct Bank {
    books: Mutex<Books>,
}

impl Bank {
    /// An open bank without payments.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another bank with the same books.
    pub(crate) fn copy(&self) -> Self {
        Self { books: Mutex::new(self.books().clone()) }
    }

    /// Refunds that went through and were not taken back.
    pub(crate) fn refunds_done(&self) -> impl Iterator<Item = RefundId> {
        let books = self.books();
        let done = books.refunds.iter().filter(|(_, one)| matches!(one.word, Word::Refunded { .. }));
        done.map(|(id, _)| *id).collect::<Vec<_>>().into_iter()
    }

    /// Hashes what it knows.
    pub(crate) fn hash_books(&self, hasher: &mut impl Hasher) {
        let books = self.books();
        for (id, account) in &books.payments {
            (id, account.standing, account.refunded, account.is_forced).hash(hasher);
        }
        for (id, refund) in &books.refunds {
            (id, matches!(refund.word, Word::Refunded { .. })).hash(hasher);
        }
    }

    /// How it answers queries and closes.
    pub fn when_asked(&self, query: Mood, close: Mood) {
        let mut books = self.books();
        (books.query, books.close) = (query, close);
    }

    /// How it answers refunds, and whether it refuses them.
    pub fn when_refunding(&self, mood: Mood, refuses: bool) {
        let mut books = self.books();
        (books.refund, books.refuses_refunds) = (mood, refuses);
    }

    /// How it answers charges, and whether it declines new ones.
    pub fn when_charging(&self, mood: Mood, declines: bool) {
        let mut books = self.books();
        (books.charge, books.declines_charges) = (mood, declines);
    }

    /// Every off-session charge it was ever asked for.
    #[must_use]
    pub fn charges(&self) -> BTreeMap<ChargeId, Charged> {
        self.books().charges.clone()
    }

    /// What it knows of a payment.
    #[must_use]
    pub fn account(&self, payment: PaymentId) -> Option<Account> {
        self.books().payments.get(&payment).cloned()
    }

    /// Every payment it knows of.
    #[must_use]
    pub fn accounts(&self) -> Vec<(PaymentId, Account)> {
        self.books().payments.iter().map(|(id, account)| (*id, account.clone())).collect()
    }

    /// What it would say of a refund, if it ever heard of it.
    #[must_use]
    pub fn refund_word(&self, refund: RefundId) -> Option<Word> {
        self.books().refunds.get(&refund).map(|one| one.word.clone())
    }

    /// A buyer pays: money moves if the payment is open, or by force. Answers the word a callback would carry.
    pub fn pay(&self, payment: PaymentId, by_force: bool) -> Option<Word> {
        let mut books = self.books();
        let account = books.payments.get_mut(&payment)?;
        if account.standing != Standing::Succeeded {
            if account.standing != Standing::Open && !by_force {
                return None;
            }
            account.is_forced = account.standing != Standing::Open;
            account.standing = Standing::Succeeded;
        }
        Some(word_of(payment, account))
    }

    /// A buyer pays another amount than was asked for.
    pub fn pay_wrongly(&self, payment: PaymentId, amount: Money) -> Option<Word> {
        let mut books = self.books();
        let account = books.payments.get_mut(&payment).filter(|one| one.standing == Standing::Open)?;
        (account.standing, account.amount) = (Standing::Succeeded, amount);
        Some(word_of(payment, account))
    }

    /// A refund that went out comes back, days later.
    pub fn take_back(&self, refund: RefundId) -> Option<Word> {
        let mut books = self.books();
        let done = books.refunds.get_mut(&refund).filter(|one| matches!(one.word, Word::Refunded { .. }))?;
        done.word = Word::RefundFailed { refund };
        let (payment, amount, word) = (done.payment, done.amount, done.word.clone());
        books.payments.get_mut(&payment)?.refunded -= amount;
        Some(word)
    }

    /// A buyer is declined.
    pub fn decline(&self, payment: PaymentId) -> Option<Word> {
        let mut books = self.books();
        let account = books.payments.get_mut(&payment).filter(|one| one.standing == Standing::Open)?;
        account.standing = Standing::Failed;
        Some(word_of(payment, account))
    }

    /// Money that the bank holds and has not given back, in minor units.
    #[must_use]
    pub fn kept(&self) -> i64 {
        let books = self.books();
        let took = books.payments.values().filter(|one| one.standing == Standing::Succeeded);
        took.map(|one| one.amount.amount() - one.refunded).sum()
    }
}

/// The word about a payment.
fn word_of(payment: PaymentId, account: &Account) -> Word {
    match account.standing {
        Standing::Open => Word::Processing { payment },
        Standing::Failed => Word::Failed { payment },
        Standing::Closed => Word::Closed { payment },
        Standing::Succeeded => {
            let transaction = Arc::from(format!("txn-{payment}"));
            Word::Succeeded { payment, transaction, amount: account.amount }
        }
    }
}

fn answer<T: Send + 'static>(
    mood: Mood,
    effect: impl FnOnce() -> T,
    doing: &'static str,
) -> Answer<'static, T> {
    let outcome = match mood {
        Mood::Ok => Ok(effect()),
        Mood::Away => Err(Error::new(Code::Unavailable, doing)),
        Mood::Silent => Err(Error::new(Code::OutcomeUnknown, doing)),
        Mood::SilentAfterEffect => {
            drop(effect());
            Err(Error::new(Code::OutcomeUnknown, doing))
        }
    };
    Box::pin(std::future::ready(outcome))
}

impl Provider for Bank {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        let fresh = Account { standing: Standing::Open, amount: order.amount, refunded: 0, is_forced: false };
        let mut books = self.books();
        let account = books.payments.entry(order.payment).or_insert(fresh);
        if account.amount.amount() == 0 {
            // It was closed before anybody announced it; now the bank learns what it would have been.
            account.amount = order.amount;
        }
        drop(books);
        Box::pin(std::future::ready(Ok(Arc::from("{}"))))
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        let books = self.books();
        let word =
            books.payments.get(&payment).map_or(Word::Processing { payment }, |one| word_of(payment, one));
        answer(books.query, || word, "asking the bank")
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        let mut books = self.books();
        let mood = books.close;
        let amount = Money::zero(onceward_domain::money::Currency::CNY);
        let unheard = Account { standing: Standing::Closed, amount, refunded: 0, is_forced: false };
        let close = || {
            let account = books.payments.entry(payment).or_insert(unheard);
            if account.standing == Standing::Open {
                account.standing = Standing::Closed;
            }
            word_of(payment, account)
        };
        answer(mood, close, "closing at the bank")
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        let mut books = self.books();
        let mood = books.refund;
        let give_back = || {
            if let Some(known) = books.refunds.get(&order.refund) {
                return known.word.clone();
            }
            let refuses = books.refuses_refunds;
            let account = books.payments.get_mut(&order.payment).filter(|one| {
                !refuses
                    && one.standing == Standing::Succeeded
                    && one.refunded + order.amount.amount() <= one.amount.amount()
            });
            let word = match account {
                Some(account) => {
                    account.refunded += order.amount.amount();
                    Word::Refunded { refund: order.refund }
                }
                None => Word::RefundFailed { refund: order.refund },
            };
            let (payment, amount) = (order.payment, order.amount.amount());
            books.refunds.insert(order.refund, Giving { payment, amount, word: word.clone() });
            word
        };
        answer(mood, give_back, "refunding at the bank")
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        let mut books = self.books();
        let (mood, declines) = (books.charge, books.declines_charges);
        let ChargeOrder { charge, customer, amount } = order;
        let known = books.charges.get(&charge);
        if known.is_some_and(|known| known.customer != customer || known.amount != amount) {
            return Box::pin(std::future::ready(Err(Error::new(Code::Differs, "charging at the bank"))));
        }
        let take = || {
            let fresh = Charged { customer, amount, times: u32::from(!declines) };
            books.charges.entry(charge.clone()).or_insert(fresh).word(&charge)
        };
        answer(mood, take, "charging at the bank")
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        let books = self.books();
        let word = books.charges.get(&charge).map_or(ChargeWord::Unheard, |one| one.word(&charge));
        answer(books.query, || word, "asking the bank")
    }

    fn verify(&self, _callback: &RawCallback<'_>) -> Result<Verified, Error> {
        Err(Error::new(Code::BadSignature, "this bank calls nobody back"))
    }
}
