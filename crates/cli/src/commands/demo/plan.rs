//! What will happen in the demonstration: who comes, what each does, and when the power fails.
//!
//! Invariants: a pure function of the number of units and the seed, so a run can be had again; more buyers than units;
//! at least [`KILLS_MIN`] kills, spread over the whole sale. Deliberately absent: doing any of it.

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Fewest kills of a run with kills.
pub(crate) const KILLS_MIN: usize = 10;
/// Most kills: each costs a restart.
const KILLS_MAX: usize = 14;
/// Fewest buyers above the stock, so that a tiny sale still lasts for all the kills.
const SURPLUS_MIN: usize = 60;
/// Fewest buyers who pay: two for each way in which the shop may hear of it.
const PAYERS_MIN: usize = 2 * Telling::ALL.len();
/// The sale's last tenth is left alone, so that every kill interrupts somebody.
const KILLED_PART: (usize, usize) = (9, 10);

/// What a buyer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Asks once.
    Asks,
    /// Asks, and asks the same again.
    Repeats,
    /// Asks, then asks for another one under a second request id.
    WantsMore,
    /// Asks, then sends the same request id with another quantity.
    ChangesBody,
    /// Asks, and waits for the order.
    Waits,
    /// Asks, waits for the order, and cancels it.
    Cancels,
    /// Asks for a unit whose order will expire unpaid.
    NeverPays,
    /// Orders directly, past the gate.
    OrdersDirectly,
    /// Orders directly, and sends the same once more.
    OrdersDirectlyTwice,
    /// Orders directly and pays at the bank.
    Pays(Telling),
}

/// How the shop hears of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// By a callback.
    Once,
    /// By two.
    Twice,
    /// By one that comes late.
    Late,
    /// Not at all: the callback gets lost.
    Never,
    /// Not at all, and the money moves only after the order was cancelled.
    NeverAndTooLate,
}

impl Telling {
    /// All ways.
    pub(crate) const ALL: [Self; 5] =
        [Self::Once, Self::Twice, Self::Late, Self::Never, Self::NeverAndTooLate];
}

/// How often each habit is met among a hundred buyers of the hot SKU; the rest ask once.
const HABITS_PERCENT: [(Habit, u32); 5] = [
    (Habit::Repeats, 12),
    (Habit::WantsMore, 10),
    (Habit::ChangesBody, 8),
    (Habit::Waits, 10),
    (Habit::Cancels, 8),
];

/// A run, written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Units of the hot SKU.
    pub(crate) stock: usize,
    /// Units of the SKU whose orders expire, and as many buyers.
    pub(crate) unpaid_stock: usize,
    /// Units of the SKU that is ordered directly, and as many buyers.
    pub(crate) direct_stock: usize,
    /// Units of the SKU whose orders are paid, and as many buyers.
    pub(crate) paid_stock: usize,
    /// Everybody who comes, in the order of coming; the position is the buyer's number.
    pub(crate) buyers: Vec<Habit>,
    /// After how many finished buyers the server is killed; ascending.
    pub(crate) kills: Vec<usize>,
    /// How many buyers may be under way at once.
    pub(crate) at_once: usize,
}

impl Plan {
    /// Writes a run down.
    pub(crate) fn new(stock: usize, seed: u64, with_kills: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let side = (stock / 20).max(4);
        // One and a half to two buyers for each unit.
        let hot = stock + (stock * rng.random_range(50..=100_usize) / 100).max(SURPLUS_MIN);
        let mut buyers: Vec<Habit> = (0..hot).map(|_| habit(&mut rng)).collect();
        buyers.extend((0..side).map(|_| Habit::NeverPays));
        buyers.extend(
            (0..side).map(
                |number| {
                    if number % 4 == 0 { Habit::OrdersDirectlyTwice } else { Habit::OrdersDirectly }
                },
            ),
        );
        let paid_stock = (stock / 10).max(PAYERS_MIN);
        buyers.extend((0..paid_stock).map(|number| Habit::Pays(Telling::ALL[number % Telling::ALL.len()])));
        buyers.shuffle(&mut rng);
        let kills = if with_kills { kill_points(&mut rng, buyers.len()) } else { Vec::new() };
        let at_once = match kills.len() {
            0 => AT_ONCE_MAX,
            // Few enough that the sale does not run past the next kill while the server is down.
            count => (buyers.len() / (2 * count)).clamp(2, AT_ONCE_MAX),
        };
        Self { stock, unpaid_stock: side, direct_stock: side, paid_stock, buyers, kills, at_once }
    }
}

/// Buyers at once without kills; as many connections.
const AT_ONCE_MAX: usize = 64;

fn habit(rng: &mut StdRng) -> Habit {
    let mut die = rng.random_range(0..100_u32);
    for (habit, percent) in HABITS_PERCENT {
        if die < percent {
            return habit;
        }
        die -= percent;
    }
    Habit::Asks
}

/// One point somewhere in each of equal parts: random, and yet never two at once.
fn kill_points(rng: &mut StdRng, buyers: usize) -> Vec<usize> {
    let (part, of) = KILLED_PART;
    let range = buyers * part / of;
    let count = rng.random_range(KILLS_MIN..=KILLS_MAX).min(range);
    (0..count)
        .map(|number| rng.random_range(range * number / count..range * (number + 1) / count).max(1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_plan() {
        assert_eq!(Plan::new(500, 7, true), Plan::new(500, 7, true));
        assert_ne!(Plan::new(500, 7, true).buyers, Plan::new(500, 8, true).buyers);
    }

    #[test]
    fn every_sale_has_more_buyers_than_units_and_kills_enough() {
        for stock in [1, 2, 10, 57, 2000] {
            for seed in 0..50 {
                let plan = Plan::new(stock, seed, true);
                let hot = plan.buyers.len() - plan.unpaid_stock - plan.direct_stock - plan.paid_stock;
                assert!(hot > stock, "{stock} {seed}");
                assert!(
                    (KILLS_MIN..=KILLS_MAX).contains(&plan.kills.len()),
                    "{stock} {seed}: {:?}",
                    plan.kills
                );
                assert!(
                    plan.kills.is_sorted() && plan.kills.last().is_some_and(|last| *last < plan.buyers.len())
                );
                assert!(Plan::new(stock, seed, false).kills.is_empty());
            }
        }
    }
}
