//! The front of the gate: many buyers, one batch; and nobody new while the governor has closed admission (FS-16).
//!
//! Read next: `front`, then [`crate::governor`].

use onceward_domain::decide::reserve::recognise;
use onceward_domain::error::{Code, Error};
use onceward_domain::governor::{Passage, Trouble};
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
        let (limit, is_whole) = (engine.settings().reserve_batch, engine.admission().lives_in_store());
        let batching = Batching {
            doing: "reserving",
            limit,
            // A gate in the store decides one batch after the other: a second one under way would only be a smaller one.
            in_flight: if is_whole { 1 } else { BATCHES_IN_FLIGHT },
            // A part that is made anew, or hangs, is waited for by its own buyers, and not by those of the others (FS-18, FS-19).
            part: (!is_whole).then_some(|engine, command| engine.admission().part(command)),
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
    match engine.governor().passage() {
        Passage::Closed(trouble) => only_known(&engine, &commands, trouble).await,
        Passage::Open => reserve(&engine, commands).await,
    }
}

/// Asks the gate for all of them at once; what a part of it refuses to answer, it refuses to those who came to that part.
async fn reserve(engine: &Engine, commands: Vec<Reserve>) -> Vec<Result<ReserveAnswer, Error>> {
    let wishes: Vec<(SkuKey, u32)> = commands.iter().map(|one| (one.key.clone(), one.quantity)).collect();
    let answers = match engine.admission().reserve_each(commands).await {
        Ok(answers) => answers,
        Err(error) => error.for_each(wishes.len()),
    };
    let failed = answers.iter().filter_map(|answer| answer.as_ref().err());
    if let Some(error) = failed.clone().next() {
        tracing::warn!(target: "onceward", event = "reservation.failed", ?error, buyers = failed.count());
    }
    let queued = tell_governor(engine, &wishes, &answers);
    if queued > 0 {
        observe::reservations_created(queued);
        engine.signals().rush.let_in(queued);
        engine.signals().send.notify_one();
    }
    answers
}

/// Answers how many were let in.
fn tell_governor(engine: &Engine, wishes: &[(SkuKey, u32)], answers: &[Result<ReserveAnswer, Error>]) -> u64 {
    let is_queued = |answer: &Result<_, Error>| matches!(answer, Ok(ReserveAnswer::Queued { .. }));
    let mut admitted: Vec<(&SkuKey, u64)> = Vec::new();
    let mut queued = 0;
    for ((key, units), _) in wishes.iter().zip(answers).filter(|(_, answer)| is_queued(answer)) {
        queued += 1;
        match admitted.last_mut() {
            Some((last, so_far)) if *last == key => *so_far += u64::from(*units),
            _ => admitted.push((key, u64::from(*units))),
        }
    }
    for (key, units) in admitted {
        engine.governor().admitted(key, units);
    }
    queued
}

/// While admission is closed a known request is still answered (FS-02); nobody new is let in.
async fn only_known(
    engine: &Engine,
    commands: &[Reserve],
    trouble: Trouble,
) -> Vec<Result<ReserveAnswer, Error>> {
    let mut answers = Vec::with_capacity(commands.len());
    let mut refused = 0;
    for command in commands {
        answers.push(match find_known(engine, command).await {
            Ok(Some(known)) => Ok(known),
            Ok(None) => {
                refused += 1;
                let text = format!("reserving while admission is closed: {}", trouble.name());
                Err(Error::new(Code::Backlog, text).to_be_repeated_after(engine.governor().retry_after()))
            }
            Err(error) => Err(error),
        });
    }
    observe::reservations_refused(refused);
    answers
}

async fn find_known(engine: &Engine, command: &Reserve) -> Result<Option<ReserveAnswer>, Error> {
    for id in command.names() {
        let found = engine.admission().find_at(*id, &command.key, &command.user).await?;
        if let Some(known) = found.and_then(|view| recognise(&view.purchase, command)) {
            return Ok(Some(known));
        }
    }
    Ok(None)
}
