//! `bench postgres.order`: from messages to durable orders in PostgreSQL, beside one transaction a message.
//!
//! Purpose: the engine's consumer against the statement-by-statement form on one hot SKU, and against the one-call form over a
//! hundred; bytes of the server's log beside the rate; and the rate after many orders. Invariants: the server is as it is set;
//! each round has a fresh schema; a round counts only if every message became an order. Read next:
//! [`crate::bench::row_by_row`].

use std::sync::{Mutex, PoisonError};

use super::places::Places;
use super::shop::{Shop, Way};
use super::{Effort, Failure, Machine, Report};
use crate::bench::interleave::{Interleaved, interleave, median};
use crate::bench::row_by_row::{self, Form, Plan, Run};
use crate::bench::server::{Schema, log_position};
use crate::output;

const HOT: &str = "postgres.order.hot";
const SPREAD: &str = "postgres.order.spread";
const LARGE: &str = "postgres.order.large";
pub(super) const PARTS: [&str; 3] = [HOT, SPREAD, LARGE];

/// Sessions of the plain way, of which the fastest number is taken.
const CLIENTS: [u64; 5] = [1, 2, 4, 8, 16];
/// SKUs of a spread sale.
const MANY: u64 = 100;
/// The plain way needs many times longer for an order, so its rounds have fewer.
const PLAIN_PART: u64 = 20;
/// And fewer still while the number of sessions is sought.
const SOUGHT_PART: u64 = 40;
/// Orders made in one go before the large measurement.
const PRELOADED_TOGETHER: u64 = 100_000;

pub(super) async fn run(effort: &Effort, machine: &Machine, places: &Places) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    if effort.names(HOT) {
        reports.push(
            compared(effort, machine, places, &Case { part: HOT, skus: 1, form: Form::Statements }).await?,
        );
    }
    if effort.names(SPREAD) {
        reports.push(
            compared(effort, machine, places, &Case { part: SPREAD, skus: MANY, form: Form::OneCall })
                .await?,
        );
    }
    if effort.names(LARGE) {
        reports.push(large(effort, machine, places).await?);
    }
    Ok(reports)
}

/// One comparison.
struct Case {
    part: &'static str,
    skus: u64,
    form: Form,
}

impl Case {
    fn plan(&self, clients: u64, messages: u64) -> Plan {
        Plan { form: self.form, clients, skus: self.skus, messages }
    }
}

fn skus(count: u64) -> Vec<String> {
    (0..count).map(|number| format!("s{number}")).collect()
}

async fn compared(
    effort: &Effort,
    machine: &Machine,
    places: &Places,
    case: &Case,
) -> Result<Report, Failure> {
    output::note(&format!("{}: looking for the plain way's best number of sessions", case.part));
    let (clients, tried) = best_clients(effort, places, case).await?;
    output::note(&format!("{}: the consumer against the plain way with {clients} sessions", case.part));
    let plan = case.plan(clients, effort.count / PLAIN_PART);
    let bytes: Mutex<(Vec<f64>, Vec<f64>)> = Mutex::default();
    let compared = interleave(
        effort.rounds,
        async || {
            let run = places.with_schema(async |schema| plain(schema, plan).await).await?;
            bytes.lock().unwrap_or_else(PoisonError::into_inner).0.push(run.log_bytes_per_order());
            Ok::<_, Failure>(run.per_second())
        },
        async || {
            let (rate, each) =
                places.with_schema(async |schema| ours(schema, case.skus, effort.count).await).await?;
            bytes.lock().unwrap_or_else(PoisonError::into_inner).1.push(each);
            Ok(rate)
        },
    )
    .await?;
    let (plain_bytes, bytes) = bytes.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Report::against(case.part, compared, machine)
        .with_parameter("skus", case.skus)
        .with_parameter("orders", effort.count)
        .with_parameter("plain_orders", plan.messages)
        .with_parameter("plain_form", format!("{:?}", case.form))
        .with_parameter("plain_sessions", clients)
        .with_extra("plain_per_second_by_sessions", tried)
        .with_extra("log_bytes_per_order", median(&bytes))
        .with_extra("plain_log_bytes_per_order", median(&plain_bytes))
        .with_extra("log_bytes_ratio", median(&bytes) / median(&plain_bytes)))
}

/// The number of sessions with which the plain way is fastest, and what each number gave.
async fn best_clients(effort: &Effort, places: &Places, case: &Case) -> Result<(u64, Vec<f64>), Failure> {
    let mut tried = Vec::with_capacity(CLIENTS.len());
    for clients in CLIENTS {
        let plan = case.plan(clients, effort.count / SOUGHT_PART);
        tried.push(places.with_schema(async |schema| plain(schema, plan).await).await?.per_second());
    }
    let best = CLIENTS.into_iter().zip(&tried).max_by(|one, other| one.1.total_cmp(other.1));
    Ok((best.map_or(1, |(clients, _)| clients), tried))
}

async fn plain(schema: &Schema, plan: Plan) -> Result<Run, Failure> {
    let run = row_by_row::run(&schema.url(), plan).await;
    let run = run.map_err(|cause| Failure::other("running the plain way", cause))?;
    if run.orders == plan.messages {
        return Ok(run);
    }
    Err(Failure::Other(format!("the plain way made {} orders of {}", run.orders, plan.messages)))
}

/// Orders per second, and bytes of the log for each.
async fn ours(schema: &Schema, many: u64, count: u64) -> Result<(f64, f64), Failure> {
    let shop = Shop::open(&schema.url(), Way::Memory, &skus(many)).await?;
    let figures = round(schema, &shop, 0, count).await?;
    shop.close().await;
    Ok(figures)
}

async fn round(schema: &Schema, shop: &Shop, first: u64, count: u64) -> Result<(f64, f64), Failure> {
    let log = async || {
        log_position(schema.admin())
            .await
            .map_err(|cause| Failure::other("asking how far the log has come", cause))
    };
    let before = log().await?;
    let elapsed = shop.consume(first, count).await?;
    let written = log().await?.saturating_sub(before);
    Ok((count as f64 / elapsed.as_secs_f64(), written as f64 / count as f64))
}

/// The rate in tables that hold many orders, beside the rate in the same tables when they were new.
async fn large(effort: &Effort, machine: &Machine, places: &Places) -> Result<Report, Failure> {
    output::note(&format!("{LARGE}: before and after {} orders", effort.preload));
    places
        .with_schema(async |schema| {
            let shop = Shop::open(&schema.url(), Way::Memory, &skus(1)).await?;
            let (mut made, mut before, mut after, mut bytes) = (0, Vec::new(), Vec::new(), Vec::new());
            for _round in 0..effort.rounds.get() {
                before.push(round(schema, &shop, made, effort.count).await?.0);
                made += effort.count;
            }
            while made < effort.preload {
                let step = PRELOADED_TOGETHER.min(effort.preload - made);
                shop.consume(made, step).await?;
                made += step;
            }
            let there = made;
            for _round in 0..effort.rounds.get() {
                let (rate, each) = round(schema, &shop, made, effort.count).await?;
                after.push(rate);
                bytes.push(each);
                made += effort.count;
            }
            shop.close().await;
            Ok(Report::against(LARGE, Interleaved::of(before, after), machine)
                .with_parameter("orders", effort.count)
                .with_parameter("orders_before", there)
                .with_extra("log_bytes_per_order", median(&bytes)))
        })
        .await
}
