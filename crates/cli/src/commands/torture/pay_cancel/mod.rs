//! `onceward torture --scenario pay-cancel`: real servers, a real bank, and payments at the moment of the cancel.
//!
//! Purpose: close the most dangerous race of the field end to end. Every order is paid within 150 ms of the moment at which
//! the engine may begin to cancel it; callbacks are sent, dropped, doubled and late; the bank refuses to talk, falls silent
//! and loses answers; with `--crash` the server is killed every 200 to 700 ms. At the end order and bank must agree on every
//! one: paid and kept, not paid, or given back exactly once.
//!
//! Invariants: orders that could not be paid in time, because the server was down, are replaced by further ones; the end is a
//! condition, never a time; the bank's truth is read from its statement, ours over HTTP. The bank lives in the server's
//! process and keeps its truth in a journal of its own, so a kill takes neither what it took nor what it gave back.
//!
//! Read next: `plan` → `lane` → `books`.

mod books;
mod lane;
mod plan;
mod report;
mod seen;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::Millis;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::lane::Lane;
use self::plan::{DELAY_MAX, Late};
pub(super) use self::report::Report;
use self::seen::Seen;
use crate::client::{Address, Client, Losses, pause};
use crate::failure::Failure;
use crate::output;
use crate::outside::rest::{Ahead, busy_queues};
use crate::outside::server::{Haste, Server};
use crate::outside::together::all;
use crate::temp_dir::Folder;
use crate::time::{SystemClock, rfc3339};

/// The one SKU of each activity.
const SKU: &str = "seat";
/// What a unit costs, in minor units.
const PRICE: i64 = 1_999;
/// From an order to its expiry, and from there to the moment at which it may be cancelled.
const WINDOW: Millis = Millis(2_500);
const GRACE: Millis = Millis(500);
/// From the cancel to the second confirmation; late callbacks come on either side of it.
const CONFIRM_AFTER: Millis = Millis(3_000);
/// Connections of buyers.
const LANES: u32 = 32;
/// New orders per second at most; a server that falls behind gets fewer.
const ORDERS_PER_SECOND: u32 = 400;
/// Most buyers for each order that is to be paid in time.
const BUYERS_PER_ORDER: usize = 6;
/// A silent bank is not listened to for long, and what a killed server had claimed is taken up soon.
const HASTE: Haste = Haste { lease: Millis(1_000), provider_timeout: Millis(100) };
/// How long a server runs until it is killed.
const UP_MS: std::ops::RangeInclusive<u64> = 200..=700;
/// Between two changes of the bank's moods.
const WEATHER_MS: std::ops::RangeInclusive<u64> = 100..=400;
/// Time for a run of any size, and more for each order.
const TIME: Duration = Duration::from_secs(180);
const TIME_PER_ORDER: Duration = Duration::from_millis(30);
/// How much longer a request waits for its answer than the run for its conditions.
const LAST_ANSWER: Duration = Duration::from_secs(30);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(50);

/// What a run is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Gives the same plan again.
    pub(super) seed: u64,
    /// Orders that must be paid in time.
    pub(super) orders: usize,
    /// Whether the server is killed.
    pub(super) crash: bool,
}

/// What the lanes write down together.
#[derive(Debug, Default)]
struct Notes {
    orders: Vec<Seen>,
    contradictions: Vec<String>,
    sometimes: BTreeMap<&'static str, u64>,
}

/// What all parts of a run share.
struct Torture<'a> {
    seed: u64,
    wanted: usize,
    /// Fastest pace of a lane.
    pace: Duration,
    address: Address,
    losses: &'a Losses,
    deadline: Instant,
    progress: &'a ProgressBar,
    issued: AtomicUsize,
    missed: AtomicUsize,
    requests: AtomicU64,
    notes: Mutex<Notes>,
}

