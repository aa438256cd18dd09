//! The servers of cluster mode: whether they answer, and how far what they answer can be relied on.
//!
//! Invariant: nothing is written, and no URL is shown, because it may hold a password.

use std::sync::Arc;

use onceward_domain::error::Error;
use onceward_postgres::{OpenOptions, PostgresStore};
use onceward_redis::Options;
use onceward_rocketmq::{Options as BrokerOptions, RocketBus};

use super::{Finding, Verdict};
use crate::failure::Failure;
use crate::time::SystemIds;
use crate::wiring;

/// What PostgreSQL says of itself.
pub(crate) fn postgres(url: &str) -> Vec<Finding> {
    let asked = on_a_runtime(async {
        if onceward_postgres::is_new(url).await? {
            return Ok(None);
        }
        let store = PostgresStore::open(OpenOptions::new(url)).await?;
        let (settings, security) = (store.settings().await, store.security().await);
        store.close();
        Ok(Some((settings?, security?)))
    });
    let (settings, security) = match asked {
        Ok(Some(told)) => told,
        Ok(None) => {
            let detail = "the database answers, and has no tables yet: the first start makes them";
            return vec![Finding::new("store", Verdict::Warning, detail)];
        }
        Err(cause) => return vec![Finding::new("store", Verdict::Broken, cause.to_string())],
    };
    let concern = |text: &str| Finding::new("store settings", Verdict::Warning, text);
    let about = Finding::new("store", Verdict::Good, settings.about());
    let line = Finding::new("store line", Verdict::Good, security.about());
    [about, line].into_iter().chain(settings.concerns().into_iter().map(concern)).collect()
}

/// Whether Redis answers, and keeps every key.
pub(crate) fn redis(options: Options) -> [Finding; 2] {
    let line = line("admission line", options.is_encrypted(), "rediss in the place of redis");
    let answer = match on_a_runtime(async { onceward_redis::check(options).await }) {
        Ok(()) => Finding::new("admission", Verdict::Good, "Redis answers, and evicts nothing"),
        Err(cause) => Finding::new("admission", Verdict::Broken, cause.to_string()),
    };
    [answer, line]
}

/// Whether the broker answers, and has every topic. One that is away keeps nobody from starting (FS-16).
pub(crate) fn broker(options: &BrokerOptions) -> [Finding; 2] {
    let line = line("broker line", options.is_encrypted(), "rocketmqs in the place of rocketmq");
    let asked = on_a_runtime(async {
        let bus = RocketBus::open(options, wiring::clock(), Arc::new(SystemIds))?;
        let found = bus.check().await;
        bus.close().await;
        found
    });
    let answer = match asked {
        Ok(found) => {
            let detail = format!("the broker answers, and has its {} topics", found.len());
            Finding::new("broker", Verdict::Good, detail)
        }
        Err(cause) => Finding::new("broker", Verdict::Warning, cause.to_string()),
    };
    [answer, line]
}

/// How a line is secured by its URL alone: one that must be encrypted never comes about otherwise.
fn line(name: &'static str, is_encrypted: bool, remedy: &str) -> Finding {
    let detail = if is_encrypted {
        "encrypted, and the server's certificate is judged".to_owned()
    } else {
        format!("not encrypted; {remedy} in the URL encrypts it")
    };
    Finding::new(name, Verdict::Good, detail)
}

/// Whether Redis tells of keys that run out, which the trigger `keyspace` listens to.
pub(crate) fn events(options: Options) -> Finding {
    match on_a_runtime(async { onceward_redis::events_needed(options).await }) {
        Ok(None) => Finding::new("events", Verdict::Good, "Redis tells of keys that run out"),
        Ok(Some(needed)) => {
            Finding::new("events", Verdict::Warning, format!("{needed}; a start sets it where it may"))
        }
        Err(cause) => Finding::new("events", Verdict::Broken, cause.to_string()),
    }
}

fn on_a_runtime<T>(question: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Runtime::new().map_err(|cause| Failure::other("starting the runtime", cause))?;
    Ok(runtime.block_on(question)?)
}
