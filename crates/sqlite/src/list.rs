//! Lists and look-ups that only read.
//!
//! Invariant: pages are stable under inserts, because they go by handle. Read next: `queries/purchase/list.sql`.

use std::sync::Arc;

use onceward_domain::catalogue::Sku;
use onceward_domain::changes::Transition;
use onceward_domain::due::{Lane, LaneStatus, Token, Waiting, unpack_ids};
use onceward_domain::error::Error;
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::machine::Machine;
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest};
use onceward_domain::purchase::Purchase;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::due::{LEASED, WAITING, is_paused};
use crate::failure::failed;
use crate::load::{every, first, keyed_sku};
use crate::queries;
use crate::refs::{Refs, label};
use crate::rows::{count, get, purchase};

/// Orders, newest first.
pub(crate) fn orders(
    conn: &Connection,
    refs: &mut Refs,
    filter: &OrderFilter,
    page: PageRequest,
) -> Result<Vec<Purchase>, Error> {
    let before = page.before.unwrap_or(i64::MAX);
    let status = filter.status.map(Machine::code);
    let activity = filter.activity.as_ref().map(|id| id.as_str());
    let doing = "listing orders";
    match &filter.user {
        Some(user) => {
            let parameters = params![before, status, activity, user.as_str(), page.limit];
            every(conn, queries::PURCHASE_LIST_OF_USER, parameters, doing, |row| purchase(conn, refs, row))
        }
        None => {
            let parameters = params![before, status, activity, page.limit];
            every(conn, queries::PURCHASE_LIST, parameters, doing, |row| purchase(conn, refs, row))
        }
    }
}

/// SKUs by their ids, which no id is empty of.
pub(crate) fn skus(conn: &Connection, limit: u32, after: Option<&SkuKey>) -> Result<Vec<Sku>, Error> {
    let (activity, sku) = after.map_or(("", ""), |key| (key.activity.as_str(), key.sku.as_str()));
    let rows = every(conn, queries::SKU_LIST, params![activity, sku, limit], "listing SKUs", keyed_sku)?;
    Ok(rows.into_iter().map(|(_, sku)| sku).collect())
}

/// Orders that expire unless something happens to them first, earliest first.
pub(crate) fn expiries(
    conn: &Connection,
    limit: u32,
    after: Option<Expiring>,
) -> Result<Vec<Expiring>, Error> {
    let (due_at, handle) = after.map_or((i64::MIN, i64::MIN), |one| (one.due_at.0, one.handle));
    let parameters = params![due_at, handle, limit];
    every(conn, queries::PURCHASE_EXPIRIES, parameters, "listing expiring orders", |row| {
        let (due_at, handle) = (Timestamp(get(row, 0)?), get(row, 1)?);
        Ok(Expiring { due_at, handle, purchase: PurchaseId::from_bytes(get(row, 2)?) })
    })
}

/// What happened to a purchase, oldest first.
pub(crate) fn transitions(
    conn: &Connection,
    refs: &mut Refs,
    id: PurchaseId,
) -> Result<Vec<Transition>, Error> {
    let doing = "listing the history of a purchase";
    let Some(handle) = first(conn, queries::PURCHASE_SEQ_OF, [id.bytes()], doing, |row| get::<i64>(row, 0))?
    else {
        return Ok(Vec::new());
    };
    every(conn, queries::TRANSITION_OF_PURCHASE, [handle], doing, |row| {
        let from: Option<i64> = get(row, 2)?;
        Ok(Transition {
            purchase: id,
            at: Timestamp(get(row, 0)?),
            kind: label(&refs.word(conn, get(row, 1)?)?),
            from: from.map(|from| refs.word(conn, from)).transpose()?.map(|from| label(&from)),
            to: label(&refs.word(conn, get(row, 3)?)?),
            cause: label(&refs.word(conn, get(row, 4)?)?),
            actor: refs.word(conn, get(row, 5)?)?,
            reference: get(row, 6)?,
        })
    })
}

/// Earliest due-time, or end of a lease, of a lane; none of a paused one.
pub(crate) fn next_due(conn: &Connection, refs: &mut Refs, lane: &Lane) -> Result<Option<Timestamp>, Error> {
    let Some(lane) = refs.word_ref(conn, lane.as_str())? else { return Ok(None) };
    if is_paused(conn, lane)? {
        return Ok(None);
    }
    let found = first(conn, queries::DUE_NEXT, [lane], "finding the next due-time", |row| get(row, 0))?;
    Ok(found.flatten().map(Timestamp))
}

