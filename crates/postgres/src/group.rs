//! Reading group orders, their participants and their history.

use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTerms, GroupTransition, Participant};
use onceward_domain::id::{GroupId, UserId};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::ports::store::PageRequest;
use tokio_postgres::Row;

use crate::link::Link;
use crate::load::{Kind, each};
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::refs::label;
use crate::rows::{code, get, kept, kept_if, money, number, state, text, time, time_if};

/// Asks for what a need names of groups.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, need: &'a Need) -> Result<(), Error> {
    if !need.groups.is_empty() {
        let ids: Vec<&str> = need.groups.iter().map(|id| id.as_str()).collect();
        questions.ask(Kind::Groups, queries::GROUP_ORDER_BY_IDS, params![ids]).await?;
    }
    if !need.participants.is_empty() {
        let groups: Vec<&str> = need.participants.iter().map(|(group, _)| group.as_str()).collect();
        let users: Vec<&str> = need.participants.iter().map(|(_, user)| user.as_str()).collect();
        questions.ask(Kind::Participants, queries::PARTICIPANT_BY_USERS, params![groups, users]).await?;
    }
    if !need.participants_of.is_empty() {
        let ids: Vec<&str> = need.participants_of.iter().map(|id| id.as_str()).collect();
        questions.ask(Kind::Participants, queries::PARTICIPANT_OF_GROUPS, params![ids]).await?;
    }
    Ok(())
}

/// Notes group orders.
pub(crate) fn groups(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let group = order(row)?;
        facts.groups.insert(group.id().clone(), group);
        Ok(())
    })
}

/// Notes participants.
pub(crate) fn participants(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let one = participant(row)?;
        facts.participants.insert((one.group.clone(), one.user.clone()), one);
        Ok(())
    })
}

/// Group orders, newest first.
pub(crate) async fn list(
    link: &Link,
    status: Option<GroupStatus>,
    page: PageRequest,
) -> Result<Vec<GroupOrder>, Error> {
    let parameters = params![page.before.unwrap_or(i64::MAX), status.map(code), i64::from(page.limit)];
    let rows = link.rows("listing group orders", queries::GROUP_ORDER_LIST, parameters).await?;
    rows.iter().map(order).collect()
}

/// What happened to a group order, oldest first.
pub(crate) async fn transitions(link: &Link, group: &GroupId) -> Result<Vec<GroupTransition>, Error> {
    let doing = "listing the history of a group order";
    let rows = link.rows(doing, queries::GROUP_TRANSITION_OF_GROUP, params![group.as_str()]).await?;
    let one = |row: &Row| {
        Ok(GroupTransition {
            group: group.clone(),
            at: time(row, 0)?,
            from: get::<Option<&str>>(row, 1)?.map(label),
            to: label(text(row, 2)?),
            cause: label(text(row, 3)?),
            actor: kept(row, 4)?,
        })
    };
    rows.iter().map(one).collect()
}

fn order(row: &Row) -> Result<GroupOrder, Error> {
    let terms = GroupTerms {
        id: GroupId::trusted(text(row, 1)?),
        leader: UserId::trusted(text(row, 2)?),
        deadline: time(row, 3)?,
        charge_via: kept(row, 4)?,
        currency: money(0, get(row, 5)?)?.currency(),
        min_participants: number(row, 6)?,
    };
    Ok(GroupOrder {
        terms,
        handle: get(row, 0)?,
        status: state(row, 7)?,
        participants: number(row, 8)?,
        attempts: number(row, 9)?,
        retries: number(row, 10)?,
        next_attempt_at: time_if(row, 11)?,
        last_error: kept_if(row, 12)?,
        created_at: time(row, 13)?,
        updated_at: time(row, 14)?,
        revision: get(row, 15)?,
    })
}

fn participant(row: &Row) -> Result<Participant, Error> {
    Ok(Participant {
        group: GroupId::trusted(text(row, 0)?),
        user: UserId::trusted(text(row, 1)?),
        amount: money(get(row, 2)?, get(row, 3)?)?,
        charge: state(row, 4)?,
        transaction: kept_if(row, 5)?,
        joined_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        revision: get(row, 8)?,
    })
}
