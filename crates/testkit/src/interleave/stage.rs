//! The stage: one order, its bank, the processes under way, and what may happen next.
//!
//! Invariants: a worker may start only where something of its lane is due; time passes by itself only where nobody has
//! anything to do, so what must happen does; the bank's callback may get lost, but where nothing else could tell of the
//! money — it was forced after the second confirmation — it is still to come.

use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use onceward::operations::once::Idempotent;
use onceward::operations::{catalogue, order, payment};
use onceward::workers::Worker;
use onceward::{Engine, Ports, Settings, wire};
use onceward_domain::audit::judge;
use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::decide::pay::ANNOUNCE_HEAD_START;
use onceward_domain::derive::KeyRing;
use onceward_domain::due::Lane;
use onceward_domain::id::{ActivityId, PaymentId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::Word;
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::provider::RawCallback;
use onceward_domain::time::{Millis, Timestamp};

use super::actor::{Actor, Grant, Kind, Turn};
use super::ports::{TurnBank, TurnStore};
use super::{Opening, Scene, digest};
use crate::bank::{Bank, Standing};
use crate::block_on::block_on;
use crate::clock::ManualClock;
use crate::ids::CountingIds;
use crate::model::ModelStore;
use crate::model::rows::Rows;
use crate::treasury;

const START: Timestamp = Timestamp(1_000_000);
const PRICE: i64 = 100;
/// What is asked back, twice.
const ASKED: i64 = 60;
/// Processes of one run that may be under way at once; more than any run has.
const ACTORS_LIMIT: usize = 12;

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The buyer pays at the bank.
    Pay,
    /// Money moves although the attempt was closed.
    Force,
    /// The bank takes a refund back that had gone through.
    TakeBack,
    /// A process begins.
    Begin(Kind),
    /// The process at this place goes on.
    GoOn(usize, Grant),
    /// It dies.
    Crash(usize),
    /// Nobody has anything to do until the next due-time comes.
    Wait,
    /// Time passes while somebody still has something to do.
    Oversleep,
}

/// What a scene is about, and the moment before its first choice.
pub(super) struct Start {
    scene: Scene,
    purchase: PurchaseId,
    payment: PaymentId,
    moment: Moment,
}

/// A state in which nobody is under way: it is rows and books alone, so it can be copied.
pub(super) struct Moment {
    rows: Rows,
    bank: Bank,
    now: Timestamp,
    left: Left,
    word: Option<Word>,
    must_be_told: bool,
    /// How many moments went before; names of batches are made from it.
    number: u32,
}

/// One run.
pub(super) struct Stage<'a> {
    start: &'a Start,
    clock: Arc<ManualClock>,
    store: Arc<ModelStore>,
    bank: Arc<Bank>,
    engine: Engine,
    turn: Turn,
    actors: Vec<Actor>,
    left: Left,
    /// The callback of the money, once it moved.
    word: Option<Word>,
    /// Only the callback can tell of the money.
    must_be_told: bool,
    number: u32,
}

/// What is left to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Left {
    pays: u8,
    forces: u8,
    cancels: u8,
    refunds: u8,
    returns: u8,
    /// Events of the callback that were not delivered yet, one bit each.
    calls: u8,
    crashes: u8,
    losses: u8,
    pauses: u8,
}

impl Start {
    pub(super) fn new(scene: &Scene) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(ModelStore::new(clock.clone()));
        let bank = Bank::new();
        let ports = Ports::store_backed(store.clone(), Arc::new(CountingIds::new("start")));
        let engine = Engine::new(ports.with_providers(vec![bank.clone()]), keys(), settings());
        let (purchase, payment) = block_on(begin(&engine, scene.opening)).expect("nothing is in the way yet");
        clock.advance(ANNOUNCE_HEAD_START);
        block_on(Worker::Announcer.step(&engine)).expect("nothing is in the way yet");
        if scene.opening == Opening::Refund {
            let word = bank.pay(payment, false).expect("it is open");
            let hear = onceward::execute::execute(&engine, "hear", need_of(purchase), move |facts| {
                onceward_domain::decide::pay::hear(facts, &word, &Arc::from("callback"))
            });
            block_on(hear).expect("it hears");
        }
        let moment = Moment {
            rows: store.rows().clone(),
            bank: bank.copy(),
            now: clock.now(),
            left: Left::of(scene),
            word: None,
            must_be_told: false,
            number: 0,
        };
        Self { scene: *scene, purchase, payment, moment }
    }

    /// Where it all begins.
    pub(super) fn moment(&self) -> &Moment {
        &self.moment
    }
}

