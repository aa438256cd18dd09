//! Store and bank as a process under exploration sees them: each touch waits for its turn, and its answer may get lost.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use onceward::wire;
use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ChargeId, IdKind, PaymentId, PurchaseId, RefundId};
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};
use onceward_domain::ports::store::{Store, Work};

use super::actor::{Grant, Turn};
use crate::bank::Bank;
use crate::model::ModelStore;

/// How the line to the bank behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Line {
    /// As it should.
    #[default]
    Honest,
    /// A close is answered "closed" whatever the truth is: what counts is what the bank says when asked.
    ClosesOnPaper,
    /// Silence is taken for "closed", to show that it is noticed.
    TakesSilenceForClosed,
    /// A refund is asked for under a new id each time, to show that it is noticed.
    RenamesRefunds,
}

/// The store behind a turn. Reads go with whatever was done before them: they change nothing.
pub(super) struct TurnStore {
    pub(super) inner: Arc<ModelStore>,
    pub(super) turn: Turn,
}

fn lost(name: &str) -> Error {
    Error::new(Code::OutcomeUnknown, format!("{name}: the answer was lost"))
}

impl TurnStore {
    async fn commit(&self, work: Work) -> Result<(), Error> {
        let name = work.name;
        let grant = self.turn.wait(name).await;
        let answer = self.inner.transact(work).await;
        let answer = if grant == Grant::LoseAnswer { Err(lost(name)) } else { answer };
        self.turn.learn((name, answer.as_ref().err().map(|error| error.code().as_str())));
        answer
    }

    /// What a reader of these facts may go by.
    fn read(&self, facts: &Facts) {
        for payment in facts.payments.values() {
            self.turn.learn((payment.id, payment.status));
        }
        for refund in facts.refunds.values() {
            self.turn.learn((refund.id, refund.status));
        }
        self.turn.learn(facts.purchases.len());
    }
}

impl Store for TurnStore {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        Box::pin(self.commit(work))
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        Box::pin(async move {
            let facts = self.inner.view(need).await?;
            self.read(&facts);
            Ok(facts)
        })
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        Box::pin(async move {
            let claimed = self.inner.claim_due(request).await?;
            for one in &claimed {
                self.turn.hold(one.held.token);
                self.turn.learn((&one.held.member, one.attempts));
            }
            Ok(claimed)
        })
    }

    crate::pass_questions_on!(self => self.inner);
}

/// The bank behind a turn.
pub(super) struct TurnBank {
    pub(super) inner: Arc<Bank>,
    pub(super) turn: Turn,
    pub(super) line: Line,
    /// Refunds that were asked for, where each gets another name.
    pub(super) renamed: AtomicU8,
}

impl TurnBank {
    async fn ask<T: Debug>(&self, name: &'static str, effect: Answer<'_, T>) -> Result<T, Error> {
        let grant = self.turn.wait(name).await;
        let answer = effect.await;
        let answer = if grant == Grant::LoseAnswer { Err(lost(name)) } else { answer };
        let told =
            answer.as_ref().map_or_else(|error| error.code().as_str().to_owned(), |word| format!("{word:?}"));
        self.turn.learn((name, told));
        answer
    }

    async fn query_bank(&self, payment: PaymentId) -> Result<Word, Error> {
        let answer = self.ask("query", Box::pin(async move { self.inner.query(payment).await })).await;
        match self.line {
            Line::TakesSilenceForClosed => answer.or(Ok(Word::Closed { payment })),
            Line::Honest | Line::ClosesOnPaper | Line::RenamesRefunds => answer,
        }
    }

    async fn close_at_bank(&self, payment: PaymentId) -> Result<Word, Error> {
        let answer = self.ask("close", Box::pin(async move { self.inner.close(payment).await })).await;
        match self.line {
            Line::ClosesOnPaper => answer.map(|_| Word::Closed { payment }),
            Line::Honest | Line::TakesSilenceForClosed | Line::RenamesRefunds => answer,
        }
    }

    fn named(&self, order: RefundOrder) -> RefundOrder {
        match self.line {
            Line::RenamesRefunds => {
                let number = self.renamed.fetch_add(1, Ordering::Relaxed);
                let base = PurchaseId::from_digest([number; 16], 1);
                RefundOrder { refund: RefundId(base.with_kind(IdKind::Refund)), ..order }
            }
            Line::Honest | Line::ClosesOnPaper | Line::TakesSilenceForClosed => order,
        }
    }

    async fn give_back(&self, order: RefundOrder) -> Result<Word, Error> {
        let own = order.refund;
        let named = self.named(order);
        let word = self.ask("refund", Box::pin(async move { self.inner.refund(named).await })).await?;
        Ok(match word {
            Word::Refunded { .. } => Word::Refunded { refund: own },
            Word::RefundFailed { .. } => Word::RefundFailed { refund: own },
            other @ (Word::Succeeded { .. }
            | Word::Failed { .. }
            | Word::Closed { .. }
            | Word::Processing { .. }
            | Word::Silent { .. }
            | Word::RefundSilent { .. }) => other,
        })
    }
}

impl Provider for TurnBank {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        Box::pin(self.ask("create", Box::pin(async move { self.inner.create(order).await })))
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        Box::pin(self.query_bank(payment))
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        Box::pin(self.close_at_bank(payment))
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        Box::pin(self.give_back(order))
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        self.inner.charge(order)
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        self.inner.query_charge(charge)
    }

    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error> {
        let (_, event) =
            callback.headers.first().ok_or_else(|| Error::new(Code::BadSignature, "no event"))?;
        Ok(Verified { event: Arc::from(event.as_str()), word: wire::decode_word(callback.body)? })
    }
}
