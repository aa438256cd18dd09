//! Lost answers, defects and dead letters (DR-02, FS-10, FS-11; reference 003 §9.8).

mod house;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use house::{House, engine_over, key, usual_activity};
use onceward::operations::{catalogue, queue};
use onceward::wire;
use onceward::workers::{Next, Worker};
use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{ClaimRequest, Claimed, Lane};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PurchaseId, RequestId, UserId};
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::Answer;
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::store::{PageRequest, Store, Work};
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;

/// What happens to the next transactions of one name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It commits; the answer is lost.
    AfterCommit,
    /// It does not commit; the answer is lost.
    BeforeCommit,
    /// It is known not to have happened.
    Away,
    /// The decision meets a defect whenever it names this buyer's purchase.
    Poison(PurchaseId),
}

struct Lossy {
    inner: Arc<dyn Store>,
    name: &'static str,
    fault: Fault,
    left: AtomicU32,
}

impl Lossy {
    fn over(inner: Arc<dyn Store>, name: &'static str, fault: Fault, times: u32) -> Arc<dyn Store> {
        Arc::new(Self { inner, name, fault, left: AtomicU32::new(times) })
    }

    fn strikes(&self, work: &Work) -> bool {
        let armed = |left: u32| left.checked_sub(1);
        work.name == self.name && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, armed).is_ok()
    }
}

fn lost() -> Error {
    Error::new(Code::OutcomeUnknown, "the connection was cut")
}

fn poisoned(work: Work, poison: PurchaseId) -> Work {
    let decide = work.decide.clone();
    let defective = move |facts: &mut Facts| -> Result<ChangeSet, Error> {
        let changes = decide(facts)?;
        let moved = changes.purchases.iter().any(|one| one.id == poison);
        let touched = moved || changes.new_purchases.iter().any(|one| one.id == poison);
        if touched { Err(Error::new(Code::ConstraintViolated, "a defect")) } else { Ok(changes) }
    };
    Work { decide: Arc::new(defective), ..work }
}

impl Store for Lossy {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        if !self.strikes(&work) {
            return self.inner.transact(work);
        }
        match self.fault {
            Fault::BeforeCommit => Box::pin(async { Err(lost()) }),
            Fault::Away => Box::pin(async { Err(Error::new(Code::Unavailable, "nobody is there")) }),
            Fault::AfterCommit => Box::pin(async {
                self.inner.transact(work).await?;
                Err(lost())
            }),
            Fault::Poison(id) => self.inner.transact(poisoned(work, id)),
        }
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        self.inner.view(need)
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        self.inner.claim_due(request)
    }

    onceward_testkit::pass_questions_on!(self => self.inner);
}

fn with_fault(house: &House, name: &'static str, fault: Fault, times: u32) -> House {
    let store = Lossy::over(house.store.clone(), name, fault, times);
    House { engine: engine_over(store.clone()), store, clock: house.clock.clone() }
}

#[test]
fn fs_10_a_commit_whose_answer_was_lost_is_looked_up_and_acknowledged() {
    let house = House::new(3);
    house.reserve("u1", "r1", 1);
    let cut = with_fault(&house, "create_orders", Fault::AfterCommit, 1);
    cut.step(Worker::Sender).unwrap();
    cut.step(Worker::Consumer).unwrap();
    assert_eq!(house.lane("bus/onceward-order-create/order-consumer"), 0, "acknowledged: the inbox has it");
    house.rest();
    assert_eq!(house.figures(), ([2, 1, 0], [2, 0, 1]));
    house.assert_invariants();
}

#[test]
fn fs_10_dr_02_a_commit_that_never_was_is_neither_acknowledged_nor_compensated() {
    let house = House::new(3);
    house.reserve("u1", "r1", 1);
    let cut = with_fault(&house, "create_orders", Fault::BeforeCommit, 1);
    cut.step(Worker::Sender).unwrap();
    assert_eq!(cut.step(Worker::Consumer).unwrap_err().class(), Class::UnknownOutcome);
    assert_eq!(house.lane("bus/onceward-order-create/order-consumer"), 1, "it comes again");
    assert_eq!(house.lane(Lane::COMPENSATION), 0);
    assert_eq!(house.purchase(house.id("u1", "r1")), None, "nothing was decided");
    cut.pass(120_000);
    assert_eq!(house.figures(), ([2, 1, 0], [2, 0, 1]));
    house.assert_invariants();
}

