//! Listening for keys that run out: one subscription at each primary, because a server tells of its own keys only.
//!
//! Invariants: a server that tells nothing of keys is told to when a line to it is made, or is not listened to; a line that
//! says nothing is asked whether it still is one; what primaries there are is looked up again now and then, so that a
//! promotion is noticed. What ran out while nobody listened is never heard of: keyspace events are not kept (OT-10, documented
//! as lossy). Deliberately absent: what a key means. Read next: `keyspace.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use onceward_domain::error::{Code, Error};
use redis::{Client, ConnectionInfo, ErrorKind, RedisError, RedisResult, Value};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::failure::{Stage, error_of};
use crate::options::Options;
use crate::primaries::{patience, primaries};

/// The server's setting that says of which keys it tells.
pub(crate) const SETTING: &str = "notify-keyspace-events";
/// How often primaries are looked up, and how long a line may say nothing before it is asked whether it lives. A promotion is
/// noticed as late as this; what runs out meanwhile is the sweep's.
const LOOK: Duration = Duration::from_secs(5);
/// Between two tries of a line that breaks.
const RETRY: Duration = Duration::from_millis(500);

/// What is done with the name of a key that ran out.
pub(crate) trait Hearing: Send + Sync {
    /// Takes the name.
    fn hear(&self, key: &[u8]);
}

/// What a server says of keys that run out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It tells.
    Tells,
    /// It does not, and this must be set for it to.
    Needs(String),
}

/// Listens until whoever hears is gone.
pub(crate) async fn listen(options: Options, hearing: Weak<dyn Hearing>) {
    let ended = Arc::new(Notify::new());
    let mut ears: BTreeMap<String, Ear> = BTreeMap::new();
    while hearing.strong_count() > 0 {
        match primaries(&options).await {
            Ok(found) => {
                let names: Vec<String> = found.iter().map(|server| server.addr().to_string()).collect();
                ears.retain(|name, ear| names.contains(name) && !ear.0.is_finished());
                for (name, server) in names.into_iter().zip(found) {
                    let (options, hearing, ended) = (options.clone(), hearing.clone(), Arc::clone(&ended));
                    ears.entry(name)
                        .or_insert_with(|| Ear(tokio::spawn(hear(options, server, hearing, ended))));
                }
            }
            Err(cause) => tell_trouble(&cause),
        }
        drop(timeout(LOOK, ended.notified()).await);
        // A line that breaks again and again must not become a storm.
        drop(timeout(RETRY, std::future::pending::<()>()).await);
    }
}

/// A line to one server; it is cut when nobody keeps it.
struct Ear(JoinHandle<()>);

impl Drop for Ear {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn hear(options: Options, server: ConnectionInfo, hearing: Weak<dyn Hearing>, ended: Arc<Notify>) {
    if let Err(cause) = hear_until_it_breaks(&options, &server, &hearing).await {
        tell_trouble(&cause);
    }
    ended.notify_one();
}

fn tell_trouble(cause: &RedisError) {
    tracing::warn!(target: "onceward", event = "deadline.not_listening", error = %cause, "what runs out meanwhile is swept");
}

async fn hear_until_it_breaks(
    options: &Options,
    server: &ConnectionInfo,
    hearing: &Weak<dyn Hearing>,
) -> RedisResult<()> {
    make_tell(options, server).await?;
    let client = Client::open(server.clone())?;
    let line = timeout(options.connect_limit, client.get_async_pubsub());
    let mut line = line.await.map_err(|_| silent())??;
    let channel = format!("__keyevent@{}__:expired", server.redis_settings().db());
    timeout(options.response_limit, line.subscribe(channel)).await.map_err(|_| silent())??;
    let (mut sink, mut stream) = line.split();
    loop {
        match timeout(LOOK, stream.next()).await {
            Ok(Some(message)) => {
                let Some(hearing) = hearing.upgrade() else { return Ok(()) };
                hearing.hear(message.get_payload_bytes());
            }
            Ok(None) => return Ok(()),
            Err(_quiet) => {
                let answer = timeout(options.response_limit, sink.ping::<Value>());
                answer.await.map_err(|_| silent())??;
            }
        }
    }
}

fn silent() -> RedisError {
    RedisError::from((ErrorKind::Io, "a server does not answer"))
}

/// What one server says of keys that run out.
async fn telling_of(options: &Options, server: &ConnectionInfo) -> RedisResult<Telling> {
    let client = Client::open(server.clone())?;
    let mut line = client.get_multiplexed_async_connection_with_config(&patience(options)).await?;
    let said: Vec<String> = redis::cmd("CONFIG").arg("GET").arg(SETTING).query_async(&mut line).await?;
    Ok(judge(said.get(1).map_or("", String::as_str)))
}

/// Has one server tell of keys that run out.
async fn make_tell(options: &Options, server: &ConnectionInfo) -> RedisResult<()> {
    let Telling::Needs(value) = telling_of(options, server).await? else { return Ok(()) };
    let client = Client::open(server.clone())?;
    let mut line = client.get_multiplexed_async_connection_with_config(&patience(options)).await?;
    redis::cmd("CONFIG").arg("SET").arg(SETTING).arg(value).query_async(&mut line).await
}

/// Whether this setting is enough; else what it lacks is added, and nothing is taken away that others may listen to.
fn judge(setting: &str) -> Telling {
    let has = |flag: char| setting.contains(flag);
    match (has('E'), has('x') || has('A')) {
        (true, true) => Telling::Tells,
        (true, false) => Telling::Needs(format!("{setting}x")),
        (false, true) => Telling::Needs(format!("{setting}E")),
        (false, false) => Telling::Needs(format!("{setting}Ex")),
    }
}

/// Has every primary tell of keys that run out.
pub(crate) async fn make_all_tell(options: &Options) -> Result<(), Error> {
    let connecting = |cause| error_of(Stage::Connecting, cause);
    for server in primaries(options).await.map_err(connecting)? {
        make_tell(options, &server).await.map_err(refused)?;
    }
    Ok(())
}

/// Whether every primary tells of keys that run out; where one does not, what its setting must be.
pub(crate) async fn do_all_tell(options: &Options) -> Result<Option<String>, Error> {
    let connecting = |cause| error_of(Stage::Connecting, cause);
    for server in primaries(options).await.map_err(connecting)? {
        if let Telling::Needs(value) = telling_of(options, &server).await.map_err(refused)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// A server that keeps its settings to itself is the operator's to set; one that is away is not.
fn refused(cause: RedisError) -> Error {
    if cause.code().is_none() {
        return error_of(Stage::Connecting, cause);
    }
    let needed =
        format!("Redis must tell of keys that run out, and lets nobody set it: set {SETTING} to Ex there");
    Error::new(Code::Invalid, needed).because(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ot_10_a_setting_is_added_to_and_nothing_is_taken_away() {
        let needs = |value: &str| Telling::Needs(value.to_owned());
        let table = [
            ("Ex", Telling::Tells),
            ("AKE", Telling::Tells),
            ("xKE", Telling::Tells),
            ("", needs("Ex")),
            ("E", needs("Ex")),
            ("Kg", needs("KgEx")),
            ("AK", needs("AKE")),
        ];
        for (setting, expected) in table {
            assert_eq!(judge(setting), expected, "{setting}");
        }
    }
}
