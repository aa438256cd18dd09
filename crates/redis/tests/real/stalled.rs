//! A store that can be held up: its views wait until it goes on.

use std::sync::Arc;

use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::Answer;
use onceward_domain::ports::store::{Store, Work};
use tokio::sync::watch;

/// A store around another one.
pub(crate) struct Stalled {
    inner: Arc<dyn Store>,
    stalled: watch::Sender<bool>,
}

impl Stalled {
    pub(crate) fn around(inner: Arc<dyn Store>) -> Self {
        Self { inner, stalled: watch::Sender::new(false) }
    }

    pub(crate) fn stall(&self) {
        self.stalled.send_replace(true);
    }

    pub(crate) fn go_on(&self) {
        self.stalled.send_replace(false);
    }
}

impl Store for Stalled {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        self.inner.transact(work)
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        Box::pin(async move {
            let gone = |cause| Error::new(Code::Unavailable, "waiting for a store").because(cause);
            self.stalled.subscribe().wait_for(|stalled| !stalled).await.map_err(gone)?;
            self.inner.view(need).await
        })
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        self.inner.claim_due(request)
    }

    onceward_testkit::pass_questions_on!(self => self.inner);
}
