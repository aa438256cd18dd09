//! Forgetting records whose window is over (design.md §7).
//!
//! Invariants: nothing goes before its window is over; a callback stays as long as it waits to be heard, also where a person
//! must look at it; a notice stays until it was sent; the answer of an effect stays for ever. The row that goes
//! is the one that was looked at. Needs what [`need`] names. Read next: [`crate::retention`].

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::due::{Lane, Member};
use crate::facts::{Facts, Need};
use crate::machine::Machine;
use crate::retention::{Aged, Record, is_over};
use crate::time::Millis;

/// The rows that a decision about these records looks at.
#[must_use]
pub fn need(records: &[Aged]) -> Need {
    let mut need = Need::default();
    for one in records {
        match &one.record {
            Record::Answer(key) => need.answers.push(Arc::clone(key)),
            Record::Callback(provider, event) => {
                need.callbacks.push((Arc::clone(provider), Arc::clone(event)));
                need.due.extend(waits_as(provider, event));
            }
            Record::Notice(id) => need.notices.push(*id),
        }
    }
    need
}

/// The name of a callback's due work.
#[must_use]
pub fn callback_member(provider: &str, event: &str) -> Member {
    Arc::from(format!("{provider}:{event}"))
}

/// Forgets those of the records whose window is over and that nobody waits for.
///
/// ```
/// use onceward_domain::{decide::forget::forget, facts::Facts, retention::{Aged, Record, WINDOW}, time::Timestamp};
/// # use onceward_domain::changes::Answered;
/// let key: std::sync::Arc<str> = "caller\nPOST /v1/orders\nk-1".into();
/// let first = Answered { key: key.clone(), fingerprint: [0; 32], status: 409, body: vec![], at: Timestamp(5), lasting: false };
/// let aged = [Aged { at: Timestamp(5), record: Record::Answer(key.clone()) }];
/// let mut facts = Facts::empty(Timestamp(4).plus(WINDOW));
/// facts.answers.insert(key, first);
/// assert!(forget(&facts, &aged, WINDOW).is_empty());
/// facts.now = Timestamp(5).plus(WINDOW);
/// assert_eq!(forget(&facts, &aged, WINDOW).forgotten, aged);
/// ```
#[must_use]
pub fn forget(facts: &Facts, records: &[Aged], window: Millis) -> ChangeSet {
    let goes = |one: &&Aged| is_done_with(facts, one) && is_over(one.at, window, facts.now);
    let forgotten = records.iter().filter(goes).cloned().collect();
    ChangeSet { forgotten, ..ChangeSet::default() }
}

/// Whether it is there as it was seen, and nothing waits for it.
fn is_done_with(facts: &Facts, one: &Aged) -> bool {
    match &one.record {
        Record::Answer(key) => facts.answers.get(key).is_some_and(|row| !row.lasting && row.at == one.at),
        Record::Callback(provider, event) => {
            let key = (Arc::clone(provider), Arc::clone(event));
            let waits = waits_as(provider, event).iter().any(|key| facts.due.contains_key(key));
            !waits && facts.callbacks.get(&key).is_some_and(|row| row.received_at == one.at)
        }
        Record::Notice(id) => facts
            .notices
            .get(id)
            .is_some_and(|notice| notice.status.is_terminal() && notice.updated_at == one.at),
    }
}

/// Where a callback is as long as it was not heard: in its lane, or among the dead letters.
fn waits_as(provider: &str, event: &str) -> [(Lane, Member); 2] {
    let (lane, member) = (Lane::new(Lane::CALLBACK), callback_member(provider, event));
    [(lane.dead_letters(), Arc::clone(&member)), (lane, member)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Answered;
    use crate::due::{DueEntry, Token};
    use crate::machine::notice::Notice as Status;
    use crate::notice::{Notice, work_exhausted};
    use crate::payment::Callback;
    use crate::retention::WINDOW;
    use crate::time::Timestamp;

    const SEEN: Timestamp = Timestamp(1_000);

    fn aged(record: Record) -> Aged {
        Aged { at: SEEN, record }
    }

    /// Everything there is to forget, each kind once, at the very end of its window.
    fn facts() -> (Facts, [Aged; 3]) {
        let mut facts = Facts::empty(SEEN.plus(WINDOW));
        let (key, bank, event): (Arc<str>, Arc<str>, Arc<str>) = ("k".into(), "bank".into(), "e1".into());
        let answer = Answered {
            key: key.clone(),
            fingerprint: [1; 32],
            status: 200,
            body: vec![],
            at: SEEN,
            lasting: false,
        };
        facts.answers.insert(key.clone(), answer);
        let callback = Callback {
            provider: bank.clone(),
            event: event.clone(),
            payload_hash: [2; 32],
            payload: vec![],
            received_at: SEEN,
        };
        facts.callbacks.insert((bank.clone(), event.clone()), callback);
        let notice = work_exhausted(&Lane::new("q"), "m", Token(1), Timestamp(1));
        let notice = Notice { status: Status::Sent, updated_at: SEEN, ..notice };
        facts.notices.insert(notice.id, notice.clone());
        let all = [Record::Answer(key), Record::Callback(bank, event), Record::Notice(notice.id)].map(aged);
        (facts, all)
    }

    #[test]
    fn what_is_over_goes_and_a_millisecond_earlier_it_stays() {
        let (mut facts, all) = facts();
        assert_eq!(forget(&facts, &all, WINDOW).forgotten, all);
        facts.now = Timestamp(facts.now.0 - 1);
        assert!(forget(&facts, &all, WINDOW).is_empty());
    }

    #[test]
    fn ot_08_a_callback_that_waits_or_is_a_dead_letter_stays() {
        let (facts, [_, callback, _]) = facts();
        for waits in waits_as("bank", "e1") {
            let mut facts = facts.clone();
            facts.due.insert(waits, DueEntry::new(SEEN, SEEN, vec![]));
            assert!(forget(&facts, std::slice::from_ref(&callback), WINDOW).is_empty());
        }
    }

    #[test]
    fn lq_05_a_notice_that_was_not_sent_stays() {
        let (mut facts, [_, _, notice]) = facts();
        facts.notices.values_mut().for_each(|one| one.status = Status::Pending);
        assert!(forget(&facts, &[notice], WINDOW).is_empty());
    }

    #[test]
    fn what_changed_or_went_since_it_was_seen_stays() {
        let (facts, all) = facts();
        let moved = all.clone().map(|one| Aged { at: Timestamp(one.at.0 - 1), ..one });
        assert!(forget(&facts, &moved, WINDOW).is_empty());
        assert!(forget(&Facts::empty(facts.now), &all, WINDOW).is_empty());
    }

    #[test]
    fn se_04_the_answer_of_an_effect_stays_for_ever() {
        let (mut facts, [answer, ..]) = facts();
        facts.answers.values_mut().for_each(|one| one.lasting = true);
        facts.now = facts.now.plus(WINDOW);
        assert!(forget(&facts, &[answer], WINDOW).is_empty());
    }
}
