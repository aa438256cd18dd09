//! Measures the two hot paths of the store, with durable commits, in a temporary folder:
//! letting buyers in, then creating their orders, in batches of 500.
//!
//! `cargo run --release --package onceward-sqlite --example hot_path -- [purchases] [batch]`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example for a terminal: a panic is its message"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku, Stock};
use onceward_domain::changes::{BucketMove, ChangeSet, PurchaseMove, Step, StockMove};
use onceward_domain::due::{DueChange, Lane, pack_ids};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};
use onceward_sqlite::{OpenOptions, SqliteStore};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;

const PURCHASES: usize = 100_000;
const BATCH: usize = 500;
const START: Timestamp = Timestamp(1_800_000_000_000);
const UNITS: i64 = 1_000_000_000;

/// A multiplicative step that scatters ids and users as real ones are scattered.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let purchases = arguments.next().map_or(PURCHASES, |text| text.parse().unwrap());
    let batch = arguments.next().map_or(BATCH, |text| text.parse().unwrap());
    let folder = std::env::temp_dir().join(format!("onceward-hot-path-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("store.db");
    let store = SqliteStore::open(OpenOptions::new(&path, Arc::new(ManualClock::new(START)))).unwrap();
    open_sale(&store);

    let seconds = run(purchases, batch, |from, to| reserve(&store, from, to));
    report("reserve", purchases, seconds, &path);
    let seconds = run(purchases, batch, |from, to| create_orders(&store, from, to));
    report("create order", purchases, seconds, &path);
    let tally = block_on(store.tally()).unwrap();
    assert_eq!(tally.skus[0].sku.stock.occupied, i64::try_from(purchases).unwrap());
    store.close();
    report("closed", purchases, (f64::INFINITY, f64::NAN), &path);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Seconds by the clock on the wall, and seconds of processor time.
fn run(purchases: usize, batch: usize, work: impl Fn(usize, usize)) -> (f64, f64) {
    let (started, before) = (Instant::now(), processor_seconds());
    for from in (0..purchases).step_by(batch) {
        work(from, (from + batch).min(purchases));
    }
    (started.elapsed().as_secs_f64(), processor_seconds() - before)
}

/// What this process has used; not a number where the system does not say. On a busy machine it is the better measure.
fn processor_seconds() -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = |index: usize| stat.split(' ').nth(index).and_then(|text| text.parse::<f64>().ok());
    ticks(13).zip(ticks(14)).map_or(f64::NAN, |(user, system)| (user + system) / TICKS_A_SECOND)
}

fn report(what: &str, purchases: usize, (seconds, processor): (f64, f64), path: &Path) {
    let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |data| data.len());
    let (file, log) = (size(path.to_owned()), size(path.with_extension("db-wal")));
    let count = u64::try_from(purchases).unwrap();
    println!(
        "{what:>14}: {:>9.0} rows/s, {:>5.2} µs of processor a row; file {} bytes a purchase, log {} MB",
        purchases as f64 / seconds,
        processor * 1e6 / purchases as f64,
        file / count,
        log / 1_000_000
    );
}

fn key() -> SkuKey {
    SkuKey { activity: ActivityId::trusted("autumn-sale"), sku: SkuId::trusted("phone-256") }
}

fn price() -> Money {
    Money::new(199_900, Currency::CNY).unwrap()
}

fn user(number: usize) -> UserId {
    UserId::trusted(&format!("user-{:010}", (number as u64).wrapping_mul(SCATTER) >> 32))
}

fn id(number: usize) -> PurchaseId {
    let first = (number as u64 + 1).wrapping_mul(SCATTER).rotate_left(29).wrapping_mul(SCATTER);
    let second = first.rotate_left(31).wrapping_mul(SCATTER);
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&first.to_be_bytes());
    digest[8..].copy_from_slice(&second.to_be_bytes());
    PurchaseId::from_digest(digest, 1)
}

fn transact(
    store: &SqliteStore,
    need: Need,
    decide: impl Fn(&mut Facts) -> ChangeSet + Send + Sync + 'static,
) {
    let work = Work { name: "hot_path", need, decide: Arc::new(move |facts: &mut Facts| Ok(decide(facts))) };
    block_on(store.transact(work)).unwrap();
}

