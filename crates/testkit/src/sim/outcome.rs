//! What can be said of a whole run from outside: in a plain sale, winners = min(stock, demand).
//!
//! Deliberately absent here: sales with cancels, direct orders, adjustments or deadlines that struck; there a buyer
//! may rightly have been told "sold out" before a unit came back.

use std::collections::BTreeSet;

use super::people::sku_key;
use super::scenario::{Scenario, Wish};
use super::world::World;

/// Checks the number of winners where the scenario determines it.
pub(crate) fn check_winners(world: &World, scenario: &Scenario) {
    let rows = world.store.rows();
    let refused = rows.purchases.iter().any(|(_, purchase)| purchase.reason.is_some());
    if !scenario.is_plain() || scenario.per_user_limit != 1 || refused {
        return;
    }
    for (number, stock) in scenario.stocks.iter().enumerate() {
        let mut buyers: BTreeSet<u64> = BTreeSet::new();
        for (_, wish) in &scenario.wishes {
            match wish {
                Wish::Buy { sku, user, .. } if *sku == number => drop(buyers.insert(*user)),
                Wish::Crowd { sku, first_user, buyers: count } if *sku == number => {
                    buyers.extend(*first_user..first_user + count);
                }
                Wish::Buy { .. } | Wish::Crowd { .. } | Wish::Direct { .. } | Wish::Adjust { .. } => {}
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
