//! What a run is about: how many nodes, what is on sale, who comes, and how bad the line is; all from the seed.
//!
//! Invariant: a scenario is a value; the same seed makes the same one. Fixed scenarios serve runs that fail at one
//! planned place.

use onceward_domain::catalogue::LatePayment;
use onceward_domain::time::Millis;

use super::Adapter;
use super::rng::Rng;
use super::world::Rates;

/// What a buyer does with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Leave,
    /// Has second thoughts.
    Cancel,
    /// Starts to pay; how that goes is drawn on the way.
    Pay,
}

/// One buyer, or a person at the back office, and what they will do.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    /// Reserve, then repeat the same request this often, and perhaps with another body.
    Buy { sku: usize, user: u64, request: u64, quantity: u32, repeats: u32, other_body: bool, then: Then },
    /// Many buyers in one call, as the front of the gate sends them.
    /// They want the SKUs in turn.
    Crowd { skus: Vec<usize>, first_user: u64, buyers: u64 },
    /// A direct order of these SKUs, asked for twice.
    Direct { skus: Vec<usize>, user: u64, request: u64, then: Then },
    /// A person adjusts stock.
    Adjust { sku: usize, delta: i64, key: u64 },
    /// People order together.
    Gather(Circle),
    /// Somebody has jobs done that credits pay for.
    Produce(Studio),
}

/// A credit account, its jobs, and two workers who do them.
#[derive(Debug, Clone)]
pub(crate) struct Studio {
    /// What the account holds: not always enough for every job.
    pub(crate) credits: i64,
    pub(crate) jobs: Vec<Chore>,
    /// How long a worker's lease lasts.
    pub(crate) lease: Millis,
}

/// A job of a studio.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chore {
    pub(crate) cost: i64,
    pub(crate) max_attempts: u32,
}

/// A group order and those who may come.
#[derive(Debug, Clone)]
pub(crate) struct Circle {
    pub(crate) number: u64,
    pub(crate) via_wallet: bool,
    pub(crate) members: u64,
    pub(crate) min_participants: u32,
    /// How long it is open.
    pub(crate) open_for: Millis,
}

/// What tells nodes of due orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The store's lane.
    Store,
    /// A queue in the memory of each node.
    Queue,
}

/// An activity of its own with one SKU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stall {
    pub(crate) stock: i64,
    pub(crate) deadline: Millis,
    pub(crate) payment_window: Millis,
    pub(crate) late_payment: LatePayment,
    pub(crate) confirm_after: Millis,
}

/// What a run is about.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) nodes: usize,
    /// The gate keeps open reservations in the memory of the only node, over its journal.
    pub(crate) has_journal: bool,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) per_user_limit: u32,
    pub(crate) frees_limit: bool,
    /// Nobody sends messages until every reservation has been decided by its deadline.
    pub(crate) sender_sleeps: bool,
    /// Longest sleep of an idle worker: the bounded poll behind a signal that a dead node never gives.
    pub(crate) poll: Millis,
    pub(crate) claim_batch: u32,
    pub(crate) order_batch: usize,
    /// Charges of one round, and rounds of one turn at a group.
    pub(crate) charge_rounds: (usize, usize),
    /// Attempts at settling a group before a person is asked.
    pub(crate) settlement_attempts: u32,
    /// Tries before a person is asked. Usually so many that nobody is: faults come thick here.
    pub(crate) attempts_limit: u32,
    /// Each wish with the time at which it is made.
    pub(crate) wishes: Vec<(Millis, Wish)>,
    pub(crate) rates: Rates,
    pub(crate) adapter: Adapter,
    pub(crate) trigger: Trigger,
}

const MINUTE: i64 = 60_000;
/// A number of tries that no run uses up.
const NEVER_WEARY: u32 = 1_000_000;
const MONTH: i64 = 30 * 24 * 60 * MINUTE;

