//! What all parts of a simulated run share: chance, time, the trace, and what went wrong.
//!
//! **Invariants.** Every decision that could go two ways draws from one generator, and everything that happens is
//! mixed into one hash; so equal hashes mean equal runs. One thread polls; the lock is never contended.
//!
//! **Deliberately absent.** Real time, wakers, threads. An actor that waits parks itself here by name.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use onceward_domain::due::{Held, Lane, Member, Token};
use onceward_domain::id::{JobId, NoticeId, PaymentId, PurchaseId};
use onceward_domain::payment::Word;
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::{Millis, Timestamp};

use super::rng::Rng;
use crate::bank::Bank;
use crate::clock::ManualClock;
use crate::model::ModelStore;

/// How often things go wrong, in thousandths.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    /// A call is refused before it does anything.
    pub(crate) unavailable: u32,
    /// A call does nothing and its answer is lost.
    pub(crate) lost_before: u32,
    /// A call does its work and its answer is lost.
    pub(crate) lost_after: u32,
    /// A transaction is written on facts that others may have changed meanwhile.
    pub(crate) stale: u32,
    /// A damaged or forged copy of a message is on the bus.
    pub(crate) forged: u32,
    /// A published batch reaches the bus twice.
    pub(crate) duplicate: u32,
    /// Deliveries come in another order.
    pub(crate) reorder: u32,
    /// A node crashes at a step.
    pub(crate) crash: u32,
    /// The clock jumps past leases at a step.
    pub(crate) jump: u32,
    /// The clock steps back at a step.
    pub(crate) back: u32,
    /// A call to the bank goes wrong, besides everything else.
    pub(crate) bank: u32,
    /// A call lets others go first.
    pub(crate) linger: u32,
    /// A deadline signal is lost, or comes twice.
    pub(crate) signal: u32,
}

impl Rates {
    /// The same line on a much worse day.
    pub(crate) fn worse(self) -> Self {
        const TIMES: u32 = 5;
        Self {
            unavailable: self.unavailable * TIMES,
            lost_before: self.lost_before * TIMES,
            lost_after: self.lost_after * TIMES,
            ..self
        }
    }
}

/// One planned fault, for runs that fail at an exact place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The node dies before the call takes effect (inside a transaction: it is aborted).
    CrashBefore,
    /// The node dies after the effect, before the answer.
    CrashAfter,
    /// The call takes effect, and its answer is lost.
    LoseAnswer,
    /// The call takes no effect, and its answer is lost.
    LoseCall,
}

/// What a call is to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Go,
    Refuse,
    Meet(Fault),
}

/// What an actor waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Park {
    /// A time, or (for idle workers) the next change of the store.
    Until { at: Timestamp, or_change: bool },
    /// Another actor's call to [`World::unpark`].
    Reply,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    hash: u64,
    tail: Vec<String>,
    tail_length: usize,
    rates: Rates,
    plan: Option<(u64, Fault)>,
    calls: Vec<String>,
    record_calls: bool,
    call_count: u64,
    doomed: Option<usize>,
    sometimes: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
    tokens: BTreeSet<Token>,
    claims: BTreeMap<(Lane, Member), Token>,
    promises: Vec<(PurchaseId, &'static str)>,
    outbox: Vec<Vec<u8>>,
    told: BTreeSet<NoticeId>,
    published: BTreeSet<Arc<str>>,
    unsent: BTreeMap<PaymentId, Word>,
    delivered: BTreeSet<JobId>,
    current: usize,
    parks: BTreeMap<usize, Park>,
}

/// The shared part of a run.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<ModelStore>,
    /// Somebody else's truth: no crash of ours touches it.
    pub(crate) bank: Arc<Bank>,
    state: Mutex<State>,
}

