//! Settings: file < environment < flag.
//!
//! Invariants: an unknown name in the file is an error, because a misspelt setting that is silently ignored is found
//! on the worst day; a store or transport that this build has no adapter for is refused before anything is opened.
//! Deliberately absent: secrets; only the path of a file with one is a setting. Read next: `settings/sources.rs`, then
//! `settings/servers.rs` and `settings/limits.rs`.

mod limits;
mod servers;
mod sources;

use std::net::SocketAddr;
use std::path::PathBuf;

use onceward::runtime::Role;
use onceward_domain::ports::deadline::TriggerKind;
use onceward_providers::notice::Target;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use limits::{BacklogSettings, ProviderSettings};

pub(crate) use servers::StorePlace;
pub(crate) use sources::Flags;

/// Name of the store's file inside the data folder.
pub(crate) const STORE_FILE: &str = "onceward.db";
/// Name of the file with the secret that ids are derived with.
pub(crate) const SECRET_FILE: &str = "secret";

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
    /// The first part of every key, where several engines share a Redis.
    redis_prefix: Option<String>,
    broker_url: Option<String>,
    /// What topics and groups end in, where several engines share a broker.
    broker_suffix: Option<String>,
    /// Authorities that vouch for the servers, instead of the system's.
    ca_file: Option<PathBuf>,
    secret_file: Option<PathBuf>,
    /// What tells when orders' time is up.
    deadline: DeadlineSettings,
    /// Lease of every claim, in milliseconds.
    lease_ms: i64,
    /// How long refusals, heard callbacks and sent notices are kept, in days; 0 keeps them for ever.
    retention_days: i64,
    /// Where notices are posted to; without it they wait, or with `--dev` go into a file.
    notice_webhook_url: Option<String>,
    /// The file with the secret that they are signed with.
    notice_secret_file: Option<PathBuf>,
    /// What holds for all payment providers.
    provider: ProviderSettings,
    /// What is done while work piles up (FS-16, FS-17).
    backlog: BacklogSettings,
}

/// The table `deadline` of the settings file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadlineSettings {
    /// One of the five triggers, by name; `None` leaves it to what else is set.
    #[serde(default)]
    pub(crate) trigger: Option<String>,
}

impl Settings {
    fn judge(&self) -> Result<(), Failure> {
        self.roles()?;
        self.authorities()?;
        self.store_place()?;
        self.notices()?;
        self.redis()?;
        self.broker()?;
        self.trigger()?;
        self.judge_numbers()
    }