#[test]
fn dr_02_every_transaction_that_loses_its_answer_once_converges() {
    let names = [
        "admission.settle_send",
        "bus.publish",
        "bus.settle",
        "create_orders",
        "outbox.settle",
        "admission.project",
        "pass_deadline",
        "admission.settle_overdue",
        "compensation.authorize",
        "admission.compensate",
        "compensation.conclude",
        "expire_orders",
    ];
    for name in names {
        for fault in [Fault::AfterCommit, Fault::BeforeCommit] {
            let house = House::new(2);
            house.reserve("paid-late", "r1", 1);
            let cut = with_fault(&house, name, fault, 1);
            for _ in 0..6 {
                for worker in Worker::ALL {
                    // A step may report the lost answer; its work comes again.
                    drop(cut.step(worker));
                }
                cut.clock.advance(Millis(40_000));
            }
            cut.pass(3_000_000);
            house.assert_invariants();
            assert_eq!(house.figures(), ([2, 0, 0], [2, 0, 0]), "{name}: expired and released once");
        }
    }
}

#[test]
fn fs_01_dr_04_a_reserve_whose_answer_was_lost_is_repeated_with_the_same_ids() {
    let house = House::new(1);
    let cut = with_fault(&house, "admission.reserve", Fault::AfterCommit, 1);
    let (user, request) = (UserId::trusted("u1"), RequestId::trusted("r1"));
    let purchase = cut.engine.keys().reservation(&key("cup"), &user, &request);
    let command = Reserve { purchase, older: Vec::new(), key: key("cup"), user, request, quantity: 1 };
    let error = block_on(cut.engine.admission().reserve(vec![command.clone()])).unwrap_err();
    assert_eq!(error.class(), Class::UnknownOutcome);
    let again = block_on(cut.engine.admission().reserve(vec![command])).unwrap();
    assert!(matches!(again[0], ReserveAnswer::Repeat { .. }), "{again:?}");
    assert_eq!(house.figures().1, [0, 1, 0]);
}

#[test]
fn fs_06_one_poison_message_is_set_aside_alone_and_replayed_by_a_person() {
    let house = House::with(40, 1, usual_activity());
    for n in 0..33 {
        house.reserve(&format!("u{n}"), "r", 1);
    }
    let culprit = house.id("u17", "r");
    let cut = with_fault(&house, "create_orders", Fault::Poison(culprit), u32::MAX);
    cut.step(Worker::Sender).unwrap();
    cut.step(Worker::Consumer).unwrap();
    assert_eq!(house.figures().0, [8, 32, 0], "the other 32 went through");
    let letters = block_on(queue::dead_letters(&house.engine, 10, None)).unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(&*letters[0].member, culprit.message().to_string());
    house.rest();
    assert_eq!(house.purchase(culprit), None, "a dead letter is consumed by nothing");
    block_on(queue::replay_dead_letter(&house.engine, &letters[0].member, "ann")).unwrap();
    house.rest();
    assert_eq!(house.purchase(culprit).unwrap().reservation, Some(Reservation::OrderCreated));
    let twice = block_on(queue::replay_dead_letter(&house.engine, &letters[0].member, "ann"));
    assert_eq!(twice.unwrap_err().code(), Code::NotFound);
    house.assert_invariants();
}

#[test]
fn c_65_the_delivery_after_the_last_try_is_a_dead_letter() {
    let house = House::new(1);
    house.reserve("u1", "r1", 1);
    house.step(Worker::Sender).unwrap();
    let limit = house.engine.settings().attempts_limit;
    for attempt in 1..=limit {
        let taken = block_on(house.engine.bus().consume(Topic::OrderCreate, 10, Millis(30_000))).unwrap();
        assert_eq!(taken[0].attempts, attempt, "a worker that dies leaves its attempt counted");
        house.clock.advance(Millis(30_000));
    }
    house.step(Worker::Consumer).unwrap();
    assert_eq!(house.lane("dead/bus/onceward-order-create/order-consumer"), 1);
}

#[test]
fn fs_11_an_entry_that_waits_holds_back_everything_behind_it() {
    let house = House::with(9, 9, usual_activity());
    house.reserve("u1", "r1", 1);
    house.step(Worker::Sender).unwrap();
    house.step(Worker::Consumer).unwrap();
    house.reserve("u1", "r2", 1);
    house.step(Worker::Sender).unwrap();
    house.step(Worker::Consumer).unwrap();
    let cut = with_fault(&house, "bus.publish", Fault::BeforeCommit, 1);
    cut.step(Worker::Relay).unwrap();
    assert_eq!(house.lane(Lane::OUTBOX), 2);
    cut.step(Worker::Relay).unwrap();
    assert_eq!(house.lane("bus/onceward-events/projector"), 0, "the head waits for its back-off");
    cut.pass(60_000);
    assert_eq!(house.figures(), ([7, 2, 0], [7, 0, 2]));
}

