//! Listening for keys that run out: one subscription at each primary, because a server tells of its own keys only.
//!
//! Invariants: a server that tells nothing of keys is told to when a line to it is made, or is not listened to; one that keeps its
//! settings to itself, as managed ones do, is listened to where it is heard to tell; a line that says nothing is asked whether it
//! still is one; what primaries there are is looked up again now and then, so that a promotion is noticed. What ran out while
//! nobody listened is never heard of: keyspace events are not kept (OT-10, documented as lossy). Deliberately absent: what a key means. Read next: `keyspace.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use onceward_domain::error::{Code, Error};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{Client, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::failure::{self, Stage, error_of};
use crate::options::Options;
use crate::primaries::{patience, primaries};

/// The server's setting that says of which keys it tells.
pub(crate) const SETTING: &str = "notify-keyspace-events";
/// How often primaries are looked up, and how long a line may say nothing before it is asked whether it lives. A promotion is
/// noticed as late as this; what runs out meanwhile is the sweep's.
const LOOK: Duration = Duration::from_secs(5);
/// Between two tries of a line that breaks.
const RETRY: Duration = Duration::from_millis(500);
/// How often, and for how long each time, a server that keeps its settings to itself is listened to before it counts as silent.
const PROBE_LOOKS: u32 = 40;
const PROBE_LOOK: Duration = Duration::from_millis(25);
/// Most keys that are tried until one is a server's own: among a thousand servers of a cluster it is found by then.
const PROBE_KEYS: u32 = 10_000;

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
    /// It keeps its settings to itself, and was not heard to tell.
    Silent,
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
            Err(cause) => tell_trouble(&unheard(cause)),
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
    if let Err(error) = hear_until_it_breaks(&options, &server, &hearing).await {
        tell_trouble(&error);
    }
    ended.notify_one();
}

fn tell_trouble(error: &Error) {
    tracing::warn!(target: "onceward", event = "deadline.not_listening", ?error, "what runs out meanwhile is swept");
}

async fn hear_until_it_breaks(
    options: &Options,
    server: &ConnectionInfo,
    hearing: &Weak<dyn Hearing>,
) -> Result<(), Error> {
    make_tell(options, server).await?;
    let (mut sink, mut stream) = subscribed(options, server).await.map_err(unheard)?.split();
    loop {
        match timeout(LOOK, stream.next()).await {
            Ok(Some(message)) => {
                let Some(hearing) = hearing.upgrade() else { return Ok(()) };
                hearing.hear(message.get_payload_bytes());
            }
            Ok(None) => return Ok(()),
            Err(_quiet) => {
                let answer = timeout(options.response_limit, sink.ping::<Value>()).await;
                answer.map_err(|_| silent()).and_then(|answer| answer).map_err(unheard)?;
            }
        }
    }
}

/// A line on which a server tells of its keys that run out.
async fn subscribed(options: &Options, server: &ConnectionInfo) -> RedisResult<PubSub> {
    let client = Client::open(server.clone())?;
    let line = timeout(options.connect_limit, client.get_async_pubsub());
    let mut line = line.await.map_err(|_| silent())??;
    let channel = format!("__keyevent@{}__:expired", server.redis_settings().db());
    timeout(options.response_limit, line.subscribe(channel)).await.map_err(|_| silent())??;
    Ok(line)
}

fn silent() -> RedisError {
    RedisError::from((ErrorKind::Io, "a server does not answer"))
}

/// Nothing is changed by a question, so what failed has not happened, wherever it failed.
fn unheard(cause: RedisError) -> Error {
    error_of(if cause.code().is_none() { Stage::Connecting } else { Stage::Sent }, cause)
}

async fn line_to(options: &Options, server: &ConnectionInfo) -> RedisResult<MultiplexedConnection> {
    let client = Client::open(server.clone())?;
    client.get_multiplexed_async_connection_with_config(&patience(options)).await
}

/// What one server says of keys that run out, or is heard to.
async fn telling_of(options: &Options, server: &ConnectionInfo) -> Result<Telling, Error> {
    let mut line = line_to(options, server).await.map_err(unheard)?;
    let said = redis::cmd("CONFIG").arg("GET").arg(SETTING).query_async::<Vec<String>>(&mut line).await;
    match said {
        // Some hide it without refusing.
        Ok(said) if said.len() > 1 => Ok(judge(&said[1])),
        Err(cause) if !is_forbidden(&cause) => Err(unheard(cause)),
        Ok(_) | Err(_) => match is_heard_to_tell(options, server).await.map_err(unheard)? {
            true => Ok(Telling::Tells),
            false => Ok(Telling::Silent),
        },
    }
}

