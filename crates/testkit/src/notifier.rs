//! People who write down what they are told, and who are away when a test says so.
//!
//! Invariants: what they were told is kept in order; whoever is away is told nothing; an answer that is lost is lost after they
//! heard. Deliberately absent: dropping repeats, so that a test can count them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use onceward_domain::error::{Code, Error};
use onceward_domain::notice::Notice;
use onceward_domain::ports::Answer;
use onceward_domain::ports::notifier::Notifier;

/// How a notifier answers its next calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hearing {
    /// It takes what it is told.
    #[default]
    Ok,
    /// Nobody is there.
    Away,
    /// It takes it, and its answer is lost.
    AnswerLost,
}

#[derive(Debug, Default)]
struct State {
    hearing: Hearing,
    told: Vec<Notice>,
    calls: u64,
}

/// A notifier of tests.
///
/// ```
/// use onceward_testkit::notifier::People;
/// assert!(People::default().told().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct People {
    state: Mutex<State>,
}

impl People {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how the next calls go.
    pub fn hear(&self, hearing: Hearing) {
        self.state().hearing = hearing;
    }

    /// Everything they were told, in order, repeats counted.
    #[must_use]
    pub fn told(&self) -> Vec<Notice> {
        self.state().told.clone()
    }

    /// How often they were called at all.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }
}

impl Notifier for People {
    fn name(&self) -> &'static str {
        "people"
    }

    fn notify(&self, notice: Notice) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut state = self.state();
            state.calls += 1;
            match state.hearing {
                Hearing::Away => return Err(Error::new(Code::Unavailable, "nobody is there")),
                Hearing::Ok | Hearing::AnswerLost => state.told.push(notice),
            }
            if state.hearing == Hearing::AnswerLost {
                return Err(Error::new(Code::OutcomeUnknown, "their answer was lost"));
            }
            Ok(())
        })
    }
}
