//! A front: many callers, one batch (design.md §10).
//!
//! Commands that arrive while a batch is on its way to the store wait together and go as the next one: batching by what is
//! waiting, never by a timer. Invariants: the queue is bounded and a full one answers `backlog` at once; a caller that hangs
//! up cancels nothing that was sent; equal answers as if everybody had come alone. Used by [`crate::gate`] and
//! [`crate::ledger`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::engine::Engine;

/// Most commands that may wait for a batch.
pub(crate) const QUEUE_LIMIT: usize = 4096;
/// Batches that may be on their way at once where they do not wait for each other.
pub(crate) const BATCHES_IN_FLIGHT: usize = 2;

/// So often a batch that is not full lets everything that is ready run before it leaves. Callers come in bursts, as they
/// were answered: without this the first of a burst leaves alone, and the others wait for its commit.
const LAST_CALLS: usize = 3;

/// The answers to a batch, one each, in order.
pub(crate) type Answers<A> = Pin<Box<dyn Future<Output = Vec<Result<A, Error>>> + Send>>;

/// How a batch is decided.
pub(crate) struct Batching<C, A> {
    /// What is being done, for errors: `reserving`.
    pub(crate) doing: &'static str,
    /// Most commands of one batch.
    pub(crate) limit: usize,
    /// Most batches on their way at once.
    pub(crate) in_flight: usize,
    /// Decides a batch.
    pub(crate) decide: fn(Engine, Vec<C>) -> Answers<A>,
}

struct Waiting<C, A> {
    command: C,
    answer: oneshot::Sender<Result<A, Error>>,
}

/// A handle to a front.
pub(crate) struct Front<C, A> {
    doing: &'static str,
    queue: mpsc::Sender<Waiting<C, A>>,
}

impl<C, A> Clone for Front<C, A> {
    fn clone(&self) -> Self {
        Self { doing: self.doing, queue: self.queue.clone() }
    }
}

impl<C: Send + 'static, A: Send + 'static> Front<C, A> {
    /// Opens a front; its task ends when the last handle is gone.
    pub(crate) fn open(engine: Engine, batching: Batching<C, A>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LIMIT);
        let doing = batching.doing;
        tokio::spawn(run(engine, batching, waiting));
        Self { doing, queue }
    }

    /// Sends a command with the next batch and waits for its answer.
    ///
    /// # Errors
    /// [`Code::Backlog`] when too many wait; else what the batch answers.
    pub(crate) async fn ask(&self, command: C) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        self.queue
            .try_send(Waiting { command, answer })
            .map_err(|_| Error::new(Code::Backlog, format!("{} while the queue is full", self.doing)))?;
        let closed =
            |_| Err(Error::new(Code::OutcomeUnknown, format!("{} while the front closed", self.doing)));
        answered.await.unwrap_or_else(closed)
    }
}

async fn run<C: Send + 'static, A: Send + 'static>(
    engine: Engine,
    batching: Batching<C, A>,
    mut waiting: mpsc::Receiver<Waiting<C, A>>,
) {
    let flights = Arc::new(Semaphore::new(batching.in_flight));
    loop {
        let Ok(permit) = flights.clone().acquire_owned().await else { return };
        let mut taken = Vec::with_capacity(batching.limit);
        if waiting.recv_many(&mut taken, batching.limit).await == 0 {
            return;
        }
        for _ in 0..LAST_CALLS {
            tokio::task::yield_now().await;
            while taken.len() < batching.limit
                && let Ok(one) = waiting.try_recv()
            {
                taken.push(one);
            }
        }
        let (commands, callers): (Vec<C>, Vec<_>) =
            taken.into_iter().map(|one| (one.command, one.answer)).unzip();
        let deciding = (batching.decide)(engine.clone(), commands);
        tokio::spawn(async move {
            let answers = deciding.await;
            for (caller, answer) in callers.into_iter().zip(answers) {
                // A caller that has hung up needs no answer; a repeat finds what was decided.
                drop(caller.send(answer));
            }
            drop(permit);
        });
    }
}