impl Left {
    fn of(scene: &Scene) -> Self {
        let is_refund = scene.opening == Opening::Refund;
        Self {
            pays: u8::from(!is_refund),
            forces: u8::from(!is_refund),
            cancels: u8::from(scene.opening == Opening::Cancel),
            refunds: if is_refund { 2 } else { 0 },
            returns: u8::from(is_refund),
            calls: first_events(1 + scene.duplicates),
            crashes: scene.crashes,
            losses: scene.losses,
            pauses: scene.pauses,
        }
    }
}

fn keys() -> KeyRing {
    KeyRing::new(&[(1, vec![7; 32])]).expect("one long secret")
}

fn settings() -> Settings {
    Settings::default()
}

fn key() -> SkuKey {
    SkuKey { activity: ActivityId::trusted("sale"), sku: SkuId::trusted("cup") }
}

fn need_of(purchase: PurchaseId) -> onceward_domain::facts::Need {
    onceward_domain::facts::Need {
        purchases: vec![purchase],
        attempts: vec![purchase],
        skus: vec![key()],
        buyers: vec![(key(), UserId::trusted("u"))],
        ..Default::default()
    }
}

/// An order with an attempt that the bank knows of.
async fn begin(
    engine: &Engine,
    opening: Opening,
) -> Result<(PurchaseId, PaymentId), onceward_domain::error::Error> {
    let late_payment = if opening == Opening::Expiry { LatePayment::Reinstate } else { LatePayment::Refund };
    let activity = Activity {
        id: ActivityId::trusted("sale"),
        name: Arc::from("Sale"),
        starts_at: Timestamp(0),
        ends_at: Timestamp(1_000_000_000),
        payment_window: Millis(900_000),
        cancel_grace: Millis(300_000),
        reservation_deadline: Millis(300_000),
        confirm_after_cancel: Millis(45_000),
        late_payment,
        cancelled_frees_limit: true,
    };
    catalogue::put_activity(engine, activity).await?;
    let price = Money::new(PRICE, Currency::CNY).expect("a small price");
    let sku = catalogue::NewSku { key: key(), stock: 1, price, per_user_limit: 1, buckets: 1 };
    catalogue::put_sku(engine, sku).await?;
    let (user, request) = (UserId::trusted("u"), RequestId::trusted("r"));
    let placed = order::place(engine, order::DirectOrder { user, request, lines: vec![(key(), 1)] }).await?;
    let start = payment::Start {
        order: placed.purchase.id.order(),
        provider: Arc::from("sandbox"),
        actor: Arc::from("buyer"),
        idempotent: quiet("pay"),
    };
    payment::start(engine, start).await?;
    let facts = engine.store().view(need_of(placed.purchase.id)).await?;
    let payment = facts.payments.keys().next().copied().expect("it was started");
    Ok((placed.purchase.id, payment))
}

fn quiet<T>(key: &str) -> Idempotent<T> {
    let render = |outcome: Result<&T, &onceward_domain::error::Error>| {
        (if outcome.is_ok() { 201 } else { 409 }, Vec::new())
    };
    Idempotent { key: Arc::from(key), fingerprint: [1; 32], render: Arc::new(render) }
}

