//! One buyer: what it asks, and what it makes of the answers.
//!
//! Invariants: a buyer never changes a request that had no answer; every answer is either one that the API promises
//! for this situation or a contradiction. Deliberately absent: looking at the server's stock; a buyer knows only what
//! it was told.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::plan::{Habit, Telling};
use super::tally::{Payment, Receipt, Tally};
use crate::client::{Answer, Client, pause};
use crate::failure::Failure;

/// The sale whose orders wait long for their payment.
pub(crate) const SALE: &str = "demo-sale";
/// The sale whose orders expire at once.
pub(crate) const UNPAID_SALE: &str = "demo-unpaid";
/// The sale whose orders are paid, or expire soon.
pub(crate) const PAID_SALE: &str = "demo-paid";
/// The SKU that everybody wants.
pub(crate) const HOT: &str = "hot";
/// The SKU whose orders expire.
pub(crate) const UNPAID: &str = "unpaid";
/// The SKU whose orders are paid.
pub(crate) const PAID: &str = "paid";
/// The SKU that is ordered directly.
pub(crate) const DIRECT: &str = "direct";

/// Between two looks at something that needs a moment.
const LOOK: Duration = Duration::from_millis(10);
/// How late a late callback is: later than its order waits for its payment.
const LATE_MS: u64 = 1_500;
/// From a cancel to the second confirmation.
pub(crate) const CONFIRM_AFTER: Duration = Duration::from_secs(1);
/// How long one look at a reservation waits for its order.
const WAIT_MS: u32 = 2_000;
/// Most looks at one reservation. Work that a killed server had claimed waits for the end of its lease.
const LOOKS_MAX: u32 = 60;

/// A buyer on its connection.
pub(crate) struct Buyer<'a, 'c> {
    /// The buyer's name.
    pub(crate) user: String,
    /// The connection.
    pub(crate) client: &'c mut Client<'a>,
    /// Where everything is noted.
    pub(crate) tally: &'a Tally,
}

impl Buyer<'_, '_> {
    /// Does what this habit does.
    ///
    /// # Errors
    /// When there is no answer until the demo's time is up.
    pub(crate) async fn act(&mut self, habit: Habit) -> Result<(), Failure> {
        match habit {
            Habit::Asks => self.reserve(SALE, HOT, "1").await.map(drop),
            Habit::NeverPays => self.reserve(UNPAID_SALE, UNPAID, "1").await.map(drop),
            Habit::Repeats => self.repeat().await,
            Habit::WantsMore => self.want_more().await,
            Habit::ChangesBody => self.change_body().await,
            Habit::Waits => match self.reserve(SALE, HOT, "1").await? {
                Some(id) => self.wait_for_order(&id).await.map(drop),
                None => Ok(()),
            },
            Habit::Cancels => self.buy_and_cancel().await,
            Habit::Pays(telling) => self.buy_and_pay(telling).await,
            Habit::OrdersDirectly => self.order_directly(SALE, DIRECT).await.map(drop),
            Habit::OrdersDirectlyTwice => {
                let first = self.order_directly(SALE, DIRECT).await?;
                self.tally.lock().repeats += 1;
                let again = self.order_directly(SALE, DIRECT).await?;
                self.expect(first == again, || {
                    format!("a repeated direct order is {again:?}, not {first:?}")
                });
                Ok(())
            }
        }
    }

    /// Asks for a unit; gives the reservation, or nothing where there was a refusal.
    pub(crate) async fn reserve(
        &mut self,
        activity: &str,
        sku: &'static str,
        request: &str,
    ) -> Result<Option<String>, Failure> {
        let answer = self.ask_to_reserve(activity, sku, request, 1).await?;
        let id = answer.text("reservation_id").to_owned();
        let mut seen = self.tally.lock();
        match answer.status {
            // 200 where an earlier try had arrived and only its answer was lost.
            202 | 200 if !id.is_empty() => {
                let (user, request) = (self.user.clone(), request.to_owned());
                seen.reservations.push(Receipt { sku, user, request, id: id.clone(), is_cancelled: false });
                Ok(Some(id))
            }
            409 if matches!(answer.text("code"), "sold_out" | "limit_reached") => {
                seen.refuse(answer.text("code"));
                Ok(None)
            }
            _ => {
                seen.contradict(format!("{} asked for {sku} and got {}", self.user, answer.short()));
                Ok(None)
            }
        }
    }

