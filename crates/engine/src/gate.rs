//! The front of the gate: many callers, one batch (design.md §10).
//!
//! Requests that arrive while a batch is on its way to the store wait together and go as the next one: batching by
//! what is waiting, never by a timer. Invariants: the queue is bounded and a full one answers `backlog` at once; a
//! caller that hangs up cancels nothing that was sent; equal answers as if everybody had come alone.

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{RequestId, SkuKey, UserId};
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use tokio::sync::{mpsc, oneshot};

use crate::engine::Engine;
use crate::observe;

/// Most requests that may wait for a batch.
pub const QUEUE_LIMIT: usize = 4096;
/// Most batches on their way at once.
pub const BATCHES_IN_FLIGHT: usize = 2;

/// A buyer's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReserveRequest {
    /// Activity and SKU.
    pub key: SkuKey,
    /// The buyer.
    pub user: UserId,
    /// The buyer's intent.
    pub request: RequestId,
    /// Units, at least 1.
    pub quantity: u32,
}

struct Waiting {
    command: Reserve,
    answer: oneshot::Sender<Result<ReserveAnswer, Error>>,
}

/// A handle to the front of the gate.
#[derive(Clone)]
pub struct Gate {
    engine: Engine,
    queue: mpsc::Sender<Waiting>,
}

impl Gate {
    /// Opens the front; its task ends when the last handle is gone.
    #[must_use]
    pub fn open(engine: Engine) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LIMIT);
        tokio::spawn(batch(engine.clone(), waiting));
        Self { engine, queue }
    }

    /// Asks to be let in.
    ///
    /// # Errors
    /// [`Code::Backlog`] when too many wait; else what the gate's adapter answers.
    pub async fn reserve(&self, request: ReserveRequest) -> Result<ReserveAnswer, Error> {
        let ReserveRequest { key, user, request, quantity } = request;
        let purchase = self.engine.keys().reservation(&key, &user, &request);
        let older = self.engine.keys().older_reservations(&key, &user, &request);
        let command = Reserve { purchase, older, key, user, request, quantity };
        let (answer, answered) = oneshot::channel();
        self.queue
            .try_send(Waiting { command, answer })
            .map_err(|_| Error::new(Code::Backlog, "reserving while the gate's queue is full"))?;
        answered
            .await
            .unwrap_or_else(|_| Err(Error::new(Code::OutcomeUnknown, "reserving while the gate closed")))
    }
}

async fn batch(engine: Engine, mut waiting: mpsc::Receiver<Waiting>) {
    let limit = engine.settings().reserve_batch;
    let flights = std::sync::Arc::new(tokio::sync::Semaphore::new(BATCHES_IN_FLIGHT));
    loop {
        let Ok(permit) = flights.clone().acquire_owned().await else { return };
        let mut taken = Vec::with_capacity(limit);
        if waiting.recv_many(&mut taken, limit).await == 0 {
            return;
        }
        let engine = engine.clone();
        tokio::spawn(async move {
            decide(&engine, taken).await;
            drop(permit);
        });
    }
}

async fn decide(engine: &Engine, taken: Vec<Waiting>) {
    let (commands, callers): (Vec<Reserve>, Vec<_>) =
        taken.into_iter().map(|one| (one.command, one.answer)).unzip();
    match engine.admission().reserve(commands).await {
        Ok(answers) => {
            let queued = answers.iter().filter(|one| matches!(one, ReserveAnswer::Queued { .. })).count();
            if queued > 0 {
                observe::reservations_created(queued as u64);
                engine.signals().send.notify_one();
            }
            for (caller, answer) in callers.into_iter().zip(answers) {
                // A caller that has hung up needs no answer; its reservation stands and a repeat will find it.
                drop(caller.send(Ok(answer)));
            }
        }
        Err(error) => {
            tracing::warn!(target: "onceward", event = "reservation.failed", error = ?error);
            for caller in callers {
                drop(caller.send(Err(Error::new(error.code(), error.operator_text()))));
            }
        }
    }
}
