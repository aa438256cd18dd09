//! A store that can be held up: its views, or those of the catalogue alone, wait until it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    is_early: AtomicBool,
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
        Self {
            inner,
            stalled: watch::Sender::new(Stall::Nothing),
            asked: AtomicU64::new(0),
            is_early: AtomicBool::new(false),
        }
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

    /// The next view is one from before anything was decided.
    pub(crate) fn look_early(&self) {
        self.is_early.store(true, Ordering::Relaxed);
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
            let facts = self.inner.view(need).await?;
            let is_early = self.is_early.swap(false, Ordering::Relaxed);
            Ok(if is_early { Facts { purchases: Default::default(), ..facts } } else { facts })
        })
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        self.inner.claim_due(request)
    }

    onceward_testkit::pass_questions_on!(self => self.inner);
}
