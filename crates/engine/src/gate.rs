//! The front of the gate: many buyers, one batch. Read next: `front`.

use onceward_domain::error::Error;
use onceward_domain::id::{RequestId, SkuKey, UserId};
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};

use crate::engine::Engine;
use crate::front::{BATCHES_IN_FLIGHT, Batching, Front};
use crate::observe;

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

/// A handle to the front of the gate.
#[derive(Clone)]
pub struct Gate {
    engine: Engine,
    front: Front<Reserve, ReserveAnswer>,
}

impl Gate {
    /// Opens the front; its task ends when the last handle is gone.
    #[must_use]
    pub fn open(engine: Engine) -> Self {
        let limit = engine.settings().reserve_batch;
        let batching = Batching {
            doing: "reserving",
            limit,
            // A gate in the store decides one batch after the other: a second one under way would only be a smaller one.
            in_flight: if engine.admission().lives_in_store() { 1 } else { BATCHES_IN_FLIGHT },
            decide: |engine, commands| Box::pin(decide(engine, commands)),
        };
        let front = Front::open(engine.clone(), batching);
        Self { engine, front }
    }

    /// Asks to be let in.
    ///
    /// # Errors
    /// [`onceward_domain::error::Code::Backlog`] when too many wait; else what the gate's adapter answers.
    pub async fn reserve(&self, request: ReserveRequest) -> Result<ReserveAnswer, Error> {
        let ReserveRequest { key, user, request, quantity } = request;
        let purchase = self.engine.keys().reservation(&key, &user, &request);
        let older = self.engine.keys().older_reservations(&key, &user, &request);
        let command = Reserve { purchase, older, key, user, request, quantity };
        self.front.ask(command).await
    }
}

async fn decide(engine: Engine, commands: Vec<Reserve>) -> Vec<Result<ReserveAnswer, Error>> {
    let count = commands.len();
    match engine.admission().reserve(commands).await {
        Ok(answers) => {
            let queued = answers.iter().filter(|one| matches!(one, ReserveAnswer::Queued { .. })).count();
            if queued > 0 {
                observe::reservations_created(queued as u64);
                engine.signals().rush.let_in(queued as u64);
                engine.signals().send.notify_one();
            }
            answers.into_iter().map(Ok).collect()
        }
        Err(error) => {
            tracing::warn!(target: "onceward", event = "reservation.failed", error = ?error);
            (0..count).map(|_| Err(Error::new(error.code(), error.operator_text()))).collect()
        }
    }
}
