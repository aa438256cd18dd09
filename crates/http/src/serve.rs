//! Serving the router on a listener.
//!
//! Invariants: a client that sends its head slowly, or keeps an idle connection, is let go after
//! [`Limits::header_timeout`]; above [`Limits::connections`] nobody is accepted until somebody leaves, and the
//! kernel's own backlog is the only queue; after the shutdown signal no connection is accepted, answers under way
//! are finished within [`Limits::drain`]. Deliberately absent: TLS and HTTP/2, which belong to the proxy in front.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{debug, warn};

/// Wait after a failed accept: the usual cause is that no file descriptor is left, and it does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// How often samples of histograms are put into their buckets.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Most bytes of a head; hyper refuses a longer one by itself, with a bare 431.
const HEAD_BYTES: usize = 32 * 1024;

/// Limits of connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most connections at the same time.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long answers under way are waited for after the shutdown signal.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Each costs a file descriptor; the usual limit is set higher by service managers.
            connections: 8_192,
            header_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(20),
        }
    }
}

/// Serves until `shutdown` is ready, then drains. `metrics` is kept in order meanwhile, where it is given.
///
/// # Errors
/// None at present; accepting goes on after a failed accept.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    metrics: Option<PrometheusHandle>,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let mut shutdown = pin!(shutdown);
    let upkeep = metrics.map(|handle| tokio::spawn(keep_up(handle)));
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => connect(stream, place, router.clone(), &limits, &graceful),
            Err(error) => {
                warn!(%error, "accepting a connection");
                if timeout(ACCEPT_PAUSE, &mut shutdown).await.is_ok() {
                    break;
                }
            }
        }
    }
    drop(listener);
    if timeout(limits.drain, graceful.shutdown()).await.is_err() {
        warn!("some answers were not finished in time");
    }
    if let Some(upkeep) = upkeep {
        upkeep.abort();
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _peer) = listener.accept().await?;
    // Without this a small answer may wait for an acknowledgement. A socket that refuses it is slower, not wrong.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "switching off Nagle's algorithm");
    }
    Ok((stream, place))
}

fn connect(
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    router: Router,
    limits: &Limits,
    graceful: &GracefulShutdown,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_header_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "a connection ended early");
        }
        drop(place);
    });
}

async fn keep_up(handle: PrometheusHandle) {
    let mut ticks = interval(UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}
