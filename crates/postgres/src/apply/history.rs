//! Writing what hangs on purchases: compensation tasks, ledger entries, history; and what stands alone: messages set
//! aside and first answers.
//!
//! Invariant: tasks are guarded, everything else here is only ever added.

use onceward_domain::changes::{ChangeSet, CompensationTask, StockEntry, Transition};
use onceward_domain::error::Error;
use uuid::Uuid;

use super::script::{Guarded, Loss, Script, column};
use crate::pipeline::params;
use crate::queries;
use crate::refs::Names;
use crate::rows::{code, uuid_of};
use crate::transact::Refusal;

pub(super) async fn write<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    changes: &'a ChangeSet,
) -> Result<(), Refusal> {
    if !changes.new_compensations.is_empty() {
        add_compensations(script, &changes.new_compensations).await?;
    }
    if !changes.compensations.is_empty() {
        move_compensations(script, &changes.compensations).await?;
    }
    if !changes.stock_entries.is_empty() {
        add_stock_entries(script, names, &changes.stock_entries).await?;
    }
    if !changes.transitions.is_empty() {
        add_transitions(script, names, &changes.transitions).await?;
    }
    stand_alone(script, changes).await
}

async fn add_compensations<'a>(
    script: &mut Script<'a>,
    tasks: &'a [CompensationTask],
) -> Result<(), Refusal> {
    let parameters = params![
        column(tasks, |task| uuid_of(task.purchase)),
        column(tasks, |task| code(task.status)),
        column(tasks, |task| i64::from(task.attempts)),
        column(tasks, |task| task.last_result.as_deref()),
        column(tasks, |task| task.created_at.0),
        column(tasks, |task| task.updated_at.0),
        column(tasks, |task| task.revision),
    ];
    let missing = (tasks.len(), "a compensation task names a purchase that is not there");
    script.each("adding a compensation task", queries::COMPENSATION_INSERT, parameters, missing).await
}

async fn move_compensations<'a>(
    script: &mut Script<'a>,
    tasks: &'a [CompensationTask],
) -> Result<(), Refusal> {
    let parameters = params![
        column(tasks, |task| uuid_of(task.purchase)),
        column(tasks, |task| task.revision),
        column(tasks, |task| code(task.status)),
        column(tasks, |task| i64::from(task.attempts)),
        column(tasks, |task| task.last_result.as_deref()),
        column(tasks, |task| task.updated_at.0),
    ];
    let row = |task: &CompensationTask| Guarded {
        shown: task.purchase.compensation().to_string(),
        key: params![uuid_of(task.purchase)],
        revision: task.revision,
    };
    let loss = move || Loss::Revision {
        what: "compensation task",
        peek: queries::COMPENSATION_PEEK,
        rows: tasks.iter().map(row).collect(),
    };
    let guard = (tasks.len(), loss);
    script.guarded("changing a compensation task", queries::COMPENSATION_MOVE, parameters, guard).await
}

async fn add_stock_entries<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    entries: &'a [StockEntry],
) -> Result<(), Refusal> {
    let sku_refs: Vec<i32> =
        entries.iter().map(|entry| names.known_sku(&entry.key)).collect::<Result<_, _>>()?;
    let causes: Vec<i32> = entries.iter().map(|entry| names.word(entry.cause)).collect::<Result<_, _>>()?;
    let parameters = params![
        sku_refs,
        column(entries, |entry| entry.purchase.map(uuid_of)),
        column(entries, |entry| entry.adjustment.as_ref().map(|id| id.0)),
        causes,
        column(entries, |entry| entry.available),
        column(entries, |entry| entry.occupied),
        column(entries, |entry| entry.sold),
        column(entries, |entry| entry.note.as_deref()),
        column(entries, |entry| entry.at.0),
    ];
    let missing = (entries.len(), "a ledger entry names a purchase that is not there");
    script.each("adding a ledger entry", queries::STOCK_ENTRY_INSERT, parameters, missing).await
}

async fn add_transitions<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    transitions: &'a [Transition],
) -> Result<(), Refusal> {
    let words = |text: &dyn Fn(&Transition) -> &str| -> Result<Vec<i32>, Error> {
        transitions.iter().map(|one| names.word(text(one))).collect()
    };
    let from: Vec<Option<i32>> = transitions
        .iter()
        .map(|one| one.from.map(|from| names.word(from)).transpose())
        .collect::<Result<_, _>>()?;
    let ids: Vec<Uuid> = column(transitions, |one| uuid_of(one.purchase));
    let parameters = params![
        ids,
        column(transitions, |one| one.at.0),
        words(&|one| one.kind)?,
        from,
        words(&|one| one.to)?,
        words(&|one| one.cause)?,
        words(&|one| &one.actor)?,
        column(transitions, |one| one.reference.as_deref()),
    ];
    let missing = (transitions.len(), "a line of history names a purchase that is not there");
    script.each("adding a line of history", queries::TRANSITION_INSERT, parameters, missing).await
}

async fn stand_alone<'a>(script: &mut Script<'a>, changes: &'a ChangeSet) -> Result<(), Refusal> {
    let ChangeSet { quarantined, answers, .. } = changes;
    if !quarantined.is_empty() {
        let parameters = params![
            column(quarantined, |one| &*one.message_id),
            column(quarantined, |one| one.payload_hash.as_slice()),
            column(quarantined, |one| one.reason),
            column(quarantined, |one| one.payload.as_slice()),
            column(quarantined, |one| one.at.0),
        ];
        script.any("setting a message aside", queries::QUARANTINE_INSERT, parameters).await?;
    }
    if !answers.is_empty() {
        let parameters = params![
            column(answers, |one| &*one.key),
            column(answers, |one| one.fingerprint.as_slice()),
            column(answers, |one| i32::from(one.status)),
            column(answers, |one| one.body.as_slice()),
            column(answers, |one| one.at.0),
            column(answers, |one| one.lasting),
        ];
        script.any("keeping a first answer", queries::ANSWER_INSERT, parameters).await?;
    }
    Ok(())
}
