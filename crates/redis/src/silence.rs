//! Which parts of a cluster do not answer, so that nobody waits there twice (FS-19).
//!
//! Invariants: a call that had no answer in time makes its slot silent; what would be sent to a silent slot is refused at once, and is
//! known not to have happened; one question at a time, for which nobody waits, is asked until the slot answers again; a call that was
//! on its way before some slot was heard again makes none silent, because it may have waited for what is over. Deliberately absent: a
//! time for which a slot stays silent, which would be too short for one server and too long for another.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Most slots that are remembered. Of one that is not, everybody waits for the answer, as before.
const SLOTS_LIMIT: usize = 4_096;

/// The silent slots.
pub(crate) struct Silence {
    limit: usize,
    /// Whether there are any: calls look here first, and mostly no further.
    is_any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By what chooses the slot in a key.
    silent: HashSet<Vec<u8>>,
    /// When one was heard again last.
    heard_at: Option<Instant>,
}

/// What chooses the slot of a key: what stands in its braces, or all of it.
fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let inside = &key[open + 1..];
    match inside.iter().position(|byte| *byte == b'}') {
        Some(0) | None => key,
        Some(close) => &inside[..close],
    }
}

impl Default for Silence {
    fn default() -> Self {
        Self { limit: SLOTS_LIMIT, is_any: AtomicBool::default(), state: Mutex::default() }
    }
}

impl Silence {
    /// One that remembers nothing.
    pub(crate) fn of_nothing() -> Self {
        Self { limit: 0, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any slot is silent.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Whether the slot of this key is.
    pub(crate) fn is_silent(&self, key: &[u8]) -> bool {
        self.state().silent.contains(tag_of(key))
    }

    /// A call by this key, sent at this time, had no answer. Says whether that has made its slot silent: then somebody is to ask it
    /// until it is heard.
    pub(crate) fn unanswered(&self, key: &[u8], sent_at: Instant) -> bool {
        let mut state = self.state();
        let may_be_over = state.heard_at.is_some_and(|heard_at| sent_at <= heard_at);
        if key.is_empty() || may_be_over || state.silent.len() >= self.limit {
            return false;
        }
        self.is_any.store(true, Ordering::Release);
        state.silent.insert(tag_of(key).to_vec())
    }

    /// The slot of this key has answered, whatever it said.
    pub(crate) fn heard(&self, key: &[u8], now: Instant) {
        let mut state = self.state();
        state.silent.remove(tag_of(key));
        state.heard_at = Some(now);
        self.is_any.store(!state.silent.is_empty(), Ordering::Release);
    }

    /// None is known to be silent any more, because the ways to them are other ones now.
    pub(crate) fn forget(&self, now: Instant) {
        let mut state = self.state();
        state.silent.clear();
        state.heard_at = Some(now);
        self.is_any.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEY: &[u8] = b"p:{sale:sku:1}:counter";
    const SISTER: &[u8] = b"p:{sale:sku:1}:user";
    const OTHER: &[u8] = b"p:{sale:sku:2}:counter";

    #[test]
    fn fs_19_a_slot_is_chosen_by_what_stands_in_the_braces() {
        for (key, tag) in
            [(KEY, &b"sale:sku:1"[..]), (b"plain", b"plain"), (b"a{}b", b"a{}b"), (b"a{b", b"a{b")]
        {
            assert_eq!(tag_of(key), tag);
        }
    }

    #[test]
    fn fs_19_a_silent_slot_is_asked_once_and_others_are_not_silent() {
        let (silence, sent_at) = (Silence::default(), Instant::now());
        assert!(!silence.is_any() && !silence.is_silent(KEY));
        assert!(silence.unanswered(KEY, sent_at), "it is to be asked");
        assert!(!silence.unanswered(SISTER, sent_at), "it is being asked");
        assert!(silence.is_any());
        assert_eq!([KEY, SISTER, OTHER].map(|key| silence.is_silent(key)), [true, true, false]);
        silence.heard(SISTER, sent_at + Duration::from_secs(1));
        assert!(!silence.is_any() && !silence.is_silent(KEY));
    }

    #[test]
    fn fs_19_what_was_sent_before_a_slot_was_heard_makes_none_silent() {
        let (silence, start) = (Silence::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(silence.unanswered(KEY, start));
        silence.heard(KEY, after(5));
        assert!(!silence.unanswered(KEY, after(4)) && !silence.is_silent(KEY));
        assert!(silence.unanswered(KEY, after(6)) && silence.is_silent(KEY));
    }

    #[test]
    fn fs_19_the_memory_is_bounded_and_a_call_without_a_key_takes_none() {
        let (silence, now) = (Silence::default(), Instant::now());
        assert!(!silence.unanswered(b"", now) && !silence.is_any());
        assert!(!Silence::of_nothing().unanswered(KEY, now));
        let made = (0..SLOTS_LIMIT + 10)
            .filter(|number| silence.unanswered(format!("{{{number}}}").as_bytes(), now));
        assert_eq!(made.count(), SLOTS_LIMIT);
        silence.forget(now);
        assert!(!silence.is_any() && !silence.is_silent(b"{1}"));
    }
}