impl<'a> Torture<'a> {
    fn client(&self) -> Client<'a> {
        // Whoever waits for a condition says which one when the time is up; a request has a little more of it.
        Client::new(self.address.clone(), self.losses, self.deadline + LAST_ANSWER)
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sometimes(&self, case: &'static str) {
        *self.lock().sometimes.entry(case).or_default() += 1;
    }

    fn limit(&self) -> usize {
        let missed = self.missed.load(Ordering::Relaxed);
        (self.wanted + missed).min(self.wanted * BUYERS_PER_ORDER)
    }

    /// The next buyer, while any is left.
    fn next_buyer(&self) -> Option<usize> {
        let taken = self.issued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < self.limit()).then_some(count + 1)
        });
        self.progress.set_position(
            taken.unwrap_or_default().saturating_sub(self.missed.load(Ordering::Relaxed)) as u64,
        );
        taken.ok()
    }

    /// A payment could not be made in time: another one has to be.
    fn missed(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.issued.load(Ordering::Relaxed) >= self.limit()
    }

    fn in_time(&self, what: &str) -> Result<(), Failure> {
        if Instant::now() < self.deadline {
            Ok(())
        } else {
            Err(Failure::Other(format!("the time was up before {what}")))
        }
    }
}

/// Runs once. Where it ends badly the folder is kept, and the server's last words are told.
///
/// # Errors
/// When it cannot be carried through. What does not hold is in the report.
pub(super) fn run(wanted: Wanted) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let mut folder = Folder::new()?;
    let outcome = runtime.block_on(async {
        let mut server = Server::new(folder.path(), HASTE);
        let outcome = carry_through(wanted, &mut server).await;
        if !outcome.as_ref().is_ok_and(Report::holds) {
            for line in server.log() {
                output::note(&format!("server: {line}"));
            }
        }
        outcome
    });
    if !outcome.as_ref().is_ok_and(Report::holds) {
        folder.keep();
        output::note(&format!("the store and the bank are kept in {}", folder.path().display()));
    }
    outcome
}

async fn carry_through(wanted: Wanted, server: &mut Server) -> Result<Report, Failure> {
    let (losses, progress) = (Losses::default(), progress_bar(wanted.orders));
    server.start().await?;
    let (started, began) = (Instant::now(), SystemClock.now());
    let orders = u32::try_from(wanted.orders).unwrap_or(u32::MAX);
    let torture = Torture {
        seed: wanted.seed,
        wanted: wanted.orders,
        pace: Duration::from_secs(1) * LANES / ORDERS_PER_SECOND,
        address: server.address(),
        losses: &losses,
        deadline: started + TIME + TIME_PER_ORDER * orders,
        progress: &progress,
        issued: AtomicUsize::new(0),
        missed: AtomicUsize::new(0),
        requests: AtomicU64::new(0),
        notes: Mutex::default(),
    };
    open(&torture).await?;
    let kills = pay_and_kill(&torture, server, wanted).await?;
    progress.set_message("coming to rest");
    come_to_rest(&torture).await?;
    progress.set_message("checking");
    let found = books::compare(&torture, began).await?;
    progress.finish_and_clear();
    server.stop().await?;
    Ok(report::of(&torture, found, report::Run { wanted, kills, took: started.elapsed() }))
}

/// Puts the two activities on sale.
async fn open(torture: &Torture<'_>) -> Result<(), Failure> {
    const DAY: Millis = Millis(24 * 60 * 60 * 1_000);
    let mut client = torture.client();
    let now = SystemClock.now();
    for late in Late::ALL {
        let terms = json!({
            "name": late.name(), "starts_at": rfc3339(now.minus(DAY)), "ends_at": rfc3339(now.plus(DAY)),
            "payment_window_ms": WINDOW.0, "cancel_grace_ms": GRACE.0, "late_payment": late.name(),
            "confirm_after_cancel_ms": CONFIRM_AFTER.0,
        });
        let price = json!({"amount": PRICE, "currency": "CNY"});
        let stock = torture.wanted * BUYERS_PER_ORDER;
        let sku = json!({"stock": stock, "price": price, "per_user_limit": 1});
        let activity = format!("/v1/activities/{}", late.name());
        for (path, body) in [(activity.clone(), terms), (format!("{activity}/skus/{SKU}"), sku)] {
            let answer = client.put(&path, &body).await?;
            if !matches!(answer.status, 200 | 201) {
                return Err(Failure::Other(format!("PUT {path} was answered {}", answer.short())));
            }
        }
    }
    Ok(())
}

