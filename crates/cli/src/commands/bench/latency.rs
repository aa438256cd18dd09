//! From `QUEUED` to the order, as a buyer sees it.
//!
//! Invariants: the time runs from the answer that says `QUEUED` to the answer that shows the order, over HTTP, with one
//! waiting read in between; anything else than an order is an error. The load is moderate: with buyers queueing at the
//! server the figure would tell of the queue.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::shop::{ACTIVITY, PLENTY};
use crate::bench::histogram::Histogram;
use crate::client::{Client, Losses};
use crate::failure::Failure;

/// Buyers under way at the same time.
pub(crate) const BUYERS_AT_ONCE: u64 = 16;
const TIME: Duration = Duration::from_secs(300);

/// What was measured.
pub(crate) struct Measured {
    /// From `QUEUED` to the order.
    pub(crate) latency: Histogram,
    /// Orders per second, seen by these buyers.
    pub(crate) per_second: f64,
}

/// Lets buyers `first..first + count` buy and wait.
///
/// # Errors
/// When one of them gets no order.
pub(crate) async fn measure(address: SocketAddr, first: u64, count: u64) -> Result<Measured, Failure> {
    let (_open, address) = watch::channel(Some(address));
    let started = Instant::now();
    let mut buyers = JoinSet::new();
    for lane in 0..BUYERS_AT_ONCE {
        let numbers = (first + lane..first + count).step_by(usize::try_from(BUYERS_AT_ONCE).unwrap_or(1));
        buyers.spawn(buy(address.clone(), numbers));
    }
    let mut latency = Histogram::new();
    while let Some(joined) = buyers.join_next().await {
        latency.merge(&joined.map_err(|cause| Failure::other("a buyer", cause))??);
    }
    Ok(Measured { latency, per_second: count as f64 / started.elapsed().as_secs_f64() })
}

async fn buy(
    address: watch::Receiver<Option<SocketAddr>>,
    numbers: impl Iterator<Item = u64> + Send,
) -> Result<Histogram, Failure> {
    let losses = Losses::default();
    let mut client = Client::new(address, &losses, tokio::time::Instant::now() + TIME);
    let mut latency = Histogram::new();
    let path = format!("/v1/activities/{ACTIVITY}/skus/{PLENTY}/reservations");
    for number in numbers {
        let body = json!({"user_id": format!("u{number}"), "request_id": "r", "quantity": 1});
        let queued = client.post(&path, &body).await?;
        let asked = Instant::now();
        if queued.status != 202 {
            return Err(Failure::Other(format!("buyer {number} was answered {queued:?}")));
        }
        let look = format!("/v1/reservations/{}?wait_ms=10000", queued.text("reservation_id"));
        let found = client.get(&look).await?;
        if found.text("status") != "ORDER_CREATED" {
            return Err(Failure::Other(format!("buyer {number} got no order but {found:?}")));
        }
        latency.record(asked.elapsed());
    }
    Ok(latency)
}
