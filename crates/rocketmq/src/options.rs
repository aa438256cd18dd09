//! Where the broker is, how the line to it is secured, and what things are called there.
//!
//! Invariant: a line that is encrypted leads to a broker that was vouched for under the name in the URL.

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::deadline;
use onceward_tls::Authorities;

/// The scheme of a broker's URL, and the same where the line is encrypted.
const PLAIN: &str = "rocketmq";
const ENCRYPTED: &str = "rocketmqs";

/// Which broker, and under which names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Host of the gRPC proxy.
    pub(crate) host: String,
    /// Port of the gRPC proxy.
    pub(crate) port: u16,
    /// Who vouches for the broker; none where the line is plain.
    pub(crate) authorities: Option<Authorities>,
    /// Names of topics and groups.
    pub(crate) names: Names,
}

impl Options {
    /// Reads `rocketmq://host:port`, the address of the gRPC proxy. Under `rocketmqs://` the line is encrypted, and the system's
    /// authorities vouch for the broker.
    ///
    /// ```
    /// use onceward_rocketmq::Options;
    /// assert!(!Options::parse("rocketmq://127.0.0.1:8081").unwrap().is_encrypted());
    /// assert!(Options::parse("rocketmqs://broker.example:8081").unwrap().is_encrypted());
    /// for bad in ["https://host:1", "127.0.0.1:8081", "rocketmq://host", "rocketmq://:1", "rocketmq://h:0", "rocketmq://u@h:1", "rocketmq://h:1/x"] {
    ///     assert!(Options::parse(bad).is_err(), "{bad}");
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Code::Invalid`] for anything else.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let refuse = || {
            Error::new(
                Code::Invalid,
                "reading a broker's URL: it has the form rocketmq://host:port or rocketmqs://host:port",
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(refuse)?;
        let authorities = match scheme {
            PLAIN => None,
            ENCRYPTED => Some(Authorities::system()),
            _ => return Err(refuse()),
        };
        let (host, port) = rest.rsplit_once(':').ok_or_else(refuse)?;
        let is_plain = !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte));
        let port: u16 = port.parse().map_err(|_| refuse())?;
        if !is_plain || port == 0 {
            return Err(refuse());
        }
        Ok(Self { host: host.to_owned(), port, authorities, names: Names::default() })
    }

    /// Whether the line is encrypted, to a broker that was vouched for.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.authorities.is_some()
    }

    /// The same with a broker that is vouched for by these. It changes nothing where the line is plain.
    #[must_use]
    pub fn with_authorities(mut self, authorities: &Authorities) -> Self {
        self.authorities = self.authorities.map(|_| authorities.clone());
        self
    }

    /// The same with other names of topics and groups.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// The broker's address, for people.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// What topics and groups are called at the broker: the port's names, with a suffix where several engines share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    suffix: String,
}

impl Names {
    /// Names that end in this.
    #[must_use]
    pub fn with_suffix(suffix: &str) -> Self {
        Self { suffix: suffix.to_owned() }
    }

    /// A topic's name.
    #[must_use]
    pub fn topic(&self, topic: Topic) -> String {
        format!("{}{}", topic.name(), self.suffix)
    }

    /// The name of the group that reads a topic.
    #[must_use]
    pub fn group(&self, topic: Topic) -> String {
        format!("{}{}", topic.group(), self.suffix)
    }

    /// The topic in which deadlines wait.
    #[must_use]
    pub fn due_topic(&self) -> String {
        format!("{}{}", deadline::TOPIC, self.suffix)
    }

    /// The name of the group that reads it.
    #[must_use]
    pub fn due_group(&self) -> String {
        format!("{}{}", deadline::GROUP, self.suffix)
    }

    /// The topic to which the broker moves what a group could not handle, and where dead letters go.
    ///
    /// ```
    /// use onceward_domain::ports::bus::Topic;
    /// assert_eq!(onceward_rocketmq::Names::default().dead_letters(Topic::Events), "%DLQ%projector");
    /// ```
    #[must_use]
    pub fn dead_letters(&self, topic: Topic) -> String {
        format!("%DLQ%{}", self.group(topic))
    }
}
