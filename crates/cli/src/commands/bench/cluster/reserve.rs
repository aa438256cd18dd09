//! `bench redis.reserve`: buyers let in by the gate over Redis, beside the plain way of the references.
//!
//! Purpose: reservations per second and bytes of each, as ratios. Invariants: both ways have as many requests under way on the
//! same server, over one connection each; commands come to the gate as the front of the gate brings them. With `always` the
//! server is told to sync before it answers, and told back afterwards. Read next: `onceward_redis::compare`.

use std::sync::Arc;

use onceward_domain::catalogue::{Activity, LatePayment, Sku, Stock};
use onceward_domain::changes::ChangeSet;
use onceward_domain::facts::Need;
use onceward_domain::id::SkuKey;
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::{Millis, Timestamp};
use onceward_redis::compare::{self, Cost, Run};
use onceward_redis::{Options, RedisAdmission};
use onceward_testkit::model::ModelStore;

use super::super::shop::{ACTIVITY, PLENTY, PLENTY_STOCK, sku_key};
use super::places::Places;
use super::{Effort, Failure, Machine, Report};
use crate::bench::interleave::{interleave, median};
use crate::output;
use crate::time::{SystemClock, SystemIds};
use crate::wiring;

const AS_SET: &str = "redis.reserve.as_set";
const ALWAYS: &str = "redis.reserve.always";
pub(super) const PARTS: [&str; 2] = [AS_SET, ALWAYS];

/// As the front of the gate: so many batches under way, so many requests in each.
const BATCHES: u64 = 2;
const BATCH: u64 = 512;
/// How the append-only file is synced where a scenario says so.
const EACH_TIME: &str = "always";
const HOUR: Millis = Millis(3_600_000);

pub(super) async fn run(effort: &Effort, machine: &Machine, places: &Places) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for part in PARTS.into_iter().filter(|part| effort.names(part)) {
        output::note(&format!("{part}: the gate against the plain way"));
        let report = places.with_keys(async |options| {
            if part == AS_SET {
                return compared(effort, machine, part, &options).await;
            }
            let before = compare::sync(&options, EACH_TIME).await?;
            let report = compared(effort, machine, part, &options).await;
            compare::sync(&options, &before).await?;
            report
        });
        reports.push(report.await?);
    }
    Ok(reports)
}

async fn compared(
    effort: &Effort,
    machine: &Machine,
    part: &str,
    options: &Options,
) -> Result<Report, Failure> {
    let together = BATCHES * BATCH;
    let run = Run { buyers: effort.count.next_multiple_of(together), callers: BATCHES, batch: BATCH };
    let key = sku_key(PLENTY);
    let store: Arc<dyn Store> = Arc::new(ModelStore::new(wiring::clock()));
    put_on_sale(&*store, &key).await?;
    let bytes = std::sync::Mutex::new((Vec::new(), Vec::new()));
    let note = |is_plain: bool, cost: Cost| {
        let each = cost.bytes as f64 / run.buyers as f64;
        let mut bytes = bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if is_plain {
            bytes.0.push(each)
        } else {
            bytes.1.push(each)
        }
        run.buyers as f64 / cost.time.as_secs_f64()
    };
    let compared = interleave(
        effort.rounds,
        async || Ok::<_, Failure>(note(true, compare::plain(options, &key, run).await?)),
        async || {
            let gate = RedisAdmission::open(options.clone(), Arc::clone(&store), Arc::new(SystemIds))?;
            Ok(note(false, compare::here(options, Arc::new(gate), &key, run).await?))
        },
    )
    .await?;
    let (plain_bytes, bytes) = bytes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Report::against(part, compared, machine)
        .with_parameter("reservations", run.buyers)
        .with_parameter("batches_under_way", BATCHES)
        .with_parameter("batch", BATCH)
        .with_extra("bytes_per_reservation", median(&bytes))
        .with_extra("plain_bytes_per_reservation", median(&plain_bytes))
        .with_extra("bytes_ratio", median(&bytes) / median(&plain_bytes)))
}

/// The sale as the store of record has it; the gate reads it once.
async fn put_on_sale(store: &dyn Store, key: &SkuKey) -> Result<(), Failure> {
    let now = SystemClock.now();
    let activity = Activity {
        id: key.activity.clone(),
        name: Arc::from(ACTIVITY),
        starts_at: now.minus(HOUR),
        ends_at: now.plus(HOUR),
        payment_window: HOUR,
        cancel_grace: HOUR,
        reservation_deadline: HOUR,
        confirm_after_cancel: HOUR,
        late_payment: LatePayment::Refund,
        cancelled_frees_limit: true,
    };
    let price = Money::new(1999, Currency::CNY).map_err(|cause| Failure::other("making a price", cause))?;
    let sku = Sku {
        key: key.clone(),
        price,
        per_user_limit: 1,
        limit_since: Timestamp(0),
        buckets: 1,
        opening: PLENTY_STOCK,
        stock: Stock::full(PLENTY_STOCK),
        adjustments: 0,
        revision: 0,
    };
    let changes = ChangeSet { activities: vec![activity], new_skus: vec![sku], ..ChangeSet::default() };
    let decide = Arc::new(move |_: &mut _| Ok(changes.clone()));
    store.transact(Work { name: "bench.sale", need: Need::default(), decide }).await?;
    Ok(())
}
