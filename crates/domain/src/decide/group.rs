//! Group orders until their deadline, and a person's wish after a failure (GS-01, GS-06).
//!
//! Invariants: one clock decides, the store's: at one millisecond before the deadline people may still join and leave, at
//! the deadline nobody may, whether or not the close has been written yet (C82); every join and leave moves the group's
//! revision, so a close that is decided at the same moment loses its guard or makes them lose theirs. A repeat is an
//! answer, also after the close. Read next: [`super::settle`].

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::decide::Draft;
use crate::decide::catalogue::Put;
use crate::due::{DueChange, Lane};
use crate::error::{Code, Error};
use crate::facts::Facts;
use crate::group::{GroupOrder, GroupTerms, GroupTransition, PARTICIPANTS_LIMIT, Participant};
use crate::id::{GroupId, UserId};
use crate::machine::group::{Group as GroupStatus, GroupEvent};
use crate::machine::group_charge::GroupCharge;
use crate::machine::{Machine, Row};
use crate::money::Money;

/// Label of the line of history with which a group begins.
pub const MADE: &str = "made";

/// Somebody makes a group order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutGroup {
    /// What it is to be.
    pub terms: GroupTerms,
    /// Who.
    pub actor: Arc<str>,
}

/// Puts a group order. Needs `groups`.
///
/// # Errors
/// [`Code::Differs`] where it exists with other terms; [`Code::Invalid`] for a new one whose deadline has come.
pub fn put(facts: &mut Facts, command: &PutGroup) -> Result<(ChangeSet, (Put, GroupOrder)), Error> {
    let terms = &command.terms;
    let about = || format!("putting group {}", terms.id);
    match facts.groups.get(&terms.id) {
        Some(known) if known.terms == *terms => {
            return Ok((ChangeSet::default(), (Put::Unchanged, known.clone())));
        }
        Some(_) => return Err(Error::new(Code::Differs, about())),
        None => {}
    }
    if terms.deadline <= facts.now {
        return Err(Error::new(Code::Invalid, about()));
    }
    let group = GroupOrder::new(terms.clone(), facts.now);
    let mut draft = Draft::default();
    draft.changes.group_transitions.push(GroupTransition {
        group: terms.id.clone(),
        at: facts.now,
        from: None,
        to: group.status.name(),
        cause: MADE,
        actor: command.actor.clone(),
    });
    draft.changes.new_groups.push(group.clone());
    schedule(&mut draft, &group, terms.deadline);
    facts.groups.insert(terms.id.clone(), group.clone());
    Ok((draft.finish(facts), (Put::Created, group)))
}

/// Somebody wants to take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// In which group.
    pub group: GroupId,
    /// Who.
    pub user: UserId,
    /// For how much.
    pub amount: Money,
}

/// Lets somebody join. Needs `groups` and `participants`.
///
/// # Errors
/// [`Code::NotFound`]; [`Code::Differs`] for another amount than at first; [`Code::GroupClosed`] from the deadline on;
/// [`Code::Invalid`] for nothing or another currency; [`Code::GroupFull`].
pub fn join(facts: &mut Facts, command: &Join) -> Result<(ChangeSet, (Put, Participant)), Error> {
    let Join { group: id, user, amount } = command;
    let about = || format!("letting {user} join group {id}");
    let group = facts.groups.get(id).cloned().ok_or_else(|| Error::new(Code::NotFound, about()))?;
    match facts.participants.get(&(id.clone(), user.clone())) {
        Some(known) if known.amount == *amount => {
            return Ok((ChangeSet::default(), (Put::Unchanged, known.clone())));
        }
        Some(_) if group.may_change(facts.now) => return Err(Error::new(Code::Differs, about())),
        Some(_) | None => {}
    }
    if !group.may_change(facts.now) {
        return Err(Error::new(Code::GroupClosed, about()).in_state(group.status.name()));
    }
    if amount.currency() != group.terms.currency || amount.amount() == 0 {
        return Err(Error::new(Code::Invalid, about()));
    }
    if group.participants >= PARTICIPANTS_LIMIT {
        return Err(Error::new(Code::GroupFull, about()));
    }
    let participant = Participant {
        group: id.clone(),
        user: user.clone(),
        amount: *amount,
        charge: GroupCharge::None,
        transaction: None,
        joined_at: facts.now,
        updated_at: facts.now,
        revision: 0,
    };
    let mut draft = Draft::default();
    let participants = group.participants + 1;
    draft.move_group(facts, GroupOrder { participants, ..group });
    draft.changes.new_participants.push(participant.clone());
    facts.participants.insert((id.clone(), user.clone()), participant.clone());
    Ok((draft.finish(facts), (Put::Created, participant)))
}

