//! The courier: posts the bank's callbacks over real HTTP until somebody takes them.
//!
//! Invariants: a callback is a line of the journal before it is sent, so it survives a kill and may come twice; the copies
//! of a doubled one are sent at the same moment; what nobody takes is tried again with back-off, [`TRIES_LIMIT`] times,
//! and then given up, which is how callbacks get lost in life; a bank that is opened again counts from the beginning.
//! Read next: [`crate::post`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::Error;
use onceward_domain::time::{Millis, back_off};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::bank::Bank;
use super::book::{Call, Entry};
use crate::post::Post;

/// Most callbacks that are on their way at one moment: each is a connection.
const AT_ONCE: usize = 32;
/// Tries after which a callback is given up: with the waits below that is about ten minutes.
const TRIES_LIMIT: u32 = 64;
const BACK_OFF_BASE: Millis = Millis(100);
const BACK_OFF_CAP: Millis = Millis(10_000);
/// Longest sleep of a courier that nobody wakes.
const POLL: Millis = Millis(1_000);

/// Where callbacks go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Address of the server.
    pub address: SocketAddr,
    /// Path of its webhook.
    pub path: Arc<str>,
}

impl Target {
    /// The webhook of the server at this address.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { address, path: Arc::from(format!("/v1/webhooks/{}", super::NAME)) }
    }
}

/// Sends a bank's callbacks to one server.
#[derive(Clone)]
pub struct Courier {
    bank: Bank,
    target: Target,
}

impl Courier {
    /// A courier; nothing is sent until it runs.
    #[must_use]
    pub fn new(bank: Bank, target: Target) -> Self {
        Self { bank, target }
    }

    /// Runs until `stop` is true or its sender is gone.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let wait = match self.step().await {
                Ok(wait) => wait.map_or(POLL, |wait| wait.min(POLL)),
                Err(error) => {
                    tracing::warn!(target: "onceward", error = ?error, "the sandbox bank cannot call back");
                    POLL
                }
            };
            let limit = Duration::from_millis(wait.0.max(0).unsigned_abs());
            tokio::select! {
                _ = timeout(limit, self.bank.called().notified()) => {}
                ended = stop.changed() => if ended.is_err() { return },
            }
        }
    }

    /// Sends what is due and answers how long nothing else is.
    ///
    /// # Errors
    /// Where the bank's journal failed.
    pub async fn step(&self) -> Result<Option<Millis>, Error> {
        let (due, _) = self.bank.due_calls(AT_ONCE).await?;
        let mut posts = JoinSet::new();
        for (call, body) in due {
            let body: Arc<[u8]> = Arc::from(body);
            for _ in 0..call.copies {
                posts.spawn(post(self.bank.clone(), self.target.clone(), call.clone(), Arc::clone(&body)));
            }
        }
        let mut entries = Vec::new();
        let mut failed: Vec<Call> = Vec::new();
        while let Some(ended) = posts.join_next().await {
            let Ok((call, is_taken)) = ended else { continue };
            if is_taken {
                entries.push(Entry::Called { event: call.event.to_string() });
            } else {
                failed.push(call);
            }
        }
        failed.dedup_by(|left, right| left.event == right.event);
        for call in failed {
            if call.tries + 1 >= TRIES_LIMIT {
                tracing::warn!(target: "onceward", event = %call.event, "nobody took the sandbox bank's callback");
                entries.push(Entry::GaveUp { event: call.event.to_string() });
            } else {
                self.bank.put_off(&call.event, back_off(call.tries + 1, BACK_OFF_BASE, BACK_OFF_CAP));
            }
        }
        self.bank.note(&entries);
        let (_, next) = self.bank.due_calls(0).await?;
        Ok(next.map(|next| next.since(self.bank.now())))
    }
}

async fn post(bank: Bank, target: Target, call: Call, body: Arc<[u8]>) -> (Call, bool) {
    let headers = bank.options().signer.headers(&call.event, bank.now(), &body);
    let host = target.address.to_string();
    let post = Post { host: &host, path: &target.path, headers: &headers, body: &body };
    let is_taken = match post.send_to(target.address).await {
        Ok(status) => (200..300).contains(&status),
        Err(error) => {
            tracing::debug!(target: "onceward", event = %call.event, %error, "a callback was not taken");
            false
        }
    };
    (call, is_taken)
}
