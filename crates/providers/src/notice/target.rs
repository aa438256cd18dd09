//! Where notices go: a URL that an operator has set, taken apart and guarded (SE-02).
//!
//! Invariants: only `http` and `https`, to the host that was set and nowhere else: redirects are not followed, and a name
//! that leads to an address which no receiver can have — unspecified, multicast, link-local (where clouds keep their
//! credentials) — is refused, also when it leads there only later. A name leads to this machine only if it says so.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use onceward_domain::error::{Code, Error};

/// Longest URL that is taken.
const URL_LIMIT: usize = 2_048;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// A receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub(crate) is_secure: bool,
    /// Name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as a `host` header says them.
    pub(crate) authority: String,
    /// Path and query.
    pub(crate) path: String,
}

impl fmt::Debug for Target {
    /// Paths and queries of webhooks often hold a secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Target({}, path hidden)", self.authority)
    }
}

impl Target {
    /// Takes a URL apart.
    ///
    /// ```
    /// use onceward_providers::notice::Target;
    /// assert!(Target::parse("https://hooks.example.com/onceward").is_ok());
    /// assert!(Target::parse("file:///etc/passwd").is_err());
    /// ```
    ///
    /// # Errors
    /// [`Code::Invalid`] for anything but an `http` or `https` URL without a user and a fragment.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Error::new(Code::Invalid, format!("reading the webhook's URL: {why}"));
        let is_visible = url.bytes().all(|byte| byte.is_ascii_graphic());
        if url.len() > URL_LIMIT || !is_visible {
            return Err(refuse("it is too long, or holds what no URL holds"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse("it has no scheme"))?;
        let is_secure = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(refuse("only http and https are spoken")),
        };
        let cut = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(cut);
        if authority.contains('@') || tail.contains('#') || authority.contains('\\') {
            return Err(refuse("it names a user or a fragment"));
        }
        let usual = if is_secure { HTTPS_PORT } else { HTTP_PORT };
        let (host, port) = split_port(authority, usual).ok_or_else(|| refuse("its host makes no sense"))?;
        let path = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        Ok(Self { is_secure, host, port, authority: authority.to_owned(), path })
    }

    /// Whether an address that the host led to may be spoken to.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_nobody = match address {
            IpAddr::V4(four) => {
                four.is_unspecified()
                    || four.is_multicast()
                    || four.is_link_local()
                    || four == Ipv4Addr::BROADCAST
            }
            IpAddr::V6(six) => six.is_unspecified() || six.is_multicast() || is_link_local(six),
        };
        !is_nobody && (!address.is_loopback() || self.names_this_machine())
    }

    fn names_this_machine(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn is_link_local(six: Ipv6Addr) -> bool {
    six.segments()[0] & 0xffc0 == 0xfe80
}

fn split_port(authority: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (six, after) = rest.split_once(']')?;
            six.parse::<Ipv6Addr>().ok()?;
            (six, after.strip_prefix(':').or(after.is_empty().then_some(""))?)
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let is_name =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = if port.is_empty() { usual } else { port.parse().ok().filter(|_| is_number)? };
    (is_name && port > 0).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_02_urls_are_taken_apart_or_refused() {
        type Row = (&'static str, Option<(&'static str, u16, &'static str)>);
        let table: [Row; 17] = [
            ("https://hooks.example.com/a?b=c", Some(("hooks.example.com", 443, "/a?b=c"))),
            ("http://hooks.example.com", Some(("hooks.example.com", 80, "/"))),
            ("https://h:8443?x", Some(("h", 8443, "/?x"))),
            ("http://127.0.0.1:9/x", Some(("127.0.0.1", 9, "/x"))),
            ("http://[::1]:9/x", Some(("::1", 9, "/x"))),
            ("ftp://h/", None),
            ("file:///etc/passwd", None),
            ("gopher://h/", None),
            ("https://user:word@h/", None),
            ("https://h/#part", None),
            ("https:///x", None),
            ("https://h:0/", None),
            ("https://h:70000/", None),
            ("https://h:+80/", None),
            ("https://h\r\nx: y/", None),
            ("https://h/ x", None),
            ("//h/", None),
        ];
        for (url, expected) in table {
            let target = Target::parse(url).ok();
            let seen = target.as_ref().map(|one| (one.host.as_str(), one.port, one.path.as_str()));
            assert_eq!(seen, expected, "{url}");
        }
        assert!(!format!("{:?}", Target::parse("https://h/secret").unwrap()).contains("secret"));
    }

    #[test]
    fn se_02_names_do_not_lead_where_no_receiver_is() {
        let named = Target::parse("https://hooks.example.com/").unwrap();
        let table = [
            ("203.0.113.9", true),
            ("10.0.0.5", true),
            ("2001:db8::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("::ffff:169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("::", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
        ];
        for (address, allowed) in table {
            assert_eq!(named.allows(address.parse().unwrap()), allowed, "{address}");
        }
        for url in ["http://localhost/", "http://127.0.0.1/", "http://[::1]/"] {
            assert!(Target::parse(url).unwrap().allows("127.0.0.1".parse().unwrap()), "{url}");
        }
        let metadata = Target::parse("http://169.254.169.254/").unwrap();
        assert!(!metadata.allows("169.254.169.254".parse().unwrap()), "not even where it is written out");
    }
}
