//! A store and a bank that let others go first before and after every call, for tests that choose who goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ChargeId, PaymentId};
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};
use onceward_domain::ports::store::{Store, Work};
use onceward_testkit::bank::Bank;

/// Something that happens while others may go first, before and after it.
fn slowly<'a, T: Send + 'a>(answer: Answer<'a, T>) -> Answer<'a, T> {
    Box::pin(async move {
        Aside { waited: false }.await;
        let answer = answer.await;
        Aside { waited: false }.await;
        answer
    })
}

/// Ready at the second poll.
struct Aside {
    waited: bool,
}

impl Future for Aside {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if self.waited {
            return Poll::Ready(());
        }
        self.waited = true;
        Poll::Pending
    }
}

/// Work that is polled by hand.
pub(crate) struct Actor<'a, T> {
    work: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    ended: Option<T>,
}

impl<'a, T> Actor<'a, T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'a) -> Self {
        Self { work: Box::pin(work), ended: None }
    }

    /// Lets it go on until its next call; answers whether it has come to its end.
    pub(crate) fn go(&mut self) -> bool {
        if self.ended.is_none()
            && let Poll::Ready(ended) = self.work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.ended = Some(ended);
        }
        self.ended.is_some()
    }

    /// Lets it go on to its end.
    pub(crate) fn finish(mut self) -> T {
        const POLLS_LIMIT: u32 = 100_000;
        for _ in 0..POLLS_LIMIT {
            if self.go() {
                return self.ended.expect("it has ended");
            }
        }
        panic!("it never ends");
    }
}

/// A slow store.
pub(crate) struct SlowStore(pub(crate) Arc<dyn Store>);

impl Store for SlowStore {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        slowly(self.0.transact(work))
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        slowly(self.0.view(need))
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        slowly(self.0.claim_due(request))
    }

    onceward_testkit::pass_questions_on!(self => self.0, slowly);
}

/// A slow line to the bank; it happens when the call goes on, not when it is made.
pub(crate) struct SlowLine(pub(crate) Arc<Bank>);

impl Provider for SlowLine {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        slowly(Box::pin(async move { self.0.create(order).await }))
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        slowly(Box::pin(async move { self.0.query(payment).await }))
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        slowly(Box::pin(async move { self.0.close(payment).await }))
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        slowly(Box::pin(async move { self.0.refund(order).await }))
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        slowly(Box::pin(async move { self.0.charge(order).await }))
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        slowly(Box::pin(async move { self.0.query_charge(charge).await }))
    }

    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error> {
        self.0.verify(callback)
    }
}
