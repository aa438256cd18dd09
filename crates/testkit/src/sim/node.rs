//! A node: the real engine over faulty ports, with all its workers.
//!
//! Invariant: a restarted node is a new incarnation; it remembers nothing, and its batch names never meet the old ones.

use std::sync::Arc;

use onceward::journal_admission::JournalAdmission;
use onceward::queue_deadline::QueueTrigger;
use onceward::store_admission::StoreAdmission;
use onceward::store_bus::StoreBus;
use onceward::store_deadline::StoreTrigger;
use onceward::store_queue::StoreQueue;
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::derive::KeyRing;
use onceward_domain::ports::admission::Admission;
use onceward_domain::ports::deadline::DeadlineTrigger;
use onceward_domain::ports::store::Store;
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::{Millis, back_off};

use super::faulty_notifier::FaultyNotifier;
use super::faulty_ports::{FaultyAdmission, FaultyBus};
use super::faulty_provider::FaultyProvider;
use super::faulty_store::FaultyStore;
use super::faulty_trigger::FaultyTrigger;
use super::net::Task;
use super::scenario::{Scenario, Trigger};
use super::world::World;
use crate::ids::CountingIds;

/// The workers that change something, but for the sender. The watch only reads, and is left out for speed.
const WORKERS: [Worker; 14] = [
    Worker::Consumer,
    Worker::Relay,
    Worker::Projector,
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
];

/// Shortest sleep, as in the runtime. A worker that spins through it, because something is due that it cannot claim,
/// uses up the steps of the run and is found.
const LEAST_WAIT: Millis = Millis(1);

/// The secrets of every simulated run.
pub(crate) fn keys() -> KeyRing {
    KeyRing::new(&[(1, vec![42; 32])]).expect("one long secret")
}

/// Builds an engine whose ports may fail.
pub(crate) fn engine(world: &Arc<World>, node: usize, incarnation: u32, scenario: &Scenario) -> Engine {
    let store: Arc<dyn Store> = Arc::new(FaultyStore::new(world.clone(), node));
    let ids = Arc::new(CountingIds::new(&format!("node-{node}.{incarnation:04}")));
    let admission: Arc<dyn Admission> = if scenario.has_journal {
        Arc::new(JournalAdmission::new(store.clone(), ids.clone()))
    } else {
        Arc::new(StoreAdmission::new(store.clone(), ids.clone()))
    };
    let bus = Arc::new(StoreBus::new(store.clone(), ids.clone()));
    // A queue is in the memory of its node: a restart begins with an empty one.
    let trigger: Arc<dyn DeadlineTrigger> = match scenario.trigger {
        Trigger::Store => Arc::new(StoreTrigger::new(store.clone())),
        Trigger::Queue => Arc::new(QueueTrigger::new(world.clock.clone())),
    };
    let ports = Ports {
        deadline: Arc::new(FaultyTrigger::new(world.clone(), trigger)),
        admission: Arc::new(FaultyAdmission::new(world.clone(), admission)),
        bus: Arc::new(FaultyBus::new(world.clone(), bus)),
        left_behind: None,
        queue: Arc::new(StoreQueue::new(store.clone())),
        store,
        ids,
        notifier: Some(Arc::new(FaultyNotifier::new(world.clone(), node))),
        providers: vec![Arc::new(FaultyProvider::new(world.clone(), node, scenario.adapter))],
    };
    let settings = Settings {
        claim_batch: scenario.claim_batch,
        order_batch: scenario.order_batch,
        settlement_batch: scenario.claim_batch,
        settlement_retry: RetryPolicy {
            attempts: Some(scenario.settlement_attempts),
            ..RetryPolicy::default()
        },
        charge_round: scenario.charge_rounds.0,
        charge_rounds: scenario.charge_rounds.1,
        attempts_limit: scenario.attempts_limit,
        poll: scenario.poll,
        ..Settings::default()
    };
    Engine::new(ports, keys(), settings)
}

/// The tasks of a node's workers, but for its sender.
pub(crate) fn workers(world: &Arc<World>, engine: &Engine) -> Vec<Task> {
    let task = |worker| -> Task { Box::pin(work(world.clone(), engine.clone(), worker)) };
    WORKERS.into_iter().map(task).collect()
}

/// The task of a node's sender.
pub(crate) fn sender(world: &Arc<World>, engine: &Engine) -> Task {
    Box::pin(work(world.clone(), engine.clone(), Worker::Sender))
}

/// Steps for ever, as the runtime does: at once while there is work, else by time or change, and after an error
/// with a back-off.
async fn work(world: Arc<World>, engine: Engine, worker: Worker) {
    let settings = engine.settings().clone();
    let mut failures = 0;
    loop {
        match worker.step(&engine).await {
            Ok(Next::Again) => {
                failures = 0;
                world.step_aside().await;
            }
            Ok(Next::Wait(wait)) => {
                failures = 0;
                let poll = Millis(world.draw(|rng| rng.between(1, settings.poll.0)));
                if wait == Some(Millis(0)) {
                    world.sometimes("waited_for_nothing");
                }
                let wait = wait.map_or(poll, |wait| wait.min(poll)).max(LEAST_WAIT);
                world.idle(world.now().plus(wait)).await;
            }
            Err(error) => {
                failures += 1;
                world.trace(worker.name(), error.code() as u64);
                world.sleep(back_off(failures, settings.back_off_base, settings.back_off_cap)).await;
            }
        }
    }
}
