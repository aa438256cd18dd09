//! Due work: claims under a lease, and what their holders do with them (design.md §6).
//!
//! Invariants: a token is given out once, ever; complete, retry and extend act only for the token that holds the
//! member, and one that holds it no longer refuses the whole set. A strict lane gives out nothing behind its head.
//! Read next: `queries/due/`.

use onceward_domain::due::{Charge, ClaimRequest, Claimed, DueChange, DueEntry, Held, Lane, Sequence, Token};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
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
/// The attempts of a member that is new, or that begins anew.
const FRESH: i64 = 0;
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
    if is_paused(conn, lane)? {
        return Ok(Vec::new());
    }
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
    execute(conn, queries::LANE_CLAIMED, params![lane, false, now.0], "noting a claim")?;
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

/// Whether nothing of a lane is given out.
pub(crate) fn is_paused(conn: &Connection, lane: i64) -> Result<bool, Error> {
    let found =
        first(conn, queries::LANE_IS_PAUSED, [lane], "reading whether a lane is paused", |row| get(row, 0))?;
    Ok(found.unwrap_or(false))
}

/// Loads the members that a need names.
pub(crate) fn load(conn: &Connection, refs: &mut Refs, need: &Need, facts: &mut Facts) -> Result<(), Error> {
    for key in &need.due {
        let (lane, member) = key;
        let Some(lane) = refs.word_ref(conn, lane.as_str())? else { continue };
        let found = first(conn, queries::DUE_ENTRY, params![lane, member], "loading due work", |row| {
            Ok(DueEntry {
                due_at: Timestamp(get(row, 0)?),
                created_at: Timestamp(get(row, 1)?),
                attempts: get(row, 2)?,
                token: Token(get(row, 3)?),
                is_held: get::<i64>(row, 4)? == LEASED,
                body: get(row, 5)?,
            })
        })?;
        facts.due.extend(found.map(|entry| (key.clone(), entry)));
    }
    Ok(())
}

/// Carries out the changes of due work of one decision.
pub(crate) fn change(
    conn: &Connection,
    refs: &mut Refs,
    changes: &[DueChange],
    now: Timestamp,
) -> Result<(), Error> {
    let mut desk = Desk { conn, refs, now };
    changes.iter().try_for_each(|change| desk.carry_out(change))
}

/// What the changes of one decision are carried out with.
struct Desk<'a> {
    conn: &'a Connection,
    refs: &'a mut Refs,
    now: Timestamp,
}

