//! The expiry worker (OT-04): unpaid orders are cancelled when the deadline trigger says that their time has come.
//!
//! Invariants: what a trigger says is looked up on the order's own row, in the transaction that ends it, so a signal that
//! comes twice, early or late changes nothing; a signal is acknowledged only after that transaction. Orders whose time lies
//! ahead are given back for later. Read next: [`super::sweep`], which finds what no trigger told.

use onceward_domain::decide::cancel::{Expired, expire};
use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::deadline::{Signal, SignalEnd};
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::execute::{execute, may_be_one};
use crate::observe;
use crate::workers::{Next, sweep};

/// Takes signals, cancels what is due of their orders, settles them.
///
/// # Errors
/// The ports'; what was taken is told again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    let trigger = engine.deadline_trigger();
    let signals = trigger.take(settings.claim_batch, settings.lease).await?;
    if signals.is_empty() {
        return Ok(Next::Wait(trigger.next_in().await?));
    }
    for batch in batches(signals, settings.order_batch) {
        let orders: Vec<PurchaseId> = batch.iter().flat_map(|signal| signal.orders.clone()).collect();
        let ended = end_orders(engine, "expire_orders", &orders).await?;
        let ends = batch.into_iter().map(|signal| end_of(signal, &ended.early)).collect();
        trigger.settle(ends).await?;
    }
    Ok(Next::Again)
}

/// Signals that are decided together: about `limit` orders, and at least one signal.
fn batches(signals: Vec<Signal>, limit: usize) -> Vec<Vec<Signal>> {
    let mut batches: Vec<Vec<Signal>> = Vec::new();
    let mut orders = limit;
    for signal in signals {
        orders += signal.orders.len();
        if orders > limit || batches.is_empty() {
            orders = signal.orders.len();
            batches.push(Vec::new());
        }
        batches.last_mut().expect("there is one now").push(signal);
    }
    batches
}

fn end_of(signal: Signal, early: &[(PurchaseId, Millis)]) -> SignalEnd {
    let waiting: Vec<&(PurchaseId, Millis)> =
        early.iter().filter(|(id, _)| signal.orders.contains(id)).collect();
    match waiting.iter().map(|(_, wait)| *wait).min() {
        None => SignalEnd::Ack(signal.receipt),
        Some(wait) => {
            let orders = waiting.into_iter().map(|(id, _)| *id).collect();
            SignalEnd::Again { receipt: signal.receipt, orders, wait }
        }
    }
}

/// What became of orders that were to be ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// How many end now.
    pub(crate) ended: u32,
    /// Those whose time lies ahead.
    pub(crate) early: Vec<(PurchaseId, Millis)>,
    /// The last defect, where an order met one: the others ended all the same, and the sweep comes back to it.
    pub(crate) defect: Option<Error>,
}

/// Ends those of these orders whose time has come, in one transaction; where one of them fails for good, one by one, so that
/// it does not hold up the others.
pub(crate) async fn end_orders(
    engine: &Engine,
    name: &'static str,
    orders: &[PurchaseId],
) -> Result<Ended, Error> {
    let mut ended = Ended::default();
    let parts: Vec<Vec<PurchaseId>> = match decide(engine, name, orders.to_vec()).await {
        Ok(expired) => {
            ended.add(expired);
            Vec::new()
        }
        Err(error) if may_be_one(&error) => orders.iter().map(|id| vec![*id]).collect(),
        Err(error) => return Err(error),
    };
    for part in parts {
        match decide(engine, name, part).await {
            Ok(expired) => ended.add(expired),
            Err(error) if may_be_one(&error) => {
                tracing::error!(target: "onceward", event = "order.expiry_failed", error = ?error);
                ended.defect = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if ended.ended > 0 {
        let lost = if name == sweep::NAME { ended.ended } else { 0 };
        observe::orders_expired(ended.ended.into(), lost.into());
        engine.signals().relay.notify_one();
        engine.signals().cancel.notify_one();
        engine.signals().confirm.notify_one();
    }
    Ok(ended)
}

impl Ended {
    fn add(&mut self, expired: Expired) {
        self.ended += expired.ended;
        self.early.extend(expired.early);
    }
}

async fn decide(engine: &Engine, name: &'static str, orders: Vec<PurchaseId>) -> Result<Expired, Error> {
    let known = engine.store().view(Need { purchases: orders.clone(), ..Need::default() }).await?;
    let mut need = Need { purchases: orders.clone(), attempts: orders.clone(), ..Need::default() };
    for id in &orders {
        for line in known.purchases.get(id).iter().flat_map(|purchase| &purchase.lines) {
            if !need.skus.contains(&line.key) {
                need.skus.push(line.key.clone());
            }
        }
    }
    execute(engine, name, need, move |facts| expire(facts, &orders)).await
}
