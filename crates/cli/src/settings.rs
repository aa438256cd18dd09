//! Settings: file < environment < flag.
//!
//! Invariants: an unknown name in the file is an error, because a misspelt setting that is silently ignored is found
//! on the worst day; a store or transport that this build has no adapter for is refused before anything is opened.
//! Deliberately absent: secrets; only the path of a file with one is a setting.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::providers::{Env, Format as _, Serialized, Toml};
use figment::{Figment, Provider};
use onceward::runtime::Role;
use onceward_domain::time::Millis;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Name of the store's file inside the data folder.
pub(crate) const STORE_FILE: &str = "onceward.db";
/// Name of the file with the secret that ids are derived with.
pub(crate) const SECRET_FILE: &str = "secret";

const PREFIX: &str = "ONCEWARD_";
/// The settings that the environment may give. Other `ONCEWARD_` names belong to others, such as the log filter.
const FROM_ENVIRONMENT: [&str; 9] = [
    "store_url",
    "redis_url",
    "broker_url",
    "secret_file",
    "deadline_trigger",
    "data",
    "listen",
    "role",
    "lease_ms",
];
/// Leases outside this range either end before a step does, or keep work waiting for an hour after a crash.
const LEASE_MS: std::ops::RangeInclusive<i64> = 100..=3_600_000;
/// Shorter, and no provider is ever heard; longer, and one that is silent holds up everybody behind it.
const PROVIDER_TIMEOUT_MS: std::ops::RangeInclusive<i64> = 10..=60_000;
/// Calls of a round about one order before its cancel: query, close, query.
const PROVIDER_CALLS: i64 = 3;

/// What a server is started with.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// Roles, as a list with commas, or `all`.
    role: String,
    store_url: Option<String>,
    redis_url: Option<String>,
    broker_url: Option<String>,
    secret_file: Option<PathBuf>,
    deadline_trigger: Option<String>,
    /// Lease of every claim, in milliseconds.
    lease_ms: i64,
    /// What holds for all payment providers.
    provider: ProviderSettings,
}

/// The table `provider` of the settings file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct ProviderSettings {
    /// How long a call waits for an answer, in milliseconds.
    timeout_ms: i64,
}

/// The values that stand where nobody says anything.
#[derive(Serialize)]
struct Defaults {
    data: &'static str,
    listen: &'static str,
    role: &'static str,
    lease_ms: i64,
    provider: ProviderSettings,
}

const DEFAULTS: Defaults = Defaults {
    data: "./onceward-data",
    listen: "127.0.0.1:7070",
    role: "all",
    // One process has the store, so a lease guards against a stuck step only; after a crash it is the longest that
    // claimed work waits.
    lease_ms: 5_000,
    // Longer than a provider takes, and well within a lease, so that the worker that waits still has its claim.
    provider: ProviderSettings { timeout_ms: 2_000 },
};

/// What the command line says; a flag that is not given says nothing.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Flags {
    /// `--data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    /// `--listen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<SocketAddr>,
    /// `--role`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
}

impl Settings {
    /// Puts the three sources together and judges them.
    ///
    /// # Errors
    /// Where a source cannot be read, names something unknown, or asks for what this build cannot do.
    pub(crate) fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, Failure> {
        Self::combine(file, Env::prefixed(PREFIX).only(&FROM_ENVIRONMENT), flags)
    }

    fn combine(file: Option<&Path>, environment: impl Provider, flags: &Flags) -> Result<Self, Failure> {
        let mut sources = Figment::from(Serialized::defaults(DEFAULTS));
        if let Some(path) = file {
            if !path.is_file() {
                return Err(Failure::Usage(format!("there is no settings file {}", path.display())));
            }
            sources = sources.merge(Toml::file_exact(path));
        }
        let settings: Self = sources
            .merge(environment)
            .merge(Serialized::defaults(flags))
            .extract()
            .map_err(|cause| Failure::Usage(format!("reading the settings: {cause}")))?;
        settings.judge()?;
        Ok(settings)
    }

    fn judge(&self) -> Result<(), Failure> {
        self.roles()?;
        self.store_path()?;
        for (name, value) in [("redis_url", &self.redis_url), ("broker_url", &self.broker_url)] {
            if let Some(url) = value {
                return Err(not_in_this_build(name, url));
            }
        }
        match self.deadline_trigger.as_deref() {
            None | Some("store") => {}
            Some(other) => {
                return Err(Failure::Usage(format!(
                    "deadline_trigger = `{other}` needs a broker, which this build has no adapter for; \
                     only `store` is possible"
                )));
            }
        }
        for (name, value, range) in [
            ("lease_ms", self.lease_ms, LEASE_MS),
            ("provider.timeout_ms", self.provider.timeout_ms, PROVIDER_TIMEOUT_MS),
        ] {
            if !range.contains(&value) {
                let (first, last) = (range.start(), range.end());
                return Err(Failure::Usage(format!("{name} = {value} is not within {first} to {last}")));
            }
        }
        Ok(())
    }