fn adjust(
    house: &House,
    key_text: &str,
    delta: i64,
    fingerprint: u8,
) -> Result<catalogue::StoredAnswer, Error> {
    let command = catalogue::AdjustStock {
        key: key("cup"),
        delta,
        reason: Arc::from("recount"),
        actor: Arc::from("ann"),
        idempotent: catalogue::Idempotent {
            key: Arc::from(key_text),
            fingerprint: [fingerprint; 32],
            render: Arc::new(|outcome| match outcome {
                Ok(view) => (201, view.sku.stock.initial.to_string().into_bytes()),
                Err(error) => (409, error.code().as_str().as_bytes().to_vec()),
            }),
        },
    };
    block_on(catalogue::adjust_stock(&house.engine, command))
}

#[test]
fn c_26_c_101_an_adjustment_lands_once_and_its_first_answer_is_kept() {
    let house = House::new(10);
    house.reserve("u1", "r1", 1);
    house.rest();
    let first = adjust(&house, "k1", -4, 1).unwrap();
    assert_eq!((first.status, first.replayed), (201, false));
    adjust(&house, "k2", 7, 2).unwrap();
    let replay = adjust(&house, "k1", -4, 1).unwrap();
    assert_eq!((replay.body, replay.replayed), (first.body, true), "the first answer, not today's figures");
    assert_eq!(adjust(&house, "k1", -5, 9).unwrap_err().code(), Code::IdempotencyKeyReused);
    let refused = adjust(&house, "k3", -100, 3).unwrap();
    assert_eq!(refused.body, b"insufficient_stock");
    assert!(adjust(&house, "k3", -100, 3).unwrap().replayed, "a refusal is kept under its key as well");
    house.rest();
    assert_eq!(house.figures(), ([12, 1, 0], [12, 0, 1]));
    house.assert_invariants();
}

#[test]
fn fs_03_messages_of_an_older_key_version_are_still_ours() {
    let house = House::new(2);
    house.reserve("u1", "r1", 1);
    let rotated = onceward_domain::derive::KeyRing::new(&[(1, vec![7; 32]), (2, vec![8; 32])]).unwrap();
    let ids = Arc::new(onceward_testkit::ids::CountingIds::new("rotated"));
    let ports = onceward::Ports::embedded(house.store.clone(), ids);
    let engine = onceward::Engine::new(ports, rotated, onceward::Settings::default());
    let next = House { engine, store: house.store.clone(), clock: house.clock.clone() };
    let again = next.reserve("u1", "r1", 1);
    assert!(matches!(again, ReserveAnswer::Repeat { .. }), "the first id stands: {again:?}");
    next.rest();
    assert_eq!(next.figures(), ([1, 1, 0], [1, 0, 1]));
}

