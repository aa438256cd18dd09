//! Where settings come from: what stands where nobody says anything, a file, the environment, and the command line.
//!
//! Invariants: each beats those before it; an unknown name in the file is an error. Read next: [`super::Settings`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use figment::providers::{Env, Format as _, Serialized, Toml};
use figment::{Figment, Provider};
use onceward_domain::retention::{DAY, WINDOW};
use serde::Serialize;

use super::limits::{BacklogSettings, ProviderSettings};
use super::{DeadlineSettings, Settings};
use crate::failure::Failure;

const PREFIX: &str = "ONCEWARD_";
/// The settings that the environment may give, by its names for them. Other `ONCEWARD_` names belong to others, such as the
/// log filter.
const FROM_ENVIRONMENT: [(&str, &str); 20] = [
    ("store_url", "store_url"),
    ("redis_url", "redis_url"),
    ("redis_prefix", "redis_prefix"),
    ("broker_url", "broker_url"),
    ("broker_suffix", "broker_suffix"),
    ("ca_file", "ca_file"),
    ("secret_file", "secret_file"),
    ("deadline_trigger", "deadline.trigger"),
    ("provider_timeout_ms", "provider.timeout_ms"),
    ("data", "data"),
    ("listen", "listen"),
    ("role", "role"),
    ("lease_ms", "lease_ms"),
    ("retention_days", "retention_days"),
    ("notice_webhook_url", "notice_webhook_url"),
    ("notice_secret_file", "notice_secret_file"),
    ("backlog_unsent_limit", "backlog.unsent_limit"),
    ("backlog_outage_ms", "backlog.outage_ms"),
    ("backlog_deadlines_pause_ms", "backlog.deadlines_pause_ms"),
    ("backlog_orders_per_second", "backlog.orders_per_second"),
];

/// The values that stand where nobody says anything.
#[derive(Serialize)]
struct Defaults {
    data: &'static str,
    listen: &'static str,
    role: &'static str,
    lease_ms: i64,
    retention_days: i64,
    deadline: DeadlineSettings,
    provider: ProviderSettings,
    backlog: BacklogSettings,
}

const DEFAULTS: Defaults = Defaults {
    data: "./onceward-data",
    listen: "127.0.0.1:7070",
    role: "all",
    // One process has the store, so a lease guards against a stuck step only; after a crash it is the longest that
    // claimed work waits.
    lease_ms: 5_000,
    retention_days: WINDOW.0 / DAY.0,
    // Depends on Redis, see `Settings::trigger`.
    deadline: DeadlineSettings { trigger: None },
    // Longer than a provider takes, and well within a lease, so that the worker that waits still has its claim.
    provider: ProviderSettings { timeout_ms: 2_000 },
    // The engine's own, which say why.
    backlog: BacklogSettings {
        unsent_limit: 100_000,
        outage_ms: 15_000,
        deadlines_pause_ms: 30_000,
        orders_per_second: 0,
    },
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
    /// `--deadline-trigger`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<DeadlineSettings>,
}

impl Flags {
    /// With this trigger, where one is given.
    pub(crate) fn with_trigger(self, trigger: Option<String>) -> Self {
        Self { deadline: trigger.map(|trigger| DeadlineSettings { trigger: Some(trigger) }), ..self }
    }
}

impl Settings {
    /// Puts the three sources together and judges them.
    ///
    /// # Errors
    /// Where a source cannot be read, names something unknown, or asks for what this build cannot do.
    pub(crate) fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, Failure> {
        let names = FROM_ENVIRONMENT.map(|(name, _)| name);
        let environment = Env::prefixed(PREFIX).only(&names).map(|name| setting(name.as_str()).into());
        Self::combine(file, environment, flags)
    }

    pub(super) fn combine(
        file: Option<&Path>,
        environment: impl Provider,
        flags: &Flags,
    ) -> Result<Self, Failure> {
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
}

/// The setting that a name of the environment stands for.
pub(super) fn setting(name: &str) -> &'static str {
    let found = FROM_ENVIRONMENT.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, setting)| *setting).expect("only these names are let through")
}