impl<'a> Stage<'a> {
    /// The stage at a moment.
    pub(super) fn at(start: &'a Start, moment: &Moment) -> Self {
        let scene = start.scene;
        let clock = Arc::new(ManualClock::new(moment.now));
        let store = Arc::new(ModelStore::holding(clock.clone(), moment.rows.clone()));
        let bank = Arc::new(moment.bank.copy());
        let turn = Turn::default();
        let seen = Arc::new(TurnStore { inner: store.clone(), turn: turn.clone() });
        let line =
            TurnBank { inner: bank.clone(), turn: turn.clone(), line: scene.line, renamed: AtomicU8::new(0) };
        let ids = CountingIds::new(&format!("run-{}", moment.number));
        let ports = Ports::store_backed(seen, Arc::new(ids));
        let engine = Engine::new(ports.with_providers(vec![Arc::new(line)]), keys(), settings());
        Self {
            start,
            clock,
            store,
            bank,
            engine,
            turn,
            actors: Vec::new(),
            left: moment.left,
            word: moment.word.clone(),
            must_be_told: moment.must_be_told,
            number: moment.number,
        }
    }

    /// This state, where nobody is under way.
    pub(super) fn moment(&self) -> Option<Moment> {
        self.actors.is_empty().then(|| Moment {
            rows: self.store.rows().clone(),
            bank: self.bank.copy(),
            now: self.clock.now(),
            left: self.left,
            word: self.word.clone(),
            must_be_told: self.must_be_told,
            number: self.number + 1,
        })
    }

