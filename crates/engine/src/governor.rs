//! The governor: watches what piles up behind the gate, and says whether buyers are let in (FS-16, FS-17).
//!
//! Its worker looks ([`crate::workers::governor`]), [`onceward_domain::governor`] decides, the gate's front obeys
//! ([`crate::gate`]). Beside that it keeps what consumers tell: how old their messages are, which they say in the store where it
//! pauses every deadline worker, and when they may take more. Invariants: memory only, and each process judges for itself, so
//! nothing here must survive a crash; a figure that cannot be had closes nothing. A message's age compares two clocks, so it
//! paces work and never decides what becomes of a reservation (DR-06).
//!
//! Deliberately absent: what other processes let in. A node's own share of the pace is all it measures, so of several nodes
//! each closes early rather than late.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onceward_domain::decide::behind::is_stale;
use onceward_domain::due::Member;
use onceward_domain::governor::{Limits, Meter, Passage, Reading, Sight, Trouble};
use onceward_domain::id::SkuKey;
use onceward_domain::ports::bus::Delivery;
use onceward_domain::time::{Millis, Timestamp};

/// Most SKUs whose undecided units are looked at. A sale of more than so many at once is judged by these.
pub const KEYS_LIMIT: usize = 256;
/// What a refused buyer is told to wait where the bus is away.
const RETRY_OUTAGE: Millis = Millis(5_000);
/// Shortest and longest wait that a refused buyer is told where the backlog is too long.
const RETRY_BACKLOG: (i64, i64) = (1_000, 30_000);

/// The governor's named bounds.
#[derive(Debug, Clone)]
pub struct GovernorSettings {
    /// What closes admission, and what opens it.
    pub limits: Limits,
    /// How long between two looks while something waits.
    pub interval: Millis,
    /// While the oldest message that consumers took was older than this when it was decided, no reservation is rejected for
    /// its deadline: its message may be the next.
    pub deadlines_pause_above: Millis,
    /// When that message is older than this, deadlines go on all the same, so that the pause ends.
    pub deadlines_pause_below: Millis,
    /// Most orders a second that this process's consumer asks of the store: its measured sustainable rate. Without one the
    /// store's own pace is the limit, because a consumer has one transaction under way.
    pub orders_per_second: Option<NonZeroU32>,
}

impl Default for GovernorSettings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            interval: Millis(500),
            // The critical threshold of reference 003 §12.3.
            deadlines_pause_above: Millis(30_000),
            deadlines_pause_below: Millis(3_600_000),
            orders_per_second: None,
        }
    }
}

/// The governor of one process.
#[derive(Debug, Default)]
pub struct Governor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    view: View,
    meter: Meter,
    looked_at: Option<Timestamp>,
    /// SKUs of which units were let in or are undecided.
    admitted: BTreeMap<SkuKey, Watched>,
    /// When the oldest message of the last batch was published.
    oldest_taken: Option<Timestamp>,
    behind: Option<Behind>,
    /// What this process has said in the store of being behind.
    said: Option<Said>,
    /// When the consumer may take more.
    rested_at: Option<Timestamp>,
}

/// What is known of the units of one SKU.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    /// Let in since the last look.
    admitted: u64,
    /// Undecided when they were counted last.
    undecided: u64,
}

/// What the governor saw last, and what follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// Whether buyers are let in.
    pub passage: Passage,
    /// What was seen; none before the first look.
    pub sight: Option<Sight>,
}

/// What the worker found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The store's time.
    pub now: Timestamp,
    /// Reservations that wait to be sent.
    pub unsent: u64,
    /// How long the oldest has waited.
    pub oldest_unsent: Millis,
    /// Undecided units of the watched SKUs.
    pub undecided: u64,
    /// Units that were let in between this look and the one before.
    pub admitted: u64,
    /// Shortest time of a reservation on sale.
    pub deadline: Millis,
}

impl Governor {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether buyers are let in.
    #[must_use]
    pub fn passage(&self) -> Passage {
        self.state().view.passage
    }

    /// What was seen last.
    #[must_use]
    pub fn view(&self) -> View {
        self.state().view
    }

    /// How long a refused buyer should wait.
    #[must_use]
    pub fn retry_after(&self) -> Millis {
        let view = self.state().view;
        match (view.passage, view.sight.and_then(|sight| sight.drain())) {
            (Passage::Closed(Trouble::Backlog), Some(drain)) => {
                Millis((drain.0 / 2).clamp(RETRY_BACKLOG.0, RETRY_BACKLOG.1))
            }
            _ => RETRY_OUTAGE,
        }
    }

    /// Units were let in.
    pub(crate) fn admitted(&self, key: &SkuKey, units: u64) {
        let mut state = self.state();
        if let Some(so_far) = state.admitted.get_mut(key) {
            so_far.admitted += units;
        } else if state.admitted.len() < KEYS_LIMIT {
            state.admitted.insert(key.clone(), Watched { admitted: units, undecided: 0 });
        }
    }

    /// The SKUs to look at, and the units let in since this was last asked.
    pub(crate) fn watched(&self) -> (Vec<SkuKey>, u64) {
        let mut state = self.state();
        let units = state.admitted.values_mut().map(|one| std::mem::take(&mut one.admitted)).sum();
        (state.admitted.keys().cloned().collect(), units)
    }

