//! The scheduler: one thread, actors polled one at a time in an order that the seed chooses.
//!
//! **Invariants.** Time moves only here: when nobody can run, to the next moment at which somebody can; and by
//! jumps that the seed asks for. A crash drops every future of a node between two polls, so it can fall anywhere
//! between two port calls or between an effect and its answer. The auditor looks after every step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use onceward_domain::due::Lane;
use onceward_domain::time::{Millis, Timestamp};

use super::audit::Auditor;
use super::courier;
use super::money;
use super::net::{Net, Task};
use super::node;
use super::people;
use super::scenario::Scenario;
use super::world::{Park, Rates, World};

/// Most steps of a run; what has not settled by then never will.
const STEP_LIMIT: u64 = 400_000;
/// Steps with faults; then the line heals and everything must settle.
const FAULTY_STEPS: u64 = 12_000;
/// How often an idle worker is woken by a change, in thousandths; the poll behind it finds the rest.
const WOKEN_BY_CHANGE: u32 = 350;
/// Expiries that lie further ahead than this are left alone at the end.
const HORIZON: Millis = Millis(24 * 60 * 60 * 1000);

/// How often a person puts dead letters back; what is dead then belongs to something frozen.
const REPLAYS: u32 = 5;

struct Actor {
    /// The node it lives on; buyers live on none.
    node: Option<usize>,
    task: Task,
}

struct Node {
    incarnation: u32,
    /// When it comes back, while it is down.
    back_at: Option<Timestamp>,
}

/// One run.
pub(crate) struct Executor {
    world: Arc<World>,
    net: Net,
    scenario: Scenario,
    actors: Vec<Option<Actor>>,
    nodes: Vec<Node>,
    auditor: Auditor,
    buyers: usize,
    steps: u64,
    healed: bool,
    version: u64,
    replays: u32,
    sender_sleeps: bool,
}

impl Executor {
    pub(crate) fn new(world: Arc<World>, scenario: Scenario) -> Self {
        let net = Net::new(world.clone(), scenario.nodes);
        let nodes = (0..scenario.nodes).map(|_| Node { incarnation: 0, back_at: None }).collect();
        let buyers = scenario.wishes.len();
        let auditor = Auditor::new(scenario.is_weary());
        let sender_sleeps = scenario.sender_sleeps;
        let mut executor = Self {
            world,
            net,
            scenario,
            actors: Vec::new(),
            nodes,
            auditor,
            buyers,
            steps: 0,
            healed: false,
            version: 0,
            replays: 0,
            sender_sleeps,
        };
        executor.world.set_rates(executor.scenario.rates);
        (0..executor.nodes.len()).for_each(|node| executor.start(node));
        for (at, wish) in executor.scenario.wishes.clone() {
            let task = people::live(executor.net.clone(), at, wish);
            executor.add(None, Box::pin(task));
        }
        executor
    }

    /// Runs to the end and answers how many steps it took.
    pub(crate) fn run(&mut self) -> u64 {
        while self.steps < STEP_LIMIT && !self.world.has_violations() {
            self.steps += 1;
            if self.steps == FAULTY_STEPS {
                self.heal();
            }
            self.stir();
            let runnable = self.runnable();
            if runnable.is_empty() {
                if self.is_over() {
                    self.auditor.look_at_the_end(&self.world);
                    return self.steps;
                }
                self.advance();
                continue;
            }
            let chosen = runnable[self.world.draw(|rng| rng.index(runnable.len()))];
            self.poll(chosen);
        }
        if !self.world.has_violations() {
            self.world.violated(format!("did not settle in {STEP_LIMIT} steps: {:?}", self.unsettled()));
        }
        self.steps
    }

    fn add(&mut self, node: Option<usize>, task: Task) {
        let actor = Some(Actor { node, task });
        match self.actors.iter().position(Option::is_none) {
            Some(free) => self.actors[free] = actor,
            None => self.actors.push(actor),
        }
    }

    fn start(&mut self, node: usize) {
        self.nodes[node].incarnation += 1;
        self.nodes[node].back_at = None;
        let engine = node::engine(&self.world, node, self.nodes[node].incarnation, &self.scenario);
        for task in node::workers(&self.world, &engine) {
            self.add(Some(node), task);
        }
        if !self.sender_sleeps {
            self.add(Some(node), node::sender(&self.world, &engine));
        }
        self.net.plug(node, Some(engine));
    }

    fn crash(&mut self, node: usize) {
        self.world.trace("crash", node as u64);
        self.world.sometimes("crash");
        self.net.plug(node, None);
        for number in 0..self.actors.len() {
            if self.actors[number].as_ref().is_some_and(|actor| actor.node == Some(node)) {
                self.world.unpark(number);
                self.actors[number] = None;
            }
        }
        // A request that was called but never started dies as well.
        let (dead, alive): (Vec<_>, Vec<_>) =
            self.net.take_spawned().into_iter().partition(|(home, _)| *home == node);
        drop(dead);
        alive.into_iter().for_each(|(home, task)| self.add(Some(home), task));
        let away = self.world.draw(|rng| rng.between(0, 60_000));
        self.nodes[node].back_at = Some(self.world.now().plus(Millis(away)));
    }

    /// The line is whole again.
    fn heal(&mut self) {
        self.healed = true;
        self.world.trace("heal", self.steps);
        let linger = self.world.rates().linger;
        self.world.set_rates(Rates { linger, ..Rates::default() });
    }