/// Somebody does not want to take part any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// In which group.
    pub group: GroupId,
    /// Who.
    pub user: UserId,
}

/// Lets somebody leave. Needs `groups` and `participants`.
///
/// # Errors
/// [`Code::NotFound`], also for a user who takes no part; [`Code::GroupClosed`] from the deadline on.
pub fn leave(facts: &mut Facts, command: &Leave) -> Result<ChangeSet, Error> {
    let about = || format!("letting {} leave group {}", command.user, command.group);
    let absent = || Error::new(Code::NotFound, about());
    let group = facts.groups.get(&command.group).cloned().ok_or_else(absent)?;
    if !group.may_change(facts.now) {
        return Err(Error::new(Code::GroupClosed, about()).in_state(group.status.name()));
    }
    let key = (command.group.clone(), command.user.clone());
    let participant = facts.participants.remove(&key).ok_or_else(absent)?;
    let participants = group.participants.checked_sub(1).expect("a participant was counted");
    let mut draft = Draft::default();
    draft.move_group(facts, GroupOrder { participants, ..group });
    draft.changes.left_participants.push(participant);
    Ok(draft.finish(facts))
}

/// A person wants a failed group to be settled after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Which.
    pub group: GroupId,
    /// Who.
    pub actor: Arc<str>,
}

/// Gives a failed group another round of attempts, from now on. Needs `groups`.
///
/// # Errors
/// [`Code::NotFound`]; [`Code::GroupNotRetryable`] in any state but `FAILED`.
pub fn retry(facts: &mut Facts, command: &Retry) -> Result<(ChangeSet, GroupOrder), Error> {
    let about = || format!("settling group {} by hand", command.group);
    let group = facts.groups.get(&command.group).cloned();
    let group = group.ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let Some(row) = group.status.next(GroupEvent::Retry) else {
        return Err(Error::new(Code::GroupNotRetryable, about()).in_state(group.status.name()));
    };
    let mut draft = Draft::default();
    draft.note_group(facts, &group, row, &command.actor);
    let after = GroupOrder {
        status: row.to,
        attempts: 0,
        retries: group.retries.saturating_add(1),
        next_attempt_at: Some(facts.now),
        ..group
    };
    schedule(&mut draft, &after, facts.now);
    let after = draft.move_group(facts, after);
    Ok((draft.finish(facts), after))
}

fn schedule(draft: &mut Draft, group: &GroupOrder, due_at: crate::time::Timestamp) {
    draft.changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::SETTLEMENT),
        member: Arc::from(group.id().as_str()),
        due_at,
        body: Vec::new(),
    });
}

impl Draft {
    /// Notes a group's present form; the last one of a set counts.
    pub(super) fn move_group(&mut self, facts: &mut Facts, group: GroupOrder) -> GroupOrder {
        let group = GroupOrder { updated_at: facts.now, ..group };
        match self.changes.groups.iter_mut().find(|one| one.id() == group.id()) {
            Some(noted) => *noted = group.clone(),
            None => self.changes.groups.push(group.clone()),
        }
        facts.groups.insert(group.id().clone(), group.clone());
        group
    }

    /// Notes a line of a group's history for a row of its table.
    pub(super) fn note_group(
        &mut self,
        facts: &Facts,
        group: &GroupOrder,
        row: &Row<GroupStatus, GroupEvent>,
        actor: &Arc<str>,
    ) {
        self.changes.group_transitions.push(GroupTransition {
            group: group.id().clone(),
            at: facts.now,
            from: Some(row.from.name()),
            to: row.to.name(),
            cause: row.label,
            actor: actor.clone(),
        });
    }
}