impl Desk<'_> {
    fn carry_out(&mut self, change: &DueChange) -> Result<(), Error> {
        match change {
            DueChange::Put { lane, member, due_at, body } => self.put(lane, member, *due_at, body),
            DueChange::Remove { lane, member } => self.remove(lane, member),
            DueChange::Pause(lane) => self.set_paused(lane, true),
            DueChange::Resume(lane) => self.set_paused(lane, false),
            DueChange::Complete(held) => self.complete(held),
            DueChange::Retry { held, due_at, body, charge } => {
                self.retry(held, *due_at, body.as_deref(), *charge)
            }
            DueChange::Extend { held, lease_until } => self.extend(held, *lease_until),
            DueChange::Exhaust(held) => self.exhaust(held),
            DueChange::SetAside { held, member, body } => self.set_aside(held, member, body),
            DueChange::Replay { lane, member, token, due_at } => self.replay(lane, member, *token, *due_at),
            DueChange::Reschedule { lane, member, due_at } => self.reschedule(lane, member, *due_at),
        }
    }

    fn run(&self, sql: &str, parameters: impl Params, doing: &str) -> Result<usize, Error> {
        execute(self.conn, sql, parameters, doing)
    }

    fn dead(&mut self, lane: &Lane) -> Result<i64, Error> {
        self.refs.word_ref_or_new(self.conn, lane.dead_letters().as_str())
    }

    fn put(&mut self, lane: &Lane, member: &str, due_at: Timestamp, body: &[u8]) -> Result<(), Error> {
        let dead = self.refs.word_ref(self.conn, lane.dead_letters().as_str())?;
        let lane = self.refs.word_ref_or_new(self.conn, lane.as_str())?;
        let (token, now) = (Token::NONE.0, self.now.0);
        let parameters = params![lane, member, due_at.0, now, FRESH, token, WAITING, body, dead];
        self.run(queries::DUE_PUT, parameters, "putting due work").map(|_| ())
    }

    fn remove(&mut self, lane: &Lane, member: &str) -> Result<(), Error> {
        let Some(lane) = self.refs.word_ref(self.conn, lane.as_str())? else { return Ok(()) };
        self.run(queries::DUE_REMOVE, params![lane, member], "removing due work").map(|_| ())
    }

    fn set_paused(&mut self, lane: &Lane, paused: bool) -> Result<(), Error> {
        let lane = self.refs.word_ref_or_new(self.conn, lane.as_str())?;
        self.run(queries::LANE_SET_PAUSED, params![lane, paused], "pausing or resuming a lane").map(|_| ())
    }

    fn complete(&mut self, held: &Held) -> Result<(), Error> {
        let lane = held_lane(self.conn, self.refs, held)?;
        let parameters = params![lane, held.member, held.token.0, LEASED];
        let hit = self.run(queries::DUE_COMPLETE, parameters, "completing due work")?;
        check(self.conn, held, lane, hit)
    }

    fn retry(
        &mut self,
        held: &Held,
        due_at: Timestamp,
        body: Option<&[u8]>,
        charge: Charge,
    ) -> Result<(), Error> {
        let lane = held_lane(self.conn, self.refs, held)?;
        let refund = match charge {
            Charge::Keep => 0,
            Charge::Refund => 1,
        };
        let parameters = params![due_at.0, WAITING, refund, body, lane, held.member, held.token.0, LEASED];
        let hit = self.run(queries::DUE_RETRY, parameters, "giving due work back")?;
        check(self.conn, held, lane, hit)
    }

    fn extend(&mut self, held: &Held, lease_until: Timestamp) -> Result<(), Error> {
        let lane = held_lane(self.conn, self.refs, held)?;
        let parameters = params![lease_until.0, lane, held.member, held.token.0, LEASED];
        let hit = self.run(queries::DUE_EXTEND, parameters, "lengthening a lease")?;
        check(self.conn, held, lane, hit)
    }

    fn exhaust(&mut self, held: &Held) -> Result<(), Error> {
        let lane = held_lane(self.conn, self.refs, held)?;
        let dead = self.dead(&held.lane)?;
        let (now, token) = (self.now.0, held.token.0);
        let parameters = params![dead, now, FRESH, WAITING, lane, held.member, token, LEASED];
        let hit = self.run(queries::DUE_EXHAUST, parameters, "exhausting due work")?;
        check(self.conn, held, lane, hit)
    }

    fn set_aside(&mut self, held: &Held, part: &str, body: &[u8]) -> Result<(), Error> {
        let lane = held_lane(self.conn, self.refs, held)?;
        let dead = self.dead(&held.lane)?;
        let parameters = params![dead, part, self.now.0, FRESH, held.token.0, WAITING, body];
        self.run(queries::DUE_SET_ASIDE, parameters, "setting due work aside")?;
        let doing = "checking a claim";
        let is_held = first(self.conn, queries::DUE_PEEK, params![lane, held.member], doing, |row| {
            Ok(get::<i64>(row, 1)? == held.token.0 && get::<i64>(row, 2)? == LEASED)
        })?;
        check(self.conn, held, lane, usize::from(is_held == Some(true)))
    }

    fn replay(&mut self, lane: &Lane, member: &str, token: Token, due_at: Timestamp) -> Result<(), Error> {
        let dead = self.dead(lane)?;
        let back = self.refs.word_ref_or_new(self.conn, lane.as_str())?;
        let parameters = params![back, due_at.0, FRESH, dead, member, token.0];
        let hit = self.run(queries::DUE_REPLAY, parameters, "replaying exhausted work")?;
        waits(hit, lane, member)
    }

    fn reschedule(&mut self, lane: &Lane, member: &str, due_at: Timestamp) -> Result<(), Error> {
        let there = self.refs.word_ref(self.conn, lane.as_str())?;
        let parameters = params![due_at.0, there, member, WAITING];
        let hit = self.run(queries::DUE_RESCHEDULE, parameters, "rescheduling due work")?;
        waits(hit, lane, member)
    }
}

fn waits(hit: usize, lane: &Lane, member: &str) -> Result<(), Error> {
    if hit == 1 {
        return Ok(());
    }
    Err(guard_lost(format!("{member} in {lane} does not wait as it was decided on")))
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
