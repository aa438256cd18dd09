//! Looking at a reservation, and waiting for its decision.

use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::id::ReservationId;
use onceward_domain::machine::reservation::Reservation;
pub use onceward_domain::ports::admission::AdmissionView;
use onceward_domain::time::Millis;
use tokio::time::{Instant, timeout_at};

use crate::engine::Engine;

/// Longest wait a caller may ask for.
pub const WAIT_LIMIT: Millis = Millis(10_000);

/// Looks at a reservation; with a wait, answers as soon as it leaves `RESERVED`, or at the end of the wait.
///
/// # Errors
/// [`Code::NotFound`].
pub async fn view(engine: &Engine, id: ReservationId, wait: Millis) -> Result<AdmissionView, Error> {
    let absent = || Error::new(Code::NotFound, format!("looking at reservation {id}"));
    let purchase = id.purchase().map_err(|_| absent())?;
    let patience = u64::try_from(wait.0.clamp(0, WAIT_LIMIT.0)).expect("it was clamped above zero");
    let end = Instant::now() + Duration::from_millis(patience);
    loop {
        let decided = engine.signals().decided.notified();
        tokio::pin!(decided);
        decided.as_mut().enable();
        let found = engine.admission().find(purchase).await?.ok_or_else(absent)?;
        let is_open = found.purchase.reservation_status() == Reservation::Reserved;
        if !is_open || Instant::now() >= end {
            return Ok(found);
        }
        // Another node may decide it: a bounded poll stands behind the signal.
        let poll = Duration::from_millis(u64::try_from(engine.settings().poll.0).unwrap_or(1_000));
        let _ = timeout_at(end.min(Instant::now() + poll), decided).await;
    }
}
