//! A store whose holder is paused before one of its calls, while others go on.
//!
//! Invariants: the pause falls before the call of the given number, once; what happens meanwhile is whatever the test says;
//! every other call goes through untouched. With a pause longer than the lease, at every number in turn, no place is left
//! where a late worker could do harm unseen. Deliberately absent: lost answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::Answer;
use onceward_domain::ports::store::{Store, Work};

type Meanwhile = Box<dyn FnOnce() + Send>;

/// A line to a store that is cut once, for a while.
pub struct Interrupted {
    inner: Arc<dyn Store>,
    calls: AtomicU64,
    at: u64,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Interrupted {
    /// Lets this happen before call number `at`, counted from 0.
    pub fn new(inner: Arc<dyn Store>, at: u64, meanwhile: impl FnOnce() + Send + 'static) -> Self {
        let meanwhile: Meanwhile = Box::new(meanwhile);
        Self { inner, calls: AtomicU64::new(0), at, meanwhile: Mutex::new(Some(meanwhile)) }
    }

    /// Whether the pause has been.
    #[must_use]
    pub fn was_paused(&self) -> bool {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn count(&self) -> &dyn Store {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at {
            let meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(meanwhile) = meanwhile {
                meanwhile();
            }
        }
        &*self.inner
    }
}

impl Store for Interrupted {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        self.count().transact(work)
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        self.count().view(need)
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        self.count().claim_due(request)
    }

    crate::pass_questions_on!(self => self.count());
}
