//! Which servers the settings name, and by whom they are judged.
//!
//! Invariant: a URL may hold a password, so of one that is refused nothing but the scheme is repeated. Deliberately absent: asking
//! any of them.

use std::path::PathBuf;

use onceward_postgres::judged_by;
use onceward_redis::Options as RedisOptions;
use onceward_rocketmq::{Names, Options as BrokerOptions};
use onceward_tls::Authorities;

use super::{STORE_FILE, Settings};
use crate::failure::Failure;

/// A topic's name has 127 characters at most, and its dead letters' is longer than itself.
const NAME_LIMIT: usize = 64;

/// Where the store of record is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StorePlace {
    /// A file of SQLite, which one process has for itself.
    File(PathBuf),
    /// A PostgreSQL server, which any number of processes share. The URL may hold a password, so it is not shown.
    Server(String),
}

impl Settings {
    /// Where the store is.
    ///
    /// # Errors
    /// For a store that this build has no adapter for.
    pub(crate) fn store_place(&self) -> Result<StorePlace, Failure> {
        let Some(url) = self.store_url.as_deref() else {
            return Ok(StorePlace::File(self.data.join(STORE_FILE)));
        };
        match url.split_once(':') {
            Some(("sqlite", "")) => Err(Failure::Usage("store_url = `sqlite:` names no file".to_owned())),
            Some(("sqlite", path)) => Ok(StorePlace::File(PathBuf::from(path))),
            Some(("postgres" | "postgresql", _)) => Ok(StorePlace::Server(match &self.ca_file {
                Some(path) => judged_by(url, path),
                None => url.to_owned(),
            })),
            _ => Err(not_in_this_build("store_url", url)),
        }
    }

    /// The authorities that vouch for servers, where they are not the system's.
    ///
    /// # Errors
    /// For a file that cannot be read, or vouches for nobody.
    pub(crate) fn authorities(&self) -> Result<Option<Authorities>, Failure> {
        let authorities = self.ca_file.as_deref().map(Authorities::of_file).transpose();
        authorities.map_err(|cause| Failure::Usage(format!("ca_file: {}", cause.operator_text())))
    }

    /// The store's file; where the store is a server, the file that would be there instead.
    ///
    /// # Errors
    /// As [`Self::store_place`].
    pub(crate) fn store_path(&self) -> Result<PathBuf, Failure> {
        match self.store_place()? {
            StorePlace::File(path) => Ok(path),
            StorePlace::Server(_) => Ok(self.data.join(STORE_FILE)),
        }
    }

    /// Where Redis is, where there is one: then it keeps the gate.
    ///
    /// # Errors
    /// For an address that is none. It is not shown.
    pub(crate) fn redis(&self) -> Result<Option<RedisOptions>, Failure> {
        let Some(url) = &self.redis_url else { return Ok(None) };
        let authorities = self.authorities()?;
        let options = RedisOptions::of(url).and_then(|options| match &authorities {
            Some(authorities) => options.with_authorities(authorities),
            None => Ok(options),
        });
        let options =
            options.map_err(|cause| Failure::Usage(format!("redis_url: {}", cause.operator_text())))?;
        let Some(prefix) = &self.redis_prefix else { return Ok(Some(options)) };
        judge_name("redis_prefix", prefix)?;
        Ok(Some(options.with_prefix(prefix)))
    }

    /// Where the broker is, where there is one.
    ///
    /// # Errors
    /// For a broker that this build has no adapter for, or an address that is none. Of the URL only the scheme is shown.
    pub(crate) fn broker(&self) -> Result<Option<BrokerOptions>, Failure> {
        let Some(url) = &self.broker_url else { return Ok(None) };
        if url.split_once("://").is_none_or(|(scheme, _)| !matches!(scheme, "rocketmq" | "rocketmqs")) {
            return Err(not_in_this_build("broker_url", url));
        }
        let options = BrokerOptions::parse(url)
            .map_err(|cause| Failure::Usage(format!("broker_url: {}", cause.operator_text())))?;
        let options = match self.authorities()? {
            Some(authorities) => options.with_authorities(&authorities),
            None => options,
        };
        let Some(suffix) = &self.broker_suffix else { return Ok(Some(options)) };
        judge_name("broker_suffix", suffix)?;
        Ok(Some(options.with_names(Names::with_suffix(suffix))))
    }
}

/// Whether a server takes this as a part of its names: topics take no more than this, and braces in a key choose its slot.
fn judge_name(setting: &str, name: &str) -> Result<(), Failure> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_LIMIT && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Failure::Usage(format!("{setting} is made of 1 to {NAME_LIMIT} letters, digits, `-` and `_`")))
}

/// Says no to an adapter that is not built in. Of the URL only the scheme is repeated: the rest may hold a password.
fn not_in_this_build(name: &str, url: &str) -> Failure {
    let scheme = url.split_once(':').map_or("no scheme", |(scheme, _)| scheme);
    Failure::Usage(format!(
        "{name} asks for `{scheme}`, but this build has no adapter for it: leave {name} out; possible are store_url = \
         `sqlite:PATH` or `postgres://…`, redis_url = `redis://…` and broker_url = `rocketmq://HOST:PORT`"
    ))
}