    /// Faults that fall on nodes and on time.
    fn stir(&mut self) {
        let rates = self.world.rates();
        if let Some(node) = self.world.take_doomed() {
            self.crash(node);
        }
        if self.world.draw(|rng| rng.chance(rates.crash)) {
            let node = self.world.draw(|rng| rng.index(self.nodes.len()));
            if self.nodes[node].back_at.is_none() {
                self.crash(node);
            }
        }
        if self.world.draw(|rng| rng.chance(rates.jump)) {
            self.world.clock.advance(Millis(self.world.draw(|rng| rng.between(1, 70_000))));
            self.world.sometimes("clock_forward");
        }
        if self.world.draw(|rng| rng.chance(rates.back)) {
            self.world.clock.advance(Millis(self.world.draw(|rng| rng.between(-500, -1))));
            self.world.sometimes("clock_back");
        }
        let now = self.world.now();
        for node in 0..self.nodes.len() {
            if self.nodes[node].back_at.is_some_and(|back| back <= now) {
                self.start(node);
            }
        }
    }

    fn runnable(&mut self) -> Vec<usize> {
        let version = self.world.store.rows().version;
        let changed = version != self.version;
        self.version = version;
        let now = self.world.now();
        let mut runnable = Vec::with_capacity(self.actors.len());
        for number in 0..self.actors.len() {
            if self.actors[number].is_none() {
                continue;
            }
            match self.world.park_of(number) {
                None => runnable.push(number),
                Some(Park::Reply) => {}
                Some(Park::Until { at, or_change }) => {
                    let woken = or_change && changed && self.world.draw(|rng| rng.chance(WOKEN_BY_CHANGE));
                    if at <= now || woken {
                        self.world.unpark(number);
                        runnable.push(number);
                    }
                }
            }
        }
        runnable
    }

    fn poll(&mut self, number: usize) {
        let world = self.world.clone();
        world.set_current(number);
        world.trace("poll", number as u64);
        let actor = self.actors[number].as_mut().expect("it was runnable just now");
        let mut context = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| actor.task.as_mut().poll(&mut context)));
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => {
                if actor.node.is_none() {
                    self.buyers -= 1;
                }
                self.actors[number] = None;
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
                world.violated(format!("a step panicked: {text}"));
                self.actors[number] = None;
            }
        }
        for (node, task) in self.net.take_spawned() {
            self.add(Some(node), task);
        }
        self.take_errands();
        self.auditor.look(&world);
        if world.has_violations() {
            world.trace("violated", self.steps);
        }
    }

    fn take_errands(&mut self) {
        for errand in self.net.take_errands() {
            self.buyers += 1;
            self.add(None, errand);
        }
    }

    /// Moves time to the next moment at which somebody can run.
    fn advance(&mut self) {
        let now = self.world.now();
        let wakes = (0..self.actors.len()).filter_map(|number| match self.world.park_of(number)? {
            Park::Until { at, .. } => Some(at),
            Park::Reply => None,
        });
        let backs = self.nodes.iter().filter_map(|node| node.back_at);
        let next = wakes.chain(backs).min().unwrap_or_else(|| now.plus(Millis(1)));
        self.world.clock.set(next.max(now.plus(Millis(1))));
    }

    /// Whether everybody has an answer and nothing is left to do.
    fn is_over(&mut self) -> bool {
        if self.buyers > 0 {
            return false;
        }
        if !self.healed {
            self.heal();
        }
        if self.nodes.iter().any(|node| node.back_at.is_some()) {
            return false;
        }
        let left = self.unsettled();
        let waits_for_person = |lane: &String| lane.starts_with(Lane::DEAD_PREFIX);
        let waits_for_sender = |lane: &String| lane.starts_with(Lane::SEND_DUE);
        if self.sender_sleeps && left.iter().all(|lane| waits_for_sender(lane) || waits_for_person(lane)) {
            self.wake_senders();
            return false;
        }
        let only_dead = self.scenario.is_weary() && left.iter().all(waits_for_person);
        if left.is_empty() || (only_dead && self.replays == REPLAYS) {
            courier::send_statement(&self.net);
            self.take_errands();
            return self.buyers == 0;
        }
        if only_dead {
            self.replays += 1;
            self.buyers += 1;
            let task = people::replay_dead_letters(self.net.clone());
            self.add(None, Box::pin(task));
        }
        false
    }

    /// Every deadline has passed without a message; now all of them come late.
    fn wake_senders(&mut self) {
        self.sender_sleeps = false;
        self.auditor.look_for_undecided(&self.world);
        self.world.sometimes("sender_slept");
        for node in 0..self.nodes.len() {
            if let Some(engine) = self.net.engine(node) {
                self.add(Some(node), node::sender(&self.world, &engine));
            }
        }
    }

    /// Due work, and orders that wait for their end, but for what lies far ahead, and for dead jobs that were left to rest.
    fn unsettled(&self) -> Vec<String> {
        let horizon = self.world.now().plus(HORIZON);
        let dead_jobs = Lane::new(Lane::JOB_RETRY).dead_letters();
        let rows = self.world.store.rows();
        let left = rows
            .due
            .iter()
            .filter(|((lane, _), _)| *lane != dead_jobs)
            .filter(|((lane, _), row)| lane.as_str() != Lane::ORDER_EXPIRY || row.due_at <= horizon)
            .filter(|((lane, _), row)| lane.as_str() != Lane::CALLBACK || !money::is_stray(&rows, &row.body));
        let waiting = rows.expiries(u32::MAX, None);
        let expiring = waiting
            .iter()
            .take_while(|one| one.due_at <= horizon)
            .map(|one| format!("an order that expires: {:?}", one.purchase));
        left.map(|((lane, member), _)| format!("{lane} {member}")).chain(expiring).collect()
    }
}
