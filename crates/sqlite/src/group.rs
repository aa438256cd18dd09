//! Reading group orders, their participants and their history.

use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTerms, GroupTransition, Participant};
use onceward_domain::id::{GroupId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::load::{every, first};
use crate::queries;
use crate::refs::{Refs, label};
use crate::rows::{get, money, state};

/// Loads what a need names of groups.
pub(crate) fn load(conn: &Connection, need: &Need, facts: &mut Facts) -> Result<(), Error> {
    for id in &need.groups {
        let found = first(conn, queries::GROUP_ORDER_BY_ID, [id.as_str()], "loading a group order", order)?;
        facts.groups.extend(found.map(|one| (id.clone(), one)));
    }
    for (group, user) in &need.participants {
        let key = (group.as_str(), user.as_str());
        let found = first(conn, queries::PARTICIPANT_BY_USER, key, "loading a participant", |row| {
            participant(group, row)
        })?;
        facts.participants.extend(found.map(|one| ((group.clone(), user.clone()), one)));
    }
    for group in &need.participants_of {
        let doing = "loading the participants of a group";
        let found = every(conn, queries::PARTICIPANT_OF_GROUP, [group.as_str()], doing, |row| {
            participant(group, row)
        })?;
        let keyed = found.into_iter().map(|one| ((one.group.clone(), one.user.clone()), one));
        facts.participants.extend(keyed);
    }
    Ok(())
}

/// Group orders, newest first.
pub(crate) fn list(
    conn: &Connection,
    status: Option<GroupStatus>,
    page: PageRequest,
) -> Result<Vec<GroupOrder>, Error> {
    let parameters = params![page.before.unwrap_or(i64::MAX), status.map(Machine::code), page.limit];
    every(conn, queries::GROUP_ORDER_LIST, parameters, "listing group orders", order)
}

/// What happened to a group order, oldest first.
pub(crate) fn transitions(
    conn: &Connection,
    refs: &mut Refs,
    group: &GroupId,
) -> Result<Vec<GroupTransition>, Error> {
    let doing = "listing the history of a group order";
    let found = first(conn, queries::GROUP_ORDER_SEQ_OF, [group.as_str()], doing, |row| get::<i64>(row, 0))?;
    let Some(handle) = found else { return Ok(Vec::new()) };
    every(conn, queries::GROUP_TRANSITION_OF_GROUP, [handle], doing, |row| {
        let from: Option<i64> = get(row, 1)?;
        Ok(GroupTransition {
            group: group.clone(),
            at: Timestamp(get(row, 0)?),
            from: from.map(|from| refs.word(conn, from)).transpose()?.map(|from| label(&from)),
            to: label(&refs.word(conn, get(row, 2)?)?),
            cause: label(&refs.word(conn, get(row, 3)?)?),
            actor: refs.word(conn, get(row, 4)?)?,
        })
    })
}

fn order(row: &Row<'_>) -> Result<GroupOrder, Error> {
    let (id, leader): (String, String) = (get(row, 1)?, get(row, 2)?);
    let terms = GroupTerms {
        id: GroupId::trusted(&id),
        leader: UserId::trusted(&leader),
        deadline: Timestamp(get(row, 3)?),
        charge_via: get(row, 4)?,
        currency: money(0, get(row, 5)?)?.currency(),
        min_participants: get(row, 6)?,
    };
    Ok(GroupOrder {
        terms,
        handle: get(row, 0)?,
        status: state(get(row, 7)?)?,
        participants: get(row, 8)?,
        attempts: get(row, 9)?,
        retries: get(row, 10)?,
        next_attempt_at: get::<Option<i64>>(row, 11)?.map(Timestamp),
        last_error: get(row, 12)?,
        created_at: Timestamp(get(row, 13)?),
        updated_at: Timestamp(get(row, 14)?),
        revision: get(row, 15)?,
    })
}

fn participant(group: &GroupId, row: &Row<'_>) -> Result<Participant, Error> {
    let user: String = get(row, 0)?;
    Ok(Participant {
        group: group.clone(),
        user: UserId::trusted(&user),
        amount: money(get(row, 1)?, get(row, 2)?)?,
        charge: state(get(row, 3)?)?,
        transaction: get(row, 4)?,
        joined_at: Timestamp(get(row, 5)?),
        updated_at: Timestamp(get(row, 6)?),
        revision: get(row, 7)?,
    })
}
