//! Reservations on the wire.

use onceward_domain::id::{RequestId, SkuKey, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::ports::admission::AdmissionView;
use onceward_domain::purchase::Line;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Id, IdText, Whole};
use crate::when::Time;
use onceward::gate::ReserveRequest;

/// A buyer's request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ReservationRequest)]
pub(crate) struct ReserveBody<'a> {
    /// The buyer.
    #[serde(borrow)]
    user_id: IdText<'a>,
    /// The buyer's intent; a repeat of it is answered with the first reservation.
    #[serde(borrow)]
    request_id: IdText<'a>,
    /// Units.
    #[serde(default = "one")]
    #[schema(value_type = i64, minimum = 1, maximum = 4_294_967_295_i64, default = 1)]
    quantity: Whole,
}

fn one() -> Whole {
    Whole(1)
}

impl ReserveBody<'_> {
    /// The request, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_request(self, key: SkuKey) -> Result<ReserveRequest, Problem> {
        let mut faults = Faults::default();
        let user = faults.id("/user_id", &self.user_id, UserId::new);
        let request = faults.id("/request_id", &self.request_id, RequestId::new);
        let quantity = faults.count("/quantity", self.quantity, 1);
        let request =
            (|| Some(ReserveRequest { key, user: user?, request: request?, quantity: quantity? }))();
        faults.finish(request)
    }
}

/// The receipt of a reservation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Receipt {
    /// `QUEUED`, also for a repeat.
    pub(crate) code: &'static str,
    pub(crate) reservation_id: Id,
    /// State of the reservation.
    #[schema(value_type = ReservationStatusName)]
    pub(crate) status: &'static str,
    /// For people.
    pub(crate) message: &'static str,
}

/// State of a reservation.
#[derive(ToSchema)]
#[schema(as = ReservationStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum ReservationStatusName {
    Reserved,
    OrderCreated,
    OrderRejected,
    Compensating,
    Compensated,
    Cancelled,
    ManualReview,
}

/// How far a reservation's message has travelled.
#[derive(ToSchema)]
#[schema(as = TransportStatus, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the machine's")]
pub(crate) enum TransportStatusName {
    Pending,
    Publishing,
    Published,
    Unknown,
}

/// Why a reservation was refused.
#[derive(ToSchema)]
#[schema(as = ReasonCode, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the domain's")]
pub(crate) enum ReasonCodeName {
    StockShort,
    UserLimit,
    BusinessDeadlineExceeded,
}

/// A reservation as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reservation)]
pub(crate) struct ReservationView {
    reservation_id: Id,
    activity_id: String,
    sku_id: String,
    user_id: String,
    request_id: String,
    #[schema(value_type = i64, minimum = 1)]
    quantity: u32,
    #[schema(value_type = ReservationStatusName)]
    status: &'static str,
    #[schema(value_type = TransportStatusName)]
    transport_status: &'static str,
    #[schema(value_type = Option<ReasonCodeName>, required = true)]
    reason_code: Option<&'static str>,
    #[schema(required = true)]
    order_id: Option<Id>,
    reserved_at: Time,
    business_deadline: Time,
    updated_at: Time,
}

impl ReservationView {
    /// The view, where the purchase has the one line that a reservation has.
    pub(crate) fn of(found: &AdmissionView) -> Option<Self> {
        let purchase = &found.purchase;
        let Line { key, quantity, .. } = purchase.lines.first()?;
        Some(Self {
            reservation_id: Id(purchase.id.reservation().0),
            activity_id: key.activity.as_str().to_owned(),
            sku_id: key.sku.as_str().to_owned(),
            user_id: purchase.user.as_str().to_owned(),
            request_id: purchase.request.as_str().to_owned(),
            quantity: *quantity,
            status: purchase.reservation_status().name(),
            transport_status: found.transport.name(),
            reason_code: purchase.reason.map(onceward_domain::purchase::Reason::name),
            order_id: purchase.order.is_some().then(|| Id(purchase.id.order().0)),
            reserved_at: Time(purchase.reserved_at),
            business_deadline: Time(purchase.business_deadline),
            updated_at: Time(purchase.updated_at),
        })
    }
}
