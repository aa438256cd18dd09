//! A crowd of buyers that goes on through any fault, and remembers what it was told.
//!
//! Invariants: a request whose answer was lost is repeated as it was until it is answered, so nobody is left who does not know
//! whether they were let in; who is told that too much is waiting goes away. Every thread ends with the crowd.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{ask, buyer};

/// Buyers at once.
const LANES: usize = 4;
/// Between two requests of a buyer's lane: the machine has more to do.
const PACE: Duration = Duration::from_millis(40);
/// How long one request may be without an answer, a fault in between.
const ANSWER_LIMIT: Duration = Duration::from_secs(180);

/// What one buyer was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) user: String,
    pub(crate) reservation: String,
    /// The order that was named, where one was looked for.
    pub(crate) order: Option<String>,
}

#[derive(Default)]
struct Counts {
    let_in: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
}

/// Buyers who go on until they are told to stop.
pub(crate) struct Crowd {
    counts: Arc<Counts>,
    lanes: Vec<(SyncSender<()>, JoinHandle<Vec<Told>>)>,
}

impl Crowd {
    /// Buyers of this SKU, at all of these nodes in turn.
    pub(crate) fn at(nodes: &[String], sku: &str) -> Self {
        let counts = Arc::<Counts>::default();
        let lane = |number: usize| {
            let (stop, stopped) = sync_channel(1);
            let lane = Lane {
                number,
                nodes: nodes.to_vec(),
                sku: sku.to_owned(),
                counts: Arc::clone(&counts),
                stopped,
            };
            (stop, std::thread::spawn(move || lane.run()))
        };
        Self { counts: Arc::clone(&counts), lanes: (0..LANES).map(lane).collect() }
    }

    /// Buyers who were let in so far.
    pub(crate) fn let_in(&self) -> u64 {
        self.counts.let_in.load(Ordering::SeqCst)
    }

    /// Buyers who were told to come back later.
    pub(crate) fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::SeqCst)
    }

    /// Requests that had no answer, or one that says nothing, and were repeated.
    pub(crate) fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::SeqCst)
    }

    /// Everybody goes home, and tells.
    pub(crate) fn disperse(self) -> Vec<Told> {
        let mut told = Vec::new();
        for (stop, lane) in self.lanes {
            drop(stop);
            told.extend(lane.join().unwrap());
        }
        told
    }
}

struct Lane {
    number: usize,
    nodes: Vec<String>,
    sku: String,
    counts: Arc<Counts>,
    stopped: Receiver<()>,
}

impl Lane {
    fn run(self) -> Vec<Told> {
        let mut told = Vec::new();
        for number in 0_usize.. {
            if self.rests() {
                break;
            }
            let user = format!("u{}-{number}", self.number);
            let Some(reservation) = self.reserve(&user, number) else { continue };
            // Every tenth looks for the order, and believes what it is told.
            let order = if number % 10 == 0 { self.order(&reservation, number) } else { None };
            told.push(Told { user, reservation, order });
        }
        told
    }

    /// Waits a moment; whether the crowd goes home.
    fn rests(&self) -> bool {
        self.stopped.recv_timeout(PACE) != Err(RecvTimeoutError::Timeout)
    }

    fn reserve(&self, user: &str, number: usize) -> Option<String> {
        let path = format!("{}/reservations", self.sku);
        let wish = buyer(user, "r");
        let until = Instant::now() + ANSWER_LIMIT;
        for node in self.nodes.iter().cycle().skip(number) {
            match ask(node, "POST", &path, Some(&wish)) {
                Ok((200 | 202, answer)) => {
                    self.counts.let_in.fetch_add(1, Ordering::SeqCst);
                    return Some(answer["reservation_id"].as_str().unwrap().to_owned());
                }
                Ok((503, answer)) if answer["code"] == "backlog" => {
                    self.counts.refused.fetch_add(1, Ordering::SeqCst);
                    return None;
                }
                Ok((500.., _)) | Err(_) => {}
                Ok((status, answer)) => panic!("{user} was answered {status}: {answer}"),
            }
            self.counts.lost.fetch_add(1, Ordering::SeqCst);
            assert!(Instant::now() < until, "{user} is never answered");
            let _ = self.rests();
        }
        None
    }

    fn order(&self, reservation: &str, number: usize) -> Option<String> {
        let node = &self.nodes[number % self.nodes.len()];
        let answer = ask(node, "GET", &format!("/v1/reservations/{reservation}?wait_ms=500"), None);
        let order = answer.map(|(_, body)| body["order_id"].clone()).unwrap_or(Value::Null);
        order.as_str().map(str::to_owned)
    }
}
