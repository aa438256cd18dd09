//! A process under way: one operation or one worker's step, held at the point where it waits for its turn.
//!
//! Invariants: a process touches the bank and commits only when it is let go on, once each time; what it has learnt so far is
//! in its history, so that two processes with equal histories go on alike.

use std::fmt;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use onceward_domain::due::Token;

/// What kind of process it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A request that brings the callback, under this event.
    Callback(u32),
    /// A request to cancel.
    Cancel,
    /// A request for money back, under the first or second key.
    Refund(u8),
    /// A step of the worker that cancels what is due.
    Expiry,
    /// A step of the worker that asks before the cancel.
    Canceller,
    /// A step of the worker that asks once more after it.
    Confirmer,
    /// A step of the worker that has money given back.
    Refunder,
    /// A step of the worker that hears kept callbacks.
    Teller,
    /// A step of the worker that tells the bank of attempts.
    Announcer,
}

/// How a process is let go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Grant {
    /// As it should.
    #[default]
    Go,
    /// What it asks for happens, but its answer gets lost.
    LoseAnswer,
}

/// What the process that is under way has to do with the world.
#[derive(Debug, Default)]
pub(super) struct Desk {
    grant: Option<Grant>,
    waits_for: &'static str,
    history: u64,
    tokens: Vec<Token>,
}

/// The desk of whoever is under way at this moment; there is one, because only one is.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn(Arc<Mutex<Desk>>);

impl Turn {
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its turn to do this.
    pub(super) fn wait(&self, what: &'static str) -> impl Future<Output = Grant> {
        let turn = self.clone();
        let mut has_waited = false;
        std::future::poll_fn(move |_| {
            let mut desk = turn.lock();
            if has_waited && let Some(grant) = desk.grant.take() {
                desk.waits_for = "";
                return Poll::Ready(grant);
            }
            has_waited = true;
            desk.waits_for = what;
            Poll::Pending
        })
    }

    /// The process has learnt something.
    pub(super) fn learn(&self, what: impl Hash) {
        let mut desk = self.lock();
        let mut hasher = DefaultHasher::new();
        desk.history.hash(&mut hasher);
        what.hash(&mut hasher);
        desk.history = hasher.finish();
    }

    /// The process has claimed this.
    pub(super) fn hold(&self, token: Token) {
        self.lock().tokens.push(token);
    }
}

/// A process.
pub(super) struct Actor {
    pub(super) kind: Kind,
    future: Pin<Box<dyn Future<Output = ()>>>,
    desk: Desk,
}

impl fmt::Debug for Actor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} before {}", self.kind, self.desk.waits_for)
    }
}

impl Actor {
    /// A process that has not begun.
    pub(super) fn new(kind: Kind, future: impl Future<Output = ()> + 'static) -> Self {
        Self { kind, future: Box::pin(future), desk: Desk::default() }
    }

    /// Goes on until it waits again, or has ended; answers whether it has ended.
    pub(super) fn go_on(&mut self, turn: &Turn, grant: Grant) -> bool {
        self.desk.grant = Some(grant);
        self.desk.waits_for = "";
        std::mem::swap(&mut *turn.lock(), &mut self.desk);
        let mut context = Context::from_waker(Waker::noop());
        let has_ended = self.future.as_mut().poll(&mut context).is_ready();
        std::mem::swap(&mut *turn.lock(), &mut self.desk);
        assert!(has_ended || !self.desk.waits_for.is_empty(), "{:?} waits for nothing we know", self.kind);
        has_ended
    }

    /// Whether it waits for its turn to ask the bank.
    pub(super) fn asks_the_bank(&self) -> bool {
        matches!(self.desk.waits_for, "create" | "query" | "close" | "refund")
    }

    /// Whether it holds this claim.
    pub(super) fn holds(&self, token: Token) -> bool {
        self.desk.tokens.contains(&token)
    }

    /// Everything that decides how it goes on.
    pub(super) fn standing(&self) -> (Kind, &'static str, u64) {
        (self.kind, self.desk.waits_for, self.desk.history)
    }
}
