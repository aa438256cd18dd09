//! Activities on the wire.

use std::borrow::Cow;

use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::id::ActivityId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Text, Whole};
use crate::when::Time;

/// Most characters of an activity's name.
const NAME_LIMIT: usize = 200;

/// A sale and its rules.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ActivityTerms)]
pub(crate) struct ActivityBody<'a> {
    /// A name for people, without control characters.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    name: Text<'a>,
    /// First moment at which reservations are taken; RFC 3339, any offset.
    #[serde(borrow)]
    #[schema(value_type = String, format = DateTime)]
    starts_at: Text<'a>,
    /// First moment at which they no longer are; after `starts_at`.
    #[serde(borrow)]
    #[schema(value_type = String, format = DateTime)]
    ends_at: Text<'a>,
    /// How long a buyer may take to pay.
    #[serde(default = "payment_window")]
    #[schema(value_type = i64, minimum = 0, maximum = 316_224_000_000_i64, default = 900_000)]
    payment_window_ms: Whole,
    /// How long after that a payment still wins.
    #[serde(default = "cancel_grace")]
    #[schema(value_type = i64, minimum = 0, maximum = 316_224_000_000_i64, default = 300_000)]
    cancel_grace_ms: Whole,
    /// How long a reservation may wait for its order.
    #[serde(default = "reservation_deadline")]
    #[schema(value_type = i64, minimum = 0, maximum = 316_224_000_000_i64, default = 300_000)]
    reservation_deadline_ms: Whole,
    /// When, after a cancel, the provider is asked once more.
    #[serde(default = "confirm_after_cancel")]
    #[schema(value_type = i64, minimum = 0, maximum = 316_224_000_000_i64, default = 45_000)]
    confirm_after_cancel_ms: Whole,
    /// What to do with money found on a cancelled order.
    #[serde(borrow, default = "late_payment")]
    #[schema(value_type = LatePaymentName, default = "refund")]
    late_payment: Text<'a>,
    /// Whether a cancelled order frees the buyer's place.
    #[serde(default = "cancelled_frees_limit")]
    #[schema(default = true)]
    cancelled_frees_limit: bool,
}

/// What to do with money found on a cancelled order.
#[derive(ToSchema)]
#[schema(as = LatePayment, rename_all = "snake_case")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the domain's")]
pub(crate) enum LatePaymentName {
    Refund,
    Reinstate,
    Manual,
}

fn payment_window() -> Whole {
    Whole(900_000)
}

fn cancel_grace() -> Whole {
    Whole(300_000)
}

fn reservation_deadline() -> Whole {
    Whole(300_000)
}

fn confirm_after_cancel() -> Whole {
    Whole(45_000)
}

fn late_payment() -> Text<'static> {
    Text(Cow::Borrowed(LatePayment::Refund.name()))
}

fn cancelled_frees_limit() -> bool {
    true
}

impl ActivityBody<'_> {
    /// The activity, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_activity(self, id: ActivityId) -> Result<Activity, Problem> {
        let mut faults = Faults::default();
        let name = faults.words("/name", &self.name, NAME_LIMIT);
        let starts_at = faults.time("/starts_at", &self.starts_at);
        let ends_at = faults.time("/ends_at", &self.ends_at);
        if let (Some(start), Some(end)) = (starts_at, ends_at)
            && end <= start
        {
            faults.add("/ends_at", "must be after starts_at");
        }
        let payment_window = faults.length("/payment_window_ms", self.payment_window_ms);
        let cancel_grace = faults.length("/cancel_grace_ms", self.cancel_grace_ms);
        let reservation_deadline = faults.length("/reservation_deadline_ms", self.reservation_deadline_ms);
        let confirm_after_cancel = faults.length("/confirm_after_cancel_ms", self.confirm_after_cancel_ms);
        let rules = &LatePayment::ALL;
        let late_payment = faults.one_of("/late_payment", &self.late_payment.0, rules, LatePayment::name);
        let activity = (|| {
            Some(Activity {
                id,
                name: name?,
                starts_at: starts_at?,
                ends_at: ends_at?,
                payment_window: payment_window?,
                cancel_grace: cancel_grace?,
                reservation_deadline: reservation_deadline?,
                confirm_after_cancel: confirm_after_cancel?,
                late_payment: late_payment?,
                cancelled_frees_limit: self.cancelled_frees_limit,
            })
        })();
        faults.finish(activity)
    }
}

/// A sale as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Activity)]
pub(crate) struct ActivityView {
    activity_id: String,
    name: String,
    #[schema(value_type = Time)]
    starts_at: Time,
    #[schema(value_type = Time)]
    ends_at: Time,
    payment_window_ms: i64,
    cancel_grace_ms: i64,
    reservation_deadline_ms: i64,
    confirm_after_cancel_ms: i64,
    #[schema(value_type = LatePaymentName)]
    late_payment: &'static str,
    cancelled_frees_limit: bool,
}

impl From<&Activity> for ActivityView {
    fn from(activity: &Activity) -> Self {
        Self {
            activity_id: activity.id.as_str().to_owned(),
            name: activity.name.to_string(),
            starts_at: Time(activity.starts_at),
            ends_at: Time(activity.ends_at),
            payment_window_ms: activity.payment_window.0,
            cancel_grace_ms: activity.cancel_grace.0,
            reservation_deadline_ms: activity.reservation_deadline.0,
            confirm_after_cancel_ms: activity.confirm_after_cancel.0,
            late_payment: activity.late_payment.name(),
            cancelled_frees_limit: activity.cancelled_frees_limit,
        }
    }
}
