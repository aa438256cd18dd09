//! An engine with one sale over real servers, to be measured.
//!
//! Invariants: the tables are fresh, in a schema of the caller's; every order is of one unit and of a buyer of its own, so the
//! units that are occupied are the orders that there are. Read next: [`super::super::shop`], the same over a file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::derive::KeyRing;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::Need;
use onceward_domain::id::{RequestId, SkuKey};
use onceward_domain::ports::bus::Bus;
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::Millis;
use onceward_postgres::{OpenOptions, PostgresStore, begin};
use onceward_redis::{Options as RedisOptions, RedisAdmission};
use onceward_rocketmq::{Options as BrokerOptions, RocketBus};

use super::super::memory_bus::MemoryBus;
use super::super::shop::{PLENTY_STOCK, Terms, WINDOW, delivery, never_closed, put_on_sale, sku_key, user};
use crate::client::pause;
use crate::failure::Failure;
use crate::time::{SystemClock, SystemIds};
use crate::wiring;

/// The lease that `serve` has.
const LEASE: Millis = Millis(5_000);
/// Longest wait for the last order.
const REST_TIME: Duration = Duration::from_secs(300);
/// Between two looks at how many orders there are, each of one row or key.
const LOOK: Duration = Duration::from_millis(20);

/// Gate and transport of a shop.
pub(super) enum Way {
    /// Messages from memory, of reservations that the store has not heard of: as with a gate in Redis.
    Memory,
    /// Everything in PostgreSQL.
    Alone,
    /// The gate in Redis, messages over RocketMQ.
    Servers(Box<(RedisOptions, BrokerOptions)>),
}

/// The shop.
pub(super) struct Shop {
    /// The engine; no worker runs by itself.
    pub(super) engine: Engine,
    store: Arc<PostgresStore>,
    messages: Arc<MemoryBus>,
    broker: Option<Arc<RocketBus>>,
    skus: Vec<SkuKey>,
}

impl Shop {
    /// A fresh shop in the schema that sessions of this URL find first, with these SKUs.
    pub(super) async fn open(url: &str, way: Way, skus: &[String]) -> Result<Self, Failure> {
        begin(url).await?;
        let store = Arc::new(PostgresStore::open(OpenOptions::new(url)).await?);
        let messages = Arc::new(MemoryBus::default());
        let ports = Ports::store_backed(Arc::clone(&store) as _, Arc::new(SystemIds));
        let (ports, broker) = match way {
            Way::Memory => (Ports { bus: Arc::clone(&messages) as _, ..ports }, None),
            Way::Alone => (ports, None),
            Way::Servers(options) => {
                let (redis, broker) = *options;
                let gate = RedisAdmission::open(redis, Arc::clone(&ports.store), Arc::new(SystemIds))?;
                let bus = Arc::new(RocketBus::open(&broker, wiring::clock(), Arc::new(SystemIds))?);
                bus.check().await?;
                let ports =
                    Ports { admission: Arc::new(gate), bus: Arc::clone(&bus) as Arc<dyn Bus>, ..ports };
                (ports, Some(bus))
            }
        };
        let keys =
            KeyRing::new(&[(1, vec![7; 32])]).map_err(|cause| Failure::other("making a key", cause))?;
        let engine = Engine::new(ports, keys, Settings { lease: LEASE, ..never_closed() });
        let skus: Vec<SkuKey> = skus.iter().map(|sku| sku_key(sku)).collect();
        let stocked: Vec<(SkuKey, i64)> = skus.iter().map(|key| (key.clone(), PLENTY_STOCK)).collect();
        put_on_sale(&engine, Terms::ENDLESS, &stocked).await?;
        Ok(Self { engine, store, messages, broker, skus })
    }

    /// Turns so many messages from memory into orders; how long the engine's consumer took.
    pub(super) async fn consume(&self, first: u64, count: u64) -> Result<Duration, Failure> {
        let now = SystemClock.now();
        let deliveries = (first..first + count).map(|number| {
            let place = usize::try_from(number).unwrap_or(0) % self.skus.len();
            let (key, user, request) = (self.skus[place].clone(), user(number), RequestId::trusted("r"));
            let purchase = self.engine.keys().reservation(&key, &user, &request);
            let business_deadline = now.plus(WINDOW);
            delivery(&OrderCreateRequested {
                purchase,
                key,
                user,
                request,
                quantity: 1,
                reserved_at: now,
                business_deadline,
            })
        });
        self.messages.fill(deliveries.collect());
        let before = self.orders().await?;
        let started = Instant::now();
        while Worker::Consumer.step(&self.engine).await? == Next::Again {}
        let elapsed = started.elapsed();
        let orders = self.orders().await? - before;
        if orders != count || !self.messages.is_clean() {
            return Err(Failure::Other(format!("{count} messages became {orders} orders")));
        }
        Ok(elapsed)
    }

    /// How many orders there are.
    pub(super) async fn orders(&self) -> Result<u64, Failure> {
        let need = Need { skus: self.skus.clone(), ..Need::default() };
        let facts = self.engine.store().view(need).await?;
        Ok(facts.skus.values().map(|sku| sku.stock.occupied.unsigned_abs()).sum())
    }

    /// Waits until there are so many orders.
    pub(super) async fn until_ordered(&self, count: u64) -> Result<(), Failure> {
        until(count, "orders", async || self.orders().await).await
    }

    /// Waits until the gate has heard of so many orders: what is left to do then is nobody's who comes next.
    pub(super) async fn until_projected(&self, count: u64) -> Result<(), Failure> {
        let projected = async || {
            let mut committed = 0;
            for key in &self.skus {
                let counters = self.engine.admission().counters(key.clone()).await?;
                committed += counters.map_or(0, |bucket| bucket.committed.unsigned_abs());
            }
            Ok(committed)
        };
        until(count, "orders that the gate has heard of", projected).await
    }

    /// Says goodbye to the servers.
    pub(super) async fn close(self) {
        if let Some(bus) = &self.broker {
            bus.close().await;
        }
        self.store.close();
    }
}

/// Looks until there are so many.
async fn until(count: u64, what: &str, look: impl AsyncFn() -> Result<u64, Failure>) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        let found = look().await?;
        if found == count {
            return Ok(());
        }
        if found > count || started.elapsed() > REST_TIME {
            return Err(Failure::Other(format!("{count} reservations became {found} {what}")));
        }
        pause(LOOK).await;
    }
}
