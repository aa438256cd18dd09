//! `bench cluster`: from a buyer's HTTP request to the committed order, everything on this machine.
//!
//! Purpose: what a node does with PostgreSQL, Redis and RocketMQ, and with PostgreSQL alone (EM-05): winners a second until the
//! last order is committed, and the time from `QUEUED` to the order under a moderate load. Invariants: all roles at work in this
//! process, as in `serve`; each round begins at rest, when the gate has heard of every order; every answer is 202 and every
//! winner has an order, or nothing is printed. Deliberately absent: a baseline. Load, engine and servers share the machine, so
//! the figures are absolute and of this machine.

use std::time::{Duration, Instant};

use onceward::runtime::Role;

use super::super::latency;
use super::super::serving::{Serving, ask_all};
use super::super::shop::PLENTY;
use super::places::Places;
use super::shop::{Shop, Way};
use super::{Effort, Failure, Machine, Report};
use crate::bench::histogram::Histogram;
use crate::bench::interleave::median;
use crate::bench::load::Load;
use crate::output;

const WINNERS: &str = "cluster.winners";
const UNTIL_ORDERED: &str = "cluster.until_ordered";
pub(super) const PARTS: [&str; 4] = [
    "cluster.winners.all",
    "cluster.winners.postgres",
    "cluster.until_ordered.all",
    "cluster.until_ordered.postgres",
];

/// Connections, each with a request under way.
const CONNECTIONS: usize = 64;
/// Buyers who come first and are not measured: a broker may give the first messages to the reader before this one, and gives
/// them out again when its lease has ended.
const FIRST: u64 = 256;
/// Longest time of one round.
const ROUND_TIME: Duration = Duration::from_secs(120);
/// Fewer buyers wait for their order one by one.
const WAITING_PART: u64 = 4;
/// What a winner is answered.
const QUEUED: u16 = 202;

/// Which servers.
#[derive(Clone, Copy)]
enum Servers {
    All,
    Postgres,
}

impl Servers {
    const EACH: [Self; 2] = [Self::All, Self::Postgres];

    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Postgres => "postgres",
        }
    }
}

pub(super) async fn run(effort: &Effort, machine: &Machine, places: &Places) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for servers in Servers::EACH {
        let [winners, until] = [WINNERS, UNTIL_ORDERED].map(|part| format!("{part}.{}", servers.name()));
        if effort.names(&winners) {
            output::note(&format!("{winners}: from the request to the order"));
            let work = async |shop: &Shop| all_winners(effort, machine, &winners, shop).await;
            reports.push(in_a_shop(places, servers, work).await?);
        }
        if effort.names(&until) {
            output::note(&format!("{until}: from QUEUED to the order"));
            let work = async |shop: &Shop| until_ordered(effort, machine, &until, shop).await;
            reports.push(in_a_shop(places, servers, work).await?);
        }
    }
    Ok(reports)
}

async fn in_a_shop(
    places: &Places,
    servers: Servers,
    work: impl AsyncFnOnce(&Shop) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    places.store()?;
    places
        .with_schema(async |schema| {
            let open = async |way| Shop::open(&schema.url(), way, &[PLENTY.to_owned()]).await;
            let used = async |shop: Shop| {
                let report = work(&shop).await;
                shop.close().await;
                report
            };
            match servers {
                Servers::Postgres => used(open(Way::Alone).await?).await,
                Servers::All => {
                    let broker = places.broker()?;
                    places
                        .with_keys(async |redis| {
                            used(open(Way::Servers(Box::new((redis, broker)))).await?).await
                        })
                        .await
                }
            }
        })
        .await
}

/// Serves the shop, and waits until the first buyers have their orders.
async fn open_doors(shop: &Shop) -> Result<Serving, Failure> {
    let serving = Serving::start(&shop.engine, &Role::ALL).await?;
    ask_all(&load(&serving, FIRST), PLENTY, 0, QUEUED).await?;
    shop.until_projected(FIRST).await?;
    Ok(serving)
}

fn load(serving: &Serving, requests: u64) -> Load {
    Load { address: serving.address, connections: CONNECTIONS, requests, time_limit: ROUND_TIME }
}

async fn all_winners(effort: &Effort, machine: &Machine, part: &str, shop: &Shop) -> Result<Report, Failure> {
    let serving = open_doors(shop).await?;
    let (mut rates, mut queued, mut latency, mut made) = (Vec::new(), Vec::new(), Histogram::new(), FIRST);
    for _round in 0..effort.rounds.get() {
        let started = Instant::now();
        let asked = ask_all(&load(&serving, effort.count), PLENTY, made, QUEUED).await?;
        made += effort.count;
        shop.until_ordered(made).await?;
        rates.push(effort.count as f64 / started.elapsed().as_secs_f64());
        queued.push(asked.per_second());
        latency.merge(&asked.latency);
        shop.until_projected(made).await?;
    }
    serving.end().await?;
    Ok(Report::new(part, median(&rates), machine)
        .with_parameter("connections", CONNECTIONS)
        .with_parameter("winners", effort.count)
        .with_parameter("rounds", effort.rounds.get())
        .with_extra("queued_per_second", median(&queued))
        .with_extra("rounds_per_second", rates)
        .with_extra("rounds_queued_per_second", queued)
        .with_latency(&latency))
}

async fn until_ordered(
    effort: &Effort,
    machine: &Machine,
    part: &str,
    shop: &Shop,
) -> Result<Report, Failure> {
    let serving = open_doors(shop).await?;
    let buyers = effort.count / WAITING_PART;
    let measured = latency::measure(serving.address, FIRST, buyers).await?;
    shop.until_projected(FIRST + buyers).await?;
    serving.end().await?;
    Ok(Report::new(part, measured.per_second, machine)
        .with_parameter("buyers_at_once", latency::BUYERS_AT_ONCE)
        .with_parameter("winners", buyers)
        .with_latency(&measured.latency))
}
