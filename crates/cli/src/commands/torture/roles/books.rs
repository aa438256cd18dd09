//! The reckoning: every answer against what is there, every unit, and the server's own invariants.
//!
//! Invariant: at the end every order has ended, so every unit is free again, in the store and at the gate.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{SKU, STOCK, Torture};
use crate::client::Client;
use crate::failure::Failure;
use crate::outside::check::{Check, of_the_server};
use crate::outside::list::orders_of;
use crate::outside::rest::{Ahead, busy_queues};

/// What is still on its way: queues, and units that are not back.
pub(super) async fn busy(torture: &Torture<'_>, client: &mut Client<'_>) -> Result<Vec<String>, Failure> {
    let sku = sku(torture, client).await?;
    let mut busy = busy_queues(&client.get("/v1/ops/overview").await?, Ahead::Reservations);
    let rest = json!({"available": STOCK, "open_reserved": 0, "committed": 0});
    if sku["admission"] != rest {
        busy.push(format!("the gate has {}", sku["admission"]));
    }
    Ok(busy)
}

async fn sku(torture: &Torture<'_>, client: &mut Client<'_>) -> Result<Value, Failure> {
    Ok(client.get(&format!("/v1/activities/{}/skus/{SKU}", torture.activity)).await?.body)
}

/// Holds everything against everything.
///
/// # Errors
/// When nobody answers.
pub(super) async fn compare(torture: &Torture<'_>, busy: &[String]) -> Result<Vec<Check>, Failure> {
    let mut client = torture.client(0);
    let seen = std::mem::take(&mut *torture.seen());
    let orders = orders_of(&mut client, &torture.activity).await?;
    let (mut missing, mut others) = (Vec::new(), Vec::new());
    for one in &seen {
        let answer = client.get(&format!("/v1/reservations/{}", one.reservation)).await?;
        let order = answer.text("order_id");
        if order.is_empty() {
            missing.push(format!("{} has no order: {}", one.user, answer.short()));
        } else if one.order.as_ref().is_some_and(|named| named != order) {
            others.push(format!("{} was told of another order", one.user));
        }
    }
    let buyers: BTreeSet<&str> = orders.iter().filter_map(|order| order["user_id"].as_str()).collect();
    if orders.len() != seen.len() || buyers.len() != seen.len() {
        let (orders, buyers) = (orders.len(), buyers.len());
        others.push(format!("{} were let in; {orders} orders of {buyers} buyers", seen.len()));
    }
    let open: Vec<String> = orders
        .iter()
        .filter(|order| order["status"] != "CANCELLED")
        .map(|order| format!("{} is {}", order["order_id"], order["status"]))
        .collect();
    let stock = sku(torture, &mut client).await?["stock"].clone();
    let is_free = stock["available"] == STOCK && stock["occupied"] == 0 && stock["sold"] == 0;
    let leaked = if is_free { Vec::new() } else { vec![stock.to_string()] };
    let count = seen.len();
    *torture.seen() = seen;
    let mut checks = vec![
        Check::of("every_answer_is_an_order", &format!("{count} reservations"), &missing),
        Check::of("nobody_has_two", &format!("{count} reservations, {} orders", orders.len()), &others),
        Check::of("every_order_has_ended", &format!("{} orders", orders.len()), &open),
        Check::of("every_unit_is_free", &format!("{STOCK} units"), &leaked),
        Check::of("everything_came_to_rest", "every queue, and the gate", busy),
    ];
    checks.extend(of_the_server(&mut client).await?);
    Ok(checks)
}
