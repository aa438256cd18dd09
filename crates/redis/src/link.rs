//! The line to Redis: connects when it is needed, connects anew after it broke, says what became of a call.
//!
//! Invariants: one connection carries everybody's calls, so nothing that blocks may go over it; a call that could not be sent
//! is known not to have happened, one whose answer is missing is not (DR-02); a call is never repeated here, except where the
//! server has said that it did not know the script; while one server of several hangs, nobody waits who does not come to it, and who
//! does waits once (FS-19). Read next: `failure.rs`, `silence.rs`.

use std::io;
use std::sync::Arc;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, RedisError, RedisFuture, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use onceward_domain::error::{Code, Error};

use crate::failure::{self, Stage};
use crate::options::{Options, Target, tcp};
use crate::primaries::{patience, sentinel};
use crate::script::Script;
use crate::silence::Silence;

/// Redirections of one call in a cluster whose slots move.
const REDIRECTIONS_LIMIT: u32 = 4;

pub(crate) struct Link {
    options: Arc<Options>,
    line: Arc<Mutex<Line>>,
    silence: Arc<Silence>,
}

#[derive(Default)]
struct Line {
    /// Counts connections, so that a broken one is dropped once.
    number: u64,
    connection: Option<Connection>,
    /// When the last try to connect failed: whoever waited for it meanwhile has heard so, and does not try in turn.
    failed_at: Option<Instant>,
    /// Whether another connection is being made beside the one there is.
    is_renewed: bool,
}

#[derive(Clone)]
enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    fn send<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    /// This connection, where it answers.
    async fn reaches(mut self, look: &Cmd) -> Result<Self, RedisError> {
        self.send(look).await.and_then(Value::extract_error)?;
        Ok(self)
    }
}

/// The first key of a command: behind its name, or behind a script and the number of its keys.
fn key_of(command: &Cmd) -> Vec<u8> {
    let mut words = command.args_iter().filter_map(|word| match word {
        redis::Arg::Simple(word) => Some(word.to_vec()),
        redis::Arg::Cursor | _ => None,
    });
    let is_script = words.next().is_some_and(|name| name.starts_with(b"EVAL"));
    words.nth(if is_script { 2 } else { 0 }).unwrap_or_default()
}

impl Link {
    pub(crate) fn new(options: Options) -> Self {
        Self { options: Arc::new(options), line: Arc::default(), silence: Arc::default() }
    }

    /// The same for keys of which each is asked for once: what one of them tells of a slot serves no other, so none is remembered.
    pub(crate) fn forgetful(options: Options) -> Self {
        Self { silence: Arc::new(Silence::of_nothing()), ..Self::new(options) }
    }

    /// Whether where this key lies is known not to answer.
    pub(crate) fn is_silent(&self, key: &str) -> bool {
        self.silence.is_any() && self.silence.is_silent(key.as_bytes())
    }

    /// Sends one command and waits for its answer.
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Value, Error> {
        self.send(command).await.map_err(|(stage, cause)| failure::error_of(stage, cause))
    }