impl Scenario {
    /// The scenario of a seed.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let skus = if rng.chance(300) { 2 } else { 1 };
        let per_user_limit = if rng.chance(700) { 1 } else { 2 };
        let plain = rng.chance(150);
        let stalls = (0..skus).map(|_| stall(rng, plain)).collect();
        let per_user_limit = if plain { 1 } else { per_user_limit };
        let weary = rng.chance(120);
        let count = rng.below(11) + 2;
        let wishes = (0..count).map(|number| {
            let at = Millis(rng.between(0, 20_000));
            (at, if plain { plain_wish(rng, number, skus) } else { wish(rng, number, skus) })
        });
        let mut wishes: Vec<(Millis, Wish)> = wishes.collect();
        let circles = if rng.chance(350) { rng.below(2) + 1 } else { 0 };
        wishes.extend((0..circles).map(|number| circle(rng, number)));
        let nodes = rng.index(3) + 1;
        let mut scenario = Self {
            nodes,
            has_journal: nodes == 1 && rng.chance(700),
            stalls,
            per_user_limit,
            frees_limit: rng.chance(500),
            sender_sleeps: rng.chance(80),
            poll: Millis(20_000),
            claim_batch: u32::try_from(rng.between(1, 6)).expect("small"),
            order_batch: rng.index(6) + 1,
            charge_rounds: (rng.index(3) + 1, rng.index(2) + 1),
            settlement_attempts: u32::try_from(rng.between(1, 6)).expect("small"),
            attempts_limit: if weary {
                u32::try_from(rng.between(1, 4)).expect("small")
            } else {
                NEVER_WEARY
            },
            wishes,
            rates: if weary { rates(rng).worse() } else { rates(rng) },
            adapter: Adapter::Careful,
            trigger: if rng.chance(500) { Trigger::Queue } else { Trigger::Store },
        };
        if rng.chance(300) {
            scenario.wishes.push(studio(rng));
        }
        scenario
    }

    /// One buyer, one unit, no faults but the planned one.
    pub(crate) fn one_purchase() -> Self {
        let buy = Wish::Buy {
            sku: 0,
            user: 1,
            request: 1,
            quantity: 1,
            repeats: 1,
            other_body: false,
            then: Then::Leave,
        };
        Self {
            nodes: 1,
            has_journal: true,
            stalls: vec![Stall {
                stock: 1,
                deadline: Millis(10 * MINUTE),
                payment_window: Millis(MONTH),
                late_payment: LatePayment::Refund,
                confirm_after: Millis(45_000),
            }],
            per_user_limit: 1,
            frees_limit: true,
            sender_sleeps: false,
            poll: Millis(10 * MINUTE),
            claim_batch: 4,
            order_batch: 4,
            charge_rounds: (2, 2),
            settlement_attempts: 6,
            attempts_limit: NEVER_WEARY,
            wishes: vec![(Millis(0), buy)],
            rates: Rates::default(),
            adapter: Adapter::Careful,
            trigger: Trigger::Store,
        }
    }

    /// A reservation whose unit a direct order takes first: refused, then compensated.
    pub(crate) fn one_rejection() -> Self {
        let mut scenario = Self::one_purchase();
        let direct = Wish::Direct { skus: vec![0], user: 2, request: 2, then: Then::Leave };
        scenario.wishes.push((Millis(0), direct));
        scenario.per_user_limit = 1;
        scenario
    }

    /// Whether tries may be used up, so that a person has to finish the work.
    pub(crate) fn is_weary(&self) -> bool {
        self.attempts_limit < NEVER_WEARY
    }

    /// Whether winners can be counted from outside: only single reservations, no second thoughts.
    pub(crate) fn is_plain(&self) -> bool {
        let plain = |wish: &Wish| match wish {
            Wish::Buy { quantity, then, .. } => *quantity == 1 && *then == Then::Leave,
            // Those who order together, or have jobs done, take nothing of what is on sale.
            Wish::Crowd { .. } | Wish::Gather(_) | Wish::Produce(_) => true,
            Wish::Direct { .. } | Wish::Adjust { .. } => false,
        };
        let unhurried = self.stalls.iter().all(|stall| stall.payment_window.0 == MONTH);
        unhurried && self.wishes.iter().all(|(_, wish)| plain(wish))
    }
}

const LATE_PAYMENTS: [LatePayment; 4] =
    [LatePayment::Refund, LatePayment::Refund, LatePayment::Reinstate, LatePayment::Manual];

