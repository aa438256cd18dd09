//! Carrying out changes of due work: what the holders of claims do, and what puts members in and takes them out.
//!
//! Invariants: changes take effect in the order in which they were decided; those that follow each other, are of one kind and
//! are about different members are one statement. Complete, retry, extend, exhaust and setting aside act only for the token
//! that holds the member, and one that holds it no longer refuses the whole set.

use std::collections::HashSet;

use onceward_domain::due::{Charge, DueChange, Held, Lane, Token};
use onceward_domain::error::Error;
use onceward_domain::time::Timestamp;

use super::script::{Loss, Script, column};
use super::words::lane_of;
use crate::due::LANE_LOCK;
use crate::pipeline::params;
use crate::queries;
use crate::refs::Names;
use crate::transact::Refusal;

/// Adds the changes of due work of one decision.
pub(super) async fn write<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    changes: &'a [DueChange],
    now: Timestamp,
) -> Result<(), Refusal> {
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let (run, after) = rest.split_at(run_length(rest));
        carry_out(script, names, (first, run), now).await?;
        rest = after;
    }
    Ok(())
}

/// How many changes, from the first, are alike and about different members.
fn run_length(changes: &[DueChange]) -> usize {
    let Some(first) = changes.first() else { return 0 };
    let mut met = HashSet::new();
    for change in changes {
        let alike = std::mem::discriminant(change) == std::mem::discriminant(first);
        if !alike || !met.insert((lane_of(change), member_of(change))) {
            break;
        }
    }
    met.len()
}

fn member_of(change: &DueChange) -> &str {
    match change {
        DueChange::Put { member, .. }
        | DueChange::Remove { member, .. }
        | DueChange::SetAside { member, .. }
        | DueChange::Replay { member, .. }
        | DueChange::Reschedule { member, .. } => member,
        DueChange::Complete(held)
        | DueChange::Exhaust(held)
        | DueChange::Retry { held, .. }
        | DueChange::Extend { held, .. } => &held.member,
        DueChange::Pause(_) | DueChange::Resume(_) => "",
    }
}

async fn carry_out<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    (first, run): (&'a DueChange, &'a [DueChange]),
    now: Timestamp,
) -> Result<(), Refusal> {
    match first {
        DueChange::Put { .. } => put(script, names, run, now).await,
        DueChange::Remove { .. } => remove(script, names, run).await,
        DueChange::Pause(lane) => set_paused(script, names, lane, true).await,
        DueChange::Resume(lane) => set_paused(script, names, lane, false).await,
        DueChange::Complete(_) => complete(script, names, run).await,
        DueChange::Retry { .. } => retry(script, names, run).await,
        DueChange::Extend { .. } => extend(script, names, run).await,
        DueChange::Exhaust(_) => exhaust(script, names, run, now).await,
        DueChange::SetAside { .. } => set_aside(script, names, run, now).await,
        DueChange::Replay { .. } => replay(script, names, run).await,
        DueChange::Reschedule { .. } => reschedule(script, names, run).await,
    }
}

/// Lanes' numbers.
fn lanes(names: &Names<'_>, run: &[DueChange]) -> Result<Vec<i32>, Error> {
    run.iter().map(|change| names.word(lane_of(change).as_str())).collect()
}

/// The numbers of the lanes' exhausted sets.
fn dead(names: &Names<'_>, run: &[DueChange]) -> Result<Vec<i32>, Error> {
    run.iter().map(|change| names.word(lane_of(change).dead_letters().as_str())).collect()
}

/// The claims that a run acts for.
struct Claims<'a> {
    held: Vec<&'a Held>,
    lanes: Vec<i32>,
}

impl<'a> Claims<'a> {
    fn of(names: &Names<'_>, run: &'a [DueChange]) -> Result<Self, Error> {
        Ok(Self { held: run.iter().filter_map(held_of).collect(), lanes: lanes(names, run)? })
    }

