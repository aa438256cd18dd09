//! Payments, refunds and cases on the wire.

use std::sync::Arc;

use onceward_domain::machine::Machine;
use onceward_domain::money::Money;
use onceward_domain::payment::{Case, Payment, Refund};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::money::{MoneyBody, MoneyView};
use super::sku::REASON_LIMIT;
use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Id, Object, Text};
use crate::when::Time;

/// The provider whose client data is made here: it is the one that this program brings along.
pub(crate) const SANDBOX: &str = "sandbox";

/// A buyer starts to pay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = PaymentRequest)]
pub(crate) struct PaymentBody<'a> {
    /// At which provider.
    #[serde(borrow)]
    #[schema(value_type = String)]
    provider: Text<'a>,
}

/// What a payment request means, judged.
#[derive(Debug, Serialize)]
pub(crate) struct PaymentTerms {
    #[serde(serialize_with = "text")]
    pub(crate) provider: Arc<str>,
}

impl PaymentBody<'_> {
    /// The provider, if it is one that `is_known` knows.
    ///
    /// # Errors
    /// 422 `invalid`.
    pub(crate) fn into_terms(self, is_known: impl Fn(&str) -> bool) -> Result<PaymentTerms, Problem> {
        let mut faults = Faults::default();
        let is_fine = is_known(&self.provider.0);
        if !is_fine {
            faults.add("/provider", "must be the name of a payment provider of this server");
        }
        faults.finish(is_fine.then(|| PaymentTerms { provider: Arc::from(&*self.provider.0) }))
    }
}

/// What a buyer's client needs to pay; which members there are depends on the provider.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = PaymentClient)]
pub(crate) struct ClientView {
    /// Where to pay, for the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = String)]
    pay_url: Option<String>,
}

/// State of a payment attempt.
#[derive(ToSchema)]
#[schema(as = PaymentStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum PaymentStatusName {
    Pending,
    Unknown,
    Succeeded,
    Failed,
    Closed,
}

/// A payment attempt.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Payment)]
pub(crate) struct PaymentView {
    payment_id: Id,
    order_id: Id,
    provider: String,
    #[schema(value_type = PaymentStatusName)]
    status: &'static str,
    amount: MoneyView,
    client: ClientView,
}

impl From<&Payment> for PaymentView {
    fn from(payment: &Payment) -> Self {
        // A function of the attempt alone, so that the first answer can be kept with it in one transaction.
        let pay_url = (&*payment.provider == SANDBOX).then(|| format!("/sandbox/payments/{}", payment.id));
        Self {
            payment_id: Id(payment.id.0),
            order_id: Id(payment.purchase.order().0),
            provider: payment.provider.to_string(),
            status: payment.status.name(),
            amount: payment.amount.into(),
            client: ClientView { pay_url },
        }
    }
}

/// Somebody wants money back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = RefundRequest)]
pub(crate) struct RefundBody<'a> {
    /// How much; all that is left where it is not given.
    #[serde(borrow, default, deserialize_with = "some_money")]
    #[schema(required = false, value_type = MoneyBody<'_>)]
    amount: Option<Object<MoneyBody<'a>>>,
    /// Why.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    reason: Text<'a>,
}

/// Money that is there, where the field is: `null` is not "not given".
pub(crate) fn some_money<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Object<MoneyBody<'de>>>, D::Error> {
    Object::deserialize(deserializer).map(Some)
}

/// What a refund request means, judged.
#[derive(Debug, Serialize)]
pub(crate) struct RefundTerms {
    #[serde(serialize_with = "money_text")]
    pub(crate) amount: Option<Money>,
    #[serde(serialize_with = "text")]
    pub(crate) reason: Arc<str>,
}

fn text<S: serde::Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn money_text<S: serde::Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    money.map(MoneyView::from).serialize(serializer)
}

impl RefundBody<'_> {
    /// Amount and reason.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_terms(self) -> Result<RefundTerms, Problem> {
        let mut faults = Faults::default();
        let amount = match &self.amount {
            None => Some(None),
            Some(money) => MoneyBody::judge(money, "/amount", &mut faults).map(Some),
        };
        if amount.flatten().is_some_and(|amount| amount.amount() == 0) {
            faults.add("/amount/amount", "must not be 0");
        }
        let reason = faults.words("/reason", &self.reason, REASON_LIMIT);
        faults.finish(amount.zip(reason).map(|(amount, reason)| RefundTerms { amount, reason }))
    }
}

/// State of a refund.
#[derive(ToSchema)]
#[schema(as = RefundStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum RefundStatusName {
    Pending,
    Unknown,
    Succeeded,
    Failed,
}

/// A refund.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refund)]
pub(crate) struct RefundView {
    refund_id: Id,
    order_id: Id,
    payment_id: Id,
    amount: MoneyView,
    /// `UNKNOWN`: the provider did not answer yet; it is asked again.
    #[schema(value_type = RefundStatusName)]
    status: &'static str,
    /// `requested`, `late_payment` or `double_payment`.
    cause: &'static str,
    reason: String,
    created_at: Time,
    updated_at: Time,
}

impl From<&Refund> for RefundView {
    fn from(refund: &Refund) -> Self {
        Self {
            refund_id: Id(refund.id.0),
            order_id: Id(refund.purchase.order().0),
            payment_id: Id(refund.payment.0),
            amount: refund.amount.into(),
            status: refund.status.name(),
            cause: refund.cause.name(),
            reason: refund.reason.to_string(),
            created_at: Time(refund.created_at),
            updated_at: Time(refund.updated_at),
        }
    }
}

/// What became of a callback.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallbackReceipt)]
pub(crate) struct ReceiptView {
    /// `recorded`, or `kept` until its payment is known.
    pub(crate) result: &'static str,
}

/// A case for a person.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Anomaly)]
pub(crate) struct CaseView {
    /// What kind of case.
    kind: &'static str,
    /// The payment or refund that it is about.
    subject: String,
    /// What was seen.
    detail: String,
    found_at: Time,
}

impl From<&Case> for CaseView {
    fn from(case: &Case) -> Self {
        Self {
            kind: case.kind.name(),
            subject: case.subject.to_string(),
            detail: case.detail.to_string(),
            found_at: Time(case.at),
        }
    }
}
