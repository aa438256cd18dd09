//! The sandbox bank on the wire.

use onceward_domain::ports::sandbox::{
    Act, BankPayment, Calling, CustomerCharge, Deed, Mood, MoodChange, Moods, StatementLine,
};
use onceward_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::money::{MoneyBody, MoneyView};
use super::payment::some_money;
use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Id, Object, Text, Whole};
use crate::when::{self, Time};

/// What the buyer does at the bank.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = SandboxAct)]
pub(crate) struct ActBody<'a> {
    /// `send`, `drop` or `duplicate`.
    #[serde(borrow, default)]
    #[schema(required = false, value_type = String, default = "send")]
    callback: Option<Text<'a>>,
    /// How long the callback waits.
    #[serde(default = "none")]
    #[schema(value_type = i64, minimum = 0, default = 0)]
    delay_ms: Whole,
    /// Takes this instead of what was asked for.
    #[serde(borrow, default, deserialize_with = "some_money")]
    #[schema(required = false, value_type = MoneyBody<'_>)]
    amount: Option<Object<MoneyBody<'a>>>,
    /// The money moves although the payment failed or was closed.
    #[serde(default)]
    force: bool,
}

fn none() -> Whole {
    Whole(0)
}

/// Which act a route plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Succeed,
    Fail,
}

impl ActBody<'_> {
    /// The act, judged. A failing one has neither amount nor force, so they are taken and mean nothing.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_act(self, role: Role) -> Result<Act, Problem> {
        let mut faults = Faults::default();
        let calling = match &self.callback {
            None => Some(Calling::Send),
            Some(text) => faults.one_of("/callback", &text.0, &Calling::ALL, Calling::name),
        };
        let delay: Option<Millis> = faults.length("/delay_ms", self.delay_ms);
        let amount = match &self.amount {
            None => Some(None),
            Some(money) => MoneyBody::judge(money, "/amount", &mut faults).map(Some),
        };
        let deed = amount.map(|amount| match role {
            Role::Succeed => Deed::Succeed { amount, force: self.force },
            Role::Fail => Deed::Fail,
        });
        let act = (|| Some(Act { deed: deed?, calling: calling?, delay: delay? }))();
        faults.finish(act)
    }
}

/// State of a payment at the bank.
#[derive(ToSchema)]
#[schema(as = SandboxPaymentStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the bank's")]
pub(crate) enum BankStatusName {
    Open,
    Succeeded,
    Failed,
    Closed,
}

/// A payment as the bank knows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxPayment)]
pub(crate) struct BankPaymentView {
    payment_id: Id,
    #[schema(value_type = BankStatusName)]
    status: &'static str,
    /// What was taken, or should be; `null` where it was closed before it was announced.
    #[schema(required = true)]
    amount: Option<MoneyView>,
    #[schema(required = true)]
    refunded: Option<MoneyView>,
    #[schema(required = true)]
    transaction_id: Option<String>,
}

impl From<&BankPayment> for BankPaymentView {
    fn from(known: &BankPayment) -> Self {
        Self {
            payment_id: Id(known.id.0),
            status: known.status.name(),
            amount: known.amount.map(MoneyView::from),
            refunded: known.refunded.map(MoneyView::from),
            transaction_id: known.transaction.as_ref().map(ToString::to_string),
        }
    }
}

/// How the bank should answer; what is not given stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = SandboxModeChange)]
pub(crate) struct ModeBody<'a> {
    /// `ok`, `error` or `timeout`.
    #[serde(borrow, default)]
    #[schema(required = false, value_type = String)]
    query: Option<Text<'a>>,
    /// `ok`, `error` or `timeout`.
    #[serde(borrow, default)]
    #[schema(required = false, value_type = String)]
    close: Option<Text<'a>>,
    /// `ok`, `error`, `timeout`, `timeout_after_effect` or `decline`.
    #[serde(borrow, default)]
    #[schema(required = false, value_type = String)]
    charge: Option<Text<'a>>,
    /// `ok`, `error`, `timeout`, `timeout_after_effect` or `decline`.
    #[serde(borrow, default)]
    #[schema(required = false, value_type = String)]
    refund: Option<Text<'a>>,
}

impl ModeBody<'_> {
    /// The change, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_change(self) -> Result<MoodChange, Problem> {
        let mut faults = Faults::default();
        let mut judge = |pointer: &str, text: &Option<Text<'_>>, all: &[Mood]| {
            text.as_ref().and_then(|text| faults.one_of(pointer, &text.0, all, Mood::name))
        };
        let change = MoodChange {
            query: judge("/query", &self.query, &Mood::OF_QUESTIONS),
            close: judge("/close", &self.close, &Mood::OF_QUESTIONS),
            charge: judge("/charge", &self.charge, &Mood::ALL),
            refund: judge("/refund", &self.refund, &Mood::ALL),
        };
        faults.finish(Some(change))
    }
}

/// How the bank answers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxMode)]
pub(crate) struct ModeView {
    query: &'static str,
    close: &'static str,
    charge: &'static str,
    refund: &'static str,
}

impl From<Moods> for ModeView {
    fn from(moods: Moods) -> Self {
        let Moods { query, close, charge, refund } = moods;
        Self { query: query.name(), close: close.name(), charge: charge.name(), refund: refund.name() }
    }
}

/// An off-session charge that was really taken.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxCharge)]
pub(crate) struct ChargeView {
    charge_id: String,
    amount: MoneyView,
    charged_at: Time,
}

impl From<&CustomerCharge> for ChargeView {
    fn from(charge: &CustomerCharge) -> Self {
        let CustomerCharge { charge: id, amount, at } = charge;
        Self { charge_id: id.to_string(), amount: (*amount).into(), charged_at: Time(*at) }
    }
}

/// The statement's columns.
pub(crate) const STATEMENT_HEAD: &str =
    "at,kind,payment_id,refund_id,transaction_id,amount,currency,charge_id\n";

/// Writes a statement as CSV. No field can hold a comma or a quote: they are times, names, ids and numbers.
pub(crate) fn statement(lines: &[StatementLine]) -> String {
    let mut text = String::from(STATEMENT_HEAD);
    for line in lines {
        let payment = line.payment.map(|id| id.to_string()).unwrap_or_default();
        let refund = line.refund.map(|id| id.to_string()).unwrap_or_default();
        let charge = line.charge.as_ref().map_or("", |id| id.as_str());
        text.push_str(&format!(
            "{},{},{payment},{refund},{},{},{},{charge}\n",
            when::format(line.at),
            line.kind.name(),
            line.transaction,
            line.amount.amount(),
            line.amount.currency().code()
        ));
    }
    text
}
