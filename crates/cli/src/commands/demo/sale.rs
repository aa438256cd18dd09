//! The sale: everybody comes, the power fails now and then, what was cancelled is sold again, and all comes to rest. Beside
//! it people order together, and jobs are done for credits.
//!
//! Invariants: buyers start in the order of the plan, and none starts beyond the next kill by more than the plan
//! allows, so every kill meets a running sale; the end is a condition, never a time. Read next: `buyer`, `group_order`, `studio`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::buyer::{Buyer, CONFIRM_AFTER, DIRECT, HOT, PAID, PAID_SALE, SALE, UNPAID, UNPAID_SALE};
use super::plan::Plan;
use super::tally::Tally;
use crate::client::{Address, Answer, Client, Losses, pause};
use crate::failure::Failure;
use crate::outside::rest::{Ahead, busy_queues};
use crate::outside::server::Server;
use crate::outside::together::all;
use crate::time::{SystemClock, rfc3339};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::{Millis, Timestamp};

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(20);
/// Payment window of the orders that are to expire.
const SHORT_WINDOW_MS: u64 = 1_000;
/// Buyers who come after everything is sold.
pub(crate) const LATE_BUYERS: usize = 20;
const DAY: Millis = Millis(24 * 60 * 60 * 1000);

/// What all parts of a sale share.
pub(crate) struct Sale<'a> {
    /// What will happen.
    pub(crate) plan: &'a Plan,
    /// Where the server is.
    pub(crate) address: Address,
    /// What was seen.
    pub(crate) tally: &'a Tally,
    /// What was lost on the way.
    pub(crate) losses: &'a Losses,
    /// When it began, by the wall clock.
    pub(crate) began: Timestamp,
    /// When patience ends.
    pub(crate) deadline: Instant,
    /// For whoever looks at a terminal.
    pub(crate) progress: &'a ProgressBar,
}

