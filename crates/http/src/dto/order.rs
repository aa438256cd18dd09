//! Orders and their history on the wire.

use std::sync::Arc;

use onceward_domain::changes::Transition;
use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ActivityId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::purchase::{Line, Purchase, Route};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::money::{MoneyView, SumView};
use super::sku::REASON_LIMIT;
use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Id, IdText, Object, Text, Whole};
use crate::when::Time;
use onceward::operations::order::DirectOrder;

/// Most lines of one order: they are locked together, so a longer list holds up everybody else.
const LINES_LIMIT: usize = 50;

/// A direct order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = OrderRequest)]
pub(crate) struct OrderBody<'a> {
    /// The buyer.
    #[serde(borrow)]
    user_id: IdText<'a>,
    /// The buyer's intent; a repeat of it is answered with the first order.
    #[serde(borrow)]
    request_id: IdText<'a>,
    /// What is bought; each SKU once.
    #[serde(borrow)]
    #[schema(value_type = Vec<LineBody<'_>>, min_items = 1, max_items = 50)]
    lines: Vec<Object<LineBody<'a>>>,
}

/// One SKU of a direct order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = OrderRequestLine)]
pub(crate) struct LineBody<'a> {
    #[serde(borrow)]
    activity_id: IdText<'a>,
    #[serde(borrow)]
    sku_id: IdText<'a>,
    /// Units.
    #[serde(default = "one")]
    #[schema(value_type = i64, minimum = 1, maximum = 4_294_967_295_i64, default = 1)]
    quantity: Whole,
}

fn one() -> Whole {
    Whole(1)
}

impl OrderBody<'_> {
    /// The order, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_order(self) -> Result<DirectOrder, Problem> {
        let mut faults = Faults::default();
        let user = faults.id("/user_id", &self.user_id, UserId::new);
        let request = faults.id("/request_id", &self.request_id, RequestId::new);
        if self.lines.is_empty() || self.lines.len() > LINES_LIMIT {
            faults.add("/lines", format!("must have 1 to {LINES_LIMIT} lines"));
        }
        let mut lines: Vec<(SkuKey, u32)> = Vec::with_capacity(self.lines.len().min(LINES_LIMIT));
        for (index, line) in self.lines.iter().take(LINES_LIMIT).enumerate() {
            let Some((key, quantity)) = line.0.judge(index, &mut faults) else { continue };
            if lines.iter().any(|(known, _)| *known == key) {
                faults.add(format!("/lines/{index}/sku_id"), "must not be in two lines");
            }
            lines.push((key, quantity));
        }
        faults.finish(user.zip(request).map(|(user, request)| DirectOrder { user, request, lines }))
    }
}

impl LineBody<'_> {
    fn judge(&self, index: usize, faults: &mut Faults) -> Option<(SkuKey, u32)> {
        let activity = faults.id(&format!("/lines/{index}/activity_id"), &self.activity_id, ActivityId::new);
        let sku = faults.id(&format!("/lines/{index}/sku_id"), &self.sku_id, SkuId::new);
        let quantity = faults.count(&format!("/lines/{index}/quantity"), self.quantity, 1);
        Some((SkuKey { activity: activity?, sku: sku? }, quantity?))
    }
}

/// A cancellation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Cancellation)]
pub(crate) struct CancelBody<'a> {
    /// Why.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    reason: Text<'a>,
}

impl CancelBody<'_> {
    /// The reason, judged.
    ///
    /// # Errors
    /// 422 `invalid`.
    pub(crate) fn into_reason(self) -> Result<Arc<str>, Problem> {
        let mut faults = Faults::default();
        let reason = faults.words("/reason", &self.reason, REASON_LIMIT);
        faults.finish(reason)
    }
}

/// State of an order.
#[derive(ToSchema)]
#[schema(as = OrderStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum OrderStatusName {
    Created,
    Paying,
    Paid,
    Refunding,
    Refunded,
    CancelPending,
    Cancelled,
    ManualReview,
}

/// One SKU of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderLine)]
pub(crate) struct LineView {
    activity_id: String,
    sku_id: String,
    #[schema(value_type = i64, minimum = 1)]
    quantity: u32,
    unit_price: MoneyView,
}

/// An order as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub(crate) struct OrderView {
    order_id: Id,
    user_id: String,
    request_id: String,
    /// `null` for a direct order.
    #[schema(required = true)]
    reservation_id: Option<Id>,
    #[schema(value_type = OrderStatusName)]
    status: &'static str,
    lines: Vec<LineView>,
    total: MoneyView,
    paid: SumView,
    refunded: SumView,
    expires_at: Time,
    cancel_due_at: Time,
    created_at: Time,
    updated_at: Time,
    #[schema(required = true)]
    paid_at: Option<Time>,
    #[schema(required = true)]
    cancelled_at: Option<Time>,
    #[schema(required = true)]
    cancel_reason: Option<String>,
}

impl OrderView {
    /// The order half of a purchase.
    ///
    /// # Errors
    /// 404 where it has none; a defect where a line has no price.
    pub(crate) fn of(purchase: &Purchase) -> Result<Self, Problem> {
        let order = purchase.order.as_ref().ok_or_else(|| Problem::code(Code::NotFound))?;
        let sum = |amount: i64| SumView::of(amount, order.total.currency());
        let lines: Result<Vec<LineView>, Problem> =
            purchase.lines.iter().map(|line| LineView::of(purchase, line)).collect();
        Ok(Self {
            order_id: Id(purchase.id.order().0),
            user_id: purchase.user.as_str().to_owned(),
            request_id: purchase.request.as_str().to_owned(),
            reservation_id: match purchase.route {
                Route::Flash => Some(Id(purchase.id.reservation().0)),
                Route::Direct => None,
            },
            status: order.status.name(),
            lines: lines?,
            total: order.total.into(),
            paid: sum(order.paid),
            refunded: sum(order.refunded),
            expires_at: Time(order.expires_at),
            cancel_due_at: Time(order.cancel_due_at),
            created_at: Time(order.created_at),
            updated_at: Time(purchase.updated_at),
            paid_at: order.paid_at.map(Time),
            cancelled_at: order.cancelled_at.map(Time),
            cancel_reason: order.cancel_reason.as_ref().map(ToString::to_string),
        })
    }
}

impl LineView {
    fn of(purchase: &Purchase, line: &Line) -> Result<Self, Problem> {
        let Some(unit_price) = line.unit_price else {
            let text = format!("showing order {}: a line has no price", purchase.id.order());
            return Err(Error::new(Code::ConstraintViolated, text).into());
        };
        Ok(Self {
            activity_id: line.key.activity.as_str().to_owned(),
            sku_id: line.key.sku.as_str().to_owned(),
            quantity: line.quantity,
            unit_price: unit_price.into(),
        })
    }
}

/// One line of an order's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub(crate) struct TransitionView {
    at: Time,
    /// Which machine moved.
    kind: &'static str,
    #[schema(required = true)]
    from: Option<&'static str>,
    /// State after; `null` for what moves no machine.
    #[schema(required = true)]
    to: Option<&'static str>,
    /// Label of the machine's row.
    cause: &'static str,
    /// Who did it.
    actor: String,
    /// An id or a reason that belongs to it.
    #[schema(required = true)]
    r#ref: Option<String>,
}

impl From<&Transition> for TransitionView {
    fn from(transition: &Transition) -> Self {
        Self {
            at: Time(transition.at),
            kind: transition.kind,
            from: transition.from,
            to: Some(transition.to),
            cause: transition.cause,
            actor: transition.actor.to_string(),
            r#ref: transition.reference.as_ref().map(ToString::to_string),
        }
    }
}