    /// Where notices are posted to, and the file with the secret that they are signed with.
    ///
    /// # Errors
    /// For a URL that is none, or is not `http` or `https`; for one without a secret. The URL is not shown.
    pub(crate) fn notices(&self) -> Result<Option<(Target, PathBuf)>, Failure> {
        let Some(url) = &self.notice_webhook_url else { return Ok(None) };
        let target = Target::parse(url)
            .map_err(|cause| Failure::Usage(format!("notice_webhook_url: {}", cause.operator_text())))?;
        let secret = self.notice_secret_file.clone().ok_or_else(|| {
            Failure::Usage(
                "notice_webhook_url needs notice_secret_file, with the receiver's secret".to_owned(),
            )
        })?;
        Ok(Some((target, secret)))
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

    /// What tells when orders' time is up. Where nobody chose, it is the sorted set where there is Redis (OT-10), else the store:
    /// that one is durable with the orders themselves, so nothing needs to be found again after a restart.
    ///
    /// # Errors
    /// For a name that is no trigger, or one that needs a server that is not set.
    pub(crate) fn trigger(&self) -> Result<TriggerKind, Failure> {
        let Some(name) = &self.deadline.trigger else {
            return Ok(if self.redis_url.is_some() { TriggerKind::Zset } else { TriggerKind::Store });
        };
        let kind: TriggerKind =
            name.parse().map_err(|cause| Failure::Usage(format!("deadline.trigger: {cause}")))?;
        let (is_there, needed) = match kind {
            TriggerKind::Store | TriggerKind::Queue => return Ok(kind),
            TriggerKind::Broker => (self.broker_url.is_some(), "a broker: set broker_url"),
            TriggerKind::Zset | TriggerKind::Keyspace => (self.redis_url.is_some(), "Redis: set redis_url"),
        };
        if is_there {
            Ok(kind)
        } else {
            Err(Failure::Usage(format!("deadline.trigger = `{name}` needs {needed}")))
        }
    }

    /// The file with the secret.
    pub(crate) fn secret_path(&self) -> PathBuf {
        self.secret_file.clone().unwrap_or_else(|| self.data.join(SECRET_FILE))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use figment::Figment;
    use figment::providers::Serialized;

    use super::sources::setting;
    use super::*;

    fn flags(listen: Option<&str>) -> Flags {
        Flags { listen: listen.map(|text| text.parse().unwrap()), ..Flags::default() }
    }

    fn combine(
        file: Option<&Path>,
        environment: &[(&str, &str)],
        listen: Option<&str>,
    ) -> Result<Settings, Failure> {
        let environment = environment.iter().fold(Figment::new(), |sources, (name, value)| {
            // As the environment's provider reads it: a number where it is one.
            let value: figment::value::Value = value.parse().unwrap();
            sources.merge(Serialized::default(setting(name), value))
        });
        Settings::combine(file, environment, &flags(listen))
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
        let url = "postgres://user@db/shop";
        let cluster = combine(None, &[("store_url", url), ("redis_url", "redis://r:6379")], None).unwrap();
        assert!(cluster.store_place().unwrap() == StorePlace::Server(url.to_owned()));
        assert!(cluster.redis().unwrap().is_some());

        let from_flag = combine(Some(&path), &environment, Some("127.0.0.1:3")).unwrap();
        assert_eq!(from_flag.listen.port(), 3);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let cases = [
            ("store_url", "mysql://user:hunter2@db/shop", "asks for `mysql`"),
            ("store_url", "sqlite:", "names no file"),
            ("redis_url", "memcached://hunter2@r:6379", "not of a form that is known"),
            ("broker_url", "kafka://user:hunter2@b:9092", "asks for `kafka`"),
            ("broker_url", "rocketmq://hunter2@b:8081", "rocketmq://host:port"),
            ("redis_url", "rediss://:hunter2@r:6379#insecure", "not of a form that is known"),
            ("ca_file", "/nowhere/ca.pem", "ca_file: reading the certificate authorities in /nowhere/ca.pem"),
            ("deadline_trigger", "broker", "needs a broker: set broker_url"),
            ("deadline_trigger", "zset", "needs Redis: set redis_url"),
            ("deadline_trigger", "keyspace", "needs Redis: set redis_url"),
            ("backlog_unsent_limit", "0", "not within 1 to"),
            ("backlog_outage_ms", "10", "not within 1000 to"),
            ("deadline_trigger", "cron", "not one of zset, store, broker, keyspace, queue"),
            ("provider_timeout_ms", "5", "not within 10 to 60000"),
            ("role", "api,boss", "`boss` is not one of"),
            ("role", "", "is not one of"),
            ("listen", "nowhere", "reading the settings"),
            ("notice_webhook_url", "file:///hunter2", "only http and https"),
            ("notice_webhook_url", "https://user:hunter2@h/", "names a user"),
            ("notice_webhook_url", "https://h/hunter2", "needs notice_secret_file"),
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
    fn ot_10_the_trigger_is_chosen_in_the_file_the_environment_or_by_flag() {
        let over_redis = |trigger: &[(&str, &str)]| {
            combine(None, &[&[("redis_url", "redis://r:6379")][..], trigger].concat(), None)
                .unwrap()
                .trigger()
                .unwrap()
        };
        assert_eq!(over_redis(&[]), TriggerKind::Zset);
        assert_eq!(over_redis(&[("deadline_trigger", "store")]), TriggerKind::Store);
        assert_eq!(over_redis(&[("deadline_trigger", "keyspace")]), TriggerKind::Keyspace);
        let path = file("trigger", "[deadline]\ntrigger = 'queue'\n\n[provider]\ntimeout_ms = 300\n");
        let trigger = |settings: Settings| settings.trigger().unwrap();
        assert_eq!(trigger(combine(None, &[], None).unwrap()), TriggerKind::Store);
        let from_file = combine(Some(&path), &[], None).unwrap();
        assert_eq!(from_file.provider_timeout(), Duration::from_millis(300));
        assert_eq!(trigger(from_file), TriggerKind::Queue);
        let environment = [("deadline_trigger", "store"), ("provider_timeout_ms", "70")];
        let from_environment = combine(Some(&path), &environment, None).unwrap();
        assert_eq!(from_environment.provider_timeout(), Duration::from_millis(70));
        assert_eq!(trigger(from_environment), TriggerKind::Store);
        let flags = Flags::default().with_trigger(Some("queue".to_owned()));
        assert_eq!(trigger(Settings::combine(None, Figment::new(), &flags).unwrap()), TriggerKind::Queue);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn authorities_that_are_named_once_vouch_for_every_server() {
        let store_of = |url: &str, ca_file: Option<&str>| {
            let mut settings = combine(None, &[("store_url", url)], None).unwrap();
            settings.ca_file = ca_file.map(PathBuf::from);
            match settings.store_place().unwrap() {
                StorePlace::Server(url) => url,
                StorePlace::File(_) => panic!("it is a server"),
            }
        };
        let ca = Some("/etc/our ca.pem");
        let encoded = "sslrootcert=%2Fetc%2Four%20ca%2Epem";
        let (plain, with_options) = ("postgres://me:a?b@h/shop", "postgres://h/shop?sslmode=require");
        let own = "postgres://h/shop?sslrootcert=/own.pem";
        assert_eq!(store_of(plain, None), plain);
        assert_eq!(store_of(plain, ca), format!("{plain}?{encoded}"));
        assert_eq!(store_of(with_options, ca), format!("{with_options}&{encoded}"));
        assert_eq!(store_of(own, ca), own);
        let encrypted = [("redis_url", "rediss://r"), ("broker_url", "rocketmqs://b:8081")];
        let settings = combine(None, &encrypted, None).unwrap();
        assert!(settings.redis().unwrap().unwrap().is_encrypted());
        assert!(settings.broker().unwrap().unwrap().is_encrypted());
    }

    #[test]
    fn names_at_a_shared_server_are_plain() {
        for (url, name) in [
            (("redis_url", "redis://r:6379"), "redis_prefix"),
            (("broker_url", "rocketmq://b:8081"), "broker_suffix"),
        ] {
            assert!(combine(None, &[url, (name, "shop-2")], None).is_ok(), "{name}");
            for bad in ["{a}", "a:b", "a b", &"a".repeat(65)] {
                let refused = combine(None, &[url, (name, bad)], None).unwrap_err();
                assert!(refused.to_string().contains(name), "{refused}");
            }
        }
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
