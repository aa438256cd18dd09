//! A closed-loop HTTP/1.1 load generator.
//!
//! Purpose: to ask a server on this machine as fast as it answers, at the least cost to the cores they share:
//! plain TCP, kept-alive connections, one reused buffer each way, no HTTP library.
//!
//! Invariants: each connection has one request in flight, so the latency seen is the server's and not a queue of
//! our own making. Request numbers run from 0 and none is asked twice. Every request ends in exactly one of:
//! answered (by status), failed (by cause), timed out, not asked. A run ends at its deadline.
//!
//! Deliberately absent: hosts other than loopback, TLS, pipelining, an open-loop rate, repeated attempts.
//!
//! Read next: `load/wire.rs` for one connection, `response` for what is read of an answer, `histogram` for the latencies.

mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::histogram::Histogram;
use wire::{Fault, Wire};

/// More connections than this would measure the kernel's tables and run into the usual limit of 1,024 open files.
pub(crate) const CONNECTIONS_MAX: usize = 480;

/// How hard to push, and for how long at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Where the server listens; must be loopback.
    pub(crate) address: SocketAddr,
    /// Connections kept open, each with one request in flight: 1 to [`CONNECTIONS_MAX`].
    pub(crate) connections: usize,
    /// Requests in all.
    pub(crate) requests: u64,
    /// The run ends after this long, finished or not.
    pub(crate) time_limit: Duration,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(crate) struct LoadReport {
    /// Answers of any status.
    pub(crate) answered: u64,
    /// Answers by status code.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests that got no usable answer, by cause.
    pub(crate) failed: BTreeMap<String, u64>,
    /// Requests in flight when the time limit came.
    pub(crate) timed_out: u64,
    /// Requests never sent, because of the time limit or because every connection broke.
    pub(crate) not_asked: u64,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// Latencies of the answers, from the first byte sent to the last byte read.
    pub(crate) latency: Histogram,
}

impl LoadReport {
    /// Answers of any status per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// Answers of one status per second.
    pub(crate) fn per_second_of(&self, status: u16) -> f64 {
        self.by_status.get(&status).map_or(0.0, |count| *count as f64) / self.elapsed.as_secs_f64()
    }

    /// True when every request was answered with `status`: a figure is worth reporting only then.
    pub(crate) fn is_all(&self, status: u16) -> bool {
        let is_complete = self.failed.is_empty() && self.timed_out == 0 && self.not_asked == 0;
        is_complete && self.by_status.keys().all(|found| *found == status)
    }
}

/// Why a run could not take place.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The address is not of this machine.
    NotLoopback(SocketAddr),
    /// The number of connections is 0 or above [`CONNECTIONS_MAX`].
    Connections(usize),
    /// Connecting at the start failed.
    Connect(io::Error),
    /// A connection's task ended by a panic, which can only come from the caller's closure.
    Task(JoinError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoopback(address) => write!(f, "load is for loopback only, not for {address}"),
            Self::Connections(count) => write!(f, "{count} connections are not within 1..={CONNECTIONS_MAX}"),
            Self::Connect(_) => f.write_str("connecting to the server under load"),
            Self::Task(_) => f.write_str("running a connection of the load generator"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotLoopback(_) | Self::Connections(_) => None,
            Self::Connect(source) => Some(source),
            Self::Task(source) => Some(source),
        }
    }
}

/// Asks until all requests are done or the time is up. `make` gives the path and the JSON body of request n,
/// both sent as they are, by `POST`.
///
/// The connections run on the caller's runtime. Sharing it with the server cost the least CPU per request here:
/// a runtime or a thread of its own adds wake-ups across the two.
///
/// # Errors
/// When the run could not start; what goes wrong later is counted in the report.
pub(crate) async fn run<F>(load: &Load, make: F) -> Result<LoadReport, LoadError>
where
    F: Fn(u64) -> (String, String) + Send + Sync + 'static,
{
    if !load.address.ip().is_loopback() {
        return Err(LoadError::NotLoopback(load.address));
    }
    if !(1..=CONNECTIONS_MAX).contains(&load.connections) {
        return Err(LoadError::Connections(load.connections));
    }
    let mut wires = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        wires.push(Wire::open(load.address).await.map_err(LoadError::Connect)?);
    }

    let started = Instant::now();
    let deadline = started + load.time_limit;
    let shared = Arc::new(Shared { make, next: AtomicU64::new(0), requests: load.requests });
    let mut tasks = JoinSet::new();
    for mut wire in wires {
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let mut tally = Tally::new();
            // One timer for the whole life of the connection: one per request would cost as much as the request.
            let driven = timeout_at(deadline, drive(&shared, &mut wire, &mut tally)).await;
            tally.timed_out = u64::from(driven.is_err());
            tally
        });
    }
    let mut sum = Tally::new();
    while let Some(joined) = tasks.join_next().await {
        sum.add(joined.map_err(LoadError::Task)?);
    }
    Ok(sum.into_report(load.requests, started.elapsed()))
}

/// What the connections of one run have in common.
struct Shared<F> {
    make: F,
    next: AtomicU64,
    requests: u64,
}

