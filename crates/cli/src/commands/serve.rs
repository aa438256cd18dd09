//! `onceward serve`: the whole engine in one process.
//!
//! Invariants: one line says where it listens, and only when it does; `SIGTERM` and `SIGINT` drain: nothing new is
//! accepted, running requests are answered, workers finish their step, the store is closed, and the exit code is 0. A second signal
//! ends it at once. A kill needs no such care: what was answered is on disk. Read next: [`crate::wiring`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use onceward::gate::Gate;
use onceward::ledger::Ledger;
use onceward::runtime::{self, Role};
use onceward_domain::ports::deadline::TriggerKind;
use onceward_domain::ports::sandbox::Sandbox as PlayableBank;
use onceward_http::{Access, AppState, Limits, Parts};
use onceward_providers::sandbox::{Bank, Courier, Target};
use onceward_redis::Options as RedisOptions;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::api_keys;
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::output;
use crate::settings::{Flags, Settings, StorePlace};
use crate::stop::Stop;
use crate::wiring::{self, Broker, Opened, Sandbox};

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Ask for no API key; only on a loopback address
    #[arg(long)]
    dev: bool,
    /// The folder with the store, the secret and the keys [default: ./onceward-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// all, or a list of api, consumer, relay, scheduler, reconciler [default: all]
    #[arg(long, value_name = "ROLES")]
    role: Option<String>,
    /// What tells when orders' time is up: store, queue, with a Redis URL zset or keyspace, with a broker URL broker
    /// [default: zset with a Redis URL, else store]
    #[arg(long, value_name = "TRIGGER")]
    deadline_trigger: Option<String>,
    /// A settings file (TOML); the environment and flags come before it
    #[arg(long, value_name = "FILE", env = "ONCEWARD_CONFIG")]
    config: Option<PathBuf>,
    /// How log lines look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// Drain when standard input ends: for a parent that must not leave a server behind
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

/// Serves until it is told to stop.
///
/// # Errors
/// When it cannot start.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let flags =
        Flags { data: arguments.data, listen: arguments.listen, role: arguments.role, deadline: None };
    let flags = flags.with_trigger(arguments.deadline_trigger);
    let settings = Settings::load(arguments.config.as_deref(), &flags)?;
    if arguments.dev && !settings.listen.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "--dev asks for no API key, so it listens on loopback only, not on {}",
            settings.listen
        )));
    }
    logging::start(arguments.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let served = runtime.block_on(serve(&settings, arguments.dev, arguments.until_stdin_ends));
    // The watch over stdin may be blocked in a read that never ends.
    runtime.shutdown_background();
    served
}

/// Serves until the first word; a second one ends it wherever it is.
async fn serve(settings: &Settings, dev: bool, until_stdin_ends: bool) -> Result<(), Failure> {
    let stop = Stop::listen(until_stdin_ends)?;
    tokio::select! {
        served = serve_until(settings, dev, stop.clone()) => served,
        () = stop.second() => {
            Err(Failure::Other("told to stop twice: what was in hand is taken up at the next start".to_owned()))
        }
    }
}

