//! The moves of the due-work queue as decisions (LQ-02 to LQ-06): typed answers and the changes that carry them out.
//!
//! Invariants: a claim that is lost changes nothing and is an answer, not an error; an exhaustion and its notice are one
//! ChangeSet; the facts are kept up to date, so that one batch may name a member twice. Each change is guarded all the
//! same, for stores that decide on rows which others may change meanwhile.
//! Needs `due` of every member that is named, and of its place in the exhausted set. Read next: [`crate::ports::due_queue`].

use crate::changes::ChangeSet;
use crate::due::{Charge, Claimed, DueChange, DueEntry, Held, Lane, Member};
use crate::facts::{Facts, Need};
use crate::notice::work_exhausted;
use crate::ports::due_queue::{
    Due, Exhaustion, NewWork, Put, Removed, Replayed, Rescheduled, Settled, Settlement,
};
use crate::retry::After;
use crate::time::Timestamp;

/// The rows that decisions about these members look at.
#[must_use]
pub fn need_of<'a>(members: impl Iterator<Item = (&'a Lane, &'a Member)>) -> Need {
    let both = members
        .flat_map(|(lane, member)| [(lane.clone(), member.clone()), (lane.dead_letters(), member.clone())]);
    Need { due: both.collect(), ..Need::default() }
}

/// The time that is meant, by the store's clock.
#[must_use]
pub fn time_of(due: Due, now: Timestamp) -> Timestamp {
    match due {
        Due::At(time) => time,
        Due::After(wait) => now.plus(wait),
    }
}

/// The smallest write, which leaves nothing behind: a member is put in and taken out in one step. Whoever waits for a store that
/// did not take its writes learns by it whether it takes them again.
#[must_use]
pub fn trial(now: Timestamp, member: &Member) -> ChangeSet {
    let (lane, member) = (Lane::new(Lane::TRIAL), member.clone());
    let put = DueChange::Put { lane: lane.clone(), member: member.clone(), due_at: now, body: Vec::new() };
    ChangeSet { due: vec![put, DueChange::Remove { lane, member }], ..ChangeSet::default() }
}

/// Puts work in.
#[must_use]
pub fn put(facts: &mut Facts, lane: &Lane, work: &[NewWork]) -> (ChangeSet, Vec<Put>) {
    let mut changes = ChangeSet::default();
    let mut answers = Vec::with_capacity(work.len());
    for new in work {
        let key = (lane.clone(), new.member.clone());
        answers.push(if facts.due.contains_key(&key) {
            Put::There
        } else if facts.due.contains_key(&(lane.dead_letters(), new.member.clone())) {
            Put::Exhausted
        } else {
            let due_at = time_of(new.due, facts.now);
            let (lane, member) = key.clone();
            changes.due.push(DueChange::Put { lane, member, due_at, body: new.body.clone() });
            facts.due.insert(key, DueEntry::new(due_at, facts.now, new.body.clone()));
            Put::Added
        });
    }
    (changes, answers)
}

/// Ends claims, or lengthens them.
#[must_use]
pub fn settle(facts: &mut Facts, settlements: &[Settlement]) -> (ChangeSet, Vec<Settled>) {
    let mut changes = ChangeSet::default();
    let answers = settlements.iter().map(|one| settle_one(facts, &mut changes, one)).collect();
    (changes, answers)
}

fn settle_one(facts: &mut Facts, changes: &mut ChangeSet, settlement: &Settlement) -> Settled {
    let held = settlement.held();
    let key = (held.lane.clone(), held.member.clone());
    let Some(entry) = facts.due.get_mut(&key).filter(|entry| entry.is_held_by(held.token)) else {
        return Settled::LeaseLost;
    };
    let held = held.clone();
    let again = |entry: &mut DueEntry, due_at: Timestamp| {
        (entry.due_at, entry.is_held) = (due_at, false);
        due_at
    };
    match settlement {
        Settlement::Complete(_) => {
            facts.due.remove(&key);
            changes.due.push(DueChange::Complete(held));
            Settled::Completed
        }
        Settlement::Extend { lease, .. } => {
            let lease_until = facts.now.plus(*lease);
            entry.due_at = lease_until;
            changes.due.push(DueChange::Extend { held, lease_until });
            Settled::Extended(lease_until)
        }
        Settlement::HandBack { wait, .. } => {
            let due_at = again(entry, facts.now.plus(*wait));
            entry.attempts = entry.attempts.saturating_sub(1);
            changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Refund });
            Settled::Again(due_at)
        }
        Settlement::Retry { policy, .. } => match policy.after(entry.attempts, held.seed()) {
            After::Again(wait) => {
                let due_at = again(entry, facts.now.plus(wait));
                changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Keep });
                Settled::Again(due_at)
            }
            After::Exhausted => {
                exhaust(facts, changes, &held);
                Settled::Exhausted
            }
        },
    }
}