#[test]
fn fs_03_the_wire_form_is_stable_to_the_byte() {
    let house = House::new(1);
    house.reserve("u1", "r1", 1);
    let claims = block_on(house.engine.admission().claim_send(1, Millis(1_000))).unwrap();
    let message = wire::encode_message(&claims[0].messages[0]);
    let decoded = wire::decode_message(&message.payload).unwrap();
    assert_eq!(wire::encode_message(&decoded), message);
    let text = String::from_utf8(message.payload.clone()).unwrap();
    assert!(
        text.starts_with(r#"{"schema_version":1,"event_type":"ORDER_CREATE_REQUESTED","message_id":""#),
        "{text}"
    );
    for cut in 0..message.payload.len() {
        assert!(wire::decode_message(&message.payload[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn c_26_a_repeat_of_the_first_put_stays_a_repeat_after_an_adjustment() {
    let house = House::new(10);
    adjust(&house, "k1", -4, 1).unwrap();
    let put = |stock| {
        let price = onceward_domain::money::Money::parse(1999, "CNY").unwrap();
        let new = catalogue::NewSku { key: key("cup"), stock, price, per_user_limit: 1, buckets: 1 };
        block_on(catalogue::put_sku(&house.engine, new))
    };
    assert_eq!(put(10).unwrap(), catalogue::Put::Unchanged);
    assert_eq!(put(6).unwrap_err().code(), Code::Differs);
    assert_eq!(house.facts().skus[&key("cup")].stock.initial, 6);
}

#[test]
fn a_10_an_order_that_cannot_be_ended_does_not_hide_those_behind_it() {
    let expired = || {
        let house = House::with(5, 5, usual_activity());
        for user in ["u1", "u2", "u3"] {
            house.reserve(user, "r", 1);
        }
        house.rest();
        house.clock.advance(Millis(1_300_000));
        house
    };
    let cancelled = |house: &House| {
        let is_cancelled = |user: &&str| {
            let order = house.purchase(house.id(user, "r")).unwrap().order.unwrap();
            order.status == OrderStatus::Cancelled
        };
        ["u1", "u2", "u3"].iter().filter(|user| is_cancelled(user)).count()
    };

    let house = expired();
    let swept = with_fault(&house, "sweep_orders", Fault::Poison(house.id("u1", "r")), 100);
    assert_eq!(swept.step(Worker::Sweep).unwrap(), Next::Again, "the others end");
    assert_eq!(cancelled(&swept), 2);
    assert!(swept.step(Worker::Sweep).is_err(), "alone it is told, and backed off from");

    let house = expired();
    let told = with_fault(&house, "expire_orders", Fault::Poison(house.id("u1", "r")), 100);
    assert_eq!(told.step(Worker::Expiry).unwrap(), Next::Again);
    assert_eq!(cancelled(&told), 2);
    assert_eq!(told.lane("order_expiry"), 0, "it is left to the sweep");
    assert_eq!(told.step(Worker::Sweep).unwrap(), Next::Again);
    assert_eq!(cancelled(&told), 3);
}

/// A house with a rejection to compensate, and the same house with a gate that does this whenever it is asked to.
fn with_rejection(fault: Fault) -> (House, House, PurchaseId) {
    let house = House::new(1);
    house.reserve("u1", "r1", 1);
    house.clock.advance(usual_activity().reservation_deadline);
    house.step(Worker::Deadline).expect("it steps");
    let (id, cut) = (house.id("u1", "r1"), with_fault(&house, "admission.compensate", fault, u32::MAX));
    (house, cut, id)
}

fn notices(house: &House) -> Vec<&'static str> {
    let page = PageRequest { limit: 200, before: None };
    let found = block_on(house.store.list_notices(page)).expect("it lists");
    found.into_iter().map(|(_, notice)| notice.kind.name()).collect()
}

#[test]
fn fs_12_lq_05_a_compensation_that_nobody_answers_is_exhausted_with_its_notice_and_goes_on_when_replayed() {
    let (house, cut, id) = with_rejection(Fault::BeforeCommit);
    cut.pass(1_200_000);
    assert_eq!((house.lane(Lane::COMPENSATION), house.lane("dead/compensation")), (0, 1));
    assert_eq!(notices(&house), ["work.exhausted"], "told once, in the step that gave it up");
    assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Compensating));
    house.assert_invariants();
    let letters = block_on(queue::dead_letters(&house.engine, 10, None)).unwrap();
    block_on(queue::replay_dead_letter(&house.engine, &letters[0].member, "ann")).unwrap();
    house.rest();
    assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Compensated));
    assert_eq!(house.figures(), ([1, 0, 0], [1, 0, 0]));
    house.assert_invariants();
}

#[test]
fn fs_12_a_gate_that_is_known_to_be_away_uses_up_no_tries() {
    let (house, cut, id) = with_rejection(Fault::Away);
    cut.pass(6 * 3_600_000);
    assert_eq!((house.lane(Lane::COMPENSATION), house.lane("dead/compensation")), (1, 0));
    assert_eq!((notices(&house).len(), house.figures().1), (0, [0, 1, 0]));
    house.pass(60_000);
    assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Compensated));
    assert_eq!(house.figures(), ([1, 0, 0], [1, 0, 0]));
}

#[test]
fn fs_12_lq_05_a_compensation_that_the_gate_contradicts_waits_for_a_person_who_is_told() {
    let house = House::new(1);
    house.reserve("u1", "r1", 1);
    house.rest();
    // A message of ours that the gate never let in: the last unit is gone, and the gate has nothing to give back.
    let stranger = OrderCreateRequested {
        purchase: house.id("u2", "r2"),
        key: key("cup"),
        user: UserId::trusted("u2"),
        request: RequestId::trusted("r2"),
        quantity: 1,
        reserved_at: Timestamp(10_000),
        business_deadline: Timestamp(20_000_000),
    };
    let message = wire::encode_message(&stranger);
    block_on(house.engine.bus().publish(Topic::OrderCreate, vec![message])).unwrap();
    house.rest();
    assert_eq!(house.purchase(stranger.purchase).unwrap().reservation, Some(Reservation::ManualReview));
    assert_eq!((house.lane(Lane::COMPENSATION), house.lane("dead/compensation")), (0, 0));
    assert_eq!(notices(&house), ["compensation.given_up"]);
    house.pass(10_000_000);
    assert_eq!(notices(&house).len(), 1, "once");
}
