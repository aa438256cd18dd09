//! The whole engine in this process, in the place of a mode: the sandbox bank in a folder, callbacks over real HTTP, workers on
//! threads — and a clock that is moved by hand.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::sync::Arc;
use std::time::Duration;

use onceward::gate::Gate;
use onceward::ledger::Ledger;
use onceward::operations::once::Idempotent;
use onceward::operations::{catalogue, operate, order, payment};
use onceward::runtime::{self, Role, Running};
use onceward::{Engine, Settings};
use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::derive::KeyRing;
use onceward_domain::id::{ActivityId, PaymentId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::sandbox::Sandbox;
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};
use onceward_ground::{Mode, Place};
use onceward_http::{Access, AppState, Limits, Parts};
use onceward_providers::sandbox::{Bank, BankOptions, Courier, SandboxProvider, Signer, Target};
use onceward_testkit::clock::ManualClock;
use onceward_testkit::ids::CountingIds;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What a unit costs.
pub(crate) const PRICE: i64 = 1_999;
/// From an order to the moment at which it may be cancelled.
const WINDOW: Millis = Millis(600_000);
const GRACE: Millis = Millis(300_000);
/// From the cancel to the second confirmation.
pub(crate) const CONFIRM_AFTER: Millis = Millis(45_000);
/// Behind every signal stands a poll; time is moved by hand, so it must be noticed soon.
const POLL: Millis = Millis(5);

/// The engine, its bank and its clock.
pub(crate) struct Till {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Engine,
    pub(crate) bank: Bank,
    store: Arc<dyn Store>,
    running: Running,
    closing: watch::Sender<bool>,
    // The last to go.
    place: Place,
}

impl Till {
    /// A running engine with one activity per rule for late money, each with this many units.
    pub(crate) async fn open(mode: Mode, rules: &[LatePayment], stock: i64) -> Self {
        let place = Place::open(mode).await;
        let clock = Arc::new(ManualClock::new(Timestamp(1_800_000_000_000)));
        let timeout = Duration::from_millis(50);
        let options =
            BankOptions { signer: Signer::new(b"a secret of the tests"), clock: clock.clone(), timeout };
        let bank = Bank::open(&place.folder().join("bank.jsonl"), options).unwrap();
        let ports = place.ports(clock.clone(), Arc::new(CountingIds::new("till"))).await;
        let store = ports.store.clone();
        let ports = ports.with_providers(vec![Arc::new(SandboxProvider::new(bank.clone()))]);
        let keys = KeyRing::new(&[(1, vec![7; 32])]).unwrap();
        let engine = Engine::new(ports, keys, Settings { poll: POLL, ..Settings::default() });
        for rule in rules {
            put_on_sale(&engine, clock.now(), *rule, stock).await;
        }
        let running = runtime::start(&engine, &Role::ALL);
        let closing = answer(&engine, &bank, &clock).await;
        Self { clock, engine, bank, store, running, closing, place }
    }

    /// An order of this buyer with an attempt that the bank knows of.
    pub(crate) async fn order(engine: &Engine, rule: LatePayment, user: String) -> (PurchaseId, PaymentId) {
        let order = order::DirectOrder {
            user: UserId::new(&user).unwrap(),
            request: RequestId::trusted("r"),
            lines: vec![(key(rule), 1)],
        };
        let placed = order::place(engine, order).await.unwrap().purchase;
        let start = payment::Start {
            order: placed.id.order(),
            provider: Arc::from("sandbox"),
            actor: Arc::from("buyer"),
            idempotent: Idempotent {
                key: Arc::from(format!("pay of {user}")),
                fingerprint: [1; 32],
                render: Arc::new(|outcome| (201, outcome.unwrap().id.to_string().into_bytes())),
            },
        };
        let answer = payment::start(engine, start).await.unwrap();
        let id = String::from_utf8(answer.body).unwrap();
        (placed.id, PaymentId(id.parse().unwrap()))
    }

    /// Whether an order's time has been up for longer than this, and it was not told.
    pub(crate) async fn is_behind(&self, by: Millis) -> bool {
        let next = self.engine.deadline_trigger().next_in().await.unwrap();
        next.is_some_and(|wait| wait.0 < -by.0)
    }

    /// What is not at rest.
    pub(crate) async fn busy(&self) -> Vec<String> {
        let lanes = self.store.lanes().await.unwrap();
        let lanes = lanes.iter().filter(|lane| lane.size > 0);
        let mut busy: Vec<String> = lanes.map(|lane| format!("{} {}", lane.lane, lane.size)).collect();
        let deadline = self.engine.deadline_trigger().next_in().await.unwrap();
        busy.extend(deadline.map(|wait| format!("a deadline in {} ms", wait.0)));
        let carried = self.place.on_its_way();
        busy.extend((carried > 0).then(|| format!("{carried} messages")));
        busy
    }

    /// Every invariant that the store can judge by itself.
    pub(crate) async fn assert_invariants(&self) {
        for check in operate::invariants(&self.engine).await.unwrap() {
            assert!(check.holds, "{}: {}", check.name, check.detail);
        }
    }

    /// Ends everything, in order.
    pub(crate) async fn close(self) {
        self.closing.send_replace(true);
        self.running.drain().await;
    }
}

/// The one SKU of the activity with this rule.
pub(crate) fn key(rule: LatePayment) -> SkuKey {
    SkuKey { activity: activity(rule), sku: SkuId::trusted("seat") }
}

fn activity(rule: LatePayment) -> ActivityId {
    ActivityId::new(&format!("{rule:?}")).unwrap()
}

async fn put_on_sale(engine: &Engine, now: Timestamp, rule: LatePayment, stock: i64) {
    let terms = Activity {
        id: activity(rule),
        name: Arc::from("Sale"),
        starts_at: now.minus(Millis(1_000)),
        ends_at: now.plus(Millis(10_000_000)),
        payment_window: WINDOW,
        cancel_grace: GRACE,
        reservation_deadline: Millis(300_000),
        confirm_after_cancel: CONFIRM_AFTER,
        late_payment: rule,
        cancelled_frees_limit: true,
    };
    catalogue::put_activity(engine, terms).await.unwrap();
    let price = Money::new(PRICE, Currency::CNY).unwrap();
    let sku = catalogue::NewSku { key: key(rule), stock, price, per_user_limit: 1, buckets: 1 };
    catalogue::put_sku(engine, sku).await.unwrap();
}

/// Serves the webhook and lets the bank call it.
async fn answer(engine: &Engine, bank: &Bank, clock: &Arc<ManualClock>) -> watch::Sender<bool> {
    let parts = Parts {
        engine: engine.clone(),
        gate: Gate::open(engine.clone()),
        ledger: Ledger::open(engine.clone()),
        access: Access::open(),
        settings: onceward_http::Settings::default(),
        metrics: None,
        clock: clock.clone(),
        sandbox: Some(Arc::new(bank.clone()) as Arc<dyn Sandbox>),
    };
    let router = onceward_http::router(AppState::new(parts));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let courier = Courier::new(bank.clone(), Target::at(listener.local_addr().unwrap()));
    let (closing, closed) = watch::channel(false);
    let mut told = closed.clone();
    let stop = async move {
        let _ = told.wait_for(|closing| *closing).await;
    };
    tokio::spawn(onceward_http::serve(listener, router, None, Limits::default(), stop));
    tokio::spawn(courier.run(closed));
    closing
}
