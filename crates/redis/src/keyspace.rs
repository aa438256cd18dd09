//! The deadline trigger over keys that run out (OT-10 `keyspace`): each order is a key that runs out when its time is up, and
//! Redis tells of it.
//!
//! Invariants: a telling is a key as well, which runs out when its lease ends, so that what nobody settles is told again; who
//! makes it first is told, so that of several nodes that hear the same event one acts. How often an order was told is in the
//! name of its key, because nothing else is left of a key that ran out. A key proves nothing (DR-05): the order's own row
//! decides. **Lossy:** events are not kept, so what runs out while nobody listens, and what was heard by a process that
//! dies before it takes it, is found by the sweep. Events come when the server removes a key, some tenths of a second after
//! it ran out, and later where very many run out at once.
//!
//! Deliberately absent: a clock that is handed in; only the server lets keys run out. Read next: `ears.rs`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use onceward_domain::due::{DueChange, Member, Token};
use onceward_domain::error::{Code, Error};
use onceward_domain::id::OrderId;
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::deadline::{
    Capabilities, DeadlineTrigger, Expiry, Receipt, Signal, SignalEnd, TriggerKind,
};
use onceward_domain::time::Millis;
use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::ears::{self, Hearing};
use crate::link::Link;
use crate::options::Options;
use crate::reply;
use crate::script;

/// Most keys that were heard of and not taken yet; beyond it they are forgotten, and the sweep finds their orders.
const HEARD_LIMIT: usize = 1 << 16;
/// Calls that are under way at once.
const CALLS_AT_ONCE: usize = 512;
/// How long one `take` waits. It bounds how long a worker takes to notice that it is to stop.
const TAKE_WAIT: Duration = Duration::from_secs(1);

const DOING: &str = "an order's deadline";

/// The trigger.
///
/// Making one needs a tokio runtime; it listens, connects and reconnects by itself until it is dropped.
pub struct KeyspaceTrigger {
    inner: Arc<Inner>,
    runtime: Handle,
    listening: AbortHandle,
}

struct Inner {
    options: Options,
    link: Link,
    /// What every key of an order begins with.
    prefix: String,
    /// What this process writes into the keys that it holds, before the token.
    holder: Member,
    next_token: AtomicI64,
    heard: Mutex<VecDeque<Told>>,
    news: Notify,
}

/// An order that was told of so many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    order: OrderId,
    times: u32,
}

impl KeyspaceTrigger {
    /// A trigger over the servers of these options, on the present tokio runtime. `ids` names this process among those that
    /// hear the same.
    ///
    /// # Errors
    /// [`Code::Invalid`] outside of a runtime.
    pub fn open(options: Options, ids: &dyn Ids) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|cause| {
            Error::new(Code::Invalid, "opening a trigger outside of a runtime").because(cause)
        })?;
        let inner = Arc::new(Inner {
            link: Link::forgetful(options.clone()),
            prefix: format!("{}:expiry:", options.prefix),
            options: options.clone(),
            holder: ids.member(),
            next_token: AtomicI64::new(1),
            heard: Mutex::default(),
            news: Notify::new(),
        });
        let hearing: Weak<dyn Hearing> = Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Hearing>));
        let listening = runtime.spawn(ears::listen(options, hearing)).abort_handle();
        Ok(Self { inner, runtime, listening })
    }

    /// Has every primary tell of keys that run out, as a start should.
    ///
    /// # Errors
    /// [`Code::Invalid`] where a server tells nothing and lets us not set it, with the setting's name; what failed otherwise, where
    /// one is away: then it is set when a line to it is made.
    pub async fn prepare(&self) -> Result<(), Error> {
        let inner = Arc::clone(&self.inner);
        self.on_runtime(async move { ears::make_all_tell(&inner.options).await }).await
    }

    /// Runs it on the trigger's own runtime, so that the caller needs none and cannot cut it off.
    async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match self.runtime.spawn(work).await {
            Ok(answer) => answer,
            Err(cause) => Err(Error::new(Code::OutcomeUnknown, "asking Redis").because(cause)),
        }
    }
}

impl Drop for KeyspaceTrigger {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Whether the primaries of these options tell of keys that run out: nothing where they do, else what must be set.
///
/// # Errors
/// Where one is away, or keeps its settings to itself and was not heard to tell.
pub async fn events_needed(options: Options) -> Result<Option<String>, Error> {
    let needed = ears::do_all_tell(&options).await?;
    Ok(needed.map(|value| format!("{} must be {value}", ears::SETTING)))
}

impl Hearing for Inner {
    fn hear(&self, key: &[u8]) {
        // Everybody's keys are told of.
        let Some(told) = self.read(key) else { return };
        let mut heard = self.heard();
        if heard.len() >= HEARD_LIMIT {
            tracing::warn!(target: "onceward", event = "deadline.heard_too_much", "the sweep will find it");
            return;
        }
        heard.push_back(told);
        drop(heard);
        self.news.notify_one();
    }
}

impl Inner {
    fn heard(&self) -> MutexGuard<'_, VecDeque<Told>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key whose end is the next telling of an order that was told of so often. Braces keep an order's keys in one slot.
    fn key(&self, told: Told) -> String {
        format!("{}{{{}}}:{}", self.prefix, told.order, told.times)
    }

