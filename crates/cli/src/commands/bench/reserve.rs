//! `bench reserve`: buyers at the gate.
//!
//! Purpose: winners and refusals apart, in process and over HTTP; over HTTP as a ratio to a bare endpoint of the same
//! shape; with the whole engine at work, and with the role `api` alone.
//!
//! Invariants: a round counts only if every answer has the status that it must have; before a round of the baseline the
//! engine has come to rest, so that its work does not fall into the baseline's time. Read next: `shop`, `latency`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onceward::gate::{Gate, ReserveRequest};
use onceward::runtime::Role;
use onceward_domain::id::RequestId;
use onceward_domain::ports::admission::ReserveAnswer;
use tokio::task::JoinSet;

use super::serving::{Serving, ask_all};
use super::shop::{NOTHING, PLENTY, Shop, Transport, sku_key, user};
use super::{Effort, latency};
use crate::bench::bare::{self, BareAnswer};
use crate::bench::histogram::Histogram;
use crate::bench::interleave::interleave;
use crate::bench::load::{Load, LoadReport};
use crate::bench::report::{Machine, Report};
use crate::failure::Failure;
use crate::output;

/// The batch of the engine's own settings.
const ORDER_BATCH: usize = 500;
/// Tasks at the gate at once, in process: more than one batch takes.
const TASKS: u64 = 1024;
/// Connections at once, over HTTP.
const CONNECTIONS: [usize; 2] = [64, 256];
/// Longest time of one round.
const ROUND_TIME: Duration = Duration::from_secs(120);

const UNTIL_ORDERED: &str = "reserve.until_ordered";

/// The parts that can be chosen.
pub(crate) fn parts() -> Vec<String> {
    let mut parts: Vec<String> = Outcome::ALL.iter().map(|outcome| gate_part(*outcome)).collect();
    parts.extend(Case::all().iter().map(Case::part));
    parts.push(UNTIL_ORDERED.to_owned());
    parts
}

/// Measures what was chosen of reservations.
///
/// # Errors
/// When a round is not clean.
pub(crate) async fn run(effort: &Effort, machine: &Machine) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for outcome in Outcome::ALL {
        if effort.wants(&gate_part(outcome)) {
            reports.push(in_process(effort, machine, outcome).await?);
        }
    }
    for case in Case::all() {
        if effort.wants(&case.part()) {
            reports.push(over_http(effort, machine, &case).await?);
        }
    }
    if effort.wants(UNTIL_ORDERED) {
        reports.push(until_ordered(effort, machine).await?);
    }
    Ok(reports)
}

fn gate_part(outcome: Outcome) -> String {
    format!("reserve.gate.{}", outcome.name())
}

/// How every buyer of a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Winner,
    Refusal,
}

impl Outcome {
    const ALL: [Self; 2] = [Self::Winner, Self::Refusal];

    fn name(self) -> &'static str {
        match self {
            Self::Winner => "winners",
            Self::Refusal => "refusals",
        }
    }

    fn sku(self) -> &'static str {
        match self {
            Self::Winner => PLENTY,
            Self::Refusal => NOTHING,
        }
    }

    fn status(self) -> u16 {
        match self {
            Self::Winner => 202,
            Self::Refusal => 409,
        }
    }

    fn bare(self) -> BareAnswer {
        match self {
            Self::Winner => BareAnswer::Queued,
            Self::Refusal => BareAnswer::SoldOut,
        }
    }

    fn is(self, answer: &ReserveAnswer) -> bool {
        match self {
            Self::Winner => matches!(answer, ReserveAnswer::Queued { .. }),
            Self::Refusal => matches!(answer, ReserveAnswer::SoldOut),
        }
    }
}

/// Which roles run beside the buyers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roles {
    All,
    ApiAlone,
}

impl Roles {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::ApiAlone => "api",
        }
    }

    fn list(self) -> &'static [Role] {
        match self {
            Self::All => &Role::ALL,
            Self::ApiAlone => &[Role::Api],
        }
    }
}

async fn in_process(effort: &Effort, machine: &Machine, outcome: Outcome) -> Result<Report, Failure> {
    output::note(&format!("reserve: {} in process", outcome.name()));
    let shop = Shop::open(&effort.folder, Transport::Store, ORDER_BATCH).await?;
    let gate = Gate::open(shop.engine.clone());
    let (mut figures, mut latency) = (Vec::new(), Histogram::new());
    for round in 0..u64::from(effort.rounds.get()) {
        let first = round * effort.count;
        let started = Instant::now();
        let mut buyers = JoinSet::new();
        for lane in 0..TASKS {
            let numbers = (first + lane..first + effort.count).step_by(usize::try_from(TASKS).unwrap_or(1));
            buyers.spawn(at_the_gate(gate.clone(), outcome, numbers));
        }
        while let Some(joined) = buyers.join_next().await {
            latency.merge(&joined.map_err(|cause| Failure::other("a buyer", cause))??);
        }
        figures.push(effort.count as f64 / started.elapsed().as_secs_f64());
    }
    drop(gate);
    shop.close().await?;
    let median = crate::bench::interleave::median(&figures);
    Ok(Report::new(&gate_part(outcome), median, machine)
        .with_parameter("tasks", TASKS)
        .with_parameter("requests", effort.count)
        .with_parameter("rounds", effort.rounds.get())
        .with_extra("rounds_per_second", figures)
        .with_latency(&latency))
}

