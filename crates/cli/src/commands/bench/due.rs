//! `bench due`: how late orders end that nobody pays, and what it costs to wait for them (OT-11).
//!
//! Lateness runs from an order's due-time to the moment at which its end is committed, and is taken in whole milliseconds,
//! the store's own. Invariants: the same orders at the same pace for each trigger and for the plain way; a run counts only
//! if every order ended, and none early. The idle server is the shipped one, a process of its own, over real rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onceward::execute::execute;
use onceward::operations::order::{self, DirectOrder};
use onceward::runtime::{self, Role};
use onceward_domain::decide::cancel::expire;
use onceward_domain::due::{DueChange, Lane, Member};
use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::{PurchaseId, RequestId};
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Signal, SignalEnd, TriggerKind};
use onceward_domain::time::{Millis, Timestamp};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Effort;
use super::shop::{PLENTY, Shop, Transport, sku_key, user};
use crate::bench::cpu;
use crate::bench::histogram::Histogram;
use crate::bench::report::{Machine, Report};
use crate::client::{Client, Losses, pause};
use crate::data_dir;
use crate::failure::Failure;
use crate::output;
use crate::outside::server::{Haste, Server};
use crate::settings::SECRET_FILE;
use crate::time::SystemClock;
use crate::wiring;

/// From an order's birth to its due-time.
const WINDOW: Millis = Millis(2_000);
/// Orders born, and so due, in a second.
const ORDERS_PER_SECOND: u64 = 500;
/// Orders of one run, at most: twenty seconds of them.
const ORDERS: u64 = 10_000;
/// Between two births at the shop's door; so many come together.
const BIRTH_TICK: Duration = Duration::from_millis(20);
/// The tick of the plain way (reference 002).
const PLAIN_TICK: Duration = Duration::from_secs(1);
/// Longest wait for the last order to end.
const REST_TIME: Duration = Duration::from_secs(60);
/// Between two looks at whether the last order has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Orders decided together, as the engine does.
const BATCH: u32 = 500;
/// How long the idle server is watched, after it has come to rest.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// What a start costs, the first look of its watch included, is not idling.
const SETTLE_TIME: Duration = Duration::from_secs(20);
/// Longest wait for an idle server's last event, and how often it is asked meanwhile.
const WORK_TIME: Duration = Duration::from_secs(600);
const QUEUES_LOOK: Duration = Duration::from_secs(2);
/// Orders made in one go for the idle server.
const MADE_TOGETHER: u64 = 100_000;

/// The parts that can be chosen.
pub(crate) fn parts() -> Vec<String> {
    ["due.lateness", "due.idle"].map(str::to_owned).to_vec()
}

/// Measures what was chosen.
///
/// # Errors
/// When a run is not clean.
pub(crate) async fn run(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    if effort.wants("due.lateness") {
        reports.extend(lateness(effort, machine).await?);
    }
    if effort.wants("due.idle") {
        reports.push(idle(effort, machine).await?);
    }
    Ok(reports)
}

/// Lateness of one way.
struct Run {
    lateness: Histogram,
    per_second: f64,
}

async fn lateness(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let count = effort.count.min(ORDERS);
    output::note(&format!(
        "due: {count} orders, {ORDERS_PER_SECOND} a second, with the plain tick of one second"
    ));
    let plain = plain_run(effort, count).await?;
    let mut reports = Vec::new();
    for kind in [TriggerKind::Store, TriggerKind::Queue] {
        output::note(&format!("due: the same with the trigger `{}`", kind.name()));
        let run = trigger_run(effort, kind, count).await?;
        let mut report = Report::new(&format!("due.lateness.{}", kind.name()), run.per_second, machine)
            .with_parameter("orders", count)
            .with_parameter("due_per_second", ORDERS_PER_SECOND)
            .with_parameter("baseline_tick_ms", millis(PLAIN_TICK));
        (report.p50_us, report.p99_us) = percentiles(&run.lateness);
        let (p50, p99) = percentiles(&plain.lateness);
        report.baseline_per_second = Some(plain.per_second);
        report.ratio = Some(run.per_second / plain.per_second);
        reports.push(report.with_extra("baseline_p50_us", p50).with_extra("baseline_p99_us", p99));
    }
    Ok(reports)
}

