//! Running the workers: loops that step, sleep until they are woken or something is due, and survive any error.
//!
//! Invariants: a worker is woken by a signal, or by its next due-time, with a bounded poll behind both (D15); an error
//! backs off and never ends a loop (R3); a panic ends one step, not the worker; a drain lets the present step finish.
//! Deliberately absent: work. Steps are in [`crate::workers`] and know no runtime.

use std::str::FromStr;
use std::time::Duration;

use onceward_domain::time::{LONGEST, Millis, back_off};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::observe;
use crate::rush::{Pace, Rush};
use crate::workers::{Next, Worker};

/// How parts of one process wake each other.
#[derive(Debug, Default)]
pub struct Signals {
    /// Reservations wait to be sent.
    pub send: Notify,
    /// Messages wait to be consumed.
    pub consume: Notify,
    /// Events wait to be relayed.
    pub relay: Notify,
    /// Events wait to be projected.
    pub project: Notify,
    /// Rejections wait to be compensated.
    pub compensate: Notify,
    /// Orders have new due-times.
    pub expire: Notify,
    /// Payment attempts wait to be announced.
    pub announce: Notify,
    /// Callbacks wait to be heard.
    pub callback: Notify,
    /// Cancels wait for the provider's word.
    pub cancel: Notify,
    /// Cancelled orders wait for their second confirmation.
    pub confirm: Notify,
    /// Refunds wait to be asked for.
    pub refund: Notify,
    /// Notices wait to be sent.
    pub notify: Notify,
    /// Group orders have new due-times.
    pub settle: Notify,
    /// How busy the gate is.
    pub(crate) rush: Rush,
    /// Reservations were decided; wakes everybody who waits for one.
    pub decided: Notify,
}

impl Signals {
    /// Wakes every worker.
    pub fn wake_all(&self) {
        let gate = [&self.send, &self.consume, &self.relay, &self.project, &self.compensate, &self.expire];
        let money = [&self.announce, &self.callback, &self.cancel, &self.confirm, &self.refund];
        let others = [&self.settle, &self.notify];
        for signal in gate.into_iter().chain(money).chain(others) {
            signal.notify_one();
        }
    }
}

/// A part of the engine that can run alone (EM-03).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Answers requests, and knows when to let nobody in.
    Api,
    /// Turns messages into orders and projects events.
    Consumer,
    /// Sends reservations' messages and relays events.
    Relay,
    /// Compensates, ends what is overdue, and forgets what nobody needs any more.
    Scheduler,
    /// Watches the invariants.
    Reconciler,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Api, Self::Consumer, Self::Relay, Self::Scheduler, Self::Reconciler];

    /// The role's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Consumer => "consumer",
            Self::Relay => "relay",
            Self::Scheduler => "scheduler",
            Self::Reconciler => "reconciler",
        }
    }

    fn workers(self) -> &'static [Worker] {
        match self {
            Self::Api => &[Worker::Governor],
            Self::Consumer => &[Worker::Consumer, Worker::Projector],
            Self::Relay => &[Worker::Sender, Worker::Relay, Worker::Forwarder],
            Self::Scheduler => &[
                Worker::Compensator,
                Worker::Deadline,
                Worker::Expiry,
                Worker::Sweep,
                Worker::Announcer,
                Worker::Teller,
                Worker::Canceller,
                Worker::Confirmer,
                Worker::Refunder,
                Worker::Herald,
                Worker::Settler,
                Worker::Retention,
            ],
            Self::Reconciler => &[Worker::Watch],
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| format!("`{text}` is not one of api, consumer, relay, scheduler, reconciler"))
    }
}

/// Workers that run.
pub struct Running {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// Starts the workers of these roles on the present tokio runtime.
#[must_use]
pub fn start(engine: &Engine, roles: &[Role]) -> Running {
    observe::register();
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    for worker in roles.iter().flat_map(|role| role.workers()) {
        tasks.spawn(supervise(engine.clone(), *worker, stopped.clone()));
    }
    Running { stop, tasks }
}

impl Running {
    /// Lets every worker finish its present step, and waits for that.
    pub async fn drain(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn supervise(engine: Engine, worker: Worker, mut stopped: watch::Receiver<bool>) {
    let mut failures = 0;
    let mut pace = Pace::of(worker);
    while !*stopped.borrow() {
        let step = async {
            let engine = engine.clone();
            tokio::spawn(async move { worker.step(&engine).await }).await
        };
        let wait = match pace.step(&engine.signals().rush, &mut stopped, step).await {
            Ok(Ok(Next::Again)) => {
                failures = 0;
                continue;
            }
            Ok(Ok(Next::Wait(wait))) => {
                failures = 0;
                // Nothing can come due for these, so no poll has to stand behind their rest.
                let is_patient = matches!(worker, Worker::Watch | Worker::Forwarder | Worker::Retention);
                let longest = if is_patient { LONGEST } else { engine.settings().poll };
                wait.map_or(longest, |wait| wait.min(longest))
            }
            Ok(Err(error)) => {
                failures += 1;
                tracing::warn!(target: "onceward", worker = worker.name(), error = ?error, failures, "a step failed");
                back_off(failures, engine.settings().back_off_base, engine.settings().back_off_cap)
            }
            Err(panic) => {
                failures += 1;
                tracing::error!(target: "onceward", worker = worker.name(), error = %panic, "a step panicked");
                back_off(failures, engine.settings().back_off_base, engine.settings().back_off_cap)
            }
        };
        let is_calm = failures == 0;
        tokio::select! {
            () = pause(&engine, worker, wait, is_calm) => {}
            _ = stopped.changed() => {}
        }
    }
}

/// Waits for the worker's signal, or at most this long. After a failure signals do not cut the back-off short.
async fn pause(engine: &Engine, worker: Worker, wait: Millis, is_calm: bool) {
    let limit = Duration::from_millis(u64::try_from(wait.0.max(1)).unwrap_or(1));
    match worker.signal(engine.signals()) {
        Some(signal) if is_calm => drop(timeout(limit, signal.notified()).await),
        _ => drop(timeout(limit, std::future::pending::<()>()).await),
    }
}