    fn read(&self, key: &[u8]) -> Option<Told> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?.strip_prefix('{')?;
        let (order, times) = rest.split_once("}:")?;
        Some(Told { order: OrderId(order.parse().ok()?), times: times.parse().ok()? })
    }

    async fn offer(&self, expiries: Vec<Expiry>) -> Result<(), Error> {
        for part in expiries.chunks(CALLS_AT_ONCE) {
            let offer = |one: &Expiry| {
                let told = Told { order: one.purchase.order(), times: 0 };
                let mut command = redis::cmd("SET");
                command.arg(self.key(told)).arg("").arg("PXAT").arg(one.due_at.0.max(1));
                async move { self.link.call(&command).await.map(drop) }
            };
            join_all(part.iter().map(offer)).await.into_iter().collect::<Result<(), Error>>()?;
        }
        Ok(())
    }

    async fn take(&self, limit: usize, lease: Millis) -> Result<Vec<Signal>, Error> {
        if self.heard().is_empty() {
            drop(timeout(TAKE_WAIT, self.news.notified()).await);
        }
        let limit = limit.min(CALLS_AT_ONCE);
        let told: Vec<Told> = {
            let mut heard = self.heard();
            let count = heard.len().min(limit);
            heard.drain(..count).collect()
        };
        let claims = join_all(told.iter().map(|one| self.claim(*one, lease))).await;
        let (mut signals, mut failed) = (Vec::new(), None);
        for (one, claim) in told.into_iter().zip(claims) {
            match claim {
                Ok(signal) => signals.extend(signal),
                Err(error) => {
                    // It may be ours already; then it is told again when this lease has ended.
                    self.heard().push_back(one);
                    failed = Some(error);
                }
            }
        }
        match failed {
            Some(error) if signals.is_empty() => Err(error),
            _ => Ok(signals),
        }
    }

    /// Tells it, unless another node was quicker.
    async fn claim(&self, told: Told, lease: Millis) -> Result<Option<Signal>, Error> {
        let Ok(purchase) = told.order.purchase() else { return Ok(None) };
        let held = Told { times: told.times.saturating_add(1), ..told };
        let token = Token(self.next_token.fetch_add(1, Ordering::Relaxed));
        let key = self.key(held);
        let mut command = redis::cmd("SET");
        command.arg(&key).arg(self.mark(token)).arg("NX").arg("PX").arg(lease.0.max(1));
        if self.link.call(&command).await? == Value::Nil {
            return Ok(None);
        }
        let receipt = Receipt { member: Member::from(key.as_str()), token };
        Ok(Some(Signal { receipt, attempts: held.times, orders: vec![purchase] }))
    }

    fn mark(&self, token: Token) -> String {
        format!("{}/{}", self.holder, token.0)
    }

    async fn settle(&self, ends: Vec<SignalEnd>) -> Result<u32, Error> {
        let mut still_held = 0;
        for part in ends.chunks(CALLS_AT_ONCE) {
            for held in join_all(part.iter().map(|end| self.settle_one(end))).await {
                still_held += u32::from(held?);
            }
        }
        Ok(still_held)
    }

    /// Whether it was still held.
    async fn settle_one(&self, end: &SignalEnd) -> Result<bool, Error> {
        let (receipt, wait) = match end {
            SignalEnd::Ack(receipt) => (receipt, String::new()),
            // A signal is about one order, so what comes again is all of it.
            SignalEnd::Again { receipt, wait, .. } => (receipt, wait.0.to_string()),
        };
        let Some(held) = self.read(receipt.member.as_bytes()) else { return Ok(false) };
        let before = self.key(Told { times: held.times.saturating_sub(1), ..held });
        let mark = self.mark(receipt.token);
        let (keys, arguments) = ([&*receipt.member, &before], [mark.as_bytes(), wait.as_bytes()]);
        let answer = self.link.run(&script::SETTLE_EXPIRY, &keys, &arguments).await?;
        Ok(reply::number(DOING, &answer)? == 1)
    }
}

impl DeadlineTrigger for KeyspaceTrigger {
    fn kind(&self) -> TriggerKind {
        TriggerKind::Keyspace
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { foresight: false }
    }

    fn within(&self, _member: &Member, _expiries: &[Expiry]) -> Vec<DueChange> {
        Vec::new()
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.offer(expiries).await }))
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        let inner = Arc::clone(&self.inner);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Box::pin(self.on_runtime(async move { inner.take(limit, lease).await }))
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.settle(ends).await }))
    }

    /// Only the server knows; `take` waits.
    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        Box::pin(std::future::ready(Ok(Some(Millis(0)))))
    }
}
