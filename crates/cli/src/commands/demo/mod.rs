//! `onceward demo`: a whole sale, seen from outside, with the power failing now and then.
//!
//! Purpose: show that what was acknowledged is kept. The engine runs as a child process; buyers ask it over HTTP and
//! know nothing else; with `--crash` the child is killed and started again on the same folder, and buyers whose answer
//! was lost repeat their request with the same ids.
//!
//! Invariants: the child is ended and the folder removed on every path, also where this process panics or is told to
//! stop; exit code 0 only if every check holds.
//!
//! Read next: `plan` → `sale` → `buyer`, `group_order`, `studio` → `audit`.

mod audit;
mod buyer;
mod group_order;
mod studio;

mod plan;
mod report;
mod sale;
mod tally;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::Millis;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use self::plan::{KILLS_MIN, Plan};
use self::report::Report;
use self::sale::Sale;
use self::tally::Tally;
use crate::client::Losses;
use crate::data_dir;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::outside::check::Check;
use crate::outside::server::{Haste, Server};
use crate::temp_dir::Folder;
use crate::time::SystemClock;

/// The arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Units on sale: as many winners are to be expected
    #[arg(long, value_name = "COUNT", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    orders: u32,
    /// Gives the same plan again
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Kill the engine at least ten times during the sale
    #[arg(long)]
    crash: bool,
    /// Keep the folder with the store, and say where it is
    #[arg(long)]
    keep: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// What a killed server had claimed is taken up soon, and a silent bank is not waited for.
const HASTE: Haste = Haste { lease: Millis(1_000), provider_timeout: Millis(200) };
/// Time for a demonstration of any size, and more for each unit.
const TIME: Duration = Duration::from_secs(120);
const TIME_PER_UNIT: Duration = Duration::from_millis(20);

/// Runs the demonstration and prints what came of it.
///
/// # Errors
/// When it could not be carried through, or a check does not hold.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(u32::from_le_bytes(data_dir::random()?)),
    };
    let stock =
        usize::try_from(arguments.orders).map_err(|cause| Failure::other("counting orders", cause))?;
    let plan = Plan::new(stock, seed, arguments.crash);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let mut folder = Folder::new()?;
    let shown = runtime.block_on(until_told_to_stop(show(&plan, seed, &folder)))?;
    let Some(report) = shown else { return Err(Failure::Other("told to stop".to_owned())) };
    let is_good = report.as_ref().is_ok_and(|report| report.holds);
    if arguments.keep || !is_good {
        folder.keep();
        output::note(&format!("the store is kept in {}", folder.path().display()));
    }
    let report = report?;
    match Format::of(arguments.json) {
        Format::Json => output::json(&report)?,
        Format::Text => output::data(|out| report.write_table(out))?,
    }
    if report.holds { Ok(()) } else { Err(Failure::Reported) }
}

/// Ends early, with nothing to show and all tidied up, where a signal comes.
///
/// # Errors
/// When signals cannot be caught.
async fn until_told_to_stop(
    showing: impl Future<Output = Result<Report, Failure>>,
) -> Result<Option<Result<Report, Failure>>, Failure> {
    let catch = |kind| signal(kind).map_err(|cause| Failure::other("catching signals", cause));
    let (mut terminate, mut interrupt) = (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
    tokio::select! {
        report = showing => Ok(Some(report)),
        _ = terminate.recv() => Ok(None),
        _ = interrupt.recv() => Ok(None),
    }
}

/// Carries the demonstration through; where it ends badly, the server's last words are told.
async fn show(plan: &Plan, seed: u64, folder: &Folder) -> Result<Report, Failure> {
    let mut server = Server::new(folder.path(), HASTE);
    let report = carry_through(plan, seed, &mut server).await;
    let is_good = report.as_ref().is_ok_and(|report| report.holds);
    if !is_good {
        for line in server.log() {
            output::note(&format!("server: {line}"));
        }
    }
    report
}

async fn carry_through(plan: &Plan, seed: u64, server: &mut Server) -> Result<Report, Failure> {
    let (tally, losses, progress) = (Tally::default(), Losses::default(), progress_bar(plan.buyers.len()));
    server.start().await?;
    let started = Instant::now();
    let units = u32::try_from(plan.stock).unwrap_or(u32::MAX);
    let sale = Sale {
        plan,
        address: server.address(),
        tally: &tally,
        losses: &losses,
        began: SystemClock.now(),
        deadline: started + TIME + TIME_PER_UNIT * units,
        progress: &progress,
    };
    sale.open().await?;
    let mut kills = sale.run(server).await?;
    if !plan.kills.is_empty() {
        progress.set_message("power cut at the cut-off");
        sale.cut_off(server).await?;
        kills += 1;
        progress.set_message("");
    }
    let late = sale.sell_again().await?;
    sale.come_too_late().await?;
    progress.set_message("coming to rest");
    sale.come_to_rest().await?;
    progress.set_message("checking");
    let report = reckon(&sale, seed, kills, late, started).await?;
    progress.finish_and_clear();
    server.stop().await?;
    Ok(report)
}

async fn reckon(
    sale: &Sale<'_>,
    seed: u64,
    kills: usize,
    late: u64,
    started: Instant,
) -> Result<Report, Failure> {
    use std::sync::atomic::Ordering::Relaxed;
    let seen = std::mem::take(&mut *sale.tally.lock());
    let mut found = audit::reckon(sale, &seen).await?;
    if !sale.plan.kills.is_empty() {
        let compared = format!("{kills} kills, at least {KILLS_MIN} wanted");
        let wrong = if kills < KILLS_MIN { vec![compared.clone()] } else { Vec::new() };
        found.checks.insert(0, Check::of("killed_often_enough", &compared, &wrong));
    }
    let lost = (sale.losses.lost.load(Relaxed), sale.losses.recovered.load(Relaxed));
    let wrong =
        if lost.0 == lost.1 { Vec::new() } else { vec![format!("{} lost, {} recovered", lost.0, lost.1)] };
    found
        .checks
        .insert(0, Check::of("lost_answers_are_recovered", &format!("{} lost answers", lost.0), &wrong));
    Ok(Report {
        orders_asked_for: sale.plan.stock,
        seed,
        buyers: sale.plan.buyers.len() + usize::try_from(late).unwrap_or(0) + sale::LATE_BUYERS,
        requests: seen.requests,
        accepted: seen.reservations.len(),
        refused: seen.refused,
        repeats: seen.repeats,
        kills,
        lost_answers: lost.0,
        recovered_answers: lost.1,
        postponed_answers: sale.losses.postponed.load(Relaxed),
        orders: found.orders,
        winners: found.winners,
        direct_orders: seen.direct_orders.len(),
        cancelled: found.cancelled,
        expired: found.expired,
        paid: found.money.paid,
        given_back: found.money.given_back,
        shares_charged: found.gathered.charged,
        shares_declined: found.gathered.declined,
        jobs: found.produced.jobs,
        jobs_refunded: found.produced.refunded,
        jobs_reclaimed: found.produced.reclaimed,
        elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        store_bytes: found.store_bytes,
        holds: found.checks.iter().all(|check| check.holds),
        checks: found.checks,
    })
}

/// A bar on stderr, which hides itself where stderr is no terminal.
fn progress_bar(buyers: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} buyers {elapsed} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(u64::try_from(buyers).unwrap_or(u64::MAX)).with_style(style)
}
