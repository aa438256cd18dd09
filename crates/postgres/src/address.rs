//! Where the server is, and how the line to it is secured, out of one URL.
//!
//! | `sslmode` | the line | the server |
//! |---|---|---|
//! | `disable` | plain | is not judged |
//! | `prefer`, or none | encrypted where the server offers it | is not judged |
//! | `verify-ca` | encrypted, or none at all | vouched for by `sslrootcert`, under whichever name |
//! | `require`, `verify-full` | encrypted, or none at all | vouched for under the name in the URL |
//!
//! `sslrootcert` names a file of authorities; without it, and as `system`, they are the system's. Two things are stricter than in
//! libpq. `require` judges the server: an encrypted line to somebody unknown keeps no password and no order from whoever stands
//! in between. `verify-ca` needs a file: the system's authorities vouch for everybody. A line over a socket in the file system is
//! never encrypted. `connect_timeout` shortens, in whole seconds, how long a session may take to come about (`hosts`).
//!
//! Invariants: the URL may hold a password, so nothing of it is shown. Deliberately absent: a certificate of our own, and
//! `allow`, which would rather not encrypt. Read next: `link`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_tls::{Authorities, Judgement};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The authorities that are the system's, by libpq's name for them.
const SYSTEM: &str = "system";
/// What a line that is encrypted from its first byte on must name in its handshake.
const PROTOCOL: &[u8] = b"postgresql";

/// What the URL asks of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// Nothing.
    Plain,
    /// Encrypted, where the server offers it.
    Offered,
    /// Encrypted, to a server that is judged like this.
    Secured(Judgement),
}

/// By name, as `sslmode` has them.
const MODES: [(&str, Demand); 5] = [
    ("disable", Demand::Plain),
    ("prefer", Demand::Offered),
    ("require", Demand::Secured(Judgement::Named)),
    ("verify-ca", Demand::Secured(Judgement::AnyName)),
    ("verify-full", Demand::Secured(Judgement::Named)),
];

impl Demand {
    fn of(mode: &str) -> Result<Self, Error> {
        let found = MODES.iter().find(|(name, _)| *name == mode).map(|(_, demand)| *demand);
        found.ok_or_else(|| {
            let known = MODES.map(|(name, _)| name).join(", ");
            invalid(format!("sslmode in the store's URL is not one of {known}"))
        })
    }

    /// As the driver has it, which knows no judgement.
    fn mode(self) -> SslMode {
        match self {
            Self::Plain => SslMode::Disable,
            Self::Offered => SslMode::Prefer,
            Self::Secured(_) => SslMode::Require,
        }
    }
}

/// Where the server is, and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Address {
    /// The driver's settings.
    pub(crate) config: Config,
    pub(crate) demand: Demand,
    /// How long a session may take to come about, where the URL says it.
    pub(crate) patience: Option<Duration>,
    /// None where the line is never encrypted.
    pub(crate) connector: Option<MakeRustlsConnect>,
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Address").field("demand", &self.demand).finish_non_exhaustive()
    }
}

impl Address {
    /// Reads a URL, and the file of authorities that it names.
    ///
    /// # Errors
    /// `Invalid` where it is none, asks for what is not known, or names a file that vouches for nobody.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let asked = Asked::of(url)?;
        // The cause is not shown: it may quote the password.
        let mut config =
            Config::from_str(&asked.rest).map_err(|_| invalid("the store's URL cannot be read"))?;
        let demand = match &asked.mode {
            Some(mode) => Demand::of(mode)?,
            None if config.get_ssl_mode() == SslMode::Require => Demand::Secured(Judgement::Named),
            None if config.get_ssl_mode() == SslMode::Disable => Demand::Plain,
            None => Demand::Offered,
        };
        config.ssl_mode(demand.mode());
        // Without a name there would be nothing to judge by, and the driver would make no handshake.
        if config.get_hosts().is_empty() {
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let connector = connector(&config, demand, asked.authorities.as_deref())?;
        let patience = config.get_connect_timeout().copied();
        Ok(Self { config, demand, patience, connector })
    }
}

fn connector(
    config: &Config,
    demand: Demand,
    authorities: Option<&str>,
) -> Result<Option<MakeRustlsConnect>, Error> {
    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    if config.get_hosts().iter().any(is_socket) {
        return Ok(None);
    }
    let judgement = match demand {
        Demand::Plain => return Ok(None),
        // Its file is not read, for nobody is judged by it.
        Demand::Offered => Judgement::Anybody,
        Demand::Secured(judgement) => judgement,
    };
    let authorities = match authorities.filter(|name| *name != SYSTEM && judgement != Judgement::Anybody) {
        Some(path) => Authorities::of_file(Path::new(path))?,
        None => Authorities::system(),
    };
    if judgement == Judgement::AnyName && authorities.are_the_systems() {
        return Err(invalid(
            "sslmode=verify-ca needs a file of authorities in sslrootcert: the system's vouch for everybody",
        ));
    }
    let mut tls = judgement.config(&authorities)?;
    if config.get_ssl_negotiation() == SslNegotiation::Direct {
        tls.alpn_protocols.push(PROTOCOL.to_vec());
    }
    Ok(Some(MakeRustlsConnect::new(tls)))
}