fn percentiles(histogram: &Histogram) -> (Option<u64>, Option<u64>) {
    (histogram.percentile_us(50), histogram.percentile_us(99))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The engine's way: a trigger tells, the scheduler's workers end what it told of.
async fn trigger_run(effort: &Effort, kind: TriggerKind, count: u64) -> Result<Run, Failure> {
    let ends = Arc::new(Ends::default());
    let noted = Arc::clone(&ends);
    let shop = Shop::expiring(&effort.folder, WINDOW, move |ports| {
        let ports = wiring::with_local_trigger(ports, kind);
        let inner = Arc::clone(&ports.deadline);
        ports.with_deadline_trigger(Arc::new(Noted { inner, ends: noted }))
    })
    .await?;
    let running = runtime::start(&shop.engine, &Role::ALL);
    let started = Instant::now();
    give_birth(&shop, count).await?;
    until(|| ends.count() >= count).await?;
    let per_second = count as f64 / started.elapsed().as_secs_f64();
    running.drain().await;
    shop.close().await?;
    let lateness = ends.lateness.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Run { lateness, per_second })
}

/// The plain way: a loop that scans what is due once in a second, and ends it by the same decision.
async fn plain_run(effort: &Effort, count: u64) -> Result<Run, Failure> {
    let shop = Arc::new(Shop::expiring(&effort.folder, WINDOW, |ports| ports).await?);
    let started = Instant::now();
    let births = tokio::spawn({
        let shop = Arc::clone(&shop);
        async move { give_birth(&shop, count).await }
    });
    let mut lateness = Histogram::new();
    let mut tick = interval(PLAIN_TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while lateness.total() < count {
        if started.elapsed() > REST_TIME + born_in(count) {
            return Err(Failure::Other("the plain way never ended every order".to_owned()));
        }
        tick.tick().await;
        loop {
            let page = shop.engine.store().expiries(BATCH, None).await?;
            let now = shop.engine.store().now().await?;
            let due: Vec<_> = page.into_iter().take_while(|one| one.due_at <= now).collect();
            if due.is_empty() {
                break;
            }
            let orders: Vec<PurchaseId> = due.iter().map(|one| one.purchase).collect();
            let skus = vec![sku_key(PLENTY)];
            let need = Need { purchases: orders.clone(), attempts: orders.clone(), skus, ..Need::default() };
            let ended =
                execute(&shop.engine, "plain_tick", need, move |facts| expire(facts, &orders)).await?;
            if usize::try_from(ended.ended).ok() != Some(due.len()) {
                return Err(Failure::Other("the plain way met an order that it could not end".to_owned()));
            }
            let ended_at = SystemClock.now();
            due.iter().for_each(|one| lateness.record(late_by(ended_at, one.due_at)));
        }
    }
    let per_second = count as f64 / started.elapsed().as_secs_f64();
    births.await.map_err(|cause| Failure::other("placing orders", cause))??;
    let shop = Arc::into_inner(shop).ok_or_else(|| Failure::Other("somebody still shops".to_owned()))?;
    shop.close().await?;
    Ok(Run { lateness, per_second })
}

fn late_by(ended_at: Timestamp, due_at: Timestamp) -> Duration {
    Duration::from_millis(ended_at.since(due_at).0.unsigned_abs())
}

fn born_in(count: u64) -> Duration {
    Duration::from_secs(count / ORDERS_PER_SECOND)
}

/// Places direct orders at a steady pace, each due [`WINDOW`] later.
async fn give_birth(shop: &Shop, count: u64) -> Result<(), Failure> {
    let together = ORDERS_PER_SECOND * millis(BIRTH_TICK) / 1_000;
    let mut tick = interval(BIRTH_TICK);
    let mut placed = 0;
    while placed < count {
        tick.tick().await;
        let mut buyers = JoinSet::new();
        for number in placed..(placed + together).min(count) {
            let engine = shop.engine.clone();
            let lines = vec![(sku_key(PLENTY), 1)];
            let order = DirectOrder { user: user(number), request: RequestId::trusted("r"), lines };
            buyers.spawn(async move { order::place(&engine, order).await });
        }
        while let Some(joined) = buyers.join_next().await {
            joined.map_err(|cause| Failure::other("a buyer", cause))??;
        }
        placed = (placed + together).min(count);
    }
    Ok(())
}

async fn until(is_over: impl Fn() -> bool) -> Result<(), Failure> {
    let waiting = async {
        while !is_over() {
            pause(LOOK).await;
        }
    };
    timeout(REST_TIME, waiting).await.map_err(|_| Failure::Other("not every order ended in time".to_owned()))
}

/// Lateness of what a trigger told of, taken when the engine settles a signal: its transaction is durable then.
struct Ends {
    due: Mutex<HashMap<PurchaseId, Timestamp>>,
    told: Mutex<HashMap<Member, Vec<PurchaseId>>>,
    lateness: Mutex<Histogram>,
}

impl Default for Ends {
    fn default() -> Self {
        Self { due: Mutex::default(), told: Mutex::default(), lateness: Mutex::new(Histogram::new()) }
    }
}

impl Ends {
    fn count(&self) -> u64 {
        self.lateness.lock().unwrap_or_else(PoisonError::into_inner).total()
    }

    fn note(&self, end: &SignalEnd) {
        let SignalEnd::Ack(receipt) = end else { return };
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&receipt.member);
        let now = SystemClock.now();
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lateness = self.lateness.lock().unwrap_or_else(PoisonError::into_inner);
        for due_at in told.into_iter().flatten().filter_map(|order| due.get(&order)) {
            lateness.record(late_by(now, *due_at));
        }
    }
}