    async fn ask_to_reserve(
        &mut self,
        activity: &str,
        sku: &str,
        request: &str,
        quantity: u32,
    ) -> Result<Answer, Failure> {
        let path = format!("/v1/activities/{activity}/skus/{sku}/reservations");
        let body = json!({"user_id": self.user, "request_id": request, "quantity": quantity});
        self.tally.lock().requests += 1;
        self.client.post(&path, &body).await
    }

    async fn repeat(&mut self) -> Result<(), Failure> {
        let Some(first) = self.reserve(SALE, HOT, "1").await? else { return Ok(()) };
        self.tally.lock().repeats += 1;
        let again = self.ask_to_reserve(SALE, HOT, "1", 1).await?;
        let is_same = again.status == 200 && again.text("reservation_id") == first;
        self.expect(is_same, || format!("a repeat of {first} is {}", again.short()));
        Ok(())
    }

    async fn want_more(&mut self) -> Result<(), Failure> {
        let had = self.reserve(SALE, HOT, "1").await?;
        if had.is_none() {
            // Nothing was given, so the second intent is a new chance.
            return self.reserve(SALE, HOT, "2").await.map(drop);
        }
        let more = self.ask_to_reserve(SALE, HOT, "2", 1).await?;
        self.refused(&more, "limit_reached", "a second unit");
        Ok(())
    }

    async fn change_body(&mut self) -> Result<(), Failure> {
        if self.reserve(SALE, HOT, "1").await?.is_none() {
            return Ok(());
        }
        let changed = self.ask_to_reserve(SALE, HOT, "1", 2).await?;
        self.refused(&changed, "request_conflict", "a changed body");
        Ok(())
    }

    fn refused(&self, answer: &Answer, code: &str, what: &str) {
        let is_refused = answer.status == 409 && answer.text("code") == code;
        if is_refused {
            self.tally.lock().refuse(code);
        }
        self.expect(is_refused, || format!("{what} is not refused by {code} but {}", answer.short()));
    }

    async fn wait_for_order(&mut self, reservation: &str) -> Result<Option<String>, Failure> {
        for _look in 0..LOOKS_MAX {
            let path = format!("/v1/reservations/{reservation}?wait_ms={WAIT_MS}");
            self.tally.lock().requests += 1;
            let answer = self.client.get(&path).await?;
            match (answer.status, answer.text("status")) {
                (200, "RESERVED") => {}
                (200, "ORDER_CREATED") => return Ok(Some(answer.text("order_id").to_owned())),
                _ => {
                    self.expect(false, || format!("reservation {reservation} became {}", answer.short()));
                    return Ok(None);
                }
            }
        }
        self.expect(false, || format!("reservation {reservation} stays RESERVED"));
        Ok(None)
    }

    async fn buy_and_cancel(&mut self) -> Result<(), Failure> {
        let Some(reservation) = self.reserve(SALE, HOT, "1").await? else { return Ok(()) };
        let Some(order) = self.wait_for_order(&reservation).await? else { return Ok(()) };
        let path = format!("/v1/orders/{order}/cancel");
        self.tally.lock().requests += 1;
        let answer = self.client.post(&path, &json!({"reason": "changed my mind"})).await?;
        let is_cancelled = answer.status == 200 && answer.text("status") == "CANCELLED";
        self.expect(is_cancelled, || format!("cancelling {order} is {}", answer.short()));
        let mut seen = self.tally.lock();
        if let Some(receipt) = seen.reservations.iter_mut().find(|receipt| receipt.id == reservation) {
            receipt.is_cancelled = is_cancelled;
        }
        Ok(())
    }

