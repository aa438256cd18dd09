//! The engine's parts in one cheap handle.
//!
//! Invariants: every limit has a name and a place here; handles share one set of ports. Read next:
//! [`crate::execute`].

use std::sync::Arc;

use onceward_domain::derive::KeyRing;
use onceward_domain::ports::admission::Admission;
use onceward_domain::ports::bus::{Bus, Topic};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::deadline::DeadlineTrigger;
use onceward_domain::ports::due_queue::DueQueue;
use onceward_domain::ports::notifier::Notifier;
use onceward_domain::ports::provider::Provider;
use onceward_domain::ports::store::Store;
use onceward_domain::retention::WINDOW;
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Millis;

use crate::governor::{Governor, GovernorSettings};
use crate::journal_admission::JournalAdmission;
use crate::outage::Outage;
use crate::pauses::Pauses;
use crate::runtime::Signals;
use crate::store_admission::StoreAdmission;
use crate::store_bus::StoreBus;
use crate::store_deadline::StoreTrigger;
use crate::store_queue::StoreQueue;

/// What the engine needs from outside.
#[derive(Clone)]
pub struct Ports {
    /// The store of record.
    pub store: Arc<dyn Store>,
    /// The gate.
    pub admission: Arc<dyn Admission>,
    /// The transport.
    pub bus: Arc<dyn Bus>,
    /// The transport that was used before, where something may be left on it.
    pub left_behind: Option<Arc<dyn Bus>>,
    /// Tells when orders' time is up.
    pub deadline: Arc<dyn DeadlineTrigger>,
    /// The due-work queue.
    pub queue: Arc<dyn DueQueue>,
    /// Names for batches.
    pub ids: Arc<dyn Ids>,
    /// Who tells people; without one, notices wait.
    pub notifier: Option<Arc<dyn Notifier>>,
    /// Payment providers, each with a name of its own.
    pub providers: Vec<Arc<dyn Provider>>,
}

impl Ports {
    /// Gate, queue, transport and deadline trigger kept in a store that only this process lets buyers into: the embedded default.
    #[must_use]
    pub fn embedded(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        let admission = Arc::new(JournalAdmission::new(store.clone(), ids.clone()));
        Self { admission, ..Self::store_backed(store, ids) }
    }

    /// Gate, queue, transport and deadline trigger kept in a store that several nodes share: PostgreSQL alone (EM-05).
    #[must_use]
    pub fn store_backed(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        let admission = Arc::new(StoreAdmission::new(store.clone(), ids.clone()));
        let bus = Arc::new(StoreBus::new(store.clone(), ids.clone()));
        let queue = Arc::new(StoreQueue::new(store.clone()));
        let deadline = Arc::new(StoreTrigger::new(store.clone()));
        let (left_behind, notifier, providers) = (None, None, Vec::new());
        Self { store, admission, bus, left_behind, queue, deadline, ids, notifier, providers }
    }

    /// The same with this transport; what is left on the one before is brought over.
    #[must_use]
    pub fn with_bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.left_behind = Some(std::mem::replace(&mut self.bus, bus));
        self
    }

    /// The same with this notifier.
    #[must_use]
    pub fn with_notifier(mut self, notifier: Arc<dyn Notifier>) -> Self {
        self.notifier = Some(notifier);
        self
    }

    /// The same with this deadline trigger.
    #[must_use]
    pub fn with_deadline_trigger(mut self, trigger: Arc<dyn DeadlineTrigger>) -> Self {
        self.deadline = trigger;
        self
    }

    /// The same with these payment providers.
    #[must_use]
    pub fn with_providers(mut self, providers: Vec<Arc<dyn Provider>>) -> Self {
        self.providers = providers;
        self
    }
}

/// The engine's named bounds. The defaults suit a small machine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Most reservations decided in one transaction.
    pub reserve_batch: usize,
    /// Most commands about jobs decided in one transaction: a busy account is written once for all of them.
    pub credit_batch: usize,
    /// The waits of jobs that failed (CL-06); how many runs a job may have is its own.
    pub job_retry: RetryPolicy,
    /// Most messages decided in one transaction (design.md §1: 500 for one SKU are one).
    pub order_batch: usize,
    /// Most `send_due` entries, outbox entries or tasks that one claim takes.
    pub claim_batch: u32,
    /// Lease of every claim; a worker that is slower loses its claim, never its work.
    pub lease: Millis,
    /// Lease of claims that wait for a payment provider: longer than a round of three calls that are all silent.
    pub provider_lease: Millis,
    /// Lease of a group's settlement: longer than a round of calls that are all silent. Every round begins it anew, and after
    /// a crash the group waits for its end.
    pub settlement_lease: Millis,
    /// Groups that one claim takes; they are settled side by side.
    pub settlement_batch: u32,
    /// Charges of one group that its provider is asked for at a time.
    pub charge_round: usize,
    /// Such rounds in one turn at a group; what is left then is another turn's, so that a large group holds up neither
    /// others nor a drain.
    pub charge_rounds: usize,
    /// How a failed settlement is repeated, and when it is given up for a person (LQ-04).
    pub settlement_retry: RetryPolicy,
    /// First wait after a failure.
    pub back_off_base: Millis,
    /// Longest wait after a failure.
    pub back_off_cap: Millis,
    /// Deliveries or tries after which work is set aside for a person (C65: the next one is refused).
    pub attempts_limit: u32,
    /// How long after an order's due-time the sweep leaves it to the deadline trigger.
    pub sweep_after: Millis,
    /// How long records that nobody needs for ever are kept (design.md §7); `None` keeps them for ever. Shorter than
    /// [`onceward_domain::retention::WINDOW_MIN`] is for tests: a repeat that is on its way may outlive it.
    pub retention: Option<Millis>,
    /// When admission closes, deadlines pause and consumers rest (FS-16, FS-17).
    pub governor: GovernorSettings,
    /// Longest sleep of a worker that nobody wakes: the bounded poll behind every signal.
    pub poll: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            reserve_batch: 512,
            credit_batch: 512,
            job_retry: RetryPolicy { cap: Some(Millis(300_000)), ..RetryPolicy::default() }.for_ever(),
            order_batch: 500,
            claim_batch: 64,
            lease: Millis(30_000),
            provider_lease: Millis(60_000),
            settlement_lease: Millis(15_000),
            settlement_batch: 4,
            charge_round: 32,
            charge_rounds: 8,
            settlement_retry: RetryPolicy::default(),
            back_off_base: Millis(100),
            back_off_cap: Millis(30_000),
            attempts_limit: 16,
            sweep_after: Millis(2_000),
            retention: Some(WINDOW),
            governor: GovernorSettings::default(),
            poll: Millis(1_000),
        }
    }
}

