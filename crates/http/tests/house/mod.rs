//! A house to test in: the router over the real engine over the place of a mode, with a clock that is moved by hand.
#![allow(clippy::unwrap_used, dead_code, reason = "each test binary uses its part of the house")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request};
use onceward::Engine;
use onceward::gate::Gate;
use onceward::ledger::Ledger;
use onceward::workers::{Next, Worker};
use onceward_domain::derive::KeyRing;
use onceward_domain::ports::provider::Provider;
use onceward_domain::ports::sandbox::Sandbox;
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};
use onceward_ground::{Mode, Place};
use onceward_http::{Access, AppState, Parts, Settings};
use onceward_testkit::clock::ManualClock;
use onceward_testkit::ids::CountingIds;
use serde_json::{Value, json};
use tower::ServiceExt;

/// 2026-11-11T00:00:00Z.
pub(crate) const NOON: i64 = 1_794_355_200_000;
/// Steps after which a house that is still busy counts as one that never comes to rest.
const STEPS_LIMIT: u32 = 20_000;
/// How long a broker may take to bring what it was given.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SKU: &str = "/v1/activities/sale/skus/cup";
pub(crate) const RESERVE: &str = "/v1/activities/sale/skus/cup/reservations";
pub(crate) const ADJUST: &str = "/v1/activities/sale/skus/cup/stock-adjustments";

pub(crate) struct House {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Engine,
    pub(crate) router: Router,
    // The last to go: it takes the servers' part away from under the others.
    place: Place,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("")
    }

    /// The first pointer of `errors`.
    pub(crate) fn pointer(&self) -> &str {
        self.body["errors"][0]["pointer"].as_str().unwrap_or("")
    }

    /// Checks that a refusal is a whole problem document.
    pub(crate) fn assert_problem(&self) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        for field in ["type", "title", "detail", "code", "request_id"] {
            assert!(self.body[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {self:?}");
        }
        assert_eq!(self.body["status"], self.status, "{self:?}");
        assert!(!self.header("x-request-id").is_empty());
        let needs_wait = self.status == 429 || self.status == 503;
        assert_eq!(!self.header("retry-after").is_empty(), needs_wait, "{self:?}");
    }
}

pub(crate) fn activity() -> Value {
    json!({ "name": "Sale", "starts_at": "2026-11-10T00:00:00Z", "ends_at": "2026-11-12T00:00:00Z" })
}

pub(crate) fn sku(stock: i64, per_user_limit: i64) -> Value {
    json!({ "stock": stock, "price": { "amount": 1999, "currency": "CNY" }, "per_user_limit": per_user_limit })
}

pub(crate) fn buyer(user: &str, request: &str) -> Value {
    json!({ "user_id": user, "request_id": request, "quantity": 1 })
}

impl House {
    pub(crate) async fn with(mode: Mode, access: Access, settings: Settings) -> Self {
        Self::banked(mode, access, settings, Arc::new(ManualClock::new(Timestamp(NOON))), None).await
    }

    /// A house whose payments go to this provider, which is this bank.
    pub(crate) async fn banked(
        mode: Mode,
        access: Access,
        settings: Settings,
        clock: Arc<ManualClock>,
        bank: Option<(Arc<dyn Provider>, Arc<dyn Sandbox>)>,
    ) -> Self {
        let (providers, sandbox) = bank.map_or((Vec::new(), None), |(one, bank)| (vec![one], Some(bank)));
        let place = Place::open(mode).await;
        let keys = KeyRing::new(&[(1, vec![7; 32])]).unwrap();
        let ports = place.ports(clock.clone(), Arc::new(CountingIds::new("t"))).await;
        let (store, ports) = (ports.store.clone(), ports.with_providers(providers));
        let engine = Engine::new(ports, keys, onceward::Settings::default());
        let gate = Gate::open(engine.clone());
        let ledger = Ledger::open(engine.clone());
        let metrics = None;
        let engine_of = engine.clone();
        let parts = Parts {
            engine: engine_of,
            gate,
            ledger,
            access,
            settings,
            metrics,
            clock: clock.clone(),
            sandbox,
        };
        let router = onceward_http::router(AppState::new(parts));
        Self { clock, store, engine, router, place }
    }

    pub(crate) async fn empty(mode: Mode) -> Self {
        Self::with(mode, Access::open(), Settings::default()).await
    }

    /// A house with the sale `sale` and the SKU `cup`.
    pub(crate) async fn selling(mode: Mode, stock: i64, per_user_limit: i64) -> Self {
        let house = Self::empty(mode).await;
        assert_eq!(house.put("/v1/activities/sale", &activity()).await.status, 201);
        assert_eq!(house.put(SKU, &sku(stock, per_user_limit)).await.status, 201);
        house
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status.as_u16(), headers: parts.headers, body, bytes }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body.to_string()).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        self.ask(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn post_with_key(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Body::from(body.to_string()));
        self.ask(request.unwrap()).await
    }

    /// Steps every worker until nobody has anything to do at this time, and nothing is on its way.
    pub(crate) async fn rest(&self) {
        let until = Instant::now() + PATIENCE;
        for _ in 0..STEPS_LIMIT {
            let mut busy = 0;
            for worker in Worker::ALL.into_iter().filter(|worker| *worker != Worker::Watch) {
                busy += u32::from(worker.step(&self.engine).await.unwrap() == Next::Again);
            }
            match (busy, self.place.on_its_way()) {
                (0, 0) => return,
                (0, left) => assert!(Instant::now() < until, "{left} messages do not come"),
                _ => {}
            }
        }
        panic!("the house never comes to rest");
    }

    pub(crate) async fn pass(&self, length: i64) {
        for _ in 0..10 {
            self.clock.advance(Millis(length / 10));
            self.rest().await;
        }
    }

    /// Everything that is stored, as far as the overview shows it.
    pub(crate) async fn stored(&self) -> String {
        let mut overview = self.get("/v1/ops/overview").await.body;
        overview["now"] = Value::Null;
        // A store's files grow and shrink by themselves.
        overview["store"]["bytes"] = Value::Null;
        overview.to_string()
    }
}
