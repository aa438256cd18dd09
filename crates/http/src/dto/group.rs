//! Group orders on the wire.

use std::sync::Arc;

use onceward_domain::group::{
    GroupOrder, GroupTerms, GroupTransition, PARTICIPANTS_LIMIT, Participant, WALLET,
};
use onceward_domain::id::{GroupId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::money::{Currency, Money};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::money::{MoneyBody, MoneyView};
use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{IdText, Object, Text, Whole};
use crate::when::Time;
use onceward::operations::group::GroupView;

/// A group order to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = GroupTerms)]
pub(crate) struct GroupBody<'a> {
    /// Who is told what becomes of it.
    #[serde(borrow)]
    leader_user_id: IdText<'a>,
    /// First moment at which nobody may join or leave any more; RFC 3339, any offset.
    #[serde(borrow)]
    #[schema(value_type = String, format = DateTime)]
    deadline: Text<'a>,
    /// `wallet`, or the name of a payment provider of this server. A wallet is the credit account with the user's id; it is
    /// charged one credit for each minor unit.
    #[serde(borrow)]
    #[schema(value_type = String)]
    charge_via: Text<'a>,
    /// ISO 4217 code of every amount.
    #[serde(borrow)]
    #[schema(value_type = String, pattern = "^[A-Z]{3}$")]
    currency: Text<'a>,
    /// With fewer at the deadline it is cancelled, and nobody is charged.
    #[serde(default = "one")]
    #[schema(value_type = i64, minimum = 1, maximum = 5_000, default = 1)]
    min_participants: Whole,
}

fn one() -> Whole {
    Whole(1)
}

impl GroupBody<'_> {
    /// The terms, judged; `is_known` knows the payment providers.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_terms(
        self,
        id: GroupId,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<GroupTerms, Problem> {
        let mut faults = Faults::default();
        let leader = faults.id("/leader_user_id", &self.leader_user_id, UserId::new);
        let deadline = faults.time("/deadline", &self.deadline);
        let charge_via = &*self.charge_via.0;
        if charge_via != WALLET && !is_known(charge_via) {
            faults.add("/charge_via", "must be `wallet` or the name of a payment provider of this server");
        }
        let currency = Currency::from_code(&self.currency.0).ok_or("is not an ISO 4217 currency code");
        let currency = faults.keep("/currency", currency);
        let least =
            faults.within("/min_participants", self.min_participants, 1..=i64::from(PARTICIPANTS_LIMIT));
        let least = least.and_then(|least| u32::try_from(least).ok());
        let terms = (|| {
            Some(GroupTerms {
                id,
                leader: leader?,
                deadline: deadline?,
                charge_via: Arc::from(charge_via),
                currency: currency?,
                min_participants: least?,
            })
        })();
        faults.finish(terms)
    }
}

/// Somebody takes part.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ParticipantTerms)]
pub(crate) struct ParticipantBody<'a> {
    /// What is charged at the deadline; more than 0, in the group's currency.
    #[serde(borrow)]
    #[schema(value_type = MoneyBody<'_>)]
    amount: Object<MoneyBody<'a>>,
}

impl ParticipantBody<'_> {
    /// The amount, judged.
    ///
    /// # Errors
    /// 422 `invalid`.
    pub(crate) fn into_amount(self) -> Result<Money, Problem> {
        let mut faults = Faults::default();
        let amount = MoneyBody::judge(&self.amount, "/amount", &mut faults);
        if amount.is_some_and(|amount| amount.amount() == 0) {
            faults.add("/amount/amount", "must not be 0");
        }
        faults.finish(amount)
    }
}

/// State of a group order.
#[derive(ToSchema)]
#[schema(as = GroupStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum GroupStatusName {
    Open,
    Closed,
    Settled,
    Failed,
    Cancelled,
}

/// State of a participant's charge.
#[derive(ToSchema)]
#[schema(as = GroupChargeStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum GroupChargeName {
    None,
    Pending,
    Charged,
    Declined,
    Unknown,
}

