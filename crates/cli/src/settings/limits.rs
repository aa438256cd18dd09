//! The numbers among the settings: how far each may go, and what becomes of it.
//!
//! Invariant: a number outside its range is refused with the range, before anything is opened.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use onceward::governor::GovernorSettings;
use onceward_domain::governor::{Band, Limits};
use onceward_domain::retention::{DAY, WINDOW_MIN};
use onceward_domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::Settings;
use crate::failure::Failure;

/// Leases outside this range either end before a step does, or keep work waiting for an hour after a crash.
const LEASE_MS: RangeInclusive<i64> = 100..=3_600_000;
/// Days that records are kept: a repeat must not outlive them, and 0 keeps them for ever.
const RETENTION_DAYS: RangeInclusive<i64> = WINDOW_MIN.0 / DAY.0..=36_500;
/// Shorter, and no provider is ever heard; longer, and one that is silent holds up everybody behind it.
const PROVIDER_TIMEOUT_MS: RangeInclusive<i64> = 10..=60_000;
/// Bounds of what closes admission: less, and a healthy sale closes it; more, and nobody lives to see it.
const UNSENT_LIMIT: RangeInclusive<i64> = 1..=100_000_000;
const OUTAGE_MS: RangeInclusive<i64> = 1_000..=86_400_000;
/// No store takes more.
const ORDERS_PER_SECOND: RangeInclusive<i64> = 0..=10_000_000;
/// Calls of a round about one order before its cancel: query, close, query; and about one share of a group order: query,
/// charge, query.
const PROVIDER_CALLS: i64 = 3;

/// The table `provider` of the settings file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderSettings {
    /// How long a call waits for an answer, in milliseconds.
    pub(super) timeout_ms: i64,
}

/// The table `backlog` of the settings file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct BacklogSettings {
    /// Admission closes when more reservations than this wait to be sent, and opens at half of it.
    pub(super) unsent_limit: i64,
    /// Admission closes when the oldest of them has waited longer than this, in milliseconds, and opens at a fifth of it.
    pub(super) outage_ms: i64,
    /// While the oldest message that is consumed is older than this, in milliseconds, no reservation is rejected for its
    /// deadline.
    pub(super) deadlines_pause_ms: i64,
    /// Most orders a second that a consumer asks of the store; 0 leaves it to the store's own pace.
    pub(super) orders_per_second: i64,
}

impl Settings {
    /// Whether each number is within its range.
    pub(super) fn judge_numbers(&self) -> Result<(), Failure> {
        // 0 stands for ever, which is long enough.
        let days = if self.retention_days == 0 { *RETENTION_DAYS.end() } else { self.retention_days };
        for (name, value, range) in [
            ("lease_ms", self.lease_ms, LEASE_MS),
            ("retention_days", days, RETENTION_DAYS),
            ("provider.timeout_ms", self.provider.timeout_ms, PROVIDER_TIMEOUT_MS),
            ("backlog.unsent_limit", self.backlog.unsent_limit, UNSENT_LIMIT),
            ("backlog.outage_ms", self.backlog.outage_ms, OUTAGE_MS),
            ("backlog.deadlines_pause_ms", self.backlog.deadlines_pause_ms, OUTAGE_MS),
            ("backlog.orders_per_second", self.backlog.orders_per_second, ORDERS_PER_SECOND),
        ] {
            if !range.contains(&value) {
                let (first, last) = (range.start(), range.end());
                return Err(Failure::Usage(format!("{name} = {value} is not within {first} to {last}")));
            }
        }
        Ok(())
    }

    /// When admission closes, deadlines pause and consumers rest.
    pub(crate) fn governor(&self) -> GovernorSettings {
        let backlog = &self.backlog;
        let usual = GovernorSettings::default();
        let limits = Limits {
            unsent: Band::above(backlog.unsent_limit.unsigned_abs()),
            outage: Band::new(backlog.outage_ms.unsigned_abs(), backlog.outage_ms.unsigned_abs() / 5),
            ..usual.limits
        };
        let rate = u32::try_from(backlog.orders_per_second).ok().and_then(NonZeroU32::new);
        let pause = Millis(backlog.deadlines_pause_ms);
        GovernorSettings { limits, deadlines_pause_above: pause, orders_per_second: rate, ..usual }
    }

    /// How long a payment provider's answer is waited for.
    pub(crate) fn provider_timeout(&self) -> Duration {
        Duration::from_millis(self.provider.timeout_ms.unsigned_abs())
    }

    /// Lease of claims that wait for a payment provider: a lease, and a round of silent calls before it.
    pub(crate) fn provider_lease(&self) -> Millis {
        Millis(self.lease_ms + self.provider.timeout_ms * PROVIDER_CALLS)
    }

    /// How long records are kept that nobody needs for ever; none keeps them for ever.
    pub(crate) fn retention(&self) -> Option<Millis> {
        (self.retention_days > 0).then(|| Millis(self.retention_days.saturating_mul(DAY.0)))
    }

    /// Lease of every claim.
    pub(crate) fn lease(&self) -> Millis {
        Millis(self.lease_ms)
    }
}
