//! A front: many callers, one batch (design.md §10).
//!
//! Commands that arrive while a batch is on its way to the store wait together and go as the next one: batching by what is
//! waiting, never by a timer. Where commands go to parts that do not wait for each other, each part has a line and batches of its
//! own, so that one that hangs is waited for by its own callers only. Invariants: what waits is bounded, and who would be too
//! many hears `backlog` at once; a caller that hangs up cancels nothing that was sent; equal answers as if everybody had come
//! alone. Used by [`crate::gate`] and [`crate::ledger`]. Read next: `lines`.

use std::future::Future;
use std::pin::Pin;

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::admission::Part;
use tokio::sync::{mpsc, oneshot};

use crate::engine::Engine;
use crate::lines::{Batch, FLIGHTS_LIMIT, Lines, Waiting};

/// Most commands that may wait to be looked at.
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
    /// Most batches of one part on their way at once.
    pub(crate) in_flight: usize,
    /// To which part a command goes; none where all go to the same.
    pub(crate) part: Option<fn(&Engine, &C) -> Part>,
    /// Decides a batch, of one part.
    pub(crate) decide: fn(Engine, Vec<C>) -> Answers<A>,
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

fn backlog(doing: &str) -> Error {
    Error::new(Code::Backlog, format!("{doing} while the queue is full"))
}

impl<C: Send + 'static, A: Send + 'static> Front<C, A> {
    /// Opens a front; its task ends when the last handle is gone.
    pub(crate) fn open(engine: Engine, batching: Batching<C, A>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LIMIT);
        let doing = batching.doing;
        let (landing, landed) = mpsc::channel(FLIGHTS_LIMIT);
        let desk = Desk { engine, lines: Lines::new(batching.in_flight), landing, batching };
        tokio::spawn(desk.run(waiting, landed));
        Self { doing, queue }
    }

    /// Sends a command with the next batch and waits for its answer.
    ///
    /// # Errors
    /// [`Code::Backlog`] when too many wait; else what the batch answers.
    pub(crate) async fn ask(&self, command: C) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        self.queue.try_send(Waiting { command, answer }).map_err(|_| backlog(self.doing))?;
        let closed =
            |_| Err(Error::new(Code::OutcomeUnknown, format!("{} while the front closed", self.doing)));
        answered.await.unwrap_or_else(closed)
    }
}

/// A batch on its way; however it ends, its part may have another one then.
struct Flight {
    part: Part,
    landing: mpsc::Sender<Part>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        // There is room for all that can be on their way; a front that has closed needs to hear of none.
        self.landing.try_send(self.part).ok();
    }
}

/// Where commands are put in line and batches leave.
struct Desk<C, A> {
    engine: Engine,
    batching: Batching<C, A>,
    lines: Lines<C, A>,
    landing: mpsc::Sender<Part>,
}

impl<C: Send + 'static, A: Send + 'static> Desk<C, A> {
    async fn run(mut self, mut waiting: mpsc::Receiver<Waiting<C, A>>, mut landed: mpsc::Receiver<Part>) {
        let limit = self.batching.limit;
        let mut came = Vec::with_capacity(limit);
        let mut is_open = true;
        while is_open || self.lines.flights() > 0 {
            // Without parts nobody can leave before a batch is back: whoever comes meanwhile waits where they are.
            let may_come =
                is_open && (self.batching.part.is_some() || self.lines.flights() < self.batching.in_flight);
            tokio::select! {
                biased;
                Some(part) = landed.recv(), if self.lines.flights() > 0 => self.lines.land(part),
                count = waiting.recv_many(&mut came, limit), if may_come => is_open = count > 0,
            }
            while let Ok(part) = landed.try_recv() {
                self.lines.land(part);
            }
            let mut room = limit - came.len();
            came.drain(..).for_each(|one| self.line_up(one));
            for _ in 0..LAST_CALLS {
                if !self.lines.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
                while room > 0
                    && let Ok(one) = waiting.try_recv()
                {
                    self.line_up(one);
                    room -= 1;
                }
            }
            self.leave();
        }
    }

    fn line_up(&mut self, one: Waiting<C, A>) {
        let part = self.batching.part.map_or(Part::WHOLE, |part| part(&self.engine, &one.command));
        if let Err(one) = self.lines.push(part, one) {
            // A caller that has hung up needs no answer.
            drop(one.answer.send(Err(backlog(self.batching.doing))));
        }
    }

    /// Sends a batch of each line that may have one.
    fn leave(&mut self) {
        while let Some(Batch { part, commands, callers }) = self.lines.take(self.batching.limit) {
            let flight = Flight { part, landing: self.landing.clone() };
            let deciding = (self.batching.decide)(self.engine.clone(), commands);
            tokio::spawn(async move {
                let answers = deciding.await;
                for (caller, answer) in callers.into_iter().zip(answers) {
                    // A caller that has hung up needs no answer; a repeat finds what was decided.
                    drop(caller.send(answer));
                }
                drop(flight);
            });
        }
    }
}
