//! `onceward torture --scenario roles`: two processes of every role over real servers, killed at random.
//!
//! Purpose: no process may be one that others cannot do without. Buyers reserve, let their orders expire or cancel them, and
//! look at what they were told, while processes are killed one by one, or both of a role at once, and started again. At the
//! end every request that was answered is one order, every unit is free again, and every invariant holds.
//!
//! Invariants: the plan of the kills is a function of the seed; the end is a condition, never a time; a process that ends
//! without being killed ends the run. The servers are those of the settings, and are only used. Deliberately absent: killing
//! those servers, and payments, which `pay-cancel` plays.
//!
//! Read next: `crew` → `buyer` → `books`.

mod books;
mod buyer;
mod crew;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::Millis;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::time::Instant;

use self::buyer::{Seen, buy};
use self::crew::Crew;
use super::pay_cancel::Report;
use crate::client::{Address, Client, Losses, pause};
use crate::failure::Failure;
use crate::output;
use crate::outside::together::all;
use crate::settings::{Flags, Settings, StorePlace};
use crate::temp_dir::Folder;
use crate::time::{SystemClock, rfc3339};

/// The one SKU, and how many units it has: few enough that most are bought several times over.
const SKU: &str = "seat";
const STOCK: i64 = 300;
/// From an order to its expiry.
const WINDOW: Millis = Millis(4_000);
/// A reservation's time: longer than any run, so that each becomes an order.
const DEADLINE: Millis = Millis(86_400_000);
/// Connections of buyers.
const LANES: usize = 4;
/// Between two kills.
const UP_MS: std::ops::RangeInclusive<u64> = 100..=1_500;
/// How long what was killed stays away.
const AWAY_MS: std::ops::RangeInclusive<u64> = 0..=700;
/// How long it may take until everything has come to rest: a broker gives out again what a killed process had, and waits after
/// failures grow to half a minute.
const REST: Duration = Duration::from_secs(300);

/// What a run is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Gives the same kills again.
    pub(super) seed: u64,
    /// How long processes are killed.
    pub(super) length: Duration,
    /// The settings file.
    pub(super) config: Option<&'a Path>,
}

/// What all parts of a run share.
struct Torture<'a> {
    seed: u64,
    activity: String,
    /// Where requests are answered.
    addresses: Vec<Address>,
    losses: &'a Losses,
    deadline: Instant,
    is_over: AtomicBool,
    requests: AtomicU64,
    seen: Mutex<Vec<Seen>>,
    sometimes: Mutex<BTreeMap<&'static str, u64>>,
}

impl<'a> Torture<'a> {
    fn client(&self, number: usize) -> Client<'a> {
        Client::new(self.addresses[number % self.addresses.len()].clone(), self.losses, self.deadline)
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sometimes(&self, case: &'static str) {
        *self.sometimes.lock().unwrap_or_else(PoisonError::into_inner).entry(case).or_default() += 1;
    }
}