impl World {
    pub(crate) fn new(seed: u64, clock: Arc<ManualClock>, store: Arc<ModelStore>) -> Self {
        let state = State {
            rng: Rng::new(seed),
            hash: 0xcbf2_9ce4_8422_2325,
            tail: Vec::new(),
            tail_length: 0,
            rates: Rates::default(),
            plan: None,
            calls: Vec::new(),
            record_calls: false,
            call_count: 0,
            doomed: None,
            sometimes: BTreeMap::new(),
            violations: Vec::new(),
            tokens: BTreeSet::new(),
            claims: BTreeMap::new(),
            promises: Vec::new(),
            outbox: Vec::new(),
            told: BTreeSet::new(),
            published: BTreeSet::new(),
            unsent: BTreeMap::new(),
            delivered: BTreeSet::new(),
            current: 0,
            parks: BTreeMap::new(),
        };
        Self { clock, store, bank: Bank::new(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Draws from the run's only generator.
    pub(crate) fn draw<T>(&self, pick: impl FnOnce(&mut Rng) -> T) -> T {
        pick(&mut self.state().rng)
    }

    pub(crate) fn set_rates(&self, rates: Rates) {
        self.state().rates = rates;
    }

    pub(crate) fn rates(&self) -> Rates {
        self.state().rates
    }

    /// Plans one fault at one port call, counted from 0.
    pub(crate) fn plan(&self, call: u64, fault: Fault) {
        self.state().plan = Some((call, fault));
    }

    /// Keeps the names of port calls.
    pub(crate) fn record_calls(&self) {
        self.state().record_calls = true;
    }

    pub(crate) fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    /// Mixes something that happened into the trace.
    pub(crate) fn trace(&self, what: &str, number: u64) {
        let mut state = self.state();
        if state.tail_length > 0 {
            let line = format!("{} actor {}: {what} {number}", self.clock.now().0, state.current);
            let excess = (state.tail.len() + 1).saturating_sub(state.tail_length);
            state.tail.drain(..excess);
            state.tail.push(line);
        }
        let mut hash = state.hash;
        for byte in what.bytes().chain(number.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        state.hash = hash;
    }

    /// Keeps the last lines of the trace.
    pub(crate) fn keep_tail(&self, length: usize) {
        self.state().tail_length = length;
    }

    pub(crate) fn take_tail(&self) -> Vec<String> {
        std::mem::take(&mut self.state().tail)
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        self.state().hash
    }

    /// Counts an interesting case.
    pub(crate) fn sometimes(&self, case: &'static str) {
        *self.state().sometimes.entry(case).or_default() += 1;
    }

    pub(crate) fn take_sometimes(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.state().sometimes)
    }

    /// Notes a broken invariant.
    pub(crate) fn violated(&self, what: String) {
        /// One broken promise is told many times; a few are enough.
        const TOLD: usize = 20;
        let mut state = self.state();
        if state.violations.len() < TOLD && !state.violations.contains(&what) {
            state.violations.push(what);
        }
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    pub(crate) fn has_violations(&self) -> bool {
        !self.state().violations.is_empty()
    }

    /// Notes a claim; a token that comes a second time is a violation (LQ-02).
    pub(crate) fn saw_claim(&self, held: &Held) {
        let mut state = self.state();
        let is_new = state.tokens.insert(held.token);
        state.claims.insert((held.lane.clone(), held.member.clone()), held.token);
        drop(state);
        if !is_new {
            self.violated(format!("LQ-02: token {:?} was handed out twice", held.token));
        }
    }

    /// Notes that a claim was settled; only the last claim of a member may be (LQ-02).
    pub(crate) fn saw_settlement(&self, held: &Held) {
        let last = self.state().claims.get(&(held.lane.clone(), held.member.clone())).copied();
        if last != Some(held.token) {
            self.violated(format!("LQ-02: {held:?} was settled, the last claim is {last:?}"));
        }
    }

    /// Notes a notice that reached the people; one whose answer was lost may reach them again, under the same id.
    pub(crate) fn saw_notice(&self, id: NoticeId) {
        if !self.state().told.insert(id) {
            self.sometimes("notice_came_again");
        }
    }

    /// Whether a notice reached the people.
    pub(crate) fn was_told(&self, id: NoticeId) -> bool {
        self.state().told.contains(&id)
    }

    /// Notes an outbox entry that was committed.
    pub(crate) fn saw_outbox(&self, body: Vec<u8>) {
        self.state().outbox.push(body);
    }

    pub(crate) fn take_outbox(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.state().outbox)
    }

    /// Notes a message whose publish was acknowledged.
    pub(crate) fn saw_published(&self, id: Arc<str>) {
        self.state().published.insert(id);
    }

    /// Whether a publish of this message was ever acknowledged.
    pub(crate) fn was_published(&self, id: &str) -> bool {
        self.state().published.contains(id)
    }

    /// Notes a callback about a payment that nobody sends.
    pub(crate) fn keep_unsent(&self, payment: PaymentId, word: Word) {
        self.state().unsent.insert(payment, word);
    }

    /// The callback about a payment that was not sent.
    pub(crate) fn unsent(&self, payment: PaymentId) -> Option<Word> {
        self.state().unsent.get(&payment).cloned()
    }

    /// The same, to send it at last.
    pub(crate) fn take_unsent(&self, payment: PaymentId) -> Option<Word> {
        self.state().unsent.remove(&payment)
    }

    /// Somebody was heard to say that a job delivered: from now on it has (CL-05).
    pub(crate) fn saw_delivery(&self, job: JobId) {
        self.state().delivered.insert(job);
    }

    /// Whether somebody was heard to say that a job delivered.
    pub(crate) fn was_delivered(&self, job: &JobId) -> bool {
        self.state().delivered.contains(job)
    }

    /// A buyer was told that the purchase is in: from now on it must exist.
    pub(crate) fn promise(&self, purchase: PurchaseId, what: &'static str) {
        self.state().promises.push((purchase, what));
    }

    pub(crate) fn take_promises(&self) -> Vec<(PurchaseId, &'static str)> {
        std::mem::take(&mut self.state().promises)
    }

    /// Decides what a call meets.
    pub(crate) fn fate(&self, name: &str, is_read: bool) -> Fate {
        let mut state = self.state();
        let number = state.call_count;
        state.call_count += 1;
        if state.record_calls {
            state.calls.push(name.to_owned());
        }
        if let Some((call, fault)) = state.plan
            && call == number
        {
            return Fate::Meet(fault);
        }
        let rates = state.rates;
        let roll = u32::try_from(state.rng.below(1000)).expect("below a thousand");
        let unavailable = rates.unavailable;
        let lost_before = unavailable + rates.lost_before;
        let lost_after = lost_before + rates.lost_after;
        match roll {
            roll if roll < unavailable => Fate::Refuse,
            roll if roll < lost_after && is_read => Fate::Refuse,
            roll if roll < lost_before => Fate::Meet(Fault::LoseCall),
            roll if roll < lost_after => Fate::Meet(Fault::LoseAnswer),
            _ => Fate::Go,
        }
    }

    /// Asks the executor to kill a node.
    pub(crate) fn doom(&self, node: usize) {
        self.state().doomed = Some(node);
    }

    pub(crate) fn take_doomed(&self) -> Option<usize> {
        self.state().doomed.take()
    }

    pub(crate) fn set_current(&self, actor: usize) {
        self.state().current = actor;
    }

    pub(crate) fn current(&self) -> usize {
        self.state().current
    }

    pub(crate) fn park_of(&self, actor: usize) -> Option<Park> {
        self.state().parks.get(&actor).copied()
    }

    pub(crate) fn unpark(&self, actor: usize) {
        self.state().parks.remove(&actor);
    }

    fn park(&self, park: Park) {
        let mut state = self.state();
        let actor = state.current;
        state.parks.insert(actor, park);
    }

    /// Lets others go first, perhaps.
    pub(crate) async fn linger(&self) {
        loop {
            let linger = self.state().rates.linger;
            if !self.draw(|rng| rng.chance(linger)) {
                return;
            }
            Pause { world: self, park: None, passed: false }.await;
        }
    }

    /// Lets others go first, once.
    pub(crate) async fn step_aside(&self) {
        Pause { world: self, park: None, passed: false }.await;
    }

    /// Waits for a while.
    pub(crate) async fn sleep(&self, length: Millis) {
        let park = Park::Until { at: self.now().plus(length), or_change: false };
        Pause { world: self, park: Some(park), passed: false }.await;
    }

    /// Waits for a time, or for the store to change.
    pub(crate) async fn idle(&self, at: Timestamp) {
        Pause { world: self, park: Some(Park::Until { at, or_change: true }), passed: false }.await;
    }

    /// Waits until somebody calls [`Self::unpark`] for this actor.
    pub(crate) async fn await_reply(&self) {
        Pause { world: self, park: Some(Park::Reply), passed: false }.await;
    }
}

/// A future that is pending exactly once.
struct Pause<'a> {
    world: &'a World,
    park: Option<Park>,
    passed: bool,
}

impl Future for Pause<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if self.passed {
            return Poll::Ready(());
        }
        self.passed = true;
        if let Some(park) = self.park {
            self.world.park(park);
        }
        Poll::Pending
    }
}