impl<'a> Sale<'a> {
    /// A connection of this sale.
    pub(crate) fn client(&self) -> Client<'a> {
        Client::new(self.address.clone(), self.losses, self.deadline)
    }

    /// Puts everything on sale.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub(crate) async fn open(&self) -> Result<(), Failure> {
        let mut client = self.client();
        let now = SystemClock.now();
        let terms = |name: &str, window_ms: u64, grace_ms: u64| {
            json!({
                "name": name, "starts_at": rfc3339(now.minus(DAY)), "ends_at": rfc3339(now.plus(DAY)),
                "payment_window_ms": window_ms, "cancel_grace_ms": grace_ms, "cancelled_frees_limit": true,
                "confirm_after_cancel_ms": CONFIRM_AFTER.as_millis() as u64,
            })
        };
        let sku = |stock: usize, limit: u32| {
            let price = json!({"amount": 1999, "currency": "CNY"});
            json!({"stock": stock, "price": price, "per_user_limit": limit})
        };
        let plan = self.plan;
        for (path, body) in [
            (format!("/v1/activities/{SALE}"), terms("Flash sale", 900_000, 300_000)),
            (format!("/v1/activities/{UNPAID_SALE}"), terms("Nobody pays", SHORT_WINDOW_MS, 0)),
            (format!("/v1/activities/{PAID_SALE}"), terms("Everybody pays", SHORT_WINDOW_MS, 200)),
            (sku_path(SALE, HOT), sku(plan.stock, 1)),
            (sku_path(PAID_SALE, PAID), sku(plan.paid_stock, 1)),
            (sku_path(UNPAID_SALE, UNPAID), sku(plan.unpaid_stock, 1)),
            (sku_path(SALE, DIRECT), sku(plan.direct_stock, 1)),
        ] {
            let answer = client.put(&path, &body).await?;
            if !matches!(answer.status, 200 | 201) {
                return Err(Failure::Other(format!("PUT {path} was answered {}", answer.short())));
            }
        }
        Ok(())
    }

    /// Lets everybody come, and kills the server at the planned points.
    ///
    /// # Errors
    /// When a buyer gets no answer, or the server cannot be started again.
    pub(crate) async fn run(&self, server: &mut Server) -> Result<usize, Failure> {
        let (finished, _) = watch::channel(0_usize);
        let (allowed, _) = watch::channel(self.plan.at_once);
        let next = AtomicUsize::new(0);
        let crowd = Crowd { next: &next, finished: &finished, allowed: &allowed };
        let queues = (0..self.plan.at_once).map(|_| self.serve_buyers(&crowd));
        let buying = all(queues);
        let killing = self.kill(server, &crowd);
        let ((), kills, (), ()) = tokio::try_join!(buying, killing, self.gather(), self.produce())?;
        Ok(kills)
    }

    /// One connection: takes the next buyer, until none is left.
    async fn serve_buyers(&self, crowd: &Crowd<'_>) -> Result<(), Failure> {
        let mut client = self.client();
        let mut allowed = crowd.allowed.subscribe();
        loop {
            let number = crowd.next.fetch_add(1, Ordering::Relaxed);
            let Some(habit) = self.plan.buyers.get(number) else { return Ok(()) };
            let opened = allowed.wait_for(|limit| number < *limit).await;
            opened.map_err(|_| Failure::Other("the sale was broken off".to_owned()))?;
            let user = format!("buyer-{number}");
            Buyer { user, client: &mut client, tally: self.tally }.act(*habit).await?;
            crowd.finished.send_modify(|count| *count += 1);
            self.progress.inc(1);
        }
    }

    async fn kill(&self, server: &mut Server, crowd: &Crowd<'_>) -> Result<usize, Failure> {
        let mut finished = crowd.finished.subscribe();
        for point in &self.plan.kills {
            crowd.allowed.send_replace(point + self.plan.at_once);
            let reached = finished.wait_for(|count| count >= point).await;
            reached.map_err(|_| Failure::Other("the sale was broken off".to_owned()))?;
            self.progress.set_message("power cut");
            server.kill().await?;
            server.start().await?;
            self.progress.set_message("");
        }
        crowd.allowed.send_replace(usize::MAX);
        Ok(self.plan.kills.len())
    }

    /// Sells what was cancelled, until nothing is left at the gate or in the store.
    ///
    /// # Errors
    /// When it does not end in time.
    pub(crate) async fn sell_again(&self) -> Result<u64, Failure> {
        let mut client = self.client();
        let mut late = 0;
        loop {
            let sku = self.sku(&mut client, SALE, HOT).await?;
            let count = |part: &str, name: &str| sku.body[part][name].as_i64().unwrap_or(-1);
            let at_gate = count("admission", "available");
            if at_gate == 0 && count("admission", "open_reserved") == 0 && count("stock", "available") == 0 {
                return Ok(late);
            }
            for _ in 0..at_gate {
                late += 1;
                let user = format!("late-{late}");
                Buyer { user, client: &mut client, tally: self.tally }.reserve(SALE, HOT, "1").await?;
            }
            self.in_time("what was cancelled is sold again")?;
            pause(LOOK).await;
        }
    }

    /// Some come when everything is gone.
    ///
    /// # Errors
    /// When they get no answer.
    pub(crate) async fn come_too_late(&self) -> Result<(), Failure> {
        let mut client = self.client();
        for number in 0..LATE_BUYERS {
            let user = format!("too-late-{number}");
            let got = Buyer { user, client: &mut client, tally: self.tally }.reserve(SALE, HOT, "1").await?;
            if let Some(id) = got {
                self.tally.lock().contradict(format!("{id} was given when everything was sold"));
            }
        }
        Ok(())
    }

    /// Waits until the unpaid orders have expired and nothing is on its way any more. Only due-times that lie ahead
    /// remain: they belong to orders that may still be paid.
    ///
    /// # Errors
    /// When it does not come to rest in time, with what is still there.
    pub(crate) async fn come_to_rest(&self) -> Result<(), Failure> {
        let mut client = self.client();
        loop {
            let unpaid = self.sku(&mut client, UNPAID_SALE, UNPAID).await?;
            let overview = client.get("/v1/ops/overview").await?;
            let busy = busy_queues(&overview, Ahead::OrdersAndReservations);
            let is_freed = unpaid.body["stock"]["available"] == unpaid.body["stock"]["initial"]
                && unpaid.body["admission"]["available"] == unpaid.body["stock"]["initial"];
            if busy.is_empty() && is_freed {
                return Ok(());
            }
            self.in_time(&format!("everything comes to rest (busy: {})", busy.join(", ")))?;
            pause(LOOK).await;
        }
    }

    /// Looks at a SKU.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(crate) async fn sku(
        &self,
        client: &mut Client<'_>,
        activity: &str,
        sku: &str,
    ) -> Result<Answer, Failure> {
        let answer = client.get(&sku_path(activity, sku)).await?;
        if answer.status == 200 {
            Ok(answer)
        } else {
            Err(Failure::Other(format!("{sku} is {}", answer.short())))
        }
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// When there is none, with what did not come about.
    pub(crate) fn in_time(&self, what: &str) -> Result<(), Failure> {
        if Instant::now() < self.deadline {
            Ok(())
        } else {
            Err(Failure::Other(format!("the demo's time was up before {what}")))
        }
    }
}

/// How the buyers' connections and the kills know of each other.
struct Crowd<'a> {
    next: &'a AtomicUsize,
    finished: &'a watch::Sender<usize>,
    allowed: &'a watch::Sender<usize>,
}

fn sku_path(activity: &str, sku: &str) -> String {
    format!("/v1/activities/{activity}/skus/{sku}")
}