fn stall(rng: &mut Rng, plain: bool) -> Stall {
    let hurried = rng.chance(600) && !plain;
    let deadline = if rng.chance(600) { rng.between(5_000, 60_000) } else { rng.between(10, 30) * MINUTE };
    Stall {
        stock: rng.between(1, 8),
        deadline: Millis(deadline),
        payment_window: Millis(if hurried { rng.between(10_000, 5 * MINUTE) } else { MONTH }),
        late_payment: LATE_PAYMENTS[rng.index(LATE_PAYMENTS.len())],
        confirm_after: Millis(rng.between(5_000, MINUTE)),
    }
}

/// Some of the SKUs, in any order.
fn some_of(rng: &mut Rng, skus: usize) -> Vec<usize> {
    let mut some: Vec<usize> = (0..skus).collect();
    rng.shuffle(&mut some);
    some.truncate(rng.index(skus) + 1);
    some
}

fn circle(rng: &mut Rng, number: u64) -> (Millis, Wish) {
    let members = rng.below(7);
    let circle = Circle {
        number,
        via_wallet: rng.chance(400),
        members,
        min_participants: u32::try_from(rng.below(3) + 1).expect("small"),
        open_for: Millis(rng.between(5_000, 60_000)),
    };
    (Millis(rng.between(0, 20_000)), Wish::Gather(circle))
}

fn studio(rng: &mut Rng) -> (Millis, Wish) {
    let count = rng.index(4) + 1;
    let jobs = (0..count).map(|_| Chore {
        cost: rng.between(1, 40),
        max_attempts: u32::try_from(rng.between(1, 4)).expect("small"),
    });
    let studio = Studio {
        jobs: jobs.collect(),
        credits: rng.between(20, 120),
        lease: Millis(rng.between(2_000, 30_000)),
    };
    (Millis(rng.between(0, 20_000)), Wish::Produce(studio))
}

/// A wish whose end can be foretold.
fn plain_wish(rng: &mut Rng, number: u64, skus: usize) -> Wish {
    let sku = rng.index(skus);
    if rng.chance(300) {
        let skus = some_of(rng, skus);
        return Wish::Crowd { skus, first_user: 1_000 * (number + 1), buyers: rng.below(6) + 2 };
    }
    let (user, repeats) = (rng.below(20), u32::try_from(rng.below(3)).expect("small"));
    let request = rng.below(3) + 10 * user;
    Wish::Buy { sku, user, request, quantity: 1, repeats, other_body: rng.chance(300), then: Then::Leave }
}

fn then(rng: &mut Rng) -> Then {
    match rng.below(10) {
        0..=3 => Then::Leave,
        4 => Then::Cancel,
        _ => Then::Pay,
    }
}

fn wish(rng: &mut Rng, number: u64, skus: usize) -> Wish {
    let sku = rng.index(skus);
    // Few users, so that one user's requests meet.
    let user = rng.below(6);
    match rng.below(10) {
        0..=4 => Wish::Buy {
            sku,
            user,
            request: rng.below(3) + 10 * user,
            quantity: if rng.chance(850) { 1 } else { 2 },
            repeats: u32::try_from(rng.below(3)).expect("small"),
            other_body: rng.chance(300),
            then: then(rng),
        },
        5 | 6 => {
            let skus = some_of(rng, skus);
            Wish::Crowd { skus, first_user: 1_000 * (number + 1), buyers: rng.below(6) + 2 }
        }
        7 | 8 => Wish::Direct {
            skus: some_of(rng, skus),
            user,
            request: rng.below(2) + 10 * user,
            then: then(rng),
        },
        _ => Wish::Adjust { sku, delta: if rng.chance(600) { rng.between(1, 3) } else { -1 }, key: number },
    }
}

fn rates(rng: &mut Rng) -> Rates {
    // A third of the runs is calm, so that interleavings alone are looked at too.
    let badness = u32::try_from(rng.below(3)).expect("small");
    let mut upto = |most: u32| u32::try_from(rng.below(u64::from(most * badness) + 1)).expect("small");
    Rates {
        unavailable: upto(25),
        lost_before: upto(20),
        lost_after: upto(30),
        stale: upto(150),
        forged: upto(60),
        duplicate: upto(100),
        reorder: upto(200),
        crash: upto(5),
        jump: upto(4),
        back: upto(5),
        bank: upto(150),
        linger: 300 + upto(200),
        signal: upto(300),
    }
}
