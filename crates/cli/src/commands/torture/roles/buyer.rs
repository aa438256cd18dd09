//! A lane of buyers: each reserves once, is told of an order, and lets it expire or cancels it.
//!
//! Invariants: a request whose answer was lost is repeated as it was, so everybody is answered; what is answered is written
//! down before anything else is asked.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::{SKU, Torture};
use crate::client::pause;
use crate::failure::Failure;

/// Between two buyers of a lane.
const PACE: Duration = Duration::from_millis(80);

/// What one buyer was told.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) user: String,
    pub(super) reservation: String,
    /// The order that was named, where one was.
    pub(super) order: Option<String>,
}

/// Buyers, one after the other, until the time is up.
pub(super) async fn buy(torture: &Torture<'_>, lane: usize) -> Result<(), Failure> {
    let mut rng = StdRng::seed_from_u64(torture.seed ^ ((lane as u64 + 1) << 32));
    let mut clients = [torture.client(lane), torture.client(lane + 1)];
    let path = format!("/v1/activities/{}/skus/{SKU}/reservations", torture.activity);
    for number in 0_usize.. {
        if torture.is_over.load(Ordering::SeqCst) {
            break;
        }
        pause(PACE).await;
        let user = format!("u{lane}-{number}");
        let wish = json!({"user_id": user, "request_id": "r", "quantity": 1});
        torture.requests.fetch_add(1, Ordering::Relaxed);
        let answer = clients[number % 2].post(&path, &wish).await?;
        match answer.status {
            200 | 202 => {}
            409 if answer.text("code") == "sold_out" => {
                torture.sometimes("sold_out");
                continue;
            }
            _ => return Err(Failure::Other(format!("{user} was answered {}", answer.short()))),
        }
        let reservation = answer.text("reservation_id").to_owned();
        let looks = rng.random_range(0..4_u32) == 0;
        let order = if looks {
            torture.requests.fetch_add(1, Ordering::Relaxed);
            let asked = format!("/v1/reservations/{reservation}?wait_ms=500");
            let told = clients[(number + 1) % 2].get(&asked).await?;
            Some(told.text("order_id").to_owned()).filter(|order| !order.is_empty())
        } else {
            None
        };
        torture.seen().push(Seen { user, reservation, order: order.clone() });
        if let Some(order) = order
            && rng.random_range(0..2_u32) == 0
        {
            torture.requests.fetch_add(1, Ordering::Relaxed);
            let asked = format!("/v1/orders/{order}/cancel");
            let key = format!("cancel-{order}");
            let told = clients[number % 2].post_once(&asked, &key, &json!({})).await?;
            if told.status >= 500 {
                return Err(Failure::Other(format!("cancelling {order} was answered {}", told.short())));
            }
            torture.sometimes("cancelled_by_its_buyer");
        }
    }
    Ok(())
}