    /// Runs a script by its digest; where the server does not know it, with its text, from which it learns it.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<Value, Error> {
        match self.send(&script.by_digest(keys, arguments)).await {
            Err((_, cause)) if failure::is_unknown_script(&cause) => {
                self.call(&script.by_text(keys, arguments)).await
            }
            answer => answer.map_err(|(stage, cause)| failure::error_of(stage, cause)),
        }
    }

    async fn send(&self, command: &Cmd) -> Result<Value, (Stage, RedisError)> {
        if self.silence.is_any() && self.silence.is_silent(&key_of(command)) {
            let refused = io::Error::new(io::ErrorKind::NotConnected, "it left the last call unanswered");
            return Err((Stage::Connecting, RedisError::from(refused)));
        }
        self.exchange(command).await
    }

    /// Asks a slot until it answers again, while nobody waits; each question takes as long as an answer may. It ends with the gate.
    fn ask_until_heard(&self, key: Vec<u8>) {
        let (options, line) = (Arc::clone(&self.options), Arc::clone(&self.line));
        let silence = Arc::downgrade(&self.silence);
        tokio::spawn(async move {
            let mut look = redis::cmd("EXISTS");
            look.arg(&key);
            // A new connection makes everybody forget, and whoever comes finds out anew.
            while let Some(silence) = silence.upgrade().filter(|silence| silence.is_silent(&key)) {
                let link = Self { options: Arc::clone(&options), line: Arc::clone(&line), silence };
                match link.exchange(&look).await {
                    Err((_, cause)) if cause.is_timeout() => {}
                    // An error is an answer as well, and callers hear it without waiting.
                    Ok(_) | Err(_) => {
                        let slot = String::from_utf8_lossy(&key).into_owned();
                        tracing::info!(target: "onceward", event = "redis.slot_heard", slot);
                        return link.silence.heard(&key, Instant::now());
                    }
                }
            }
        });
    }

    async fn exchange(&self, command: &Cmd) -> Result<Value, (Stage, RedisError)> {
        let sent_at = Instant::now();
        let (number, mut connection) = self.connection().await.map_err(|cause| (Stage::Connecting, cause))?;
        let answer = connection.send(command).await.and_then(Value::extract_error);
        if let Err(cause) = &answer
            && failure::breaks_the_line(cause)
        {
            if cause.is_timeout() && matches!(connection, Connection::Cluster(_)) {
                let key = key_of(command);
                if self.silence.unanswered(&key, sent_at) {
                    let slot = String::from_utf8_lossy(&key).into_owned();
                    tracing::warn!(target: "onceward", event = "redis.slot_silent", slot);
                    self.ask_until_heard(key);
                }
            }
            let mut line = self.line.lock().await;
            if line.number == number {
                match connection {
                    Connection::Cluster(_) if cause.is_timeout() => self.renew(&mut line, command),
                    Connection::One(_) | Connection::Cluster(_) => line.connection = None,
                }
            }
        }
        answer.map_err(|cause| (Stage::Sent, cause))
    }

    /// One server of several hangs: perhaps another one has its slots by now, which a new connection would learn. Until one is made over
    /// which the key of this command can be reached, everybody goes on over the present one, over which the other servers answer: a
    /// cluster's connection that lacks a server holds everybody up while it looks for it.
    fn renew(&self, line: &mut Line, command: &Cmd) {
        let key = key_of(command);
        // Without a key any server is asked: that a new connection reaches some server would say nothing of the one that hangs.
        if line.is_renewed || key.is_empty() {
            return;
        }
        line.is_renewed = true;
        let mut look = redis::cmd("EXISTS");
        look.arg(key);
        let (options, line, number) = (Arc::clone(&self.options), Arc::clone(&self.line), line.number);
        let silence = Arc::clone(&self.silence);
        tokio::spawn(async move {
            let made = match connect(&options).await {
                Ok(made) => made.reaches(&look).await,
                Err(cause) => Err(cause),
            };
            let mut line = line.lock().await;
            line.is_renewed = false;
            if let Ok(made) = made
                && line.number == number
            {
                line.connection = Some(made);
                line.number += 1;
                silence.forget(Instant::now());
            }
        });
    }

    async fn connection(&self) -> Result<(u64, Connection), RedisError> {
        let asked_at = Instant::now();
        let mut line = self.line.lock().await;
        if line.connection.is_none() {
            if line.failed_at.is_some_and(|failed_at| asked_at < failed_at) {
                return Err(RedisError::from(io::Error::from(io::ErrorKind::NotConnected)));
            }
            let made = connect(&self.options).await.inspect_err(|_| line.failed_at = Some(Instant::now()))?;
            line.connection = Some(made);
            line.number += 1;
        }
        let connection = line.connection.clone().expect("it was made above");
        Ok((line.number, connection))
    }

    /// Asks for what a gate relies on: that nothing is evicted (design.md §5).
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let answer = self.call(redis::cmd("INFO").arg("memory")).await?;
        // A cluster answers for each of its servers.
        let servers = if let Value::Map(servers) = answer {
            servers.into_iter().map(|(_, text)| text).collect()
        } else {
            vec![answer]
        };
        for server in servers {
            let text = redis::from_redis_value::<String>(server).unwrap_or_default();
            let policy = text.lines().find_map(|line| line.strip_prefix("maxmemory_policy:")).map(str::trim);
            if policy != Some("noeviction") {
                let found = policy.unwrap_or("not known");
                let text = format!("Redis must keep every key: maxmemory-policy is {found}, not noeviction");
                return Err(Error::new(Code::Invalid, text));
            }
        }
        Ok(())
    }
}

async fn connect(options: &Options) -> Result<Connection, RedisError> {
    let Options { target, certificates, response_limit, connect_limit, .. } = options;
    let config = patience(options);
    match target {
        Target::Single(server) => {
            let client = Client::open(server.clone())?;
            client.get_multiplexed_async_connection_with_config(&config).await.map(Connection::One)
        }
        Target::Sentinel { sentinels, service } => {
            let mut client = sentinel(options, sentinels, service)?;
            client.get_async_connection_with_config(&config).await.map(Connection::One)
        }
        Target::Cluster(servers) => {
            let builder = ClusterClient::builder(servers.clone())
                .tcp_settings(tcp())
                .connection_timeout(*connect_limit)
                .response_timeout(*response_limit)
                .retries(REDIRECTIONS_LIMIT);
            let builder = match certificates {
                Some(certificates) => builder.certs(certificates.clone()),
                None => builder,
            };
            let client = builder.build()?;
            client.get_async_connection().await.map(Connection::Cluster)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fs_19_the_key_of_a_command_is_behind_its_name_or_behind_the_script() {
        let look = redis::cmd("HGET").arg("{sale:sku}:counter").arg("initial").clone();
        assert_eq!(key_of(&look), b"{sale:sku}:counter");
        let script = crate::script::RESERVE.by_digest(&["{sale:sku:1}:counter", "other"], &[b"argument"]);
        assert_eq!(key_of(&script), b"{sale:sku:1}:counter");
        assert_eq!(key_of(&redis::cmd("TIME")), b"");
    }
}
