//! A store and a bank that let others go first before and after every call, for tests that choose who goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use onceward_domain::changes::Transition;
use onceward_domain::credit::{Entry, Standing};
use onceward_domain::due::{ClaimRequest, Claimed, Lane, LaneStatus, Waiting};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTransition};
use onceward_domain::id::{AccountId, ChargeId, GroupId, PaymentId, PurchaseId};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::notice::Notice;
use onceward_domain::payment::{Case, ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest, Store, Work};
use onceward_domain::purchase::Purchase;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;
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

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        slowly(self.0.next_due(lane))
    }

    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>> {
        slowly(self.0.find_due(lane, purchase))
    }

    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>> {
        slowly(self.0.list_due(lane, limit, after))
    }

    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>> {
        slowly(self.0.lanes())
    }

    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>> {
        slowly(self.0.list_orders(filter, page))
    }

    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>> {
        self.0.expiries(limit, after)
    }

    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>> {
        slowly(self.0.list_cases(page))
    }

    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>> {
        slowly(self.0.list_notices(page))
    }

    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>> {
        slowly(self.0.list_entries(account, page))
    }

    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>> {
        slowly(self.0.standing(account, at))
    }

    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>> {
        slowly(self.0.list_groups(status, page))
    }

    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>> {
        slowly(self.0.group_transitions(group))
    }

    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>> {
        slowly(self.0.transitions(purchase))
    }

    fn tally(&self) -> Answer<'_, Tally> {
        slowly(self.0.tally())
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        slowly(self.0.now())
    }
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