/// The member of a lane whose packed body holds this purchase.
pub(crate) fn find_due(
    conn: &Connection,
    refs: &mut Refs,
    lane: &Lane,
    id: PurchaseId,
    now: Timestamp,
) -> Result<Option<Waiting>, Error> {
    let Some(lane_ref) = refs.word_ref(conn, lane.as_str())? else { return Ok(None) };
    let doing = failed("looking for a purchase in due work");
    let mut statement = conn.prepare_cached(queries::DUE_HOLDING).map_err(&doing)?;
    let mut rows = statement.query(params![lane_ref, id.bytes()]).map_err(&doing)?;
    while let Some(row) = rows.next().map_err(&doing)? {
        let found = waiting(row, lane, now)?;
        // The bytes may also stand across two ids by chance.
        if unpack_ids(&found.body).contains(&id) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Members of a lane, oldest first. Where the last member of the page before is gone, the list begins anew: a repeat
/// is harmless, a gap is not.
pub(crate) fn list_due(
    conn: &Connection,
    refs: &mut Refs,
    lane: &Lane,
    page: (u32, Option<Arc<str>>),
    now: Timestamp,
) -> Result<Vec<Waiting>, Error> {
    let Some(lane_ref) = refs.word_ref(conn, lane.as_str())? else { return Ok(Vec::new()) };
    let doing = "listing due work";
    let (limit, after) = page;
    let after = match after {
        Some(member) => first(conn, queries::DUE_PEEK, params![lane_ref, member], doing, |row| get(row, 0))?,
        None => None,
    };
    let parameters = params![lane_ref, after.unwrap_or(i64::MIN), limit];
    every(conn, queries::DUE_LIST, parameters, doing, |row| waiting(row, lane, now))
}

fn waiting(row: &Row<'_>, lane: &Lane, now: Timestamp) -> Result<Waiting, Error> {
    let due_at = Timestamp(get(row, 2)?);
    Ok(Waiting {
        lane: lane.clone(),
        member: get(row, 1)?,
        due_at,
        created_at: Timestamp(get(row, 3)?),
        attempts: get(row, 4)?,
        leased: get::<i64>(row, 6)? == LEASED && due_at > now,
        token: Token(get(row, 7)?),
        body: get(row, 5)?,
    })
}

/// The lanes that are paused.
pub(crate) fn paused(conn: &Connection, refs: &mut Refs) -> Result<Vec<Lane>, Error> {
    let known = known_lanes(conn, refs, "reading pauses")?;
    Ok(known.into_iter().filter(|(_, paused, _)| *paused).map(|(lane, ..)| lane).collect())
}

/// Lanes that were ever claimed or paused: whether they are paused, and when they were claimed last.
fn known_lanes(
    conn: &Connection,
    refs: &mut Refs,
    doing: &str,
) -> Result<Vec<(Lane, bool, Option<Timestamp>)>, Error> {
    every(conn, queries::LANE_ALL, [], doing, |row| {
        let lane = Lane::new(&refs.word(conn, get(row, 0)?)?);
        Ok((lane, get(row, 1)?, get::<Option<i64>>(row, 2)?.map(Timestamp)))
    })
}

/// Every lane that has members or is paused, by name.
pub(crate) fn lanes(conn: &Connection, refs: &mut Refs, now: Timestamp) -> Result<Vec<LaneStatus>, Error> {
    let doing = "counting due work";
    let mut lanes = every(conn, queries::DUE_LANES, params![WAITING, now.0], doing, |row| {
        Ok(LaneStatus {
            size: count(row, 1)?,
            leased: count(row, 2)?,
            next_due: get::<Option<i64>>(row, 3)?.map(Timestamp),
            oldest: get::<Option<i64>>(row, 4)?.map(Timestamp),
            ..LaneStatus::empty(Lane::new(&refs.word(conn, get(row, 0)?)?))
        })
    })?;
    for (lane, paused, last_claim) in known_lanes(conn, refs, doing)? {
        match lanes.iter_mut().find(|status| status.lane == lane) {
            Some(status) => (status.paused, status.last_claim) = (paused, last_claim),
            None if paused => lanes.push(LaneStatus { paused, last_claim, ..LaneStatus::empty(lane) }),
            None => {}
        }
    }
    lanes.sort_by(|left, right| left.lane.cmp(&right.lane));
    Ok(lanes)
}
