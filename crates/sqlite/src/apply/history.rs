//! Writing what hangs on purchases: compensation tasks, ledger entries, history; and what stands alone: messages set
//! aside and first answers.
//!
//! Invariant: tasks are guarded, everything else here is only ever added.

use onceward_domain::changes::{Answered, CompensationTask, Quarantined, StockEntry, Transition};
use onceward_domain::error::Error;
use onceward_domain::machine::Machine;
use rusqlite::{Connection, params};

use super::Handles;
use super::catalogue::{peek, revision_lost};
use crate::failure::failed;
use crate::queries;
use crate::refs::Refs;

pub(super) fn add_compensations(
    conn: &Connection,
    tasks: &[CompensationTask],
    handles: &mut Handles,
) -> Result<(), Error> {
    let doing = failed("adding a compensation task");
    for task in tasks {
        let handle = handles.of(conn, task.purchase)?;
        let mut statement = conn.prepare_cached(queries::COMPENSATION_INSERT).map_err(&doing)?;
        let parameters = params![
            handle,
            task.status.code(),
            task.attempts,
            task.last_result,
            task.created_at.0,
            task.updated_at.0,
            task.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

pub(super) fn move_compensations(
    conn: &Connection,
    tasks: &[CompensationTask],
    handles: &mut Handles,
) -> Result<(), Error> {
    let doing = failed("changing a compensation task");
    for task in tasks {
        let key = task.purchase.compensation();
        let Some(handle) = handles.find(conn, task.purchase)? else {
            return Err(revision_lost("compensation task", &key, task.revision, None));
        };
        let mut statement = conn.prepare_cached(queries::COMPENSATION_MOVE).map_err(&doing)?;
        let parameters = params![
            task.status.code(),
            task.attempts,
            task.last_result,
            task.updated_at.0,
            handle,
            task.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there = peek(conn, queries::COMPENSATION_PEEK, handle)?;
            return Err(revision_lost("compensation task", &key, task.revision, there));
        }
    }
    Ok(())
}

pub(super) fn add_stock_entries(
    conn: &Connection,
    refs: &mut Refs,
    entries: &[StockEntry],
    handles: &mut Handles,
) -> Result<(), Error> {
    let doing = failed("adding a ledger entry");
    for entry in entries {
        let handle = entry.purchase.map(|id| handles.of(conn, id)).transpose()?;
        let sku_ref = refs.known_sku_ref(conn, &entry.key)?;
        let cause = refs.word_ref_or_new(conn, entry.cause)?;
        let mut statement = conn.prepare_cached(queries::STOCK_ENTRY_INSERT).map_err(&doing)?;
        let parameters = params![
            sku_ref,
            handle,
            entry.adjustment.as_ref().map(|id| id.0.as_bytes()),
            cause,
            entry.available,
            entry.occupied,
            entry.sold,
            entry.note,
            entry.at.0,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

pub(super) fn add_transitions(
    conn: &Connection,
    refs: &mut Refs,
    transitions: &[Transition],
    handles: &mut Handles,
) -> Result<(), Error> {
    let doing = failed("adding a line of history");
    for transition in transitions {
        let handle = handles.of(conn, transition.purchase)?;
        let kind = refs.word_ref_or_new(conn, transition.kind)?;
        let from = transition.from.map(|from| refs.word_ref_or_new(conn, from)).transpose()?;
        let to = refs.word_ref_or_new(conn, transition.to)?;
        let cause = refs.word_ref_or_new(conn, transition.cause)?;
        let actor = refs.word_ref_or_new(conn, &transition.actor)?;
        let mut statement = conn.prepare_cached(queries::TRANSITION_INSERT).map_err(&doing)?;
        let parameters = params![handle, transition.at.0, kind, from, to, cause, actor, transition.reference];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

pub(super) fn quarantine(conn: &Connection, messages: &[Quarantined]) -> Result<(), Error> {
    let doing = failed("setting a message aside");
    for message in messages {
        let mut statement = conn.prepare_cached(queries::QUARANTINE_INSERT).map_err(&doing)?;
        let Quarantined { message_id, payload_hash, reason, payload, at } = message;
        statement.execute(params![message_id, payload_hash, reason, payload, at.0]).map_err(&doing)?;
    }
    Ok(())
}

pub(super) fn keep_answers(conn: &Connection, answers: &[Answered]) -> Result<(), Error> {
    let doing = failed("keeping a first answer");
    for answer in answers {
        let mut statement = conn.prepare_cached(queries::ANSWER_INSERT).map_err(&doing)?;
        let Answered { key, fingerprint, status, body, at, lasting } = answer;
        statement.execute(params![key, fingerprint, status, body, at.0, lasting]).map_err(&doing)?;
    }
    Ok(())
}
