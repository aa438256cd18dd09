//! Writing group orders, their participants and their history.
//!
//! Invariants: changed rows name the revision they were decided on; who leaves had no charge.

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Error;
use onceward_domain::group::{GroupOrder, GroupTransition, Participant};
use onceward_domain::id::GroupId;
use onceward_domain::machine::Machine;
use rusqlite::{Connection, params};

use super::catalogue::revision_lost;
use crate::failure::{defect, failed};
use crate::load::first;
use crate::queries;
use crate::refs::Refs;
use crate::rows::get;

pub(super) fn write(conn: &Connection, refs: &mut Refs, changes: &ChangeSet) -> Result<(), Error> {
    add_groups(conn, &changes.new_groups)?;
    move_groups(conn, &changes.groups)?;
    add_participants(conn, &changes.new_participants)?;
    move_participants(conn, &changes.participants)?;
    remove_participants(conn, &changes.left_participants)?;
    add_transitions(conn, refs, &changes.group_transitions)
}

fn add_groups(conn: &Connection, groups: &[GroupOrder]) -> Result<(), Error> {
    let doing = failed("adding a group order");
    for group in groups {
        let mut statement = conn.prepare_cached(queries::GROUP_ORDER_INSERT).map_err(&doing)?;
        let terms = &group.terms;
        let parameters = params![
            terms.id.as_str(),
            terms.leader.as_str(),
            terms.deadline.0,
            terms.charge_via,
            terms.currency.numeric(),
            terms.min_participants,
            group.status.code(),
            group.participants,
            group.attempts,
            group.retries,
            group.next_attempt_at.map(|at| at.0),
            group.last_error,
            group.created_at.0,
            group.updated_at.0,
            group.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

fn move_groups(conn: &Connection, groups: &[GroupOrder]) -> Result<(), Error> {
    let doing = failed("changing a group order");
    for group in groups {
        let key = group.id().as_str();
        let mut statement = conn.prepare_cached(queries::GROUP_ORDER_MOVE).map_err(&doing)?;
        let parameters = params![
            group.status.code(),
            group.participants,
            group.attempts,
            group.retries,
            group.next_attempt_at.map(|at| at.0),
            group.last_error,
            group.updated_at.0,
            key,
            group.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there =
                first(conn, queries::GROUP_ORDER_PEEK, [key], "looking at a group order", |row| get(row, 0))?;
            return Err(revision_lost("group order", &key, group.revision, there));
        }
    }
    Ok(())
}

fn add_participants(conn: &Connection, participants: &[Participant]) -> Result<(), Error> {
    let doing = failed("adding a participant");
    let mut handles = Handles::default();
    for one in participants {
        let group_ref = handles.of(conn, &one.group)?;
        let mut statement = conn.prepare_cached(queries::PARTICIPANT_INSERT).map_err(&doing)?;
        let parameters = params![
            group_ref,
            one.user.as_str(),
            one.amount.amount(),
            one.charge.code(),
            one.transaction,
            one.joined_at.0,
            one.updated_at.0,
            one.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

fn move_participants(conn: &Connection, participants: &[Participant]) -> Result<(), Error> {
    let doing = failed("changing a participant");
    let mut handles = Handles::default();
    for one in participants {
        let group_ref = handles.of(conn, &one.group)?;
        let mut statement = conn.prepare_cached(queries::PARTICIPANT_MOVE).map_err(&doing)?;
        let parameters = params![
            one.amount.amount(),
            one.charge.code(),
            one.transaction,
            one.updated_at.0,
            group_ref,
            one.user.as_str(),
            one.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            return Err(lost(conn, group_ref, one)?);
        }
    }
    Ok(())
}

fn remove_participants(conn: &Connection, participants: &[Participant]) -> Result<(), Error> {
    let doing = failed("taking a participant out");
    let mut handles = Handles::default();
    for one in participants {
        let group_ref = handles.of(conn, &one.group)?;
        let mut statement = conn.prepare_cached(queries::PARTICIPANT_REMOVE).map_err(&doing)?;
        let parameters = params![group_ref, one.user.as_str(), one.revision];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            return Err(lost(conn, group_ref, one)?);
        }
    }
    Ok(())
}

fn lost(conn: &Connection, group_ref: i64, decided_on: &Participant) -> Result<Error, Error> {
    let key = (group_ref, decided_on.user.as_str());
    let there = first(conn, queries::PARTICIPANT_PEEK, key, "looking at a participant", |row| get(row, 0))?;
    Ok(revision_lost("participant", &decided_on.charge_id(), decided_on.revision, there))
}

fn add_transitions(conn: &Connection, refs: &mut Refs, transitions: &[GroupTransition]) -> Result<(), Error> {
    let doing = failed("adding a line of a group's history");
    let mut handles = Handles::default();
    for transition in transitions {
        let group_ref = handles.of(conn, &transition.group)?;
        let from = transition.from.map(|from| refs.word_ref_or_new(conn, from)).transpose()?;
        let to = refs.word_ref_or_new(conn, transition.to)?;
        let cause = refs.word_ref_or_new(conn, transition.cause)?;
        let actor = refs.word_ref_or_new(conn, &transition.actor)?;
        let mut statement = conn.prepare_cached(queries::GROUP_TRANSITION_INSERT).map_err(&doing)?;
        let parameters = params![group_ref, transition.at.0, from, to, cause, actor];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

/// The handle of the group that rows point to. A set is nearly always about one group, so the last one is remembered.
#[derive(Default)]
struct Handles {
    last: Option<(GroupId, i64)>,
}

impl Handles {
    fn of(&mut self, conn: &Connection, group: &GroupId) -> Result<i64, Error> {
        if let Some((_, handle)) = self.last.as_ref().filter(|(known, _)| known == group) {
            return Ok(*handle);
        }
        let doing = "finding a group order by its id";
        let found = first(conn, queries::GROUP_ORDER_SEQ_OF, [group.as_str()], doing, |row| get(row, 0))?;
        let handle =
            found.ok_or_else(|| defect(format!("a row names the group {group}, which is not there")))?;
        self.last = Some((group.clone(), handle));
        Ok(handle)
    }
}