/// Everybody buys and pays, in bad weather, while the power fails. Answers how often it failed.
async fn pay_and_kill(torture: &Torture<'_>, server: &mut Server, wanted: Wanted) -> Result<u64, Failure> {
    let (over, _) = watch::channel(false);
    let buying = async {
        let bought = all((0..LANES).map(|_| Lane::new(torture).run())).await;
        over.send_replace(true);
        bought
    };
    let killing = async {
        let mut kills = 0;
        let mut rng = StdRng::seed_from_u64(wanted.seed ^ 0x6b69_6c6c);
        while wanted.crash && !is_over_within(&over, rng.random_range(UP_MS)).await {
            server.kill().await?;
            server.start().await?;
            kills += 1;
        }
        Ok(kills)
    };
    let ((), kills, ()) = tokio::try_join!(buying, killing, weather(torture, &over))?;
    Ok(kills)
}

/// Waits this long, or until everything is over.
async fn is_over_within(over: &watch::Sender<bool>, length: u64) -> bool {
    let mut told = over.subscribe();
    timeout(Duration::from_millis(length), told.wait_for(|over| *over)).await.is_ok()
}

/// The bank's moods change all the time, and are good at the end.
async fn weather(torture: &Torture<'_>, over: &watch::Sender<bool>) -> Result<(), Failure> {
    let mut client = torture.client();
    let mut rng = StdRng::seed_from_u64(torture.seed ^ 0x6d6f_6f64);
    let good = json!({"query": "ok", "close": "ok", "refund": "ok"});
    while !is_over_within(over, rng.random_range(WEATHER_MS)).await {
        let mut mood = |names: &[&'static str]| {
            let bad = rng.random_range(0..10_u32) < 4;
            if bad { names[rng.random_range(0..names.len())] } else { "ok" }
        };
        let refund = ["error", "timeout", "timeout_after_effect"];
        let moods = [mood(&["error", "timeout"]), mood(&["error", "timeout"]), mood(&refund)];
        for (asked, mood) in ["bank_query", "bank_close", "bank_refund"].into_iter().zip(moods) {
            if mood != "ok" {
                torture.sometimes(match (asked, mood) {
                    ("bank_query", "error") => "bank_query_refused",
                    ("bank_query", _) => "bank_query_silent",
                    ("bank_close", "error") => "bank_close_refused",
                    ("bank_close", _) => "bank_close_silent",
                    (_, "error") => "bank_refund_refused",
                    (_, "timeout") => "bank_refund_silent",
                    (_, _) => "bank_refund_answer_lost",
                });
            }
        }
        let [query, close, refund] = moods;
        client.put("/sandbox/mode", &json!({"query": query, "close": close, "refund": refund})).await?;
    }
    client.put("/sandbox/mode", &good).await?;
    Ok(())
}

/// Waits until nothing is on its way any more, and the last late callback was due.
async fn come_to_rest(torture: &Torture<'_>) -> Result<(), Failure> {
    let mut client = torture.client();
    let last_callback = SystemClock.now().plus(DELAY_MAX);
    loop {
        let overview = client.get("/v1/ops/overview").await?;
        let busy = busy_queues(&overview, Ahead::Reservations);
        if busy.is_empty() && SystemClock.now() > last_callback {
            return Ok(());
        }
        torture.in_time(&format!("everything comes to rest (busy: {})", busy.join(", ")))?;
        pause(LOOK).await;
    }
}

fn progress_bar(orders: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} orders {elapsed} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(u64::try_from(orders).unwrap_or(u64::MAX)).with_style(style)
}
