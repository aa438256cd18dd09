//! What can be said of a whole run: each decision was told once, the domain's own audit agrees, and in a plain sale
//! winners = min(stock, demand).
//!
//! Deliberately absent from the last: sales with cancels, direct orders, adjustments or deadlines that struck; there a buyer
//! may rightly have been told "sold out" before a unit came back.

use std::collections::{BTreeMap, BTreeSet};

use onceward::store_bus::aside_of;
use onceward::wire;
use onceward_domain::audit;
use onceward_domain::carrier;
use onceward_domain::changes::Transition;
use onceward_domain::derive::payload_hash;
use onceward_domain::event::Fact;
use onceward_domain::id::IdKind;
use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::ports::bus::{Message, Topic};
use onceward_domain::ports::store::Store;

use super::people::sku_key;
use super::scenario::{Scenario, Stall, Wish};
use super::world::World;
use crate::block_on::block_on;

/// Whether a message's effect is durable: an inbox entry or a place in quarantine; for an event, its projection, or a place on the
/// shelf from which it is brought again.
pub(crate) fn has_landed(world: &World, topic: Topic, message: &Message) -> bool {
    is_done(world, topic, message) || is_aside(world, topic, message)
}

fn is_aside(world: &World, topic: Topic, message: &Message) -> bool {
    let (rows, shelf) = (world.store.rows(), aside_of(topic));
    let of_shelf = rows.due.iter().filter(|((lane, _), _)| *lane == shelf);
    let mut aside = of_shelf.filter_map(|(_, row)| carrier::unpack(&row.body).ok()).flatten();
    aside.any(|one| one.id == message.id)
}

fn is_done(world: &World, topic: Topic, message: &Message) -> bool {
    let rows = world.store.rows();
    match topic {
        Topic::OrderCreate => {
            let hash = payload_hash(&message.payload);
            let purchase = wire::decode_message(&message.payload).ok().map(|content| content.purchase);
            let inbox = purchase.and_then(|id| rows.purchases.get(&id)).and_then(|purchase| purchase.inbox);
            inbox.is_some_and(|inbox| inbox.payload_hash == hash)
                || rows.quarantined.contains(&(message.id.clone(), hash))
        }
        Topic::Events => match wire::decode_event(&message.payload).map(|event| event.fact) {
            Ok(Fact::OrderCreated { purchase, .. }) => {
                let gate = rows.purchases.get(&purchase).map(|purchase| purchase.admission);
                matches!(gate, Some(Admission::OrderCreated | Admission::Cancelled | Admission::Reinstated))
            }
            Ok(Fact::OrderCancelled { purchase, .. }) => {
                let gate = rows.purchases.get(&purchase).map(|purchase| purchase.admission);
                matches!(gate, Some(Admission::Cancelled | Admission::Reinstated))
            }
            Ok(Fact::OrderReinstated { purchase, .. }) => {
                let gate = rows.purchases.get(&purchase).map(|purchase| purchase.admission);
                gate == Some(Admission::Reinstated)
            }
            Ok(Fact::StockAdjusted { key, number, .. }) => {
                rows.buckets.get(&key).is_some_and(|bucket| bucket.adjustments >= number)
            }
            Ok(Fact::ReservationRejected { .. } | Fact::OrderPaid { .. } | Fact::OrderRefunded { .. }) => {
                true
            }
            Err(_) => false,
        },
    }
}

/// Checks that every decision left exactly one event, however often it was asked for (FS-06).
pub(crate) fn check_events(world: &World) {
    let mut told: BTreeMap<String, u32> = BTreeMap::new();
    for body in world.take_outbox() {
        match wire::split_events(&body) {
            Ok(events) => events.iter().for_each(|event| *told.entry(event.id.to_string()).or_default() += 1),
            Err(error) => world.violated(format!("an outbox entry cannot be read: {error}")),
        }
    }
    let rows = world.store.rows();
    let mut expected: BTreeMap<String, u32> = BTreeMap::new();
    for (id, purchase) in rows.purchases.iter() {
        let history = rows.history(*id);
        let times = |to: OrderStatus, from: Option<OrderStatus>| {
            let moved = |row: &&Transition| {
                row.kind == OrderStatus::NAME
                    && row.to == to.name()
                    && row.from != Some(to.name())
                    && from.is_none_or(|from| row.from == Some(from.name()))
            };
            history.iter().filter(moved).count()
        };
        let reinstated = times(OrderStatus::Paid, Some(OrderStatus::Cancelled));
        if reinstated > 1 {
            world.violated(format!("{id:?} was reinstated {reinstated} times"));
        }
        let first_paid = [OrderStatus::Created, OrderStatus::Paying, OrderStatus::CancelPending];
        let paid: usize = first_paid.into_iter().map(|from| times(OrderStatus::Paid, Some(from))).sum();
        let kinds = [
            (IdKind::EventOrderCreated, usize::from(purchase.order.is_some())),
            (IdKind::EventOrderCancelled, times(OrderStatus::Cancelled, None)),
            (IdKind::EventOrderPaid, paid),
            (IdKind::EventOrderReinstated, reinstated),
            (IdKind::EventOrderRefunded, times(OrderStatus::Refunded, None)),
            (IdKind::EventReservationRejected, usize::from(purchase.reason.is_some())),
        ];
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            expected.insert(id.event(kind).to_string(), u32::try_from(count).expect("few moves"));
        }
    }
    for adjustment in rows.entries.iter().filter_map(|(_, entry)| entry.adjustment) {
        expected.insert(adjustment.to_string(), 1);
    }
    if told != expected {
        world.violated(format!("events told {told:?}, decisions made {expected:?}"));
    }
}

/// Checks that the domain's audit, which looks only at sums, comes to the same verdict.
pub(crate) fn check_audit(world: &World) {
    let tally = block_on(world.store.tally()).expect("the model answers");
    for check in audit::judge(&tally).iter().filter(|check| !check.holds) {
        world.violated(format!("the audit says {}: {}", check.name, check.detail));
    }
}

/// Checks the number of winners where the scenario determines it.
pub(crate) fn check_winners(world: &World, scenario: &Scenario) {
    let rows = world.store.rows();
    let refused = rows.purchases.iter().any(|(_, purchase)| purchase.reason.is_some());
    if !scenario.is_plain() || scenario.per_user_limit != 1 || refused {
        return;
    }
    for (number, Stall { stock, .. }) in scenario.stalls.iter().enumerate() {
        let mut buyers: BTreeSet<u64> = BTreeSet::new();
        for (_, wish) in &scenario.wishes {
            match wish {
                Wish::Buy { sku, user, .. } if *sku == number => drop(buyers.insert(*user)),
                Wish::Crowd { skus, first_user, buyers: count } => {
                    let wanted = (*first_user..first_user + count).zip(skus.iter().cycle());
                    buyers.extend(wanted.filter(|(_, sku)| **sku == number).map(|(user, _)| user));
                }
                Wish::Buy { .. }
                | Wish::Direct { .. }
                | Wish::Adjust { .. }
                | Wish::Gather(_)
                | Wish::Produce(_) => {}
            }
        }
        let demand = i64::try_from(buyers.len()).expect("few buyers");
        let expected = demand.min(*stock);
        let sold = rows.skus.get(&sku_key(number)).map_or(0, |sku| sku.stock.occupied + sku.stock.sold);
        if sold != expected {
            world.violated(format!("{stock} units and {demand} buyers made {sold} winners"));
        }
        world.sometimes("winners_counted");
    }
}