fn open_sale(store: &SqliteStore) {
    let activity = Activity {
        id: key().activity,
        name: Arc::from("Autumn sale"),
        starts_at: START,
        ends_at: START.plus(Millis(3_600_000)),
        payment_window: Millis(900_000),
        cancel_grace: Millis(300_000),
        reservation_deadline: Millis(300_000),
        confirm_after_cancel: Millis(45_000),
        late_payment: LatePayment::Refund,
        cancelled_frees_limit: true,
    };
    let sku = Sku {
        key: key(),
        price: price(),
        per_user_limit: 1,
        limit_since: Timestamp(0),
        buckets: 1,
        opening: UNITS,
        stock: Stock::full(UNITS),
        adjustments: 0,
        revision: 0,
    };
    transact(store, Need::default(), move |_| ChangeSet {
        activities: vec![activity.clone()],
        new_skus: vec![sku.clone()],
        new_buckets: vec![Bucket::full(key(), UNITS)],
        ..ChangeSet::default()
    });
}

fn buyers(from: usize, to: usize) -> Vec<(SkuKey, UserId)> {
    (from..to).map(|number| (key(), user(number))).collect()
}

fn put(lane: &str, from: usize, due_at: Timestamp, ids: &[PurchaseId]) -> DueChange {
    let member = format!("018f2b6e-7c1a-7def-8123-{from:012}").as_str().into();
    DueChange::Put { lane: Lane::new(lane), member, due_at, body: pack_ids(ids) }
}

fn reserve(store: &SqliteStore, from: usize, to: usize) {
    let need = Need { skus: vec![key()], buckets: vec![key()], buyers: buyers(from, to), ..Need::default() };
    transact(store, need, move |facts| {
        let mut bucket = facts.buckets[&key()].clone();
        let new_purchases: Vec<Purchase> = (from..to).map(|number| reserved(facts.now, number)).collect();
        let units = i64::try_from(new_purchases.len()).unwrap();
        bucket.available -= units;
        bucket.open_reserved += units;
        let ids: Vec<PurchaseId> = new_purchases.iter().map(|purchase| purchase.id).collect();
        let due = vec![
            put(Lane::SEND_DUE, from, facts.now, &ids),
            put(Lane::DEADLINE, from, facts.now.plus(Millis(300_000)), &ids),
        ];
        ChangeSet { buckets: vec![BucketMove { bucket }], new_purchases, due, ..ChangeSet::default() }
    });
}

fn reserved(now: Timestamp, number: usize) -> Purchase {
    Purchase {
        id: id(number),
        handle: 0,
        route: Route::Flash,
        user: user(number),
        request: RequestId::trusted(&format!("request-{number:010}")),
        lines: vec![Line { key: key(), quantity: 1, place: 0, unit_price: None }],
        admission: Admission::Reserved,
        compensation: None,
        reservation: None,
        reason: None,
        reserved_at: now,
        business_deadline: now.plus(Millis(300_000)),
        inbox: None,
        order: None,
        updated_at: now,
        revision: 0,
    }
}

fn create_orders(store: &SqliteStore, from: usize, to: usize) {
    let need = Need { skus: vec![key()], buyers: buyers(from, to), ..Need::default() };
    transact(store, need, move |facts| {
        let sku = &facts.skus[&key()];
        let ids: Vec<PurchaseId> = (from..to).map(id).collect();
        let units = i64::try_from(ids.len()).unwrap();
        let stock = Stock {
            available: sku.stock.available - units,
            occupied: sku.stock.occupied + units,
            ..sku.stock
        };
        let purchases = ids.iter().map(|id| born(facts, &facts.purchases[id])).collect();
        ChangeSet {
            stock: vec![StockMove { key: key(), revision: sku.revision, stock, adjustments: 0 }],
            purchases,
            due: vec![put(Lane::ORDER_EXPIRY, from, facts.now.plus(Millis(1_200_000)), &ids)],
            ..ChangeSet::default()
        }
    });
}

fn born(facts: &Facts, purchase: &Purchase) -> PurchaseMove {
    let mut payload_hash = [0; 32];
    payload_hash[..16].copy_from_slice(purchase.id.bytes());
    payload_hash[16..].copy_from_slice(purchase.id.bytes());
    let order = Order {
        status: OrderStatus::Created,
        total: price(),
        paid: 0,
        refunded: 0,
        created_at: facts.now,
        expires_at: facts.now.plus(Millis(900_000)),
        cancel_due_at: facts.now.plus(Millis(1_200_000)),
        paid_at: None,
        cancelled_at: None,
        cancel_reason: None,
    };
    let step = Step::CreateOrder {
        reservation: Reservation::OrderCreated,
        inbox: Inbox { payload_hash, result: InboxResult::OrderCreated },
        order,
        place: purchase.lines[0].place,
        unit_price: price(),
    };
    PurchaseMove {
        id: purchase.id,
        handle: purchase.handle,
        revision: purchase.revision,
        at: facts.now,
        step,
    }
}
