//! `bench order`: from messages to durable orders.
//!
//! Purpose: the engine's consumer against the plain way, with bytes beside the rate; how the rate depends on the size
//! of a batch and of the store; and the whole way from the gate to the order.
//!
//! Invariants: a round counts only if every message became an order, which is looked up in the store; both sides begin
//! with an empty store on the same disk. Read next: `shop`, `memory_bus`.

use std::time::{Duration, Instant};

use onceward::gate::{Gate, ReserveRequest};
use onceward::runtime::{self, Role};
use onceward::workers::{Next, Worker};
use onceward_domain::id::RequestId;
use tokio::task::JoinSet;

use super::Effort;
use super::shop::{PLENTY, Shop, Transport, sku_key, user};
use crate::bench::disk::{WriteCounters, folder_bytes};
use crate::bench::interleave::{interleave, median};
use crate::bench::plain;
use crate::bench::report::{Machine, Report};
use crate::failure::Failure;
use crate::output;

/// The batch of the engine's own settings.
const FULL_BATCH: usize = 500;
/// The plain way needs several times longer for an order, so its rounds have fewer: both take about as long.
const PLAIN_PART: u64 = 4;
/// Batch sizes, and by how much their rounds are shorter than a full one.
const BATCHES: [(usize, u64); 4] = [(1, 10), (10, 4), (100, 1), (500, 1)];
/// Orders made in one go before the large measurement: each go ends with counting them all.
const PRELOADED_TOGETHER: u64 = 200_000;
/// Buyers at the gate at once, where the whole way is measured.
const BUYERS_AT_ONCE: u64 = 512;

/// The parts that can be chosen.
pub(crate) fn parts() -> Vec<String> {
    ["order.compared", "order.batch", "order.large", "order.whole_way"].map(str::to_owned).to_vec()
}

/// Measures what was chosen of orders.
///
/// # Errors
/// When a round is not clean.
pub(crate) async fn run(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    if effort.wants("order.compared") {
        reports.push(against_the_plain_way(effort, machine).await?);
    }
    if effort.wants("order.batch") {
        reports.extend(by_batch(effort, machine).await?);
    }
    if effort.wants("order.large") {
        reports.push(in_a_large_store(effort, machine).await?);
    }
    if effort.wants("order.whole_way") {
        reports.push(the_whole_way(effort, machine).await?);
    }
    Ok(reports)
}

async fn by_batch(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for (batch, shorter) in BATCHES {
        output::note(&format!("order: batches of {batch}"));
        let count = effort.count / shorter;
        let shop = Shop::open(&effort.folder, Transport::Memory, batch).await?;
        let round = consume(&shop, 0, count).await?;
        let report = Report::new("order.batch", round.per_second(), machine);
        reports.push(report.with_parameter("batch", batch).with_parameter("orders", count));
        shop.close().await?;
    }
    Ok(reports)
}

/// What a round of the consumer came to.
pub(super) struct Round {
    orders: u64,
    elapsed: Duration,
    written: Option<WriteCounters>,
}

impl Round {
    fn per_second(&self) -> f64 {
        self.orders as f64 / self.elapsed.as_secs_f64()
    }
}

/// Prepares `count` messages and lets the engine's consumer turn them into orders; only the latter is measured.
pub(super) async fn consume(shop: &Shop, first: u64, count: u64) -> Result<Round, Failure> {
    shop.reserve(first, count).await?;
    let sent = shop.send_all().await?;
    let orders_before = shop.orders().await?;
    let (counters_before, started) = (WriteCounters::now(), Instant::now());
    while Worker::Consumer.step(&shop.engine).await? == Next::Again {}
    let elapsed = started.elapsed();
    let written = WriteCounters::now().zip(counters_before).map(|(now, before)| now.since(before));
    let orders = shop.orders().await? - orders_before;
    if orders != count || sent != count || !shop.messages.is_clean() {
        return Err(Failure::Other(format!("{sent} messages of {count} became {orders} orders")));
    }
    Ok(Round { orders, elapsed, written })
}

/// What both sides wrote, in bytes per order, of each round.
#[derive(Default)]
struct Bytes {
    plain_written: Vec<f64>,
    plain_grown: Vec<f64>,
    written: Vec<f64>,
    written_with_checkpoint: Vec<f64>,
    stored: Vec<f64>,
}