    /// Units that `watched` had told, and that no look came to.
    pub(crate) fn put_back(&self, units: u64) {
        if let Some(mut first) = self.state().admitted.first_entry() {
            first.get_mut().admitted += units;
        }
    }

    /// So many units of a SKU are undecided.
    pub(crate) fn count(&self, key: &SkuKey, undecided: u64) {
        if let Some(known) = self.state().admitted.get_mut(key) {
            known.undecided = undecided;
        }
    }

    /// How many were when they were counted last.
    pub(crate) fn counted(&self, key: &SkuKey) -> u64 {
        self.state().admitted.get(key).map_or(0, |known| known.undecided)
    }

    /// Of these SKUs nothing is undecided any more.
    pub(crate) fn forget(&self, decided: &[SkuKey]) {
        self.state().admitted.retain(|key, one| one.admitted > 0 || !decided.contains(key));
    }

    /// Takes what was found; answers what was said before, and what is said now.
    pub(crate) fn look(&self, found: Look, limits: &Limits) -> (View, View) {
        let mut state = self.state();
        let before = state.view;
        let undecided_before = before.sight.map_or(0, |sight| sight.undecided);
        if let Some(last) = state.looked_at {
            let decided = (undecided_before + found.admitted).saturating_sub(found.undecided);
            let within = found.now.since(last);
            state.meter.feed(Reading { decided, within, undecided: found.undecided.min(undecided_before) });
        }
        state.looked_at = Some(found.now);
        let sight = Sight {
            unsent: found.unsent,
            oldest_unsent: found.oldest_unsent,
            undecided: found.undecided,
            pace: state.meter.pace(),
            deadline: found.deadline,
        };
        state.view = View { passage: before.passage.next(&sight, limits), sight: Some(sight) };
        (before, state.view)
    }

    /// A consumer took these, or found nothing. What comes again tells nothing of the backlog.
    pub(crate) fn taken(&self, deliveries: &[Delivery]) {
        let mut state = self.state();
        let first = deliveries.iter().filter(|one| one.attempts == 1);
        state.oldest_taken = first.map(|one| one.published_at).min();
        if deliveries.is_empty() {
            state.behind = None;
        }
    }

    /// What was taken was decided at this time.
    pub(crate) fn decided(&self, now: Timestamp) {
        let mut state = self.state();
        state.behind = state.oldest_taken.map(|oldest| Behind { oldest, at: now });
    }

    /// What this process has to say now of its consumers; nothing where it was said, and holds for a while. Consumers that rest are as
    /// far behind as they were when they last decided; then it is this time, else that of the decision.
    pub(crate) fn word(
        &self,
        settings: &GovernorSettings,
        resting: Option<Timestamp>,
        name: impl FnOnce() -> Member,
    ) -> Option<Word> {
        let state = self.state();
        let far = state.behind.filter(|behind| behind.holds_deadlines(settings));
        match (far, &state.said) {
            (None, None) => None,
            (None, Some(said)) => Some(Word::CaughtUp(said.process.clone())),
            (Some(behind), said) => {
                let at = resting.unwrap_or(behind.at);
                if said.as_ref().is_some_and(|said| !is_stale(said.at, at)) {
                    return None;
                }
                let process = said.as_ref().map_or_else(name, |said| said.process.clone());
                Some(Word::Behind(Said { process, at }))
            }
        }
    }

    /// This was said.
    pub(crate) fn said(&self, word: Word) {
        self.state().said = match word {
            Word::Behind(said) => Some(said),
            Word::CaughtUp(_) => None,
        };
    }

    /// The consumer has asked so many orders of the store.
    pub(crate) fn asked(&self, now: Timestamp, orders: usize, settings: &GovernorSettings) {
        let Some(rate) = settings.orders_per_second else { return };
        let orders = i64::try_from(orders).unwrap_or(i64::MAX);
        let rest = orders.saturating_mul(1_000) / i64::from(rate.get());
        let mut state = self.state();
        let begins = state.rested_at.unwrap_or(now).max(now);
        state.rested_at = Some(begins.plus(Millis(rest)));
    }

    /// How long the consumer still rests.
    pub(crate) fn rest(&self, now: Timestamp) -> Option<Millis> {
        self.state().rested_at.map(|at| at.since(now)).filter(|rest| rest.0 > 0)
    }
}

/// How far consumers are behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Behind {
    /// When the oldest message of their last batch was published.
    oldest: Timestamp,
    /// When it was decided.
    at: Timestamp,
}

impl Behind {
    /// Whether that holds up the deadlines (FS-17).
    fn holds_deadlines(self, settings: &GovernorSettings) -> bool {
        let age = self.at.since(self.oldest);
        age > settings.deadlines_pause_above && age <= settings.deadlines_pause_below
    }
}

/// Something for deadline workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// The consumers of this process are far behind.
    Behind(Said),
    /// They are not any more.
    CaughtUp(Member),
}

/// That a process is far behind, and since when it has not said so again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// The name it says it under.
    pub(crate) process: Member,
    /// The store's time when it was said.
    pub(crate) at: Timestamp,
}