/// A trigger with a watch in its hand.
struct Noted {
    inner: Arc<dyn DeadlineTrigger>,
    ends: Arc<Ends>,
}

impl Noted {
    async fn take_noted(&self, limit: u32, lease: Millis) -> Result<Vec<Signal>, Error> {
        let signals = self.inner.take(limit, lease).await?;
        let mut told = self.ends.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(signals.iter().map(|one| (one.receipt.member.clone(), one.orders.clone())));
        drop(told);
        Ok(signals)
    }
}

impl DeadlineTrigger for Noted {
    fn kind(&self) -> TriggerKind {
        self.inner.kind()
    }

    fn within(&self, member: &Member, expiries: &[Expiry]) -> Vec<DueChange> {
        self.inner.within(member, expiries)
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        let mut due = self.ends.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.extend(expiries.iter().map(|one| (one.purchase, one.due_at)));
        drop(due);
        self.inner.offer(expiries)
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        Box::pin(self.take_noted(limit, lease))
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        ends.iter().for_each(|end| self.ends.note(end));
        self.inner.settle(ends)
    }

    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        self.inner.next_in()
    }
}

/// The shipped server over a store in which so many orders wait for a due-time that is far away.
async fn idle(effort: &Effort, machine: &Machine) -> Result<Report, Failure> {
    let orders = effort.waiting;
    output::note(&format!("due: making {orders} orders that wait, and watching an idle server over them"));
    let shop =
        Shop::open(&effort.folder, Transport::Memory, usize::try_from(BATCH).unwrap_or(usize::MAX)).await?;
    let mut made = 0;
    while made < orders {
        let step = MADE_TOGETHER.min(orders - made);
        super::order::consume(&shop, made, step).await?;
        made += step;
    }
    let waiting = shop.orders().await?;
    let folder = shop.close().await?;
    // A server does not start over a store whose secret is gone. No request is repeated here, so any secret will do.
    data_dir::secret(&folder.path().join(SECRET_FILE))?;
    let busy = cores_used_by_a_server(folder.path()).await?;
    drop(folder);
    let folder = crate::temp_dir::Folder::inside(&effort.folder)?;
    let empty = cores_used_by_a_server(folder.path()).await?;
    Ok(Report::new("due.idle", 0.0, machine)
        .with_parameter("orders_waiting", waiting)
        .with_parameter("watched_ms", millis(IDLE_TIME))
        .with_extra("core_percent", busy)
        .with_extra("core_percent_of_an_empty_store", empty))
}

/// Waits until everything that was left to be told has been told.
async fn until_at_rest(server: &Server) -> Result<(), Failure> {
    let losses = Losses::default();
    let mut client = Client::new(server.address(), &losses, tokio::time::Instant::now() + WORK_TIME);
    loop {
        let answer = client.get("/v1/ops/queues").await?;
        let queues = answer.body["data"].as_array();
        let queues = queues.ok_or_else(|| Failure::Other(format!("the server answered {answer:?}")))?;
        let is_work = |name: &str| name == Lane::OUTBOX || name.starts_with(Lane::BUS_PREFIX);
        let waits =
            |queue: &Value| queue["name"].as_str().is_some_and(is_work) && queue["size"].as_u64() != Some(0);
        if !queues.iter().any(waits) {
            return Ok(());
        }
        pause(QUEUES_LOOK).await;
    }
}

/// What the shipped server has where nothing is set.
const DEFAULTS: Haste = Haste { lease: Millis(5_000), provider_timeout: Millis(2_000) };

async fn cores_used_by_a_server(folder: &std::path::Path) -> Result<f64, Failure> {
    let mut server = Server::new(folder, DEFAULTS);
    server.start().await?;
    let process = server.process().ok_or_else(|| Failure::Other("the server ended by itself".to_owned()))?;
    let used = || {
        cpu::used_by(process)
            .ok_or_else(|| Failure::Other("the kernel does not tell what a process uses".to_owned()))
    };
    until_at_rest(&server).await?;
    pause(SETTLE_TIME).await;
    let (before, started) = (used()?, Instant::now());
    pause(IDLE_TIME).await;
    let spent = used()?.saturating_sub(before);
    let percent = 100.0 * spent.as_secs_f64() / started.elapsed().as_secs_f64();
    server.stop().await?;
    Ok(percent)
}