    /// What may happen now, in a fixed order.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut choices = self.of_the_world();
        let workers = self.workers_with_work();
        choices.extend(workers.iter().map(|kind| Choice::Begin(*kind)));
        for (place, actor) in self.actors.iter().enumerate() {
            choices.push(Choice::GoOn(place, Grant::Go));
            // A process whose commit has no answer goes on as one that died behind it.
            if self.left.losses > 0 && actor.asks_the_bank() {
                choices.push(Choice::GoOn(place, Grant::LoseAnswer));
            }
            if self.left.crashes > 0 {
                choices.push(Choice::Crash(place));
            }
        }
        let is_busy = !self.actors.is_empty() || !workers.is_empty();
        if self.next_due().is_some() {
            if !is_busy {
                choices.push(Choice::Wait);
            } else if self.left.pauses > 0 {
                choices.push(Choice::Oversleep);
            }
        }
        choices
    }

    /// What buyers, the bank and its callbacks may do.
    fn of_the_world(&self) -> Vec<Choice> {
        let standing = self.bank.account(self.start.payment).map(|account| account.standing);
        let mut choices = Vec::new();
        if self.left.pays > 0 && standing == Some(Standing::Open) {
            choices.push(Choice::Pay);
        }
        if self.left.forces > 0 && standing == Some(Standing::Closed) {
            choices.push(Choice::Force);
        }
        if self.left.cancels > 0 {
            choices.push(Choice::Begin(Kind::Cancel));
        }
        if self.left.refunds > 0 {
            choices.push(Choice::Begin(Kind::Refund(self.left.refunds)));
        }
        if self.left.returns > 0 && self.bank.refunds_done().next().is_some() {
            choices.push(Choice::TakeBack);
        }
        if self.word.is_some() && self.left.calls != 0 {
            choices.push(Choice::Begin(Kind::Callback(self.left.calls.trailing_zeros())));
        }
        choices
    }

    fn workers_with_work(&self) -> Vec<Kind> {
        let lanes = [
            (Lane::ORDER_EXPIRY, Kind::Expiry),
            (Lane::PAYMENT, Kind::Announcer),
            (Lane::CALLBACK, Kind::Teller),
            (Lane::CANCELLATION, Kind::Canceller),
            (Lane::CONFIRMATION, Kind::Confirmer),
            (Lane::REFUND, Kind::Refunder),
        ];
        let (rows, now) = (self.store.rows(), self.clock.now());
        let is_due = |lane: &str| rows.next_due(&Lane::new(lane)).is_some_and(|due| due <= now);
        lanes.into_iter().filter(|(lane, _)| is_due(lane)).map(|(_, kind)| kind).collect()
    }

    /// The next moment that anybody waits for.
    fn next_due(&self) -> Option<Timestamp> {
        let (rows, now) = (self.store.rows(), self.clock.now());
        let waiting = rows.due.iter().filter(|((lane, _), _)| digest::is_ours(lane));
        waiting.map(|(_, row)| row.due_at).filter(|due| *due > now).min()
    }

    /// Plays a choice.
    pub(super) fn play(&mut self, choice: Choice) {
        match choice {
            Choice::Pay => {
                self.left.pays -= 1;
                self.word = self.bank.pay(self.start.payment, false);
            }
            Choice::Force => {
                self.left.forces -= 1;
                self.must_be_told = !self.will_be_confirmed();
                self.word = self.bank.pay(self.start.payment, true);
            }
            Choice::TakeBack => {
                self.left.returns -= 1;
                let refund = self.bank.refunds_done().next().expect("one was done");
                self.word = self.bank.take_back(refund);
                self.must_be_told = true;
            }
            Choice::Begin(kind) => self.begin(kind),
            Choice::GoOn(place, grant) => {
                self.left.losses -= u8::from(grant == Grant::LoseAnswer);
                self.go_on(place, grant);
            }
            Choice::Crash(place) => {
                self.left.crashes -= 1;
                let dead = self.actors.remove(place);
                // Whoever called hears nothing and calls again.
                match dead.kind {
                    Kind::Callback(event) => self.left.calls |= 1 << event,
                    Kind::Cancel => self.left.cancels += 1,
                    Kind::Refund(_)
                    | Kind::Expiry
                    | Kind::Canceller
                    | Kind::Confirmer
                    | Kind::Refunder
                    | Kind::Teller
                    | Kind::Announcer => {}
                }
            }
            Choice::Wait | Choice::Oversleep => {
                self.left.pauses -= u8::from(choice == Choice::Oversleep);
                self.clock.set(self.next_due().expect("somebody waits"));
            }
        }
    }

    fn begin(&mut self, kind: Kind) {
        assert!(self.actors.len() < ACTORS_LIMIT, "too many processes: {:?}", self.actors);
        let engine = self.engine.clone();
        let actor = match kind {
            Kind::Callback(event) => {
                self.left.calls &= !(1 << event);
                let word = self.word.clone().expect("there is something to tell");
                Actor::new(kind, call(engine, event, word, self.clock.now()))
            }
            Kind::Cancel => {
                self.left.cancels -= 1;
                let id = self.start.purchase.order();
                Actor::new(
                    kind,
                    ended(
                        async move { order::cancel(&engine, id, Arc::from("mind"), Arc::from("buyer")).await },
                    ),
                )
            }
            Kind::Refund(number) => {
                self.left.refunds -= 1;
                let ask = payment::Ask {
                    order: self.start.purchase.order(),
                    amount: Money::new(ASKED, Currency::CNY).ok(),
                    reason: Arc::from("mind"),
                    actor: Arc::from("ann"),
                    idempotent: quiet(&format!("back-{number}")),
                };
                Actor::new(kind, ended(async move { payment::ask_refund(&engine, ask).await }))
            }
            Kind::Expiry => worker(kind, Worker::Expiry, engine),
            Kind::Canceller => worker(kind, Worker::Canceller, engine),
            Kind::Confirmer => worker(kind, Worker::Confirmer, engine),
            Kind::Refunder => worker(kind, Worker::Refunder, engine),
            Kind::Teller => worker(kind, Worker::Teller, engine),
            Kind::Announcer => worker(kind, Worker::Announcer, engine),
        };
        self.actors.push(actor);
        self.go_on(self.actors.len() - 1, Grant::Go);
    }

    fn go_on(&mut self, place: usize, grant: Grant) {
        if self.actors[place].go_on(&self.turn, grant) {
            drop(self.actors.remove(place));
        }
    }

    /// Whether the bank will still be asked about the attempt, whatever gets lost.
    fn will_be_confirmed(&self) -> bool {
        let rows = self.store.rows();
        let order = rows.purchases.get(&self.start.purchase).and_then(|one| one.order.as_ref());
        let is_pending = order.is_some_and(|order| order.status != OrderStatus::Cancelled);
        let is_asking = self.actors.iter().any(|actor| actor.kind == Kind::Confirmer);
        is_pending || (!is_asking && rows.next_due(&Lane::new(Lane::CONFIRMATION)).is_some())
    }

    /// Nobody is under way, and nothing is left to do by itself.
    pub(super) fn is_at_rest(&self) -> bool {
        let is_known = self.word.is_none() || !self.must_be_told || self.left.calls == 0;
        let rows = self.store.rows();
        let waits = rows.due.iter().any(|((lane, _), _)| digest::is_ours(lane));
        self.actors.is_empty() && !waits && is_known
    }

    /// What does not hold in this state, if anything.
    pub(super) fn violation(&self) -> Option<String> {
        let is_at_rest = self.is_at_rest();
        let rows = self.store.rows();
        let mut broken = treasury::broken(&rows, &self.bank);
        // Sums over everything are the dear part, and what breaks one stays broken.
        if is_at_rest {
            broken.extend(treasury::broken_at_rest(&rows, &self.bank));
            broken.extend(dead_letters(&rows));
            let sums = judge(&rows.tally(self.clock.now())).into_iter().filter(|check| !check.holds);
            broken.extend(sums.map(|check| format!("{}: {}", check.name, check.detail)));
        }
        broken.into_iter().next()
    }

    /// Interesting cases that this state is one of.
    pub(super) fn count(&self, sometimes: &mut BTreeMap<&'static str, u64>) {
        let mut met = |case| *sometimes.entry(case).or_default() += 1;
        if self.is_at_rest() {
            let rows = self.store.rows();
            let order = rows.purchases.get(&self.start.purchase).and_then(|one| one.order.clone());
            let order = order.expect("it is an order");
            met(match (order.status, order.paid) {
                (OrderStatus::Paid, _) if order.refunded > 0 => "refunded_in_part",
                (OrderStatus::Paid, _) if order.cancel_reason.is_some() => "paid_while_cancelling",
                (OrderStatus::Paid, _) => "paid",
                (OrderStatus::Cancelled, 0) => "cancelled_unpaid",
                (OrderStatus::Cancelled, _) => "given_back",
                (
                    OrderStatus::Created
                    | OrderStatus::Paying
                    | OrderStatus::Refunding
                    | OrderStatus::Refunded
                    | OrderStatus::CancelPending
                    | OrderStatus::ManualReview,
                    _,
                ) => "something_else",
            });
            if self.word.is_some() && self.left.calls == first_events(1 + self.start.scene.duplicates) {
                met("callback_lost");
            }
        }
        if self.left.crashes < self.start.scene.crashes {
            met("after_a_crash");
        }
        if self.left.losses < self.start.scene.losses {
            met("after_a_lost_answer");
        }
    }

    /// Everything that can still matter.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = digest::of(&self.store.rows(), &self.bank, &self.actors, self.clock.now());
        (self.left, self.must_be_told, self.word.is_some()).hash(&mut hasher);
        hasher.finish()
    }
}

fn dead_letters(rows: &Rows) -> Vec<String> {
    let dead = rows.due.iter().filter(|((lane, _), _)| lane.as_str().starts_with(Lane::DEAD_PREFIX));
    dead.map(|((lane, member), _)| format!("{member} is a dead letter in {lane}")).collect()
}

async fn ended<T, E: std::fmt::Debug>(doing: impl Future<Output = Result<T, E>>) {
    // Refusals and lost answers are answers; what became of it is seen in the rows.
    drop(doing.await);
}

fn worker(kind: Kind, worker: Worker, engine: Engine) -> Actor {
    Actor::new(kind, ended(async move { worker.step(&engine).await }))
}

/// The bits of this many events.
fn first_events(count: u8) -> u8 {
    (1 << count) - 1
}

async fn call(engine: Engine, event: u32, word: Word, now: Timestamp) {
    let headers = [("event".to_owned(), event.to_string())];
    let body = wire::encode_word(&word);
    let raw = RawCallback { headers: &headers, body: &body, now };
    drop(payment::callback(&engine, "sandbox", &raw).await);
}
