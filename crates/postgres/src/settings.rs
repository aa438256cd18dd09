//! What the server is and how it is set, for people and for `doctor`.
//!
//! Invariant: what is shown is the server's own setting, not what a session of ours was started with. Deliberately absent:
//! changing any of it.

use std::collections::HashMap;

use onceward_domain::error::Error;

use crate::address::Demand;
use crate::failure::defect;
use crate::link::Link;
use crate::pipeline::params;
use crate::queries;
use crate::rows::{get, text};

/// The settings that are read.
const NAMES: [&str; 7] = [
    "server_version",
    "server_version_num",
    "synchronous_commit",
    "synchronous_standby_names",
    "fsync",
    "full_page_writes",
    "max_connections",
];

/// The oldest server that the store supports, as the server itself writes its version.
const OLDEST: u32 = 150_000;

/// The server's settings, as far as the store depends on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The version, for people.
    pub version: String,
    /// The version as a number: 150018 is 15.18.
    pub version_number: u32,
    /// `synchronous_commit` of the role, database or server; where it is `off` the store's own sessions lift it to `on`.
    pub synchronous_commit: String,
    /// The standbys that confirm commits; empty where none does.
    pub synchronous_standby_names: String,
    /// Whether the server has its log on disk when it says so.
    pub fsync: bool,
    /// Whether the log can mend a page that was half written.
    pub full_page_writes: bool,
    /// How many sessions the server allows.
    pub max_connections: u32,
}

impl ServerSettings {
    /// What stands against relying on this server, for people; empty where nothing does.
    #[must_use]
    pub fn concerns(&self) -> Vec<&'static str> {
        let lifted =
            "synchronous_commit is off: the store's sessions lift it, others lose commits in a crash";
        let all = [
            (self.version_number < OLDEST, "the server is older than PostgreSQL 15"),
            (!self.fsync, "fsync is off: a crash of the machine loses what was answered"),
            (!self.full_page_writes, "full_page_writes is off: a crash of the machine may corrupt pages"),
            (self.synchronous_commit == "off", lifted),
            (
                self.synchronous_standby_names.is_empty(),
                "no standby confirms commits: what was answered is lost with this server's disk",
            ),
            (
                self.synchronous_commit == "local" && !self.synchronous_standby_names.is_empty(),
                "synchronous_commit is local: the standbys that are named do not confirm",
            ),
        ];
        all.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect()
    }

    /// One line about the server.
    #[must_use]
    pub fn about(&self) -> String {
        let standbys = match self.synchronous_standby_names.as_str() {
            "" => "none",
            names => names,
        };
        format!(
            "PostgreSQL {}, synchronous_commit={}, synchronous standbys: {standbys}",
            self.version, self.synchronous_commit
        )
    }
}

/// How the line to the server is secured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Security {
    /// The version of TLS, by the server's own word; none where the line is plain.
    pub encryption: Option<String>,
    /// Whether the server had to be vouched for.
    pub is_judged: bool,
}

impl Security {
    /// What it keeps from others, and what it does not.
    #[must_use]
    pub fn about(&self) -> String {
        match (&self.encryption, self.is_judged) {
            // A server in front of the server may be the one that ends it.
            (None, true) => "encrypted, and the server's certificate was judged".to_owned(),
            (None, false) => "not encrypted; sslmode=require in the URL demands it".to_owned(),
            (Some(version), true) => {
                format!("encrypted ({version}), and the server's certificate was judged")
            }
            (Some(version), false) => format!(
                "encrypted ({version}), but the server's certificate was not judged; sslmode=require in the URL demands it"
            ),
        }
    }
}

/// Reads how the line of a session is secured.
pub(crate) async fn security(link: &Link) -> Result<Security, Error> {
    let row = link.first("asking about the line", queries::SERVER_LINE, params![]).await?;
    let row = row.ok_or_else(|| defect("the server does not know our session"))?;
    let encryption = get::<bool>(&row, 0)?.then(|| text(&row, 1).map(str::to_owned)).transpose()?;
    Ok(Security { encryption, is_judged: matches!(link.demand(), Demand::Secured(_)) })
}

/// Reads the settings.
pub(crate) async fn read(link: &Link) -> Result<ServerSettings, Error> {
    let rows =
        link.rows("reading the server's settings", queries::SERVER_SETTINGS, params![NAMES.to_vec()]).await?;
    let mut found = HashMap::new();
    for row in &rows {
        found.insert(text(row, 0)?, text(row, 1)?);
    }
    let value = |name: &str| {
        found.get(name).copied().ok_or_else(|| defect(format!("the server does not know its {name}")))
    };
    let number = |name: &str| {
        let text = value(name)?;
        text.parse::<u32>()
            .map_err(|cause| defect(format!("the server says {name} is {text}")).because(cause))
    };
    Ok(ServerSettings {
        version: value("server_version")?.to_owned(),
        version_number: number("server_version_num")?,
        synchronous_commit: value("synchronous_commit")?.to_owned(),
        synchronous_standby_names: value("synchronous_standby_names")?.to_owned(),
        fsync: value("fsync")? == "on",
        full_page_writes: value("full_page_writes")? == "on",
        max_connections: number("max_connections")?,
    })
}

#[cfg(test)]
mod tests {
    //! Each concern has a row that raises it.

    use super::*;

    #[test]
    fn each_concern_is_raised_by_its_setting() {
        let fine = ServerSettings {
            version: "15.18".to_owned(),
            version_number: 150_018,
            synchronous_commit: "on".to_owned(),
            synchronous_standby_names: "b".to_owned(),
            fsync: true,
            full_page_writes: true,
            max_connections: 100,
        };
        assert_eq!(fine.concerns(), [""; 0]);
        for (settings, word) in [
            (ServerSettings { version_number: 140_011, ..fine.clone() }, "older"),
            (ServerSettings { fsync: false, ..fine.clone() }, "fsync"),
            (ServerSettings { full_page_writes: false, ..fine.clone() }, "full_page_writes"),
            (ServerSettings { synchronous_commit: "off".to_owned(), ..fine.clone() }, "lift"),
            (ServerSettings { synchronous_standby_names: String::new(), ..fine.clone() }, "no standby"),
            (ServerSettings { synchronous_commit: "local".to_owned(), ..fine.clone() }, "local"),
        ] {
            let concerns = settings.concerns();
            assert!(concerns.len() == 1 && concerns[0].contains(word), "{concerns:?}");
        }
    }
}
