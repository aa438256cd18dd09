//! A store that can be held up: its views, or those of the catalogue alone, wait until it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::Answer;
use onceward_domain::ports::store::{Store, Work};
use tokio::sync::watch;

/// A store around another one.
pub(crate) struct Stalled {
    inner: Arc<dyn Store>,
    stalled: watch::Sender<Stall>,
    asked: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stall {
    Nothing,
    /// Whoever wants to know what is on sale waits, as every rebuild does.
    Catalogue,
    Views,
}

impl Stalled {
    pub(crate) fn around(inner: Arc<dyn Store>) -> Self {
        Self { inner, stalled: watch::Sender::new(Stall::Nothing), asked: AtomicU64::new(0) }
    }

    pub(crate) fn stall(&self) {
        self.stalled.send_replace(Stall::Views);
    }

    pub(crate) fn stall_catalogue(&self) {
        self.stalled.send_replace(Stall::Catalogue);
    }

    /// How often somebody has wanted to know what is on sale.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn go_on(&self) {
        self.stalled.send_replace(Stall::Nothing);
    }
}

impl Store for Stalled {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        self.inner.transact(work)
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        Box::pin(async move {
            self.asked.fetch_add(u64::from(!need.skus.is_empty()), Ordering::Relaxed);
            let gone = |cause| Error::new(Code::Unavailable, "waiting for a store").because(cause);
            let goes_on = |stall: &Stall| match stall {
                Stall::Nothing => true,
                Stall::Catalogue => need.skus.is_empty(),
                Stall::Views => false,
            };
            self.stalled.subscribe().wait_for(goes_on).await.map_err(gone)?;
            self.inner.view(need).await
        })
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        self.inner.claim_due(request)
    }

    onceward_testkit::pass_questions_on!(self => self.inner);
}