impl Settings {
    /// The row of waits of the engine's own work, and after how many tries it is set aside.
    #[must_use]
    pub fn retry(&self) -> RetryPolicy {
        RetryPolicy {
            first: self.back_off_base,
            cap: Some(self.back_off_cap),
            jitter: 0,
            attempts: Some(self.attempts_limit),
        }
    }
}

pub(crate) struct Inner {
    pub(crate) ports: Ports,
    pub(crate) keys: KeyRing,
    pub(crate) settings: Settings,
    pub(crate) signals: Signals,
    pub(crate) governor: Governor,
    outages: [Outage; Topic::ALL.len()],
    shelf: StoreBus,
    pub(crate) pauses: Pauses,
}

/// A handle to the engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl Engine {
    /// Puts the parts together. Nothing runs until [`crate::runtime::start`].
    #[must_use]
    pub fn new(ports: Ports, keys: KeyRing, settings: Settings) -> Self {
        let shelf = StoreBus::shelf(ports.store.clone(), ports.ids.clone());
        let inner = Inner {
            ports,
            keys,
            settings,
            signals: Signals::default(),
            governor: Governor::default(),
            outages: Default::default(),
            shelf,
            pauses: Pauses::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The store of record.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.inner.ports.store
    }

    /// The gate.
    #[must_use]
    pub fn admission(&self) -> &dyn Admission {
        &*self.inner.ports.admission
    }

    /// The transport.
    #[must_use]
    pub fn bus(&self) -> &dyn Bus {
        &*self.inner.ports.bus
    }

    /// The transport that was used before.
    pub(crate) fn bus_left_behind(&self) -> Option<&dyn Bus> {
        self.inner.ports.left_behind.as_deref()
    }

    /// The due-work queue.
    #[must_use]
    pub fn queue(&self) -> &dyn DueQueue {
        &*self.inner.ports.queue
    }

    /// Who tells people, where anybody does.
    #[must_use]
    pub fn notifier(&self) -> Option<&dyn Notifier> {
        self.inner.ports.notifier.as_deref()
    }

    /// What tells when orders' time is up.
    #[must_use]
    pub fn deadline_trigger(&self) -> Arc<dyn DeadlineTrigger> {
        self.inner.ports.deadline.clone()
    }

    /// The trigger that lives in the store, whether or not it is the one that is used.
    pub(crate) fn store_trigger(&self) -> StoreTrigger {
        StoreTrigger::new(self.inner.ports.store.clone())
    }

    /// Names for batches.
    #[must_use]
    pub fn ids(&self) -> &dyn Ids {
        &*self.inner.ports.ids
    }

    /// A payment provider by name.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.inner.ports.providers.iter().find(|one| one.name() == name).cloned()
    }

    /// The secrets that ids are derived with.
    #[must_use]
    pub fn keys(&self) -> &KeyRing {
        &self.inner.keys
    }

    /// The named bounds.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// What is known of pauses of work outside of the store.
    pub(crate) fn pauses(&self) -> &Pauses {
        &self.inner.pauses
    }

    /// What is known of the work that piles up behind the gate.
    #[must_use]
    pub fn governor(&self) -> &Governor {
        &self.inner.governor
    }

    /// What this topic's consumer remembers of an outage.
    pub(crate) fn outage(&self, topic: Topic) -> &Outage {
        match topic {
            Topic::OrderCreate => &self.inner.outages[0],
            Topic::Events => &self.inner.outages[1],
        }
    }

    /// What consumers have put aside, so that it holds up nothing.
    pub(crate) fn shelf(&self) -> &StoreBus {
        &self.inner.shelf
    }

    /// How parts of one process wake each other.
    #[must_use]
    pub fn signals(&self) -> &Signals {
        &self.inner.signals
    }
}