    async fn buy_and_pay(&mut self, telling: Telling) -> Result<(), Failure> {
        let Some(order) = self.order_directly(PAID_SALE, PAID).await? else { return Ok(()) };
        let path = format!("/v1/orders/{order}/payments");
        let key = format!("pay-{}", self.user);
        self.tally.lock().requests += 1;
        let started = self.client.post_once(&path, &key, &json!({"provider": "sandbox"})).await?;
        if started.text("code") == "order_not_payable" {
            // The power was away for longer than the order waits.
            return Ok(());
        }
        self.expect(started.status == 201, || format!("starting to pay is {}", started.short()));
        let payment = Payment { order, id: started.text("payment_id").to_owned() };
        self.tally.lock().payments.push(payment.clone());
        if telling != Telling::NeverAndTooLate {
            return self.pay(&payment.id, telling).await;
        }
        let asked = Instant::now();
        self.cancel_and_wait(&payment.order).await?;
        self.pay(&payment.id, telling).await?;
        if asked.elapsed() > CONFIRM_AFTER / 2 {
            // The second confirmation may have been before the money. Nobody asks a third time; a bank tells at last.
            self.pay(&payment.id, Telling::Once).await?;
        }
        Ok(())
    }

    /// Cancels, and waits until the bank has proved that nothing was paid.
    async fn cancel_and_wait(&mut self, order: &str) -> Result<(), Failure> {
        let path = format!("/v1/orders/{order}");
        self.tally.lock().requests += 1;
        self.client.post(&format!("{path}/cancel"), &json!({"reason": "changed my mind"})).await?;
        while self.client.get(&path).await?.text("status") == "CANCEL_PENDING" {
            pause(LOOK).await;
        }
        Ok(())
    }

    async fn pay(&mut self, payment: &str, telling: Telling) -> Result<(), Failure> {
        let body = match telling {
            Telling::Once => json!({"callback": "send"}),
            Telling::Twice => json!({"callback": "duplicate"}),
            Telling::Late => json!({"callback": "send", "delay_ms": LATE_MS}),
            Telling::Never => json!({"callback": "drop"}),
            Telling::NeverAndTooLate => json!({"callback": "drop", "force": true}),
        };
        let path = format!("/sandbox/payments/{payment}/succeed");
        loop {
            self.tally.lock().requests += 1;
            let answer = self.client.post(&path, &body).await?;
            // Not there yet where the power failed before the bank was told; closed where the order's time was up.
            if answer.status != 404 {
                let is_played = matches!((answer.status, answer.text("code")), (200, _) | (409, "conflict"));
                self.expect(is_played, || format!("paying is {}", answer.short()));
                return Ok(());
            }
            pause(LOOK).await;
        }
    }

    async fn order_directly(&mut self, activity: &str, sku: &'static str) -> Result<Option<String>, Failure> {
        let lines = json!([{"activity_id": activity, "sku_id": sku, "quantity": 1}]);
        let body = json!({"user_id": self.user, "request_id": "direct", "lines": lines});
        self.tally.lock().requests += 1;
        let answer = self.client.post("/v1/orders", &body).await?;
        let id = answer.text("order_id").to_owned();
        let is_made = matches!(answer.status, 200 | 201) && !id.is_empty();
        self.expect(is_made, || format!("a direct order is {}", answer.short()));
        if !is_made {
            return Ok(None);
        }
        let receipt = Receipt {
            sku,
            user: self.user.clone(),
            request: "direct".to_owned(),
            id: id.clone(),
            is_cancelled: false,
        };
        let mut seen = self.tally.lock();
        if !seen.direct_orders.contains(&receipt) {
            seen.direct_orders.push(receipt);
        }
        Ok(Some(id))
    }

    fn expect(&self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.tally.lock().contradict(format!("{}: {}", self.user, otherwise()));
        }
    }
}
