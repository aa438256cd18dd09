//! Lists and look-ups that only read.
//!
//! Invariant: pages are stable under inserts, because they go by handle. Read next: `queries/purchase/list.sql`.

use std::sync::Arc;

use onceward_domain::catalogue::Sku;
use onceward_domain::changes::Transition;
use onceward_domain::due::{Lane, LaneStatus, Token, Waiting, unpack_ids};
use onceward_domain::error::Error;
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest};
use onceward_domain::purchase::Purchase;
use onceward_domain::time::Timestamp;
use tokio_postgres::Row;

use crate::link::Link;
use crate::load::keyed_sku;
use crate::open::Shared;
use crate::pipeline::params;
use crate::purchases::whole;
use crate::queries;
use crate::refs::label;
use crate::rows::{code, get, kept, kept_if, number, purchase_id, text, time, time_if, uuid_of};

/// Orders, newest first.
pub(crate) async fn orders(
    shared: &Shared,
    link: &Link,
    filter: &OrderFilter,
    page: PageRequest,
) -> Result<Vec<Purchase>, Error> {
    let before = page.before.unwrap_or(i64::MAX);
    let status = filter.status.map(code);
    let activity = filter.activity.as_ref().map(|id| id.as_str());
    let limit = i64::from(page.limit);
    let doing = "listing orders";
    let rows = match &filter.user {
        Some(user) => {
            let parameters = params![before, status, activity, user.as_str(), limit];
            link.rows(doing, queries::PURCHASE_LIST_OF_USER, parameters).await?
        }
        None => link.rows(doing, queries::PURCHASE_LIST, params![before, status, activity, limit]).await?,
    };
    whole(shared, link, &rows).await
}

/// SKUs by their ids, which no id is empty of.
pub(crate) async fn skus(link: &Link, limit: u32, after: Option<&SkuKey>) -> Result<Vec<Sku>, Error> {
    let (activity, sku) = after.map_or(("", ""), |key| (key.activity.as_str(), key.sku.as_str()));
    let parameters = params![activity, sku, i64::from(limit)];
    let rows = link.rows("listing SKUs", queries::SKU_LIST, parameters).await?;
    rows.iter().map(keyed_sku).collect()
}

/// Orders that expire unless something happens to them first, earliest first.
pub(crate) async fn expiries(
    link: &Link,
    limit: u32,
    after: Option<Expiring>,
) -> Result<Vec<Expiring>, Error> {
    let (due_at, handle) = after.map_or((i64::MIN, i64::MIN), |one| (one.due_at.0, one.handle));
    let parameters = params![due_at, handle, i64::from(limit)];
    let rows = link.rows("listing expiring orders", queries::PURCHASE_EXPIRIES, parameters).await?;
    let one = |row: &Row| {
        Ok(Expiring { due_at: time(row, 0)?, handle: get(row, 1)?, purchase: purchase_id(row, 2)? })
    };
    rows.iter().map(one).collect()
}

/// What happened to a purchase, oldest first.
pub(crate) async fn transitions(link: &Link, id: PurchaseId) -> Result<Vec<Transition>, Error> {
    let doing = "listing the history of a purchase";
    let rows = link.rows(doing, queries::TRANSITION_OF_PURCHASE, params![uuid_of(id)]).await?;
    let one = |row: &Row| {
        Ok(Transition {
            purchase: id,
            at: time(row, 0)?,
            kind: label(text(row, 1)?),
            from: get::<Option<&str>>(row, 2)?.map(label),
            to: label(text(row, 3)?),
            cause: label(text(row, 4)?),
            actor: kept(row, 5)?,
            reference: kept_if(row, 6)?,
        })
    };
    rows.iter().map(one).collect()
}

/// Earliest due-time, or end of a lease, of a lane; none of a paused one.
pub(crate) async fn next_due(shared: &Shared, link: &Link, lane: &Lane) -> Result<Option<Timestamp>, Error> {
    let Some(lane) = shared.refs.lane(link, lane).await? else { return Ok(None) };
    let row = link.first("finding the next due-time", queries::DUE_NEXT, params![lane]).await?;
    row.map(|row| time(&row, 0)).transpose()
}

