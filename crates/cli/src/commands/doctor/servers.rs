//! The servers of cluster mode: whether they answer, and how far what they answer can be relied on.
//!
//! Invariant: nothing is written, and no URL is shown, because it may hold a password.

use onceward_domain::error::Error;
use onceward_postgres::{OpenOptions, PostgresStore};
use onceward_redis::Options;

use super::{Finding, Verdict};
use crate::failure::Failure;

/// What PostgreSQL says of itself.
pub(crate) fn postgres(url: &str) -> Vec<Finding> {
    let asked = on_a_runtime(async {
        let store = PostgresStore::open(OpenOptions::new(url)).await?;
        let settings = store.settings().await;
        store.close();
        settings
    });
    let settings = match asked {
        Ok(settings) => settings,
        Err(cause) => return vec![Finding::new("store", Verdict::Broken, cause.to_string())],
    };
    let concern = |text: &str| Finding::new("store settings", Verdict::Warning, text);
    let about = Finding::new("store", Verdict::Good, settings.about());
    [about].into_iter().chain(settings.concerns().into_iter().map(concern)).collect()
}

/// Whether Redis answers, and keeps every key.
pub(crate) fn redis(options: Options) -> Finding {
    match on_a_runtime(async { onceward_redis::check(options).await }) {
        Ok(()) => Finding::new("admission", Verdict::Good, "Redis answers, and evicts nothing"),
        Err(cause) => Finding::new("admission", Verdict::Broken, cause.to_string()),
    }
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
