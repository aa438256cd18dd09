//! Where Redis is, and how long to wait for it.
//!
//! Invariant: no wait is without end. Deliberately absent: TLS; the servers stand in one network.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use redis::io::tcp::TcpSettings;
use redis::{ConnectionInfo, IntoConnectionInfo};

/// The first part of every key, unless another is chosen.
const PREFIX: &str = "seckill";
/// Longer than any script may run, shorter than anybody waits.
const RESPONSE_LIMIT: Duration = Duration::from_secs(5);
/// How long a server may take to take up a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// By which clock due-times are judged.
#[derive(Clone)]
pub enum Time {
    /// The server's own, as it should be (DR-06).
    Server,
    /// A clock that is handed in, for tests that move the time. Nobody else may use it: it would compare two clocks.
    Handed(Arc<dyn Clock>),
}

impl Time {
    /// What a script is told: milliseconds, or nothing where it asks its server.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Server => String::new(),
            Self::Handed(clock) => clock.now().0.to_string(),
        }
    }

    /// The handed-in clock's time, where there is one.
    pub(crate) fn handed(&self) -> Option<Timestamp> {
        match self {
            Self::Server => None,
            Self::Handed(clock) => Some(clock.now()),
        }
    }
}

/// Which servers there are.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Single(ConnectionInfo),
    Sentinel { sentinels: Vec<ConnectionInfo>, service: String },
    Cluster(Vec<ConnectionInfo>),
}

/// What a connection needs to know.
#[derive(Clone)]
pub struct Options {
    pub(crate) target: Target,
    pub(crate) prefix: String,
    pub(crate) time: Time,
    pub(crate) response_limit: Duration,
    pub(crate) connect_limit: Duration,
}

impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the target: an address may hold a password (SE-05).
        out.debug_struct("Options").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Options {
    /// Reads an address: `redis://host:port`, `redis+sentinel://host:port,host:port/service`, or
    /// `redis+cluster://host:port,host:port`. User and password stand before the first host, as in `redis://`.
    ///
    /// ```
    /// use onceward_redis::Options;
    /// for url in ["redis://h:6379", "redis+sentinel://a:26379,b:26379/main", "redis+cluster://:secret@a:1,b:2"] {
    ///     let options = Options::of(url).unwrap();
    ///     assert!(!format!("{options:?}").contains("secret"));
    /// }
    /// assert!(Options::of("redis+sentinel://a:26379").is_err());
    /// assert!(Options::of("http://a").is_err());
    /// ```
    ///
    /// # Errors
    /// [`Code::Invalid`] for an address that is none.
    pub fn of(url: &str) -> Result<Self, Error> {
        let invalid = || Error::new(Code::Invalid, "the address of Redis is not of a form that is known");
        let target = if let Some(rest) = url.strip_prefix("redis+sentinel://") {
            let (hosts, service) = rest.split_once('/').ok_or_else(invalid)?;
            if service.is_empty() {
                return Err(invalid());
            }
            Target::Sentinel { sentinels: servers(hosts)?, service: service.to_owned() }
        } else if let Some(rest) = url.strip_prefix("redis+cluster://") {
            Target::Cluster(servers(rest.trim_end_matches('/'))?)
        } else if url.starts_with("redis://") {
            Target::Single(server(url)?)
        } else {
            return Err(invalid());
        };
        let (prefix, time) = (PREFIX.to_owned(), Time::Server);
        let (response_limit, connect_limit) = (RESPONSE_LIMIT, CONNECT_LIMIT);
        Ok(Self { target, prefix, time, response_limit, connect_limit })
    }

    /// The same under another first part of every key. Braces are not allowed in it: they choose the slot.
    ///
    /// # Panics
    /// Where it has braces.
    #[must_use]
    pub fn with_prefix(self, prefix: &str) -> Self {
        assert!(!prefix.contains(['{', '}']), "braces choose the slot");
        Self { prefix: prefix.to_owned(), ..self }
    }

    /// The first part of every key.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The same by another clock.
    #[must_use]
    pub fn with_time(self, time: Time) -> Self {
        Self { time, ..self }
    }

    /// The same with another patience for an answer.
    #[must_use]
    pub fn with_response_limit(self, response_limit: Duration) -> Self {
        Self { response_limit, ..self }
    }
}

/// A small request waits for the acknowledgement of the one before it, unless the system is told not to.
pub(crate) fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn server(url: &str) -> Result<ConnectionInfo, Error> {
    let info = url
        .into_connection_info()
        .map_err(|cause| Error::new(Code::Invalid, "the address of Redis cannot be read").because(cause))?;
    Ok(info.set_tcp_settings(tcp()))
}

/// Several hosts with one user and password, which stand before the first of them.
fn servers(hosts: &str) -> Result<Vec<ConnectionInfo>, Error> {
    let (login, hosts) = match hosts.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), hosts),
    };
    hosts.split(',').map(|host| server(&format!("redis://{login}{host}"))).collect()
}