    fn members(&self) -> Vec<&'a str> {
        self.held.iter().map(|held| &*held.member).collect()
    }

    fn tokens(&self) -> Vec<i64> {
        self.held.iter().map(|held| held.token.0).collect()
    }

    /// How many there are, and what is said where one is lost.
    fn guard(self) -> (usize, impl FnOnce() -> Loss + Send + 'a) {
        let Self { held, lanes } = self;
        (held.len(), move || {
            let row = |(lane, held): (i32, &Held)| {
                let text = format!("{} in {} is not held by token {}", held.member, held.lane, held.token.0);
                (lane, held.member.to_string(), held.token.0, text)
            };
            Loss::Due { rows: lanes.into_iter().zip(held).map(row).collect() }
        })
    }
}

fn held_of(change: &DueChange) -> Option<&Held> {
    match change {
        DueChange::Complete(held)
        | DueChange::Exhaust(held)
        | DueChange::Retry { held, .. }
        | DueChange::Extend { held, .. }
        | DueChange::SetAside { held, .. } => Some(held),
        DueChange::Put { .. }
        | DueChange::Remove { .. }
        | DueChange::Replay { .. }
        | DueChange::Reschedule { .. }
        | DueChange::Pause(_)
        | DueChange::Resume(_) => None,
    }
}

/// When a member that a change puts, gives back, keeps or moves is due.
fn due_at(change: &DueChange) -> i64 {
    match change {
        DueChange::Put { due_at, .. }
        | DueChange::Retry { due_at, .. }
        | DueChange::Replay { due_at, .. }
        | DueChange::Reschedule { due_at, .. } => due_at.0,
        DueChange::Extend { lease_until, .. } => lease_until.0,
        DueChange::Remove { .. }
        | DueChange::Complete(_)
        | DueChange::Exhaust(_)
        | DueChange::SetAside { .. }
        | DueChange::Pause(_)
        | DueChange::Resume(_) => 0,
    }
}

/// What a change brings along.
fn body(change: &DueChange) -> Option<&[u8]> {
    match change {
        DueChange::Put { body, .. } | DueChange::SetAside { body, .. } => Some(body),
        DueChange::Retry { body, .. } => body.as_deref(),
        DueChange::Remove { .. }
        | DueChange::Replay { .. }
        | DueChange::Reschedule { .. }
        | DueChange::Extend { .. }
        | DueChange::Complete(_)
        | DueChange::Exhaust(_)
        | DueChange::Pause(_)
        | DueChange::Resume(_) => None,
    }
}

/// How many attempts a change takes back.
fn refund(change: &DueChange) -> i64 {
    i64::from(matches!(change, DueChange::Retry { charge: Charge::Refund, .. }))
}

async fn put<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    run: &'a [DueChange],
    now: Timestamp,
) -> Result<(), Refusal> {
    let (lanes, dead, members) = (lanes(names, run)?, dead(names, run)?, column(run, member_of));
    let parameters =
        params![lanes.clone(), members.clone(), column(run, due_at), column(run, body), now.0, dead.clone()];
    script.any("putting due work", queries::DUE_PUT, parameters).await?;
    let text = "somebody exhausted a member at the moment in which it was put";
    script.never_now("looking at what was put", queries::DUE_TWICE, params![lanes, members, dead], text).await
}

async fn remove<'a>(script: &mut Script<'a>, names: &Names<'_>, run: &'a [DueChange]) -> Result<(), Refusal> {
    let parameters = params![lanes(names, run)?, column(run, member_of)];
    script.any("removing due work", queries::DUE_REMOVE, parameters).await
}

async fn set_paused<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    lane: &'a Lane,
    paused: bool,
) -> Result<(), Refusal> {
    let doing = "pausing or resuming a lane";
    let lane = names.word(lane.as_str())?;
    script.any(doing, queries::DUE_LOCK_PAUSE, params![LANE_LOCK, lane]).await?;
    script.any(doing, queries::LANE_SET_PAUSED, params![lane, paused]).await
}

async fn complete<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    run: &'a [DueChange],
) -> Result<(), Refusal> {
    let claims = Claims::of(names, run)?;
    let parameters = params![claims.lanes.clone(), claims.members(), claims.tokens()];
    script.guarded("completing due work", queries::DUE_COMPLETE, parameters, claims.guard()).await
}

async fn retry<'a>(script: &mut Script<'a>, names: &Names<'_>, run: &'a [DueChange]) -> Result<(), Refusal> {
    let claims = Claims::of(names, run)?;
    let parameters = params![
        claims.lanes.clone(),
        claims.members(),
        claims.tokens(),
        column(run, due_at),
        column(run, refund),
        column(run, body),
    ];
    script.guarded("giving due work back", queries::DUE_RETRY, parameters, claims.guard()).await
}