/// Moves a held member into the exhausted set and writes its notice. Workers whose own decision gives work up call this in it.
pub fn exhaust(facts: &mut Facts, changes: &mut ChangeSet, held: &Held) {
    changes.new_notices.push(work_exhausted(&held.lane, &held.member, held.token, facts.now));
    changes.due.push(DueChange::Exhaust(held.clone()));
    if let Some(entry) = facts.due.remove(&(held.lane.clone(), held.member.clone())) {
        let dead = DueEntry { due_at: facts.now, attempts: 0, is_held: false, ..entry };
        facts.due.insert((held.lane.dead_letters(), held.member.clone()), dead);
    }
}

/// Makes a part of a held member's body an exhausted member of its own, with its notice; where it is there already, it was
/// told already. Needs `due` of its place in the exhausted set.
pub fn set_aside(facts: &mut Facts, changes: &mut ChangeSet, held: &Held, member: &Member, body: &[u8]) {
    let key = (held.lane.dead_letters(), member.clone());
    if facts.due.contains_key(&key) {
        return;
    }
    changes.new_notices.push(work_exhausted(&held.lane, member, held.token, facts.now));
    let (held, body) = (held.clone(), body.to_vec());
    let entry = DueEntry {
        due_at: facts.now,
        created_at: facts.now,
        attempts: 0,
        token: held.token,
        is_held: false,
        body: body.clone(),
    };
    facts.due.insert(key, entry);
    changes.due.push(DueChange::SetAside { held, member: member.clone(), body });
}

/// Exhausts claims that are one too many, because leases that ran out have used up the tries. One that is lost meanwhile is
/// passed over: whoever holds it now finds the same.
#[must_use]
pub fn exhaust_spent(facts: &mut Facts, spent: &[Claimed]) -> ChangeSet {
    let mut changes = ChangeSet::default();
    for claim in spent {
        let key = (claim.held.lane.clone(), claim.held.member.clone());
        if facts.due.get(&key).is_some_and(|entry| entry.is_held_by(claim.held.token)) {
            exhaust(facts, &mut changes, &claim.held);
        }
    }
    changes
}

/// Takes work out.
#[must_use]
pub fn remove(facts: &mut Facts, lane: &Lane, members: &[Member]) -> (ChangeSet, Vec<Removed>) {
    let mut changes = ChangeSet::default();
    let mut answers = Vec::with_capacity(members.len());
    for member in members {
        answers.push(match facts.due.remove(&(lane.clone(), member.clone())) {
            Some(_) => {
                changes.due.push(DueChange::Remove { lane: lane.clone(), member: member.clone() });
                Removed::Removed
            }
            None => Removed::Absent,
        });
    }
    (changes, answers)
}

/// Gives waiting work another due-time.
#[must_use]
pub fn reschedule(facts: &mut Facts, lane: &Lane, member: &Member, due: Due) -> (ChangeSet, Rescheduled) {
    let due_at = time_of(due, facts.now);
    let answer = match facts.due.get_mut(&(lane.clone(), member.clone())) {
        None => Rescheduled::Absent,
        Some(entry) if entry.is_held => Rescheduled::Leased,
        Some(entry) => {
            entry.due_at = due_at;
            Rescheduled::Moved
        }
    };
    let mut changes = ChangeSet::default();
    if answer == Rescheduled::Moved {
        changes.due.push(DueChange::Reschedule { lane: lane.clone(), member: member.clone(), due_at });
    }
    (changes, answer)
}

/// Brings exhausted members back, with fresh tries.
#[must_use]
pub fn replay(facts: &mut Facts, lane: &Lane, which: &[Exhaustion]) -> (ChangeSet, Vec<Replayed>) {
    let mut changes = ChangeSet::default();
    let mut answers = Vec::with_capacity(which.len());
    for one in which {
        let key = (lane.dead_letters(), one.member.clone());
        let Some(entry) = facts.due.get(&key).filter(|entry| entry.token == one.token).cloned() else {
            answers.push(Replayed::Absent);
            continue;
        };
        facts.due.remove(&key);
        facts.due.insert((lane.clone(), one.member.clone()), DueEntry { due_at: facts.now, ..entry });
        changes.due.push(DueChange::Replay {
            lane: lane.clone(),
            member: one.member.clone(),
            token: one.token,
            due_at: facts.now,
        });
        answers.push(Replayed::Revived);
    }
    (changes, answers)
}
