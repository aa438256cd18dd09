//! Where Redis is, and how long to wait for it.
//!
//! Invariants: no wait is without end; a line that is encrypted leads to a server that was vouched for under the name by which it
//! was called, as Sentinels and clusters name it. Deliberately absent: a certificate of our own, and any way not to judge the server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::{Millis, Timestamp};
use onceward_tls::Authorities;
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates};

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

impl Target {
    /// The servers that the address names.
    fn named_mut(&mut self) -> &mut [ConnectionInfo] {
        match self {
            Self::Single(server) => std::slice::from_mut(server),
            Self::Sentinel { sentinels: servers, .. } | Self::Cluster(servers) => servers,
        }
    }
}

/// What a connection needs to know.
#[derive(Clone)]
pub struct Options {
    pub(crate) target: Target,
    /// Who vouches for the servers, where the line is encrypted and it is not the system's authorities.
    pub(crate) certificates: Option<TlsCertificates>,
    is_encrypted: bool,
    pub(crate) prefix: String,
    pub(crate) time: Time,
    pub(crate) response_limit: Duration,
    pub(crate) connect_limit: Duration,
    /// How long after its end a sale is kept; for ever, where there is none.
    pub(crate) retention: Option<Millis>,
}

impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the target: an address may hold a password (SE-05).
        out.debug_struct("Options").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Options {
    /// Reads an address: `redis://host:port`, `redis+sentinel://host:port,host:port/service`, or
    /// `redis+cluster://host:port,host:port`. User and password stand before the first host, as in `redis://`. With `rediss` in
    /// place of `redis` every line is encrypted, and the servers are vouched for by the system's authorities.
    ///
    /// ```
    /// use onceward_redis::Options;
    /// for url in ["redis://h:6379", "redis+sentinel://a:26379,b:26379/main", "redis+cluster://:secret@a:1,b:2"] {
    ///     let options = Options::of(url).unwrap();
    ///     assert!(!options.is_encrypted() && !format!("{options:?}").contains("secret"));
    ///     assert!(Options::of(&url.replacen("redis", "rediss", 1)).unwrap().is_encrypted());
    /// }
    /// for bad in ["redis+sentinel://a:26379", "http://a", "rediss://a:6379#insecure", "redis", "redisss://a"] {
    ///     assert!(Options::of(bad).is_err(), "{bad}");
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Code::Invalid`] for an address that is none.
    pub fn of(url: &str) -> Result<Self, Error> {
        let invalid = || Error::new(Code::Invalid, "the address of Redis is not of a form that is known");
        let (kind, rest) = url.split_once("://").ok_or_else(invalid)?;
        let (scheme, kind) = kind.split_once('+').map_or((kind, None), |(scheme, kind)| (scheme, Some(kind)));
        let is_encrypted = match scheme {
            "redis" => false,
            // What the driver reads there would have nobody judged.
            "rediss" if !rest.contains('#') => true,
            _ => return Err(invalid()),
        };
        let target = match kind {
            None => Target::Single(server(url)?),
            Some("sentinel") => {
                let (hosts, service) = rest.split_once('/').ok_or_else(invalid)?;
                if service.is_empty() {
                    return Err(invalid());
                }
                Target::Sentinel { sentinels: servers(scheme, hosts)?, service: service.to_owned() }
            }
            Some("cluster") => Target::Cluster(servers(scheme, rest.trim_end_matches('/'))?),
            Some(_) => return Err(invalid()),
        };
        let (prefix, time, certificates) = (PREFIX.to_owned(), Time::Server, None);
        let (response_limit, connect_limit) = (RESPONSE_LIMIT, CONNECT_LIMIT);
        let retention = None;
        Ok(Self {
            target,
            certificates,
            is_encrypted,
            prefix,
            time,
            response_limit,
            connect_limit,
            retention,
        })
    }

    /// Whether every line is encrypted, to servers that were vouched for.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// The same with servers that are vouched for by these. It changes nothing where no line is encrypted.
    ///
    /// # Errors
    /// [`Code::Invalid`] where the driver does not take the certificates.
    pub fn with_authorities(mut self, authorities: &Authorities) -> Result<Self, Error> {
        let Some(pem) = authorities.pem().filter(|_| self.is_encrypted) else { return Ok(self) };
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) };
        for server in self.target.named_mut() {
            let client = Client::build_with_tls(server.clone(), certificates.clone()).map_err(|cause| {
                Error::new(Code::Invalid, format!("Redis cannot be judged by {authorities}")).because(cause)
            })?;
            *server = client.get_connection_info().clone();
        }
        self.certificates = Some(certificates);
        Ok(self)
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

    /// The same with a gate that lets go of a sale so long after its end (FS-14); without it, or with none, it keeps every sale.
    #[must_use]
    pub fn with_retention(self, retention: Option<Millis>) -> Self {
        Self { retention, ..self }
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

/// The same server of a kind, elsewhere: encrypted, and judged, as the one that named it.
pub(crate) fn moved(server: &ConnectionInfo, to_host: String, to_port: u16) -> ConnectionInfo {
    let mut addr = server.addr().clone();
    match &mut addr {
        ConnectionAddr::TcpTls { host, port, .. } | ConnectionAddr::Tcp(host, port) => {
            (*host, *port) = (to_host, to_port);
        }
        ConnectionAddr::Unix(_) | _ => addr = ConnectionAddr::Tcp(to_host, to_port),
    }
    server.clone().set_addr(addr)
}

fn server(url: &str) -> Result<ConnectionInfo, Error> {
    let info = url
        .into_connection_info()
        .map_err(|cause| Error::new(Code::Invalid, "the address of Redis cannot be read").because(cause))?;
    Ok(info.set_tcp_settings(tcp()))
}

/// Several hosts with one user and password, which stand before the first of them.
fn servers(scheme: &str, hosts: &str) -> Result<Vec<ConnectionInfo>, Error> {
    let (login, hosts) = match hosts.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), hosts),
    };
    hosts.split(',').map(|host| server(&format!("{scheme}://{login}{host}"))).collect()
}
