//! The polls of one topic: one for each of its brokers, always under way while somebody consumes.
//!
//! The broker has no other way to say that something came: a poll waits at the broker for at least five seconds. So
//! `consume` waits for the polls for a moment only and leaves them under way; the next `consume` finds what they brought.
//! Invariants: a poll is never cut off, because the broker would give its messages to nobody: when nothing more is to be read, the
//! polls end by themselves, and what nobody takes of it is handed back; so is what a poll brought so long ago that its lease is half over; a
//! broker that does not answer holds up no other, and is left alone for a moment; what was brought waits for no route.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::Error;
use onceward_domain::time::Millis;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::consume::{Arrival, POLL_BATCH, PollEnd, Source, arrival, brokers_of, lease_of, poll};

/// How long a topic's brokers are believed to be the same.
const ROUTE_AGE: Duration = Duration::from_secs(30);
/// How long a broker is left alone whose poll has failed.
const REST: Duration = Duration::from_secs(1);
/// How long the other brokers are waited for when one has brought as much as it may: whoever reads one broker's backlog at a time finds
/// what the others brought too old.
const OTHERS_WAIT: Duration = Duration::from_millis(20);

/// The polls of one topic.
#[derive(Default)]
pub(crate) struct Polls {
    /// The topic's brokers; each wants a poll of its own.
    brokers: BTreeSet<String>,
    /// When they were learnt.
    routed: Option<Instant>,
    /// Those at which a poll is under way.
    polled: BTreeSet<String>,
    running: JoinSet<PollEnd>,
    /// Attempts whose answers were lost, by broker. Asked again under its name, a broker that gives in order gives what
    /// it gave, instead of holding it back until its lease is over.
    lost: BTreeMap<String, String>,
    /// Brokers whose last poll has failed, and until when they are left alone.
    resting: BTreeMap<String, Instant>,
    /// Brokers of which the last thing that came was too old.
    late: BTreeSet<String>,
    /// Whether no poll is begun any more.
    is_over: bool,
    /// Closed while no poll is under way and nothing that one has brought waits to be gathered.
    open: Arc<watch::Sender<()>>,
}

/// What polls have brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    /// To be handed out.
    pub(crate) fresh: Vec<Arrival>,
    /// To be handed back: too little is left of its lease.
    pub(crate) stale: Vec<Arrival>,
}

impl Brought {
    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.stale.is_empty()
    }
}

impl Polls {
    /// Waits this long for messages at most; starts polls where none is under way.
    ///
    /// # Errors
    /// Where nobody answers.
    pub(crate) async fn consume(
        &mut self,
        source: &Source,
        lease: Millis,
        wait: Duration,
        name_attempt: &(dyn Fn() -> String + Sync),
    ) -> Result<Brought, Error> {
        let lease = lease_of(lease);
        if !self.is_over {
            self.look_up(source).await?;
            self.begin(source, lease, name_attempt);
        } else if self.running.is_empty() {
            // Nothing will come any more; whoever asks is about to stop.
            let _waited = timeout(wait, std::future::pending::<()>()).await;
        }
        let Ok(first) = timeout(wait, self.running.join_next()).await else { return Ok(Brought::default()) };
        // A poll that panicked is no poll any more; its broker is polled again when the others have ended.
        let mut ended: Vec<PollEnd> = first.and_then(Result::ok).into_iter().collect();
        let patience = match ended.iter().find(|end| is_full(end)) {
            // What the others bring while this is decided would be too old again.
            Some(full)
                if self.polled.iter().any(|other| *other != full.broker && self.late.contains(other)) =>
            {
                wait
            }
            Some(_) => OTHERS_WAIT,
            None => Duration::ZERO,
        };
        let others = async {
            while let Some(next) = self.running.join_next().await {
                ended.extend(next);
            }
        };
        // Whether or not all of them have ended by then.
        let _waited = timeout(patience, others).await;
        self.gather(ended.into_iter(), lease)
    }

    /// What has been brought already, without asking anybody.
    pub(crate) fn brought(&mut self, lease: Millis) -> Option<Brought> {
        let ended: Vec<PollEnd> = std::iter::from_fn(|| self.running.try_join_next()).flatten().collect();
        let brought = self.gather(ended.into_iter(), lease_of(lease)).unwrap_or_default();
        (!brought.is_empty()).then_some(brought)
    }