/// Lets a key run out, and listens for it.
async fn is_heard_to_tell(options: &Options, server: &ConnectionInfo) -> RedisResult<bool> {
    let (_sink, mut stream) = subscribed(options, server).await?.split();
    let mut line = line_to(options, server).await?;
    let key = plant(options, &mut line).await?;
    for _ in 0..PROBE_LOOKS {
        // A key that has run out is removed, and told of, when somebody looks at it.
        redis::cmd("EXISTS").arg(&key).query_async::<Value>(&mut line).await?;
        match timeout(PROBE_LOOK, stream.next()).await {
            // Whichever key it is of.
            Ok(Some(_)) => return Ok(true),
            Ok(None) => return Err(silent()),
            Err(_quiet) => {}
        }
    }
    Ok(false)
}

/// Makes a key that runs out at once, and says which: of a cluster's server only some are its own.
async fn plant(options: &Options, line: &mut MultiplexedConnection) -> RedisResult<String> {
    let mut refused = RedisError::from((ErrorKind::InvalidClientConfig, "a server without slots"));
    for number in 0..PROBE_KEYS {
        let key = format!("{}:probe:{number}", options.prefix);
        match redis::cmd("SET").arg(&key).arg("").arg("PX").arg(1).query_async::<Value>(line).await {
            Ok(_) => return Ok(key),
            Err(cause) if cause.kind() == ErrorKind::Server(ServerErrorKind::Moved) => refused = cause,
            Err(cause) => return Err(cause),
        }
    }
    Err(refused)
}

/// Whether it is the operator who must act: the server has no such command, or not for us, or lets nobody set this.
fn is_forbidden(cause: &RedisError) -> bool {
    let is_own_word =
        cause.code() == Some("ERR") && failure::judge(Stage::Sent, cause) == Code::ConstraintViolated;
    is_own_word || cause.code() == Some("NOPERM")
}

/// Has one server tell of keys that run out.
async fn make_tell(options: &Options, server: &ConnectionInfo) -> Result<(), Error> {
    let value = match telling_of(options, server).await? {
        Telling::Tells => return Ok(()),
        Telling::Silent => return Err(to_be_set("Ex")),
        Telling::Needs(value) => value,
    };
    let mut line = line_to(options, server).await.map_err(unheard)?;
    let set = redis::cmd("CONFIG").arg("SET").arg(SETTING).arg(&value).query_async(&mut line).await;
    set.map_err(|cause| if is_forbidden(&cause) { to_be_set(&value).because(cause) } else { unheard(cause) })
}

/// What the operator must do where we may not.
fn to_be_set(value: &str) -> Error {
    let text = format!(
        "Redis tells nothing of keys that run out, and lets us not change it: set {SETTING} to {value} where it is managed"
    );
    Error::new(Code::Invalid, text)
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
    for server in primaries(options).await.map_err(unheard)? {
        make_tell(options, &server).await?;
    }
    Ok(())
}

/// Whether every primary tells of keys that run out; where one does not, what its setting must be.
pub(crate) async fn do_all_tell(options: &Options) -> Result<Option<String>, Error> {
    for server in primaries(options).await.map_err(unheard)? {
        match telling_of(options, &server).await? {
            Telling::Tells => {}
            Telling::Needs(value) => return Ok(Some(value)),
            Telling::Silent => return Err(to_be_set("Ex")),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_operator_must_do_is_forbidden() {
        for (line, expected) in [
            ("NOPERM User limited has no permissions to run the 'config|get' command", true),
            ("ERR unknown command 'CONFIG', with args beginning with: 'GET'", true),
            ("ERR CONFIG SET failed (possibly related to argument) - can't set protected config", true),
            ("ERR max number of clients reached", false),
            ("LOADING Redis is loading the dataset in memory", false),
            ("BUSY Redis is busy running a script.", false),
            ("MASTERDOWN Link with MASTER is down", false),
            ("WRONGPASS invalid username-password pair", false),
        ] {
            let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            let cause = value.extract_error().expect_err("an error line is an error");
            assert_eq!(is_forbidden(&cause), expected, "{line}");
            if !expected {
                assert_eq!(unheard(cause).code(), Code::Unavailable, "{line}");
            }
        }
    }

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