async fn against_the_plain_way(effort: &Effort, machine: &Machine) -> Result<Report, Failure> {
    output::note("order: the consumer against the plain way");
    let (count, plain_count) = (effort.count, effort.count / PLAIN_PART);
    let bytes = std::sync::Mutex::new(Bytes::default());
    let note = |add: &dyn Fn(&mut Bytes)| {
        add(&mut bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    };
    let compared = interleave(
        effort.rounds,
        async || {
            let run = plain_round(effort, plain_count).await?;
            note(&|bytes| {
                bytes.plain_written.extend(run.written_per_order());
                bytes.plain_grown.push(run.grown_per_order());
            });
            Ok::<_, Failure>(run.orders_per_second())
        },
        async || {
            let shop = Shop::open(&effort.folder, Transport::Memory, FULL_BATCH).await?;
            let round = consume(&shop, 0, count).await?;
            let before_close = WriteCounters::now();
            let folder = shop.close().await?;
            let closing = WriteCounters::now().zip(before_close).map(|(now, before)| now.since(before));
            let stored =
                folder_bytes(folder.path()).map_err(|cause| Failure::other("looking at the store", cause))?;
            let each = |bytes: u64| bytes as f64 / count as f64;
            note(&|bytes| {
                bytes.written.extend(round.written.map(|one| each(one.storage_bytes)));
                let both = round.written.zip(closing);
                bytes
                    .written_with_checkpoint
                    .extend(both.map(|(one, two)| each(one.storage_bytes + two.storage_bytes)));
                bytes.stored.push(each(stored));
            });
            Ok(round.per_second())
        },
    )
    .await?;
    let bytes = bytes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Report::against("order", compared, machine)
        .with_parameter("batch", FULL_BATCH)
        .with_parameter("orders", count)
        .with_parameter("plain_orders", plain_count)
        .with_extra("written_bytes_per_order", median(&bytes.written))
        .with_extra("written_bytes_per_order_with_checkpoint", median(&bytes.written_with_checkpoint))
        .with_extra("stored_bytes_per_order", median(&bytes.stored))
        .with_extra("plain_written_bytes_per_order", median(&bytes.plain_written))
        .with_extra("plain_stored_bytes_per_order", median(&bytes.plain_grown)))
}

async fn plain_round(effort: &Effort, count: u64) -> Result<plain::PlainRun, Failure> {
    let folder = crate::temp_dir::Folder::inside(&effort.folder)?;
    let running = tokio::task::spawn_blocking(move || plain::run(folder.path(), count));
    let run = running.await.map_err(|cause| Failure::other("running the plain way", cause))?;
    let run = run.map_err(|cause| Failure::other("running the plain way", cause))?;
    if run.orders == run.messages {
        Ok(run)
    } else {
        Err(Failure::Other(format!("the plain way made {} orders of {count}", run.orders)))
    }
}

async fn in_a_large_store(effort: &Effort, machine: &Machine) -> Result<Report, Failure> {
    output::note(&format!("order: after {} orders", effort.preload));
    let shop = Shop::open(&effort.folder, Transport::Memory, FULL_BATCH).await?;
    let mut made = 0;
    while made < effort.preload {
        let step = PRELOADED_TOGETHER.min(effort.preload - made);
        consume(&shop, made, step).await?;
        made += step;
    }
    let round = consume(&shop, made, effort.count).await?;
    let folder = shop.close().await?;
    let stored =
        folder_bytes(folder.path()).map_err(|cause| Failure::other("looking at the store", cause))?;
    Ok(Report::new("order.large", round.per_second(), machine)
        .with_parameter("batch", FULL_BATCH)
        .with_parameter("orders", effort.count)
        .with_parameter("orders_before", made)
        .with_extra("stored_bytes_per_order", stored as f64 / (made + effort.count) as f64))
}

/// From the gate to the order, with every role at work, as `serve` runs it.
async fn the_whole_way(effort: &Effort, machine: &Machine) -> Result<Report, Failure> {
    output::note("order: from the gate to the order");
    let shop = Shop::open(&effort.folder, Transport::Store, FULL_BATCH).await?;
    let gate = Gate::open(shop.engine.clone());
    let running = runtime::start(&shop.engine, &Role::ALL);
    let counters_before = WriteCounters::now();
    let started = Instant::now();
    let mut buyers = JoinSet::new();
    for lane in 0..BUYERS_AT_ONCE {
        let (gate, count) = (gate.clone(), effort.count);
        buyers.spawn(async move {
            for number in (lane..count).step_by(usize::try_from(BUYERS_AT_ONCE).unwrap_or(1)) {
                let (key, request) = (sku_key(PLENTY), RequestId::trusted("r"));
                gate.reserve(ReserveRequest { key, user: user(number), request, quantity: 1 }).await?;
            }
            Ok::<_, onceward_domain::error::Error>(())
        });
    }
    while let Some(joined) = buyers.join_next().await {
        joined.map_err(|cause| Failure::other("a buyer", cause))??;
    }
    let queued = started.elapsed();
    shop.until_decided().await?;
    let elapsed = started.elapsed();
    let orders = shop.orders().await?;
    if orders != effort.count {
        return Err(Failure::Other(format!("{} reservations became {orders} orders", effort.count)));
    }
    let written = WriteCounters::now().zip(counters_before).map(|(now, before)| now.since(before));
    drop(gate);
    running.drain().await;
    shop.close().await?;
    let each = |bytes: u64| bytes as f64 / effort.count as f64;
    Ok(Report::new("order.whole_way", effort.count as f64 / elapsed.as_secs_f64(), machine)
        .with_parameter("orders", effort.count)
        .with_parameter("buyers_at_once", BUYERS_AT_ONCE)
        .with_extra("queued_per_second", effort.count as f64 / queued.as_secs_f64())
        .with_extra("written_bytes_per_order", written.map(|one| each(one.storage_bytes))))
}
