//! Due work: claims under a lease, and what their holders do with them (design.md §6).
//!
//! Invariants: a token is given out once, ever; complete, retry and extend act only for the token that holds the
//! member, and one that holds it no longer refuses the whole set. A strict lane gives out nothing behind its head.
//! Read next: `queries/due/`.

use onceward_domain::due::{Charge, ClaimRequest, Claimed, DueChange, Held, Lane, Sequence, Token};
use onceward_domain::error::Error;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Params, Row, params};

use crate::failure::{defect, failed, guard_lost};
use crate::load::{every, first};
use crate::queries;
use crate::refs::Refs;
use crate::rows::get;

/// A member that waits.
pub(crate) const WAITING: i64 = 0;
/// A member under a lease.
pub(crate) const LEASED: i64 = 1;
/// The token before the first claim. The counter begins at 1.
const NO_TOKEN: i64 = 0;
/// The counter behind the tokens.
const TOKEN_COUNTER: &str = "token";

/// Claims due members.
pub(crate) fn claim(
    conn: &Connection,
    refs: &mut Refs,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<Claimed>, Error> {
    let Some(lane) = refs.word_ref(conn, request.lane.as_str())? else { return Ok(Vec::new()) };
    let doing = "finding due members";
    let mut found = match request.sequence {
        Sequence::ByDue => {
            every(conn, queries::DUE_CLAIM_BY_TIME, (lane, now.0, request.limit), doing, candidate)?
        }
        Sequence::Strict => {
            every(conn, queries::DUE_CLAIM_BY_ARRIVAL, (lane, request.limit), doing, candidate)?
        }
    };
    let ready = found.iter().take_while(|candidate| candidate.due_at <= now).count();
    found.truncate(ready);
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let last = last_token(conn, ready)?;
    let first_token = last + 1 - i64::try_from(ready).unwrap_or(i64::MAX);
    let lease_until = now.plus(request.lease);
    let mut statement = conn.prepare_cached(queries::DUE_LEASE).map_err(failed("leasing due members"))?;
    let mut claimed = Vec::with_capacity(ready);
    for (token, candidate) in (first_token..).zip(found) {
        let attempts = candidate.attempts.saturating_add(1);
        let parameters = params![lease_until.0, LEASED, attempts, token, candidate.seq];
        statement.execute(parameters).map_err(failed("leasing due members"))?;
        claimed.push(Claimed {
            held: Held {
                lane: request.lane.clone(),
                member: candidate.member.as_str().into(),
                token: Token(token),
            },
            attempts,
            due_at: candidate.due_at,
            created_at: candidate.created_at,
            lease_until,
            body: candidate.body,
        });
    }
    Ok(claimed)
}

struct Candidate {
    seq: i64,
    member: String,
    due_at: Timestamp,
    created_at: Timestamp,
    attempts: u32,
    body: Vec<u8>,
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Error> {
    Ok(Candidate {
        seq: get(row, 0)?,
        member: get(row, 1)?,
        due_at: Timestamp(get(row, 2)?),
        created_at: Timestamp(get(row, 3)?),
        attempts: get(row, 4)?,
        body: get(row, 5)?,
    })
}

fn last_token(conn: &Connection, count: usize) -> Result<i64, Error> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let doing = "taking fencing tokens";
    let last = first(conn, queries::COUNTER_ADVANCE, (count, TOKEN_COUNTER), doing, |row| get(row, 0))?;
    last.ok_or_else(|| defect("the counter of the fencing tokens is not there"))
}

/// Carries out the changes of due work of one decision.
pub(crate) fn change(
    conn: &Connection,
    refs: &mut Refs,
    changes: &[DueChange],
    now: Timestamp,
) -> Result<(), Error> {
    for change in changes {
        match change {
            DueChange::Put { lane, member, due_at, body } => {
                let lane = refs.word_ref_or_new(conn, lane.as_str())?;
                let parameters = params![lane, member, due_at.0, now.0, 0, NO_TOKEN, WAITING, body];
                execute(conn, queries::DUE_PUT, parameters, "putting due work")?;
            }
            DueChange::Complete(held) => {
                let lane = held_lane(conn, refs, held)?;
                let parameters = params![lane, held.member, held.token.0, LEASED];
                let hit = execute(conn, queries::DUE_COMPLETE, parameters, "completing due work")?;
                check(conn, held, lane, hit)?;
            }
            DueChange::Retry { held, due_at, body, charge } => {
                let lane = held_lane(conn, refs, held)?;
                let refund = match charge {
                    Charge::Keep => 0,
                    Charge::Refund => 1,
                };
                let parameters =
                    params![due_at.0, WAITING, refund, body, lane, held.member, held.token.0, LEASED];
                let hit = execute(conn, queries::DUE_RETRY, parameters, "giving due work back")?;
                check(conn, held, lane, hit)?;
            }
            DueChange::Extend { held, lease_until } => {
                let lane = held_lane(conn, refs, held)?;
                let parameters = params![lease_until.0, lane, held.member, held.token.0, LEASED];
                let hit = execute(conn, queries::DUE_EXTEND, parameters, "lengthening a lease")?;
                check(conn, held, lane, hit)?;
            }
            DueChange::Remove { lane, member } => {
                if let Some(lane) = refs.word_ref(conn, lane.as_str())? {
                    execute(conn, queries::DUE_REMOVE, params![lane, member], "removing due work")?;
                }
            }
        }
    }
    Ok(())
}

fn execute(conn: &Connection, sql: &str, parameters: impl Params, doing: &str) -> Result<usize, Error> {
    let mut statement = conn.prepare_cached(sql).map_err(failed(doing))?;
    statement.execute(parameters).map_err(failed(doing))
}

fn held_lane(conn: &Connection, refs: &mut Refs, held: &Held) -> Result<i64, Error> {
    let unknown = |lane: &Lane| guard_lost(format!("{} in {lane}: the lane was never used", held.member));
    refs.word_ref(conn, held.lane.as_str())?.ok_or_else(|| unknown(&held.lane))
}

fn check(conn: &Connection, held: &Held, lane: i64, hit: usize) -> Result<(), Error> {
    if hit == 1 {
        return Ok(());
    }
    let doing = "reading who holds due work instead";
    let there = first(conn, queries::DUE_PEEK, params![lane, held.member], doing, |row| {
        Ok((get::<i64>(row, 1)?, get::<i64>(row, 2)? == LEASED))
    })?;
    let claim = format!("{} in {} is not held by token {}", held.member, held.lane, held.token.0);
    Err(guard_lost(match there {
        Some((token, true)) => format!("{claim}, but by {token}"),
        Some((token, false)) => format!("{claim}; it waits, last held by {token}"),
        None => format!("{claim}; it is gone"),
    }))
}
