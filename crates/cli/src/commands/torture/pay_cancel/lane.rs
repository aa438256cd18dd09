//! One connection with many buyers on it: makes orders, and does at each moment what is due.
//!
//! Invariants: a buyer never changes a request that had no answer; what is due comes before new orders, so that a server
//! that falls behind gets fewer of them; money whose callback was dropped is told of after all where it moved so late that the
//! second confirmation may have been before it. Every answer is one that the API promises, or a contradiction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::{Millis, Timestamp};
use serde_json::{Value, json};

use super::plan::{AROUND, Calling, Course, Habit};
use super::seen::Seen;
use super::{CONFIRM_AFTER, PRICE, SKU, Torture};
use crate::client::{Answer, Client, pause};
use crate::failure::Failure;
use crate::time::SystemClock;

/// Most orders of one lane that wait for their time.
const AHEAD_MAX: usize = 256;
/// Longest pause before a lane looks again whether there is something to do.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at something that is not there yet.
const AGAIN: Millis = Millis(20);
/// How long after paying a buyer wants money back.
const BACK_AFTER: Millis = Millis(1_000);
/// How long after its order's due-time a payment that the bank does not know yet is tried.
const TRY_FOR: Millis = Millis(1_000);
/// Slowest pace of a lane, from one new order to the next.
const PACE_MAX: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    Look,
    Start,
    Decline,
    Retry,
    Cancel,
    Pay,
    PayFirst,
    WantBack,
}

/// A connection.
pub(super) struct Lane<'a> {
    torture: &'a Torture<'a>,
    client: Client<'a>,
    /// What is to be done when, by which of the orders.
    due: BinaryHeap<Reverse<(Timestamp, Deed, usize)>>,
    orders: Vec<Seen>,
    waiting: usize,
    pace: Duration,
    next_order: tokio::time::Instant,
}

impl<'a> Lane<'a> {
    pub(super) fn new(torture: &'a Torture<'a>) -> Self {
        Self {
            torture,
            client: torture.client(),
            due: BinaryHeap::new(),
            orders: Vec::new(),
            waiting: 0,
            pace: torture.pace,
            next_order: tokio::time::Instant::now(),
        }
    }

    /// Goes on until no buyer is left and everybody has done everything.
    ///
    /// # Errors
    /// When there is no answer until the time is up.
    pub(super) async fn run(mut self) -> Result<(), Failure> {
        loop {
            let now = SystemClock.now();
            let is_due = self.due.peek().is_some_and(|Reverse((at, _, _))| *at <= now);
            if is_due && let Some(Reverse((_, deed, index))) = self.due.pop() {
                self.act(deed, index).await?;
                continue;
            }
            let has_room = self.waiting < AHEAD_MAX && tokio::time::Instant::now() >= self.next_order;
            if has_room && let Some(number) = self.torture.next_buyer() {
                self.next_order = tokio::time::Instant::now() + self.pace;
                self.order(number).await?;
                continue;
            }
            if self.due.is_empty() && self.torture.is_over() {
                self.torture.lock().orders.append(&mut self.orders);
                return Ok(());
            }
            let wait = self.due.peek().map_or(LOOK, |Reverse((at, _, _))| {
                LOOK.min(Duration::from_millis(at.since(now).0.unsigned_abs()))
            });
            pause(wait).await;
        }
    }

    async fn order(&mut self, number: usize) -> Result<(), Failure> {
        let course = Course::of(self.torture.seed, number);
        let (activity, user) = (course.late.name(), format!("buyer-{number}"));
        let answer = if course.is_flash {
            let path = format!("/v1/activities/{activity}/skus/{SKU}/reservations");
            self.client.post(&path, &json!({"user_id": user, "request_id": "r"})).await?
        } else {
            let lines = json!([{"activity_id": activity, "sku_id": SKU, "quantity": 1}]);
            let body = json!({"user_id": user, "request_id": "r", "lines": lines});
            self.client.post("/v1/orders", &body).await?
        };
        self.count();
        if !matches!(answer.status, 200..=202) {
            self.contradict(format!("{user} asked for a unit and got {}", answer.short()));
            self.torture.missed();
            return Ok(());
        }
        let seen = Seen {
            course,
            number,
            order: answer.text("order_id").to_owned(),
            reservation: answer.text("reservation_id").to_owned(),
            due: time_of(&answer, "cancel_due_at"),
            payments: Vec::new(),
            is_near: false,
            is_taken: false,
            is_told_again: false,
            back: 0,
            too_much: 0,
        };
        self.waiting += 1;
        let deed = if course.is_flash { Deed::Look } else { Deed::Start };
        self.due.push(Reverse((SystemClock.now(), deed, self.orders.len())));
        self.orders.push(seen);
        Ok(())
    }

    async fn act(&mut self, deed: Deed, index: usize) -> Result<(), Failure> {
        match deed {
            Deed::Look => self.look(index).await,
            Deed::Start => self.start(index).await,
            Deed::Decline => self.decline(index).await,
            Deed::Retry => self.retry(index).await,
            Deed::Cancel => self.cancel(index).await,
            Deed::Pay => self.pay(index).await,
            Deed::PayFirst => self.pay_first(index).await,
            Deed::WantBack => self.want_back(index).await,
        }
    }