    /// Learns the topic's brokers; those that are known do for as long as nobody can say more.
    async fn look_up(&mut self, source: &Source) -> Result<(), Error> {
        if self.routed.is_some_and(|at| at.elapsed() <= ROUTE_AGE) {
            return Ok(());
        }
        match brokers_of(source).await {
            Ok(brokers) => self.brokers = brokers,
            Err(error) if self.brokers.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(target: "onceward", event = "broker.route_unread", error = error.operator_text());
            }
        }
        self.routed = Some(Instant::now());
        Ok(())
    }

    /// Starts a poll at each broker where none is under way, and that is not left alone.
    fn begin(&mut self, source: &Source, lease: Millis, name_attempt: &(dyn Fn() -> String + Sync)) {
        if self.running.is_empty() {
            self.polled.clear();
        }
        for broker in self.free() {
            let attempt = self.lost.remove(&broker).unwrap_or_else(name_attempt);
            let open = self.open.subscribe();
            self.running.spawn(poll(source.clone(), broker.clone(), attempt, lease, open));
            self.polled.insert(broker);
        }
    }

    /// The brokers to be polled. Where all are left alone, none is.
    fn free(&mut self) -> Vec<String> {
        let now = Instant::now();
        self.resting.retain(|_, until| *until > now);
        let is_free = |broker: &&String| !self.polled.contains(*broker);
        let free: Vec<&String> = self.brokers.iter().filter(is_free).collect();
        let awake = free.iter().filter(|broker| !self.resting.contains_key(**broker));
        let awake: Vec<String> = awake.copied().cloned().collect();
        if awake.is_empty() && self.running.is_empty() { free.into_iter().cloned().collect() } else { awake }
    }

    /// What ended polls have brought; an error where all have failed and no other is under way.
    fn gather(&mut self, ended: impl Iterator<Item = PollEnd>, lease: Millis) -> Result<Brought, Error> {
        let (mut brought, mut trouble) = (Brought::default(), None);
        for PollEnd { broker, attempt, at, outcome, open } in ended {
            drop(open);
            self.polled.remove(&broker);
            match outcome {
                Ok(messages) if is_fresh(at, lease) => {
                    self.late.remove(&broker);
                    brought.fresh.extend(messages.into_iter().filter_map(arrival));
                }
                Ok(messages) => {
                    if !messages.is_empty() {
                        self.late.insert(broker);
                    }
                    brought.stale.extend(messages.into_iter().filter_map(arrival));
                }
                Err(error) => {
                    self.resting.insert(broker.clone(), Instant::now() + REST);
                    self.lost.insert(broker, attempt);
                    trouble = Some(error);
                }
            }
        }
        match trouble {
            Some(error) if brought.is_empty() && self.running.is_empty() => {
                self.routed = None;
                Err(error)
            }
            Some(error) => {
                tracing::warn!(target: "onceward", event = "broker.part_away", error = error.operator_text());
                Ok(brought)
            }
            None => Ok(brought),
        }
    }

    /// Begins no poll any more. What is given is closed when those under way have ended, and whoever consumes has taken what they have
    /// brought.
    pub(crate) fn wind_down(&mut self) -> Arc<watch::Sender<()>> {
        self.is_over = true;
        Arc::clone(&self.open)
    }

    /// Lets the polls under way come to their end, and begins none any more; gives what they bring. Takes as long as a poll.
    pub(crate) async fn end(&mut self) -> Vec<Arrival> {
        self.is_over = true;
        let mut arrivals = Vec::new();
        while let Some(ended) = self.running.join_next().await {
            // A poll that failed or panicked brings nothing.
            let brought = ended.ok().and_then(|end| end.outcome.ok()).unwrap_or_default();
            arrivals.extend(brought.into_iter().filter_map(arrival));
        }
        arrivals
    }
}

/// Whether there may be more where this came from.
fn is_full(end: &PollEnd) -> bool {
    let most = usize::try_from(POLL_BATCH).unwrap_or(usize::MAX);
    end.outcome.as_ref().is_ok_and(|messages| messages.len() >= most)
}

/// Whether at least half of the lease is left of what a poll brought at this time.
fn is_fresh(at: Instant, lease: Millis) -> bool {
    at.elapsed() < Duration::from_millis(lease.0.unsigned_abs()) / 2
}

#[cfg(test)]
mod tests {
    use onceward_domain::error::Code;

    use super::*;
    use crate::proto;