/// The member of a lane whose packed body holds this purchase.
pub(crate) async fn find_due(
    shared: &Shared,
    link: &Link,
    lane: &Lane,
    id: PurchaseId,
) -> Result<Option<Waiting>, Error> {
    let Some(lane_ref) = shared.refs.lane(link, lane).await? else { return Ok(None) };
    let doing = "looking for a purchase in due work";
    let now = shared.time.now(link).await?;
    for row in link.rows(doing, queries::DUE_HOLDING, params![lane_ref, id.bytes().as_slice()]).await? {
        let found = waiting(&row, lane, now)?;
        // The bytes may also stand across two ids by chance.
        if unpack_ids(&found.body).contains(&id) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Members of a lane, oldest first. Where the last member of the page before is gone, the list begins anew: a repeat
/// is harmless, a gap is not.
pub(crate) async fn list_due(
    shared: &Shared,
    link: &Link,
    lane: &Lane,
    (limit, after): (u32, Option<Arc<str>>),
) -> Result<Vec<Waiting>, Error> {
    let Some(lane_ref) = shared.refs.lane(link, lane).await? else { return Ok(Vec::new()) };
    let doing = "listing due work";
    let now = shared.time.now(link).await?;
    let after: Option<i64> = match after {
        Some(member) => {
            let row = link.first(doing, queries::DUE_PEEK, params![lane_ref, &*member]).await?;
            row.map(|row| get(&row, 0)).transpose()?
        }
        None => None,
    };
    let parameters = params![lane_ref, after.unwrap_or(i64::MIN), i64::from(limit)];
    let rows = link.rows(doing, queries::DUE_LIST, parameters).await?;
    rows.iter().map(|row| waiting(row, lane, now)).collect()
}

fn waiting(row: &Row, lane: &Lane, now: Timestamp) -> Result<Waiting, Error> {
    let due_at = time(row, 2)?;
    Ok(Waiting {
        lane: lane.clone(),
        member: kept(row, 1)?,
        due_at,
        created_at: time(row, 3)?,
        attempts: number(row, 4)?,
        leased: get::<bool>(row, 6)? && due_at > now,
        token: Token(get(row, 7)?),
        body: get(row, 5)?,
    })
}

/// The lanes that are paused.
pub(crate) async fn paused(link: &Link) -> Result<Vec<Lane>, Error> {
    let known = known_lanes(link, "reading pauses").await?;
    Ok(known.into_iter().filter(|(_, paused, _)| *paused).map(|(lane, ..)| lane).collect())
}

/// Lanes that were ever claimed or paused: whether they are paused, and when they were claimed last.
async fn known_lanes(link: &Link, doing: &str) -> Result<Vec<(Lane, bool, Option<Timestamp>)>, Error> {
    let rows = link.rows(doing, queries::LANE_ALL, params![]).await?;
    rows.iter().map(|row| Ok((Lane::new(text(row, 0)?), get(row, 1)?, time_if(row, 2)?))).collect()
}

/// Every lane that has members or is paused, by name.
pub(crate) async fn lanes(shared: &Shared, link: &Link) -> Result<Vec<LaneStatus>, Error> {
    let doing = "counting due work";
    let now = shared.time.now(link).await?;
    let status = |row: &Row| {
        Ok(LaneStatus {
            size: number(row, 1)?,
            leased: number(row, 2)?,
            next_due: time_if(row, 3)?,
            oldest: time_if(row, 4)?,
            ..LaneStatus::empty(Lane::new(text(row, 0)?))
        })
    };
    let rows = link.rows(doing, queries::DUE_LANES, params![now.0]).await?;
    let mut lanes = rows.iter().map(status).collect::<Result<Vec<_>, Error>>()?;
    for (lane, paused, last_claim) in known_lanes(link, doing).await? {
        match lanes.iter_mut().find(|status| status.lane == lane) {
            Some(status) => (status.paused, status.last_claim) = (paused, last_claim),
            None if paused => lanes.push(LaneStatus { paused, last_claim, ..LaneStatus::empty(lane) }),
            None => {}
        }
    }
    lanes.sort_by(|left, right| left.lane.cmp(&right.lane));
    Ok(lanes)
}