    fn later(&mut self, at: Timestamp, deed: Deed, index: usize) {
        self.due.push(Reverse((at, deed, index)));
    }

    fn count(&self) {
        self.torture.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn contradict(&self, sentence: String) {
        self.torture.lock().contradictions.push(sentence);
    }

    /// Whether the reservation has its order.
    async fn look(&mut self, index: usize) -> Result<(), Failure> {
        let path = format!("/v1/reservations/{}", self.orders[index].reservation);
        let found = self.client.get(&path).await?;
        self.count();
        match found.text("status") {
            "RESERVED" => {
                self.later(SystemClock.now().plus(AGAIN), Deed::Look, index);
                return Ok(());
            }
            "ORDER_CREATED" | "CANCELLED" => {}
            _ => {
                self.give_up(index, &format!("its reservation is {}", found.short()));
                return Ok(());
            }
        }
        let order = found.text("order_id").to_owned();
        let known = self.client.get(&format!("/v1/orders/{order}")).await?;
        self.count();
        self.orders[index].order = order;
        self.orders[index].due = time_of(&known, "cancel_due_at");
        self.start(index).await
    }

    fn give_up(&mut self, index: usize, why: &str) {
        self.contradict(format!("buyer-{}: {why}", self.orders[index].number));
        self.is_judged(false);
    }

    /// The buyer has paid, or cannot any more.
    fn is_judged(&mut self, is_near: bool) {
        self.waiting -= 1;
        let (slower, faster) = (self.pace.mul_f32(1.2).min(PACE_MAX), self.pace.mul_f32(0.97));
        if is_near {
            self.pace = faster.max(self.torture.pace);
        } else {
            self.pace = slower;
            self.torture.missed();
        }
    }

    /// Starts an attempt; `None` where its time is up already, as after a long power cut.
    async fn attempt(&mut self, index: usize) -> Result<Option<String>, Failure> {
        let seen = &self.orders[index];
        let path = format!("/v1/orders/{}/payments", seen.order);
        let key = format!("pay-{}-{}", seen.number, seen.payments.len());
        let answer = self.client.post_once(&path, &key, &json!({"provider": "sandbox"})).await?;
        self.count();
        match (answer.status, answer.text("code")) {
            (201, _) => Ok(Some(answer.text("payment_id").to_owned())),
            (409, "order_not_payable") => Ok(None),
            _ => {
                self.contradict(format!("starting a payment is {}", answer.short()));
                Ok(None)
            }
        }
    }

    async fn start(&mut self, index: usize) -> Result<(), Failure> {
        let Some(payment) = self.attempt(index).await? else {
            self.torture.sometimes("not_payable_any_more");
            self.is_judged(false);
            return Ok(());
        };
        self.orders[index].payments.push(payment);
        let Seen { course, due, .. } = self.orders[index];
        let at = due.plus(course.offset);
        match course.habit {
            Habit::IsDeclinedFirst(_) | Habit::PaysTwice => {
                self.later(SystemClock.now(), Deed::Decline, index);
            }
            Habit::Cancels(before) => {
                self.later(at.minus(before), Deed::Cancel, index);
                self.later(at, Deed::Pay, index);
            }
            Habit::Pays | Habit::WantsItBack | Habit::WantsTooMuchBack => self.later(at, Deed::Pay, index),
        }
        Ok(())
    }

    async fn decline(&mut self, index: usize) -> Result<(), Failure> {
        let seen = &self.orders[index];
        let calling = match seen.course.habit {
            Habit::IsDeclinedFirst(calling) => calling,
            Habit::Pays
            | Habit::PaysTwice
            | Habit::Cancels(_)
            | Habit::WantsItBack
            | Habit::WantsTooMuchBack => Calling::Send,
        };
        let path = format!("/sandbox/payments/{}/fail", seen.payments[0]);
        let answer = self.client.post(&path, &json!({"callback": calling.name()})).await?;
        self.count();
        if answer.status == 404 {
            // Its announcement met a power cut, and the worker's is on its way.
            self.later(SystemClock.now().plus(AGAIN), Deed::Decline, index);
        } else {
            self.torture.sometimes("declined");
            self.later(SystemClock.now().plus(AGAIN), Deed::Retry, index);
        }
        Ok(())
    }

    async fn retry(&mut self, index: usize) -> Result<(), Failure> {
        if let Some(payment) = self.attempt(index).await? {
            if self.orders[index].payments.contains(&payment) {
                self.torture.sometimes("declined_but_open_here");
            } else {
                self.orders[index].payments.push(payment);
            }
        }
        let at = self.orders[index].due.plus(self.orders[index].course.offset);
        self.later(at, Deed::Pay, index);
        Ok(())
    }

    async fn cancel(&mut self, index: usize) -> Result<(), Failure> {
        let path = format!("/v1/orders/{}/cancel", self.orders[index].order);
        let answer = self.client.post(&path, &json!({"reason": "changed my mind"})).await?;
        self.count();
        match (answer.status, answer.text("code")) {
            (200, _) => self.torture.sometimes("cancel_asked"),
            (409, "order_not_cancellable") => self.torture.sometimes("cancel_came_too_late"),
            _ => self.contradict(format!("a cancel is {}", answer.short())),
        }
        Ok(())
    }

    async fn play(&mut self, payment: &str, calling: Calling, index: usize) -> Result<Answer, Failure> {
        let Course { delay, by_force, .. } = self.orders[index].course;
        let body = json!({"callback": calling.name(), "delay_ms": delay.0, "force": by_force});
        self.count();
        self.client.post(&format!("/sandbox/payments/{payment}/succeed"), &body).await
    }

    async fn pay(&mut self, index: usize) -> Result<(), Failure> {
        let Seen { course, due, .. } = self.orders[index];
        let payment = self.orders[index].payments.last().cloned().unwrap_or_default();
        let sent = SystemClock.now();
        let answer = self.play(&payment, course.calling, index).await?;
        let answered = SystemClock.now();
        if answer.status == 404 && answered < due.plus(TRY_FOR) {
            self.later(answered.plus(AGAIN), Deed::Pay, index);
            return Ok(());
        }
        if !matches!((answer.status, answer.text("code")), (200, _) | (404, _) | (409, "conflict")) {
            self.contradict(format!("paying {payment} is {}", answer.short()));
        }
        let is_near = answer.status != 404 && sent >= due.minus(AROUND) && answered <= due.plus(AROUND);
        let seen = &mut self.orders[index];
        (seen.is_near, seen.is_taken) = (is_near, answer.status == 200);
        let told_of = course.calling != Calling::Drop;
        if seen.is_taken && !told_of && answered > due.plus(Millis(CONFIRM_AFTER.0 / 2)) {
            seen.is_told_again = true;
            self.torture.sometimes("told_of_after_all");
            self.play(&payment, Calling::Send, index).await?;
        }
        self.is_judged(is_near);
        match course.habit {
            Habit::PaysTwice if self.orders[index].payments.len() > 1 => {
                self.later(answered.plus(AGAIN), Deed::PayFirst, index);
            }
            Habit::WantsItBack | Habit::WantsTooMuchBack => {
                self.later(answered.plus(BACK_AFTER), Deed::WantBack, index);
            }
            Habit::PaysTwice | Habit::Pays | Habit::IsDeclinedFirst(_) | Habit::Cancels(_) => {}
        }
        Ok(())
    }

    /// The attempt that was declined brings money after all. Nothing but its callback can tell of it where the order is paid.
    async fn pay_first(&mut self, index: usize) -> Result<(), Failure> {
        let first = self.orders[index].payments[0].clone();
        let path = format!("/sandbox/payments/{first}/succeed");
        let answer = self.client.post(&path, &json!({"callback": "duplicate", "force": true})).await?;
        self.count();
        if answer.status == 200 {
            self.torture.sometimes("declined_attempt_paid_after_all");
        } else {
            self.contradict(format!("forcing {first} is {}", answer.short()));
        }
        Ok(())
    }

    async fn want_back(&mut self, index: usize) -> Result<(), Failure> {
        let (path, number) =
            (format!("/v1/orders/{}/refunds", self.orders[index].order), self.orders[index].number);
        let is_too_much = self.orders[index].course.habit == Habit::WantsTooMuchBack;
        let mut firsts: Vec<Value> = Vec::new();
        for again in 0..2 {
            let (key, body) = if is_too_much {
                let amount = json!({"amount": PRICE * 6 / 10, "currency": "CNY"});
                (format!("back-{number}-{again}"), json!({"reason": "too large", "amount": amount}))
            } else {
                (format!("back-{number}"), json!({"reason": "mind"}))
            };
            let answer = self.client.post_once(&path, &key, &body).await?;
            self.count();
            match (answer.status, answer.text("code")) {
                (201, _) => {
                    let is_new = !firsts.iter().any(|first| first["refund_id"] == answer.body["refund_id"]);
                    let amount = answer.body["amount"]["amount"].as_i64().unwrap_or(0);
                    self.orders[index].back += if is_new { amount } else { 0 };
                    self.torture.sometimes(if is_new { "refund_asked" } else { "refund_asked_twice" });
                }
                (422, "refund_exceeds_paid") => {
                    self.torture.sometimes("refund_too_large");
                    self.orders[index].too_much += 1;
                }
                (409, "order_not_refundable") => self.torture.sometimes("refund_refused"),
                _ => self.contradict(format!("a refund is {}", answer.short())),
            }
            firsts.push(answer.body);
        }
        Ok(())
    }
}

fn time_of(answer: &Answer, name: &str) -> Timestamp {
    let parsed: Option<jiff::Timestamp> = answer.text(name).parse().ok();
    Timestamp(parsed.map_or(0, jiff::Timestamp::as_millisecond))
}