    const LEASE: Millis = Millis(10_000);

    fn message() -> proto::Message {
        let properties =
            proto::SystemProperties { receipt_handle: Some("handle".to_owned()), ..Default::default() };
        proto::Message { system_properties: Some(properties), ..Default::default() }
    }

    fn end(broker: &str, age: Duration, outcome: Result<usize, Code>) -> PollEnd {
        let outcome = outcome.map(|count| vec![message(); count]).map_err(|code| Error::new(code, "a poll"));
        PollEnd {
            broker: broker.to_owned(),
            attempt: "attempt".to_owned(),
            at: Instant::now().checked_sub(age).unwrap(),
            outcome,
            open: watch::channel(()).1,
        }
    }

    /// How much was brought in time and too late.
    fn counts(brought: &Brought) -> (usize, usize) {
        (brought.fresh.len(), brought.stale.len())
    }

    #[tokio::test]
    async fn fs_06_what_was_brought_too_long_ago_is_to_be_handed_back_and_not_dropped() {
        let mut polls = Polls::default();
        let (young, old) = (Duration::from_secs(4), Duration::from_secs(6));
        let ended = vec![end("a", young, Ok(2)), end("b", old, Ok(3)), end("c", young, Ok(0))];
        assert_eq!(counts(&polls.gather(ended.into_iter(), LEASE).unwrap()), (2, 3));
    }

    #[tokio::test]
    async fn dr_02_a_broker_that_is_away_is_left_alone_and_is_an_error_where_no_other_is_asked() {
        let now = Duration::ZERO;
        let mut polls = Polls::default();
        polls.running.spawn(async move { end("a", now, Ok(1)) });
        let failed = || vec![end("b", now, Err(Code::Unavailable))].into_iter();
        assert_eq!(counts(&polls.gather(failed(), LEASE).unwrap()), (0, 0), "the other is waited for");
        assert_eq!(polls.resting.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(polls.lost.keys().collect::<Vec<_>>(), ["b"]);
        while polls.running.join_next().await.is_some() {}
        let both = [end("a", now, Ok(1))].into_iter().chain(failed());
        assert_eq!(counts(&polls.gather(both, LEASE).unwrap()), (1, 0), "what came is not thrown away");
        assert!(polls.gather(failed(), LEASE).is_err());
    }

    #[tokio::test]
    async fn dr_02_a_broker_that_is_away_rests_beside_one_that_is_busy_and_is_asked_where_it_is_alone() {
        let now = Duration::ZERO;
        let mut polls = Polls { brokers: ["a", "b"].map(str::to_owned).into(), ..Polls::default() };
        assert_eq!(polls.free(), ["a", "b"]);
        let failed = || vec![end("b", now, Err(Code::Unavailable))].into_iter();
        let busy = [end("a", now, Ok(1))].into_iter();
        assert_eq!(counts(&polls.gather(busy.chain(failed()), LEASE).unwrap()), (1, 0));
        // However slow the machine is.
        polls.resting.values_mut().for_each(|until| *until += Duration::from_secs(60));
        assert_eq!(polls.free(), ["a"], "although no poll is under way");
        polls.brokers.remove("a");
        assert_eq!(polls.free(), ["b"]);
    }

    #[tokio::test]
    async fn fs_06_what_was_brought_is_there_without_asking_anybody() {
        let mut polls = Polls::default();
        assert_eq!(polls.brought(LEASE), None);
        polls.running.spawn(async { end("a", Duration::ZERO, Ok(2)) });
        tokio::task::yield_now().await;
        assert_eq!(polls.brought(LEASE).as_ref().map(counts), Some((2, 0)));
        polls.running.spawn(async { end("a", Duration::ZERO, Ok(1)) });
        assert_eq!(polls.end().await.len(), 1);
        assert!(polls.is_over);
    }

    #[tokio::test]
    async fn fs_06_polls_are_over_when_what_they_brought_was_taken() {
        let mut polls = Polls::default();
        let open = polls.open.subscribe();
        polls.running.spawn(async { PollEnd { open, ..end("a", Duration::ZERO, Ok(1)) } });
        let over = polls.wind_down();
        tokio::task::yield_now().await;
        assert!(!over.is_closed(), "it was brought, and nobody has taken it");
        assert!(polls.brought(LEASE).is_some());
        timeout(REST, over.closed()).await.expect("nothing is under way");
    }
}