async fn at_the_gate(
    gate: Gate,
    outcome: Outcome,
    numbers: impl Iterator<Item = u64> + Send,
) -> Result<Histogram, Failure> {
    let mut latency = Histogram::new();
    for number in numbers {
        let (key, request) = (sku_key(outcome.sku()), RequestId::trusted("r"));
        let asked = Instant::now();
        let answer = gate.reserve(ReserveRequest { key, user: user(number), request, quantity: 1 }).await?;
        latency.record(asked.elapsed());
        if !outcome.is(&answer) {
            return Err(Failure::Other(format!("buyer {number} was answered {answer:?}")));
        }
    }
    Ok(latency)
}

/// A shop that is served.
struct Served {
    shop: Shop,
    serving: Serving,
}

impl Served {
    async fn start(effort: &Effort, roles: &[Role]) -> Result<Self, Failure> {
        let shop = Shop::open(&effort.folder, Transport::Store, ORDER_BATCH).await?;
        let serving = Serving::start(&shop.engine, roles).await?;
        Ok(Self { shop, serving })
    }

    async fn end(self) -> Result<(), Failure> {
        self.serving.end().await?;
        self.shop.close().await.map(drop)
    }
}

/// One comparison over HTTP.
struct Case {
    roles: Roles,
    outcome: Outcome,
    connections: usize,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for roles in [Roles::All, Roles::ApiAlone] {
            for outcome in Outcome::ALL {
                cases.extend(CONNECTIONS.map(|connections| Self { roles, outcome, connections }));
            }
        }
        cases
    }

    fn part(&self) -> String {
        let Self { roles, outcome, connections } = self;
        format!("reserve.http.{}.{}.{connections}", outcome.name(), roles.name())
    }
}

async fn over_http(effort: &Effort, machine: &Machine, case: &Case) -> Result<Report, Failure> {
    let Case { roles, outcome, connections } = *case;
    output::note(&format!(
        "reserve: {} over HTTP, {connections} connections, roles {}",
        outcome.name(),
        roles.name()
    ));
    let served = Served::start(effort, roles.list()).await?;
    let bare_server = bare::serve(outcome.bare()).await.map_err(|cause| Failure::other("serving", cause))?;
    let next = Arc::new(AtomicU64::new(0));
    let latency = std::sync::Mutex::new(Histogram::new());
    let compared = interleave(
        effort.rounds,
        async || round(effort, bare_server.address(), case, &next).await.map(|done| done.per_second()),
        async || {
            let done = round(effort, served.serving.address, case, &next).await?;
            if roles == Roles::All && outcome == Outcome::Winner {
                served.shop.until_decided().await?;
            }
            latency.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(&done.latency);
            Ok::<_, Failure>(done.per_second_of(outcome.status()))
        },
    )
    .await?;
    served.end().await?;
    let latency = latency.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Report::against(&format!("reserve.http.{}", outcome.name()), compared, machine)
        .with_parameter("connections", connections)
        .with_parameter("roles", roles.name())
        .with_parameter("requests", effort.count)
        .with_latency(&latency))
}

/// Asks once for each of the next buyers.
async fn round(
    effort: &Effort,
    address: SocketAddr,
    case: &Case,
    next: &Arc<AtomicU64>,
) -> Result<LoadReport, Failure> {
    let (connections, requests) = (case.connections, effort.count);
    let load = Load { address, connections, requests, time_limit: ROUND_TIME };
    let first = next.fetch_add(effort.count, Ordering::Relaxed);
    ask_all(&load, case.outcome.sku(), first, case.outcome.status()).await
}

async fn until_ordered(effort: &Effort, machine: &Machine) -> Result<Report, Failure> {
    output::note("reserve: from QUEUED to the order over HTTP");
    let served = Served::start(effort, &Role::ALL).await?;
    let measured = latency::measure(served.serving.address, 0, effort.count / 4).await?;
    served.end().await?;
    Ok(Report::new("reserve.until_ordered", measured.per_second, machine)
        .with_parameter("buyers_at_once", latency::BUYERS_AT_ONCE)
        .with_parameter("requests", effort.count / 4)
        .with_latency(&measured.latency))
}
