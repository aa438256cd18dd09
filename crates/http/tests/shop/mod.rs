//! A shop to test in: a house whose payments go to a bank with a truth of its own.
#![allow(clippy::unwrap_used, dead_code, reason = "each test binary uses its part of the shop")]

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceward_domain::ports::provider::Provider;
use onceward_domain::ports::sandbox::Sandbox;
use onceward_domain::time::Timestamp;
use onceward_ground::Mode;
use onceward_http::{Access, Limits, Settings};
use onceward_providers::sandbox::{Bank, BankOptions, Courier, SandboxProvider, Signer, Target};
use onceward_testkit::clock::ManualClock;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::house::{Answer, House, NOON, SKU, activity, sku};

static NUMBER: AtomicU32 = AtomicU32::new(0);
pub(crate) const SECRET: &[u8] = b"a secret of the tests";

/// A house whose payments go to a sandbox bank, with a courier between them and a real server for it.
pub(crate) struct Shop {
    pub(crate) house: House,
    pub(crate) bank: Bank,
    courier: Courier,
    folder: PathBuf,
}

impl Deref for Shop {
    type Target = House;

    fn deref(&self) -> &House {
        &self.house
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Shop {
    pub(crate) async fn open(mode: Mode, stock: i64, rules: &Value) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("onceward-shop-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp(NOON)));
        let options = BankOptions {
            signer: Signer::new(SECRET),
            clock: clock.clone(),
            timeout: Duration::from_millis(5),
        };
        let bank = Bank::open(&folder.join("sandbox-bank.jsonl"), options).unwrap();
        let provider: Arc<dyn Provider> = Arc::new(SandboxProvider::new(bank.clone()));
        let sandbox: Arc<dyn Sandbox> = Arc::new(bank.clone());
        let house =
            House::banked(mode, Access::open(), Settings::default(), clock, Some((provider, sandbox))).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let courier = Courier::new(bank.clone(), Target::at(listener.local_addr().unwrap()));
        let serving = onceward_http::serve(
            listener,
            house.router.clone(),
            None,
            Limits::default(),
            std::future::pending(),
        );
        tokio::spawn(serving);
        let mut sale = activity();
        sale.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
        assert_eq!(house.put("/v1/activities/sale", &sale).await.status, 201);
        assert_eq!(house.put(SKU, &sku(stock, 1)).await.status, 201);
        Self { house, bank, courier, folder }
    }

    pub(crate) async fn selling(mode: Mode) -> Self {
        Self::open(mode, 5, &json!({})).await
    }

    /// Places a direct order and answers its path.
    pub(crate) async fn order(&self, user: &str) -> String {
        let lines = json!([{ "activity_id": "sale", "sku_id": "cup" }]);
        let placed =
            self.post("/v1/orders", &json!({ "user_id": user, "request_id": "r", "lines": lines })).await;
        assert_eq!(placed.status, 201, "{}", placed.body);
        format!("/v1/orders/{}", placed.body["order_id"].as_str().unwrap())
    }

    pub(crate) async fn start(&self, order: &str, key: &str) -> Answer {
        self.post_with_key(&format!("{order}/payments"), key, &json!({ "provider": "sandbox" })).await
    }

    /// Starts a payment and answers its path at the bank.
    pub(crate) async fn started(&self, order: &str) -> String {
        let started = self.start(order, "pay").await;
        assert_eq!((started.status, &started.body["status"]), (201, &json!("PENDING")), "{}", started.body);
        format!("/sandbox/payments/{}", started.body["payment_id"].as_str().unwrap())
    }

    pub(crate) async fn succeed(&self, payment: &str, act: Value) {
        let answer = self.post(&format!("{payment}/succeed"), &act).await;
        assert_eq!((answer.status, &answer.body["status"]), (200, &json!("SUCCEEDED")), "{}", answer.body);
    }

    /// Pays with a callback that arrives.
    pub(crate) async fn paid(&self, user: &str) -> (String, String) {
        let order = self.order(user).await;
        let payment = self.started(&order).await;
        self.succeed(&payment, json!({ "callback": "send" })).await;
        self.deliver().await;
        assert_eq!(self.status(&order).await, "PAID");
        (order, payment)
    }

    /// Has every callback that is due delivered over TCP.
    pub(crate) async fn deliver(&self) {
        let stepped = tokio::time::timeout(Duration::from_secs(20), self.courier.step()).await;
        stepped.expect("callbacks are taken").unwrap();
    }

    pub(crate) async fn status(&self, order: &str) -> String {
        self.get(order).await.body["status"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn mode(&self, change: Value) {
        assert_eq!(self.put("/sandbox/mode", &change).await.status, 200);
    }

    pub(crate) async fn refund(&self, order: &str, key: &str, body: &Value) -> Answer {
        self.post_with_key(&format!("{order}/refunds"), key, body).await
    }

    pub(crate) async fn cases(&self) -> Vec<String> {
        let found = self.get("/v1/ops/anomalies").await.body;
        found["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case["kind"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) async fn assert_invariants(&self) {
        let verdict = self.get("/v1/ops/invariants").await.body;
        assert_eq!(verdict["holds"], true, "{verdict}");
    }
}

pub(crate) fn money(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "CNY" })
}