    /// The roles to start.
    ///
    /// # Errors
    /// For a name that is no role.
    pub(crate) fn roles(&self) -> Result<Vec<Role>, Failure> {
        if self.role.trim() == "all" {
            return Ok(Role::ALL.to_vec());
        }
        let mut roles = Vec::new();
        for name in self.role.split(',') {
            let role: Role = name.trim().parse().map_err(|cause| Failure::Usage(format!("role: {cause}")))?;
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        Ok(roles)
    }

    /// The store's file.
    ///
    /// # Errors
    /// For a store that this build has no adapter for.
    pub(crate) fn store_path(&self) -> Result<PathBuf, Failure> {
        match self.store_url.as_deref() {
            None => Ok(self.data.join(STORE_FILE)),
            Some(url) => match url.strip_prefix("sqlite:") {
                Some("") => Err(Failure::Usage("store_url = `sqlite:` names no file".to_owned())),
                Some(path) => Ok(PathBuf::from(path)),
                None => Err(not_in_this_build("store_url", url)),
            },
        }
    }

    /// The file with the secret.
    pub(crate) fn secret_path(&self) -> PathBuf {
        self.secret_file.clone().unwrap_or_else(|| self.data.join(SECRET_FILE))
    }

    /// How long a payment provider's answer is waited for.
    pub(crate) fn provider_timeout(&self) -> Duration {
        Duration::from_millis(self.provider.timeout_ms.unsigned_abs())
    }

    /// Lease of claims that wait for a payment provider: a lease, and a round of silent calls before it.
    pub(crate) fn provider_lease(&self) -> Millis {
        Millis(self.lease_ms + self.provider.timeout_ms * PROVIDER_CALLS)
    }

    /// Lease of every claim.
    pub(crate) fn lease(&self) -> Millis {
        Millis(self.lease_ms)
    }
}

/// Says no to an adapter that is not built in. Of the URL only the scheme is repeated: the rest may hold a password.
fn not_in_this_build(name: &str, url: &str) -> Failure {
    let scheme = url.split_once(':').map_or("no scheme", |(scheme, _)| scheme);
    Failure::Usage(format!(
        "{name} asks for `{scheme}`, but this build has the embedded store only: leave {name} out, or use \
         store_url = `sqlite:PATH`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn flags(listen: Option<&str>) -> Flags {
        Flags { listen: listen.map(|text| text.parse().unwrap()), ..Flags::default() }
    }

    fn combine(
        file: Option<&Path>,
        environment: &[(&str, &str)],
        listen: Option<&str>,
    ) -> Result<Settings, Failure> {
        let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
        Settings::combine(file, Serialized::defaults(environment), &flags(listen))
    }

    fn file(name: &str, content: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("onceward-settings-{}-{name}.toml", std::process::id()));
        std::fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn a_flag_beats_the_environment_which_beats_the_file() {
        let default = combine(None, &[], None).unwrap();
        assert_eq!(default.listen, "127.0.0.1:7070".parse().unwrap());
        assert_eq!(default.store_path().unwrap(), Path::new("./onceward-data/onceward.db"));
        assert_eq!(default.roles().unwrap(), Role::ALL);

        let path = file("order", "data = 'from-file'\nlisten = '127.0.0.1:1'\nrole = 'api, relay,api'\n");
        let from_file = combine(Some(&path), &[], None).unwrap();
        assert_eq!(from_file.listen.port(), 1);
        assert_eq!(from_file.roles().unwrap(), [Role::Api, Role::Relay]);

        let environment = [("listen", "127.0.0.1:2"), ("store_url", "sqlite:elsewhere.db")];
        let from_environment = combine(Some(&path), &environment, None).unwrap();
        assert_eq!(from_environment.listen.port(), 2);
        assert_eq!(from_environment.data, Path::new("from-file"));
        assert_eq!(from_environment.store_path().unwrap(), Path::new("elsewhere.db"));

        let from_flag = combine(Some(&path), &environment, Some("127.0.0.1:3")).unwrap();
        assert_eq!(from_flag.listen.port(), 3);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let cases = [
            ("store_url", "postgres://user:hunter2@db/shop", "asks for `postgres`"),
            ("store_url", "sqlite:", "names no file"),
            ("redis_url", "redis+cluster://r:6379", "asks for `redis+cluster`"),
            ("broker_url", "rocketmq://b:8081", "asks for `rocketmq`"),
            ("deadline_trigger", "broker", "needs a broker"),
            ("role", "api,boss", "`boss` is not one of"),
            ("role", "", "is not one of"),
            ("listen", "nowhere", "reading the settings"),
        ];
        for (name, value, expected) in cases {
            let refused = combine(None, &[(name, value)], None).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{name}");
            let text = refused.to_string();
            assert!(text.contains(expected) && !text.contains("hunter2"), "{name}: {text}");
        }
        let short = file("lease", "lease_ms = 1\n");
        assert!(combine(Some(&short), &[], None).unwrap_err().to_string().contains("not within"));
        std::fs::remove_file(short).unwrap();
    }

    #[test]
    fn a_misspelt_setting_in_the_file_is_refused() {
        let path = file("misspelt", "listne = '127.0.0.1:1'\n");
        let refused = combine(Some(&path), &[], None).unwrap_err();
        assert!(refused.to_string().contains("listne"), "{refused}");
        assert!(combine(Some(Path::new("absent.toml")), &[], None).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