/// What a URL asks of TLS, and the rest of it: the driver knows neither a judgement nor authorities.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    rest: String,
    mode: Option<String>,
    authorities: Option<String>,
}

impl Asked {
    fn of(url: &str) -> Result<Self, Error> {
        let Some(mark) = mark_of(url) else {
            return Ok(Self { rest: url.to_owned(), mode: None, authorities: None });
        };
        let (mut mode, mut authorities) = (None, None);
        let mut kept = Vec::new();
        for pair in url[mark + 1..].split('&') {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(decoded(value)?),
                Some(("sslrootcert", value)) => authorities = Some(decoded(value)?),
                _ => kept.push(pair),
            }
        }
        let joint = if kept.is_empty() { "" } else { "?" };
        let rest = format!("{}{joint}{}", &url[..mark], kept.join("&"));
        Ok(Self { rest, mode, authorities })
    }
}

/// The URL with these authorities, unless it names its own.
///
/// ```
/// let url = onceward_postgres::judged_by("postgres://me:a?b@host/shop", "/etc/ca.pem".as_ref());
/// assert_eq!(url, "postgres://me:a?b@host/shop?sslrootcert=%2Fetc%2Fca%2Epem");
/// assert_eq!(onceward_postgres::judged_by(&url, "/other.pem".as_ref()), url);
/// ```
#[must_use]
pub fn judged_by(url: &str, authorities: &Path) -> String {
    if url.contains("sslrootcert=") {
        return url.to_owned();
    }
    let joint = if mark_of(url).is_some() { '&' } else { '?' };
    let path = percent_encode(authorities.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
    format!("{url}{joint}sslrootcert={path}")
}

/// Where the question mark before the settings is: a password may hold one too, and ends with the first `@`.
fn mark_of(url: &str) -> Option<usize> {
    let after_login = url.find('@').unwrap_or(0);
    url[after_login..].find('?').map(|mark| after_login + mark)
}

fn decoded(value: &str) -> Result<String, Error> {
    let text = percent_decode_str(value).decode_utf8();
    text.map(String::from).map_err(|_| invalid("the store's URL cannot be read"))
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(Code::Invalid, text)
}

#[cfg(test)]
mod tests {
    //! What is asked for is read, and what is said of a URL gives nothing away.

    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        let address = Address::parse("postgres://me:secret@host/database").unwrap();
        assert!(!format!("{address:?}").contains("secret"));
        for url in [
            "postgres://me:secret@host:no/database",
            "postgres://me:secret@host/database?sslmode=secret",
            "postgres://me:secret@host/database?sslmode=verify-full&sslrootcert=/nowhere/at/all",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
            assert_eq!(error.code(), Code::Invalid);
        }
    }

    #[test]
    fn each_mode_asks_for_what_it_says() {
        let named = Demand::Secured(Judgement::Named);
        for (query, demand, is_encrypted) in [
            ("", Demand::Offered, true),
            ("?sslmode=disable", Demand::Plain, false),
            ("?options=-cx%3Dy&sslmode=prefer&sslrootcert=/nowhere", Demand::Offered, true),
            ("?sslmode=require", named, true),
            ("?sslmode=verify-full&sslrootcert=system", named, true),
        ] {
            let address = Address::parse(&format!("postgres://me:a?b@host:1,other:2/shop{query}")).unwrap();
            assert_eq!(address.demand, demand, "{query}");
            assert_eq!(address.connector.is_some(), is_encrypted, "{query}");
            assert_eq!(address.config.get_ssl_mode(), demand.mode(), "{query}");
            assert_eq!(address.config.get_dbname(), Some("shop"), "{query}");
            assert_eq!(address.config.get_options().is_some(), query.contains("options"), "{query}");
        }
        let socket = Address::parse("postgres://me@%2Frun%2Fpostgresql/shop").unwrap();
        assert!(socket.connector.is_none(), "a socket in the file system is never encrypted");
        let number = Address::parse("postgres:///shop?hostaddr=10.0.0.1").unwrap();
        assert_eq!(number.config.get_hosts(), [Host::Tcp("10.0.0.1".to_owned())]);
    }

    #[test]
    fn what_would_only_look_safe_is_refused() {
        for (query, expected) in [
            ("sslmode=allow", "not one of disable, prefer, require, verify-ca, verify-full"),
            ("sslmode=", "not one of"),
            ("sslmode=verify-ca", "needs a file of authorities"),
            ("sslmode=verify-ca&sslrootcert=system", "needs a file of authorities"),
            ("sslmode=require&sslrootcert=/nowhere", "reading the certificate authorities in /nowhere"),
        ] {
            let refused = Address::parse(&format!("postgres://me@host/shop?{query}")).unwrap_err();
            assert!(refused.operator_text().contains(expected), "{query}: {refused}");
        }
    }
}