async fn serve_until(settings: &Settings, dev: bool, stop: Stop) -> Result<(), Failure> {
    let roles = settings.roles()?;
    let metrics = onceward_http::recorder()
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|cause| Failure::other("starting the metrics", cause))?;
    let opened = wiring::open(settings, if dev { Sandbox::Enabled } else { Sandbox::Absent }).await?;
    let access = if dev { Access::open() } else { keys_of(settings)? };
    // Before any worker takes something that a server without a port would only give back.
    let listener = if roles.contains(&Role::Api) { Some(bind(settings.listen).await?) } else { None };
    tell_trigger(settings.trigger()?);
    if dev && matches!(settings.store_place()?, StorePlace::Server(_)) {
        output::note("the bank of --dev knows the payments of this node alone: try payments on one node");
    }
    if let Some(redis) = &opened.redis {
        tell_redis(redis).await;
    }
    if let Some(broker) = &opened.broker {
        tell_broker(broker).await;
    }
    let running = runtime::start(&opened.engine, &roles);
    let served = match listener {
        Some(listener) => {
            let parts = Parts {
                engine: opened.engine.clone(),
                gate: Gate::open(opened.engine.clone()),
                ledger: Ledger::open(opened.engine.clone()),
                access,
                settings: onceward_http::Settings::default(),
                metrics: Some(metrics.clone()),
                clock: wiring::clock(),
                sandbox: opened.bank.clone().map(|bank| Arc::new(bank) as Arc<dyn PlayableBank>),
            };
            let site = Site { listener, bank: opened.bank.clone(), metrics };
            answer(site, AppState::new(parts), stop.first()).await
        }
        None => {
            let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
            output::note(&format!("running {}", names.join(", ")));
            stop.first().await;
            Ok(())
        }
    };
    // While the workers are there: what comes now is a buyer's, who would wait until it is given out again.
    if let Some(broker) = &opened.broker {
        broker.wind_down().await;
    }
    running.drain().await;
    if let Some(broker) = &opened.broker {
        broker.close().await;
    }
    close(opened).await?;
    served
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|cause| Failure::other(&format!("listening on {listen}"), cause))
}

/// Says what tells when orders' time is up; the one that nobody chose needs no line of its own.
fn tell_trigger(kind: TriggerKind) {
    tracing::info!(target: "onceward", event = "deadline.trigger", trigger = kind.name());
    if kind != TriggerKind::Store {
        output::note(&format!("deadline trigger: {}", kind.name()));
    }
}

/// Says that Redis keeps the gate, and what is wrong with it: nobody is let in until it is mended.
async fn tell_redis(redis: &RedisOptions) {
    match onceward_redis::check(redis.clone()).await {
        Ok(()) => output::note("admission: Redis"),
        Err(error) => output::note(&format!(
            "admission: Redis, which is not ready, and nobody is let in: {}",
            error.operator_text()
        )),
    }
}

/// Says which broker is used, and what is wrong with it: the server starts all the same, and what cannot be sent waits.
async fn tell_broker(broker: &Broker) {
    output::note(&format!("broker: RocketMQ at {}", broker.address));
    if let Err(error) = broker.check().await {
        output::note(&format!(
            "the broker is not ready, and what is to be sent waits: {}",
            error.operator_text()
        ));
    }
}

fn keys_of(settings: &Settings) -> Result<Access, Failure> {
    let keys = api_keys::load(&settings.data)?;
    if let Some(path) = keys.first_key {
        output::note(&format!("made the first API key, with every scope, in {}", path.display()));
    }
    Ok(Access::keys(keys.keys))
}

/// Where requests are answered, and what runs beside the answers.
struct Site {
    listener: TcpListener,
    /// Calls back to this server.
    bank: Option<Bank>,
    metrics: PrometheusHandle,
}

async fn answer(
    site: Site,
    state: AppState,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let Site { listener, bank, metrics } = site;
    let address = listener.local_addr().map_err(|cause| Failure::other("listening", cause))?;
    output::note(&format!("listening on http://{address}"));
    let router = onceward_http::router(state);
    let (closing, closed) = watch::channel(false);
    let courier = bank.map(|bank| tokio::spawn(Courier::new(bank, Target::at(address)).run(closed)));
    let served = onceward_http::serve(listener, router, Some(metrics), Limits::default(), stop).await;
    closing.send_replace(true);
    if let Some(courier) = courier {
        // What is on its way ends by itself or is sent again after the next start; a panic of it is no reason to fail.
        drop(courier.await);
    }
    served.map_err(|cause| Failure::other("serving", cause))
}

/// Closes the store off the runtime, because it waits for the store's threads; the lock goes last.
async fn close(opened: Opened) -> Result<(), Failure> {
    let closed = tokio::task::spawn_blocking(move || opened.close());
    closed.await.map_err(|cause| Failure::other("closing the store", cause))
}
