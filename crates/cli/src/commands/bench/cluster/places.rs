//! Where the servers are, and a part of each that is nobody else's.
//!
//! Invariants: what is made is removed when the work over it has ended, well or not; an address is never shown, for it may
//! hold a password. At the broker the names end in `-bench`, so that nobody else's messages are read.

use onceward_redis::{Options as RedisOptions, compare};
use onceward_rocketmq::{Names, Options as BrokerOptions};

use crate::bench::server::Schema;
use crate::data_dir;
use crate::failure::Failure;

/// What the names of topics and groups end in.
const SUFFIX: &str = "-bench";

/// The addresses, as far as they are given.
pub(super) struct Places {
    store: Option<String>,
    redis: Option<String>,
    broker: Option<String>,
}

impl Places {
    /// Reads the variables that `serve` reads as well.
    pub(super) fn of_environment() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            store: read("ONCEWARD_STORE_URL"),
            redis: read("ONCEWARD_REDIS_URL"),
            broker: read("ONCEWARD_BROKER_URL"),
        }
    }

    /// The PostgreSQL server.
    pub(super) fn store(&self) -> Result<&str, Failure> {
        let url = self.store.as_deref().filter(|url| url.starts_with("postgres"));
        url.ok_or_else(|| missing("a PostgreSQL server", "ONCEWARD_STORE_URL"))
    }

    /// The Redis server's own address.
    pub(super) fn redis_url(&self) -> Result<&str, Failure> {
        self.redis.as_deref().ok_or_else(|| missing("a Redis server", "ONCEWARD_REDIS_URL"))
    }

    /// The broker, by the names of measurements.
    pub(super) fn broker(&self) -> Result<BrokerOptions, Failure> {
        let url =
            self.broker.as_deref().ok_or_else(|| missing("a RocketMQ broker", "ONCEWARD_BROKER_URL"))?;
        Ok(BrokerOptions::parse(url)?.with_names(Names::with_suffix(SUFFIX)))
    }

    /// Works under a key prefix of its own, whose keys are removed at the end.
    pub(super) async fn with_keys<T>(
        &self,
        work: impl AsyncFnOnce(RedisOptions) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let options =
            RedisOptions::of(self.redis_url()?)?.with_prefix(&format!("onceward-bench-{:016x}", number()?));
        let done = work(options.clone()).await;
        let cleared = compare::clear(&options).await;
        let done = done?;
        cleared?;
        Ok(done)
    }

    /// Works in a schema of its own, which is removed at the end.
    pub(super) async fn with_schema<T>(
        &self,
        work: impl AsyncFnOnce(&Schema) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let doing = |cause| Failure::other("a schema of its own", cause);
        let schema = Schema::make(self.store()?, number()?).await.map_err(doing)?;
        let done = work(&schema).await;
        let removed = schema.remove().await.map_err(doing);
        let done = done?;
        removed?;
        Ok(done)
    }
}

fn number() -> Result<u64, Failure> {
    Ok(u64::from_le_bytes(data_dir::random()?))
}

fn missing(what: &str, variable: &str) -> Failure {
    Failure::Usage(format!(
        "this scenario needs {what}: give its address in {variable} (`cargo xtask services up`, then \
         `eval \"$(cargo xtask services env)\"`)"
    ))
}