async fn extend<'a>(script: &mut Script<'a>, names: &Names<'_>, run: &'a [DueChange]) -> Result<(), Refusal> {
    let claims = Claims::of(names, run)?;
    let parameters = params![claims.lanes.clone(), claims.members(), claims.tokens(), column(run, due_at)];
    script.guarded("lengthening a lease", queries::DUE_EXTEND, parameters, claims.guard()).await
}

async fn exhaust<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    run: &'a [DueChange],
    now: Timestamp,
) -> Result<(), Refusal> {
    let (claims, dead) = (Claims::of(names, run)?, dead(names, run)?);
    let doing = "exhausting due work";
    script.any(doing, queries::DUE_MAKE_WAY, params![dead.clone(), claims.members()]).await?;
    let parameters = params![claims.lanes.clone(), claims.members(), claims.tokens(), dead, now.0];
    script.guarded(doing, queries::DUE_EXHAUST, parameters, claims.guard()).await
}

async fn set_aside<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    run: &'a [DueChange],
    now: Timestamp,
) -> Result<(), Refusal> {
    let (claims, dead) = (Claims::of(names, run)?, dead(names, run)?);
    let parameters = params![dead, column(run, member_of), claims.tokens(), column(run, body), now.0];
    script.any("setting due work aside", queries::DUE_SET_ASIDE, parameters).await?;
    // Several parts may have been met under one claim, which is looked at once for each.
    let parameters = params![claims.lanes.clone(), claims.members(), claims.tokens()];
    script.guarded("checking a claim", queries::DUE_HELD, parameters, claims.guard()).await
}

/// How many there are, and what is said where one does not wait as it was decided on.
fn waits(run: &[DueChange]) -> (usize, impl FnOnce() -> Loss + Send + '_) {
    (run.len(), move || {
        let shown: Vec<String> =
            run.iter().map(|change| format!("{} in {}", member_of(change), lane_of(change))).collect();
        Loss::Said(format!("{} does not wait as it was decided on", shown.join(", ")))
    })
}

async fn replay<'a>(script: &mut Script<'a>, names: &Names<'_>, run: &'a [DueChange]) -> Result<(), Refusal> {
    let (back, dead, members) = (lanes(names, run)?, dead(names, run)?, column(run, member_of));
    let doing = "replaying exhausted work";
    script.any(doing, queries::DUE_MAKE_WAY, params![back.clone(), members.clone()]).await?;
    let tokens: Vec<i64> = column(run, |change| {
        let DueChange::Replay { token, .. } = change else { return Token::NONE.0 };
        token.0
    });
    let parameters = params![dead, members, tokens, column(run, due_at), back];
    script.guarded(doing, queries::DUE_REPLAY, parameters, waits(run)).await
}

async fn reschedule<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    run: &'a [DueChange],
) -> Result<(), Refusal> {
    let parameters = params![lanes(names, run)?, column(run, member_of), column(run, due_at)];
    script.guarded("rescheduling due work", queries::DUE_RESCHEDULE, parameters, waits(run)).await
}

#[cfg(test)]
mod tests {
    //! What may be one statement.

    use std::sync::Arc;

    use super::*;

    fn put(member: &str) -> DueChange {
        DueChange::Put {
            lane: Lane::new("a"),
            member: Arc::from(member),
            due_at: Timestamp(0),
            body: Vec::new(),
        }
    }

    fn remove(member: &str) -> DueChange {
        DueChange::Remove { lane: Lane::new("a"), member: Arc::from(member) }
    }

    #[test]
    fn a_run_ends_at_another_kind_and_at_a_member_it_has_met() {
        for (changes, expected) in [
            (vec![], 0),
            (vec![put("m")], 1),
            (vec![put("m"), put("n"), put("o")], 3),
            (vec![put("m"), put("n"), remove("m")], 2),
            (vec![put("m"), put("m")], 1),
            (vec![remove("m"), put("m")], 1),
        ] {
            assert_eq!(run_length(&changes), expected, "{changes:?}");
        }
    }
}
