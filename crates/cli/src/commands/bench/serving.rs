//! An engine that is served as `serve` serves it, and buyers who ask it over HTTP.
//!
//! Invariants: router, server loop and roles are those of `serve`; a load counts only if every answer has the status that it
//! must have. Deliberately absent: the store behind the engine, which is the caller's to close.

use std::net::{Ipv4Addr, SocketAddr};

use onceward::Engine;
use onceward::gate::Gate;
use onceward::ledger::Ledger;
use onceward::runtime::{self, Role, Running};
use onceward_http::{Access, AppState, Limits, Parts};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::shop::ACTIVITY;
use crate::bench::load::{Load, LoadReport, run as ask};
use crate::failure::Failure;
use crate::wiring;

/// An engine at work behind a port.
pub(crate) struct Serving {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
    running: Running,
}

impl Serving {
    /// Serves an engine and starts these roles of it.
    ///
    /// # Errors
    /// When it cannot listen.
    pub(crate) async fn start(engine: &Engine, roles: &[Role]) -> Result<Self, Failure> {
        let state = AppState::new(Parts {
            engine: engine.clone(),
            gate: Gate::open(engine.clone()),
            ledger: Ledger::open(engine.clone()),
            access: Access::open(),
            settings: onceward_http::Settings::default(),
            metrics: None,
            clock: wiring::clock(),
            sandbox: None,
        });
        let doing = "listening for the load";
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(|cause| Failure::other(doing, cause))?;
        let address = listener.local_addr().map_err(|cause| Failure::other(doing, cause))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let router = onceward_http::router(state);
        let serving = tokio::spawn(onceward_http::serve(listener, router, None, Limits::default(), async {
            // An error is what a dropped sender looks like from here.
            stopped.await.unwrap_or_default();
        }));
        let running = runtime::start(engine, roles);
        Ok(Self { address, stop, serving, running })
    }

    /// Answers what was asked, and lets the roles end what they do.
    ///
    /// # Errors
    /// What the server ended with.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        drop(self.stop);
        let served = self.serving.await.map_err(|cause| Failure::other("serving the load", cause))?;
        served.map_err(|cause| Failure::other("serving the load", cause))?;
        self.running.drain().await;
        Ok(())
    }
}

/// Asks once for each of the buyers from the first on; a round with any other answer than the expected one is an error.
pub(crate) async fn ask_all(
    load: &Load,
    sku: &'static str,
    first: u64,
    status: u16,
) -> Result<LoadReport, Failure> {
    let path = format!("/v1/activities/{ACTIVITY}/skus/{sku}/reservations");
    let asked = ask(load, move |number| {
        let body = format!("{{\"user_id\":\"u{}\",\"request_id\":\"r\",\"quantity\":1}}", first + number);
        (path.clone(), body)
    });
    let report = asked.await.map_err(|cause| Failure::other("loading the server", cause))?;
    if report.is_all(status) {
        return Ok(report);
    }
    let LoadReport { by_status, failed, timed_out, not_asked, .. } = report;
    Err(Failure::Other(format!(
        "not every answer was {status}: {by_status:?}, failed {failed:?}, {timed_out} timed out, {not_asked} not asked"
    )))
}
