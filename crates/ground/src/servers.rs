//! The parts of real servers that are one test's: a schema, a key prefix, topics and groups.
//!
//! Invariant: a name is never given twice, because servers outlive many runs. Where they are: `onceward_testkit::services`, which
//! starts them or fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use onceward::Ports;
use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::clock::{Clock, Ids};
use onceward_domain::ports::store::Store;
use onceward_postgres::{OpenOptions, PostgresStore};
use onceward_redis::{Options as RedisOptions, RedisAdmission, RedisQueue, RedisTrigger, Time};
use onceward_rocketmq::RocketBus;
use onceward_testkit::ids::CountingIds;
use onceward_testkit::services;
use tokio_postgres::NoTls;

use crate::broker;
use crate::carried::{Carried, Load};

/// A name that nobody else has: process ids come again, times do not.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    #[expect(clippy::disallowed_methods, reason = "a server outlives many test processes")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    format!("{}x{}x{number}", since.as_micros(), std::process::id())
}

/// Does it on a runtime of its own, because whoever drops something may be inside of another one.
fn on_a_thread(work: impl Future<Output = ()> + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(work);
        });
    });
}

async fn on_postgres(server: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(server, NoTls).await.expect("PostgreSQL answers");
    let line = tokio::spawn(connection);
    client.batch_execute(sql).await.expect("PostgreSQL does it");
    drop(client);
    drop(line.await);
}

/// A schema with the tables of this version.
pub(crate) struct Schema {
    server: String,
    name: String,
    url: String,
}

impl Schema {
    pub(crate) async fn make() -> Self {
        let server = found("postgres", "ONCEWARD_TEST_POSTGRES_URL").await;
        let name = format!("e2e_{}", unique());
        on_postgres(&server, &format!("CREATE SCHEMA {name}")).await;
        let url = format!("{server}?options=-csearch_path%3D{name}");
        let schema = Self { server, name, url };
        onceward_postgres::migrate(&schema.url).await.expect("the tables are made");
        schema
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn open(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let options = OpenOptions { clock: Some(clock), ..OpenOptions::new(self.url.clone()) };
        Arc::new(PostgresStore::open(options).await.expect("the store opens"))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        on_a_thread(on_postgres(&self.server, &format!("DROP SCHEMA {} CASCADE", self.name)));
    }
}

/// Starting a service takes a while, and must not hold up the runtime.
async fn found(service: &'static str, variable: &'static str) -> String {
    let address = tokio::task::spawn_blocking(move || services::address(service, variable)).await;
    address.expect("the service is there")
}

/// A key prefix, and topics and groups.
pub(crate) struct Cluster {
    redis: String,
    prefix: String,
    ids: Arc<dyn Ids>,
    broker: broker::Ground,
    broker_url: String,
    load: Arc<Load>,
}

impl Cluster {
    pub(crate) async fn make() -> Self {
        let redis = found("redis", "ONCEWARD_TEST_REDIS_URL").await;
        let name = unique();
        let suffix = name.clone();
        let broker = tokio::task::spawn_blocking(move || broker::Ground::new(&suffix)).await;
        let broker_url = found("rocketmq", "ONCEWARD_TEST_BROKER_URL").await;
        Self {
            redis,
            broker_url,
            prefix: format!("e2e-{name}"),
            ids: Arc::new(CountingIds::new(&name)),
            broker: broker.expect("the broker makes topics"),
            load: Arc::default(),
        }
    }

    /// The same ports with gate and deadlines in Redis, and transport over the broker.
    pub(crate) fn lend(&self, ports: Ports, clock: Arc<dyn Clock>) -> Ports {
        let options = RedisOptions::of(&self.redis).expect("the service gives an address");
        let options = options.with_prefix(&self.prefix).with_time(Time::Handed(clock.clone()));
        let gate = RedisAdmission::open(options.clone(), Arc::clone(&ports.store), Arc::clone(&self.ids));
        let queue = RedisQueue::open(options).expect("inside of a runtime");
        let bus = RocketBus::open(&self.broker.options, clock.clone(), Arc::clone(&self.ids));
        let bus = Carried::new(bus.expect("inside of a runtime"), Arc::clone(&self.load), clock);
        let admission = Arc::new(gate.expect("inside of a runtime"));
        let ports = Ports { admission, bus: Arc::new(bus), ..ports };
        ports.with_deadline_trigger(Arc::new(RedisTrigger::new(queue)))
    }

    pub(crate) fn on_its_way(&self) -> usize {
        self.load.size()
    }

    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        let topic = self.broker.names.topic(Topic::OrderCreate);
        let suffix = topic.strip_prefix(Topic::OrderCreate.name()).expect("names begin with the port's");
        [
            ("ONCEWARD_REDIS_URL", self.redis.clone()),
            ("ONCEWARD_REDIS_PREFIX", self.prefix.clone()),
            ("ONCEWARD_BROKER_URL", self.broker_url.clone()),
            ("ONCEWARD_BROKER_SUFFIX", suffix.to_owned()),
        ]
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let forget = || -> redis::RedisResult<()> {
            let mut line = redis::Client::open(self.redis.as_str())?.get_connection()?;
            let mut scan = redis::cmd("SCAN");
            scan.cursor_arg(0).arg("MATCH").arg(format!("{}:*", self.prefix)).arg("COUNT").arg(10_000);
            let keys: Vec<Vec<u8>> = scan.iter(&mut line)?.collect::<redis::RedisResult<_>>()?;
            keys.into_iter().try_for_each(|key| redis::cmd("UNLINK").arg(key).query(&mut line))
        };
        // What is left there is under a name that nobody uses again.
        drop(forget());
    }
}