/// Somebody who takes part.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Participant)]
pub(crate) struct ParticipantView {
    user_id: String,
    amount: MoneyView,
    /// State of the charge.
    #[schema(value_type = GroupChargeName)]
    charge: &'static str,
    joined_at: Time,
}

impl From<&Participant> for ParticipantView {
    fn from(participant: &Participant) -> Self {
        Self {
            user_id: participant.user.as_str().to_owned(),
            amount: participant.amount.into(),
            charge: participant.charge.name(),
            joined_at: Time(participant.joined_at),
        }
    }
}

/// A group order without those who take part.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupSummary)]
pub(crate) struct GroupSummaryView {
    group_id: String,
    #[schema(value_type = GroupStatusName)]
    status: &'static str,
    leader_user_id: String,
    deadline: Time,
    charge_via: String,
    currency: &'static str,
    min_participants: u32,
    /// How many take part.
    participant_count: u32,
    /// Attempts at settling since the deadline, or since a person asked for another round.
    attempts: u32,
    /// When the next attempt is due, after one that failed.
    #[schema(required = true)]
    next_attempt_at: Option<Time>,
    /// What stood in the way of the last attempt that failed.
    #[schema(required = true)]
    last_error: Option<String>,
    created_at: Time,
    updated_at: Time,
}

impl From<&GroupOrder> for GroupSummaryView {
    fn from(group: &GroupOrder) -> Self {
        Self {
            group_id: group.id().as_str().to_owned(),
            status: group.status.name(),
            leader_user_id: group.terms.leader.as_str().to_owned(),
            deadline: Time(group.terms.deadline),
            charge_via: group.terms.charge_via.to_string(),
            currency: group.terms.currency.code(),
            min_participants: group.terms.min_participants,
            participant_count: group.participants,
            attempts: group.attempts,
            next_attempt_at: group.next_attempt_at.map(Time),
            last_error: group.last_error.as_ref().map(ToString::to_string),
            created_at: Time(group.created_at),
            updated_at: Time(group.updated_at),
        }
    }
}

/// A group order with those who take part, in the order of joining.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupOrder)]
pub(crate) struct GroupFullView {
    group_id: String,
    #[schema(value_type = GroupStatusName)]
    status: &'static str,
    leader_user_id: String,
    deadline: Time,
    charge_via: String,
    currency: &'static str,
    min_participants: u32,
    /// Attempts at settling since the deadline, or since a person asked for another round.
    attempts: u32,
    /// When the next attempt is due, after one that failed.
    #[schema(required = true)]
    next_attempt_at: Option<Time>,
    /// What stood in the way of the last attempt that failed.
    #[schema(required = true)]
    last_error: Option<String>,
    created_at: Time,
    updated_at: Time,
    participants: Vec<ParticipantView>,
}

impl From<&GroupView> for GroupFullView {
    fn from(view: &GroupView) -> Self {
        let summary = GroupSummaryView::from(&view.group);
        Self {
            group_id: summary.group_id,
            status: summary.status,
            leader_user_id: summary.leader_user_id,
            deadline: summary.deadline,
            charge_via: summary.charge_via,
            currency: summary.currency,
            min_participants: summary.min_participants,
            attempts: summary.attempts,
            next_attempt_at: summary.next_attempt_at,
            last_error: summary.last_error,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            participants: view.participants.iter().map(ParticipantView::from).collect(),
        }
    }
}

/// One line of a group order's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupTimelineEntry)]
pub(crate) struct GroupTransitionView {
    at: Time,
    #[schema(required = true)]
    from: Option<&'static str>,
    to: &'static str,
    /// Label of the machine's row.
    cause: &'static str,
    /// Who did it.
    actor: String,
}

impl From<&GroupTransition> for GroupTransitionView {
    fn from(transition: &GroupTransition) -> Self {
        Self {
            at: Time(transition.at),
            from: transition.from,
            to: transition.to,
            cause: transition.cause,
            actor: transition.actor.to_string(),
        }
    }
}