/// Asks on one connection until no request is left or the connection cannot be had again.
async fn drive<F: Fn(u64) -> (String, String)>(shared: &Shared<F>, wire: &mut Wire, tally: &mut Tally) {
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= shared.requests {
            return;
        }
        let (path, body) = (shared.make)(number);
        let sent = Instant::now();
        let must_reconnect = match wire.exchange(&path, &body).await {
            Ok(head) => {
                tally.answer(head.status, sent.elapsed());
                head.is_last
            }
            Err(fault) => {
                tally.fail(&fault);
                true
            }
        };
        if must_reconnect && wire.reconnect().await.is_err() {
            return;
        }
    }
}

/// What one connection has counted.
struct Tally {
    latency: Histogram,
    /// A run sees one or two statuses, which a short list finds faster than a map.
    statuses: Vec<(u16, u64)>,
    failed: BTreeMap<String, u64>,
    timed_out: u64,
}

impl Tally {
    fn new() -> Self {
        Self { latency: Histogram::new(), statuses: Vec::new(), failed: BTreeMap::new(), timed_out: 0 }
    }

    fn answer(&mut self, status: u16, latency: Duration) {
        self.latency.record(latency);
        self.count(status, 1);
    }

    fn count(&mut self, status: u16, count: u64) {
        match self.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, total)) => *total += count,
            None => self.statuses.push((status, count)),
        }
    }

    fn fail(&mut self, fault: &Fault) {
        *self.failed.entry(fault.to_string()).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.latency.merge(&other.latency);
        for (status, count) in other.statuses {
            self.count(status, count);
        }
        for (cause, count) in other.failed {
            *self.failed.entry(cause).or_default() += count;
        }
        self.timed_out += other.timed_out;
    }

    fn into_report(self, requests: u64, elapsed: Duration) -> LoadReport {
        let answered = self.latency.total();
        let failed: u64 = self.failed.values().sum();
        LoadReport {
            answered,
            by_status: self.statuses.into_iter().collect(),
            not_asked: requests.saturating_sub(answered + failed + self.timed_out),
            failed: self.failed,
            timed_out: self.timed_out,
            elapsed,
            latency: self.latency,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 4\r\n\r\ndone";

    fn load(address: SocketAddr, requests: u64) -> Load {
        Load { address, connections: 2, requests, time_limit: Duration::from_secs(30) }
    }

    fn ask(number: u64) -> (String, String) {
        ("/".to_owned(), format!("{{\"n\":{number}}}"))
    }

    /// A server that reads a request per answer and sends each answer in the given pieces, then closes.
    async fn scripted(pieces: &'static [&'static [u8]], answers_a_connection: u64) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    stream.set_nodelay(true).unwrap();
                    let mut request = [0; 1024];
                    for _ in 0..answers_a_connection {
                        if stream.read(&mut request).await.unwrap_or(0) == 0 {
                            return;
                        }
                        for piece in pieces {
                            stream.write_all(piece).await.unwrap();
                            tokio::task::yield_now().await;
                        }
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn answers_split_over_reads_are_counted_once() {
        let (head, tail) = ANSWER.split_at(20);
        let (middle, end) = tail.split_at(26);
        let address = scripted(vec![head, middle, end].leak(), u64::MAX).await;
        let report = run(&load(address, 100), ask).await.unwrap();
        assert_eq!(report.by_status, BTreeMap::from([(202, 100)]));
        assert!(report.is_all(202) && !report.is_all(200));
        assert_eq!(report.latency.total(), 100);
        assert!(report.per_second() > 0.0 && report.per_second_of(202) > 0.0);
    }

    #[tokio::test]
    async fn broken_answers_are_counted_by_cause() {
        let cases: &[(&'static [&'static [u8]], u64, &str)] = &[
            (&[b"HTTP/1.1 202 Accepted\r\ncontent-len"], 1, "closed before the answer was complete"),
            (&[b"220 mail ready\r\n"], 1, "malformed status line"),
            (&[b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab"], 1, "bytes after the end of the answer"),
        ];
        for (pieces, answers, cause) in cases {
            let address = scripted(pieces, *answers).await;
            let report = run(&load(address, 10), ask).await.unwrap();
            assert_eq!(report.answered, 0, "{cause}");
            assert_eq!(report.failed, BTreeMap::from([((*cause).to_owned(), 10)]));
            assert!(!report.is_all(202));
        }
    }

    #[tokio::test]
    async fn a_connection_that_the_server_ends_is_opened_again() {
        let pieces: &[&[u8]] = &[b"HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"];
        let report = run(&load(scripted(pieces, 1).await, 20), ask).await.unwrap();
        assert!(report.is_all(202), "{report:?}");
    }

    #[tokio::test]
    async fn a_server_that_never_answers_ends_at_the_deadline() {
        let address = scripted(&[], u64::MAX).await;
        let time_limit = Duration::from_millis(50);
        let report = run(&Load { time_limit, ..load(address, 10) }, ask).await.unwrap();
        assert_eq!((report.answered, report.timed_out, report.not_asked), (0, 2, 8));
        assert_eq!(report.latency.percentile_us(50), None);
    }

    #[tokio::test]
    async fn other_machines_and_absurd_numbers_are_refused() {
        let elsewhere = load("192.0.2.1:80".parse().unwrap(), 1);
        assert!(matches!(run(&elsewhere, ask).await, Err(LoadError::NotLoopback(_))));
        let here = load("127.0.0.1:1".parse().unwrap(), 1);
        assert!(matches!(run(&Load { connections: 0, ..here }, ask).await, Err(LoadError::Connections(0))));
        assert!(matches!(run(&here, ask).await, Err(LoadError::Connect(_))));
    }
}
