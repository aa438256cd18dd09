//! The same promises under real threads, all let go at one moment.

use std::sync::{Arc, Barrier};
use std::thread;

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{ClaimRequest, Sequence};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::SkuKey;
use onceward_domain::machine::order::BIRTH;
use onceward_domain::ports::store::{Decide, Store, Work};

use super::Case;
use super::ground::{Ground, LEASE, START, due, lane, ordered, put, stock_move};
use crate::block_on::block_on;

/// Buyers who come at once.
const THREADS: u64 = 64;
/// Units there are.
const STOCK: i64 = 50;
/// Conflicts that one buyer may meet: as many as there are others.
const TRIES: u64 = THREADS;

pub(super) const CASES: &[Case] = &[
    Case::new("pr_02_sixty_four_threads_never_oversell", never_oversell),
    Case::new("lq_02_sixty_four_threads_claim_each_member_once", claim_once),
];

/// Runs `work` on every thread, starting at one moment, and collects the answers.
pub(super) fn at_once<T: Send + 'static>(work: impl Fn(u64) -> T + Send + Sync + 'static) -> Vec<T> {
    let (gate, work) = (Arc::new(Barrier::new(64)), Arc::new(work));
    let start = |number| {
        let (gate, work) = (Arc::clone(&gate), Arc::clone(&work));
        thread::spawn(move || {
            gate.wait();
            work(number)
        })
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
}

/// Takes one unit and writes an order for it, or says that nothing is left.
fn buy(store: &dyn Store, key: &SkuKey, number: u64) -> Result<(), Error> {
    let wanted = key.clone();
    let decide: Decide = Arc::new(move |facts| {
        let sku = facts.skus.get(&wanted).expect("it was asked for");
        if sku.stock.available == 0 {
            return Err(Error::new(Code::SoldOut, "buying"));
        }
        Ok(ChangeSet {
            stock: vec![stock_move(sku, sku.stock.moved(BIRTH, 1))],
            new_purchases: vec![ordered(number, &format!("buyer-{number}"), &wanted, 0)],
            ..ChangeSet::default()
        })
    });
    let need = Need { skus: vec![key.clone()], ..Need::default() };
    let work = Work { name: "buy", need, decide };
    for _ in 0..TRIES {
        match block_on(store.transact(work.clone())) {
            Err(error) if error.class() == Class::Conflict => {}
            answer => return answer,
        }
    }
    Err(Error::new(Code::GuardLost, "every try met a conflict"))
}

fn never_oversell(ground: &Ground) {
    let key = ground.sale(STOCK);
    let (store, wanted) = (Arc::clone(&ground.store), key.clone());
    let answers = at_once(move |number| buy(&*store, &wanted, number).map_err(|error| error.code()));
    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    let sold_out = answers.iter().filter(|answer| **answer == Err(Code::SoldOut)).count();
    assert_eq!((won, sold_out), (50, 14), "{answers:?}");
    let sku = ground.sku(&key);
    assert_eq!((sku.stock.available, sku.stock.occupied), (0, STOCK));
    assert_eq!(sku.revision, STOCK);
    let tally = block_on(ground.store.tally()).expect("tally answers");
    assert_eq!(tally.skus[0].groups.iter().map(|group| group.units).sum::<i64>(), STOCK);
}

fn claim_once(ground: &Ground) {
    let lane = lane("work");
    ground.must(due((0..200).map(|number| put(&lane, &format!("m{number:03}"), START)).collect()));
    let store = Arc::clone(&ground.store);
    let request = ClaimRequest { lane, limit: 7, lease: LEASE, sequence: Sequence::ByDue };
    let answers = at_once(move |_| block_on(store.claim_due(request.clone())).expect("claims answer"));
    let claims: Vec<_> = answers.into_iter().flatten().collect();
    let mut members: Vec<_> = claims.iter().map(|claim| claim.held.member.clone()).collect();
    let mut tokens: Vec<_> = claims.iter().map(|claim| claim.held.token).collect();
    members.sort_unstable();
    members.dedup();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!((claims.len(), members.len(), tokens.len()), (200, 200, 200));
}