/// Runs once. Where it ends badly the processes' last words are told.
///
/// # Errors
/// When it cannot be carried through. What does not hold is in the report.
pub(super) fn run(wanted: Wanted<'_>) -> Result<Report, Failure> {
    let settings = Settings::load(wanted.config, &Flags::default())?;
    if matches!(settings.store_place()?, StorePlace::File(_)) {
        return Err(Failure::Usage(
            "roles in processes of their own share a store: set store_url to a PostgreSQL database that is for this alone"
                .to_owned(),
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let folder = Folder::new()?;
    runtime.block_on(async {
        let secret = settings.secret_path();
        let mut crew = Crew::new(folder.path(), wanted.config, secret.is_file().then_some(secret));
        let outcome = carry_through(wanted, &mut crew).await;
        if !outcome.as_ref().is_ok_and(Report::holds) {
            crew.log().for_each(|line| output::note(&line));
        }
        outcome
    })
}

async fn carry_through(wanted: Wanted<'_>, crew: &mut Crew) -> Result<Report, Failure> {
    let losses = Losses::default();
    crew.start().await?;
    let began = Instant::now();
    let torture = Torture {
        seed: wanted.seed,
        activity: format!("roles-{}-{}", wanted.seed, SystemClock.now().0),
        addresses: crew.addresses(),
        losses: &losses,
        deadline: began + wanted.length + 2 * REST,
        is_over: AtomicBool::new(false),
        requests: AtomicU64::new(0),
        seen: Mutex::default(),
        sometimes: Mutex::default(),
    };
    open(&torture).await?;
    let killing = async {
        let killed = kill(&torture, crew, began + wanted.length).await;
        torture.is_over.store(true, Ordering::SeqCst);
        killed
    };
    let (kills, ()) = tokio::try_join!(killing, all((0..LANES).map(|lane| buy(&torture, lane))))?;
    let busy = come_to_rest(&torture).await?;
    let mut checks = books::compare(&torture, &busy).await?;
    crew.stop().await?;
    checks.push(crew.all_were_killed());
    let mut sometimes =
        std::mem::take(&mut *torture.sometimes.lock().unwrap_or_else(PoisonError::into_inner));
    sometimes.insert("answer_lost", losses.lost.load(Ordering::Relaxed));
    sometimes.insert("told_to_come_back_later", losses.postponed.load(Ordering::Relaxed));
    let orders = torture.seen().len();
    Ok(Report {
        seed: wanted.seed,
        trace_hash: format!("{:016x}", crew::fingerprint(wanted.seed)),
        requests: torture.requests.load(Ordering::Relaxed),
        orders,
        kills,
        wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        sometimes,
        checks,
    })
}

/// Puts the sale up.
async fn open(torture: &Torture<'_>) -> Result<(), Failure> {
    const DAY: Millis = Millis(24 * 60 * 60 * 1_000);
    let mut client = torture.client(0);
    let now = SystemClock.now();
    let terms = json!({
        "name": "Roles", "starts_at": rfc3339(now.minus(DAY)), "ends_at": rfc3339(now.plus(DAY)),
        "payment_window_ms": WINDOW.0, "cancel_grace_ms": 0, "reservation_deadline_ms": DEADLINE.0,
    });
    let price = json!({"amount": 1_999, "currency": "CNY"});
    let sku = json!({"stock": STOCK, "price": price, "per_user_limit": 1});
    let activity = format!("/v1/activities/{}", torture.activity);
    for (path, body) in [(activity.clone(), terms), (format!("{activity}/skus/{SKU}"), sku)] {
        let answer = client.put(&path, &body).await?;
        if !matches!(answer.status, 200 | 201) {
            return Err(Failure::Other(format!("PUT {path} was answered {}", answer.short())));
        }
    }
    Ok(())
}

/// Kills and starts again until the time is up. Answers how many were killed.
async fn kill(torture: &Torture<'_>, crew: &mut Crew, until: Instant) -> Result<u64, Failure> {
    let mut rng = StdRng::seed_from_u64(torture.seed);
    let mut kills = 0;
    while Instant::now() < until {
        pause(Duration::from_millis(rng.random_range(UP_MS))).await;
        let victims = crew::victims(&mut rng);
        for victim in &victims {
            crew.kill(*victim).await?;
            kills += 1;
        }
        if victims.len() > 1 {
            torture.sometimes("both_of_a_role_were_away");
        }
        pause(Duration::from_millis(rng.random_range(AWAY_MS))).await;
        for victim in victims {
            crew.start_one(victim).await?;
        }
    }
    Ok(kills)
}

/// Waits until nothing is on its way any more; answers what still is when the time is up.
async fn come_to_rest(torture: &Torture<'_>) -> Result<Vec<String>, Failure> {
    let until = Instant::now() + REST;
    let mut client = torture.client(0);
    loop {
        let busy = books::busy(torture, &mut client).await?;
        if busy.is_empty() || Instant::now() > until {
            return Ok(busy);
        }
        pause(Duration::from_millis(200)).await;
    }
}
