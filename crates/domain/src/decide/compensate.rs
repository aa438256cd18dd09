//! Giving a rejected reservation's units back, once (FS-12, reference 003 §9.6–9.7).
//!
//! Three decisions with a crash allowed between any two: [`authorize`] in the store, [`release`] at the gate,
//! [`conclude`] in the store. Invariants: nothing is released without an authorized, durable rejection; a second
//! release answers "already"; a contradiction ends in `MANUAL`, never in a guess.

use std::sync::Arc;

use crate::changes::{ChangeSet, CompensationTask, Step};
use crate::decide::queue::exhaust;
use crate::decide::{Draft, ENGINE, freed_place};
use crate::due::{Charge, DueChange, Held};
use crate::error::Error;
use crate::facts::Facts;
use crate::id::PurchaseId;
use crate::machine::Machine;
use crate::machine::admission::{Admission, AdmissionEvent};
use crate::machine::compensation::{Compensation, CompensationEvent};
use crate::machine::reservation::{Reservation, ReservationEvent};
use crate::notice::compensation_given_up;
use crate::ports::admission::{Compensate, CompensateCode};
use crate::time::Timestamp;

/// Whether a claimed task may be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorized {
    /// Yes: release the units with this command.
    Release(Compensate),
    /// It is concluded already.
    Done,
    /// There is nothing to compensate, or a person holds it.
    Refused,
}

/// Authorizes claimed tasks: `ORDER_REJECTED` → `COMPENSATING`, task → `CLAIMED`. A task that crashed behind
/// this point is authorized again.
///
/// Needs `purchases` and `compensations` of every id.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one batch names a purchase twice.
pub fn authorize(facts: &mut Facts, ids: &[PurchaseId]) -> Result<(ChangeSet, Vec<Authorized>), Error> {
    let mut draft = Draft::default();
    let mut outcomes = Vec::with_capacity(ids.len());
    for id in ids {
        outcomes.push(authorize_one(facts, &mut draft, *id)?);
    }
    Ok((draft.finish(facts), outcomes))
}

fn authorize_one(facts: &mut Facts, draft: &mut Draft, id: PurchaseId) -> Result<Authorized, Error> {
    let (Some(purchase), Some(task)) =
        (facts.purchases.get(&id).cloned(), facts.compensations.get(&id).cloned())
    else {
        return Ok(Authorized::Refused);
    };
    let status = purchase.reservation.unwrap_or(Reservation::Reserved);
    if status == Reservation::Compensated {
        return Ok(Authorized::Done);
    }
    let Some(task_row) = task.status.next(CompensationEvent::Claim) else {
        return Ok(Authorized::Refused);
    };
    if status != Reservation::Compensating {
        let Some(row) = status.next(ReservationEvent::Authorize) else {
            return Ok(Authorized::Refused);
        };
        let place = purchase.lines[0].place;
        let step = Step::Reservation { to: row.to, reason: None, inbox: None, place };
        draft.move_purchase(facts, &purchase, step)?;
        draft.note(facts, id, row, &Arc::from(ENGINE), None);
        facts.purchases.get_mut(&id).expect("it was found above").reservation = Some(row.to);
    }
    let moved =
        CompensationTask { status: task_row.to, attempts: task.attempts + 1, updated_at: facts.now, ..task };
    draft.changes.compensations.push(moved.clone());
    facts.compensations.insert(id, moved);
    Ok(Authorized::Release(Compensate {
        purchase: id,
        key: purchase.lines[0].key.clone(),
        compensation: id.compensation(),
    }))
}

/// Releases units at a gate that lives in the store.
///
/// Needs `purchases` and `buckets` of every command.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one batch would change a purchase twice in different ways.
pub fn release(
    facts: &mut Facts,
    commands: &[Compensate],
) -> Result<(ChangeSet, Vec<CompensateCode>), Error> {
    let mut draft = Draft::default();
    let mut codes = Vec::with_capacity(commands.len());
    for command in commands {
        codes.push(release_one(facts, &mut draft, command)?);
    }
    Ok((draft.finish(facts), codes))
}

fn release_one(facts: &mut Facts, draft: &mut Draft, command: &Compensate) -> Result<CompensateCode, Error> {
    let Some(purchase) = facts.purchases.get(&command.purchase).cloned() else {
        return Ok(CompensateCode::Missing);
    };
    if purchase.admission == Admission::Absent || !facts.buckets.contains_key(&command.key) {
        return Ok(CompensateCode::Missing);
    }
    if purchase.lines.len() != 1 || purchase.lines[0].key != command.key {
        return Ok(CompensateCode::IdMismatch);
    }
    if let Some(marker) = purchase.compensation {
        let is_same = marker == command.compensation;
        return Ok(if is_same { CompensateCode::AlreadyApplied } else { CompensateCode::MarkerConflict });
    }
    let code = CompensateCode::unmarked(purchase.admission);
    if code == CompensateCode::Applied {
        let row =
            purchase.admission.next(AdmissionEvent::Compensate).expect("a reserved one may be released");
        let place = freed_place(purchase.id);
        let marker = Some(command.compensation);
        draft.move_bucket(facts, &command.key, row.effect, purchase.lines[0].quantity);
        draft.move_purchase(facts, &purchase, Step::Admission { to: row.to, compensation: marker, place })?;
        let kept = facts.purchases.get_mut(&command.purchase).expect("it was found above");
        kept.admission = row.to;
        kept.compensation = marker;
        kept.lines[0].place = place;
    }
    Ok(code)
}

/// What a worker learnt about a claimed task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// Whose units.
    pub purchase: PurchaseId,
    /// The gate's answer; none where there was no answer.
    pub code: Option<CompensateCode>,
    /// The claim that the worker holds.
    pub held: Held,
    /// What follows where there was no answer.
    pub unanswered: Unanswered,
}

/// What follows on a compensation to which the gate said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// It is asked again at this time; a gate that is known to be away costs no try.
    Again(Timestamp, Charge),
    /// Tries are used up.
    Exhausted,
}

/// Writes the end of claimed tasks: `COMPENSATED`/`APPLIED`, a retry, an exhaustion, or `MANUAL`. What the engine gives up
/// is told to the administrators in the same set: where the gate contradicts the store a person decides; where it never
/// answered, the task waits in the exhausted set, and goes on where it stopped when a person replays it.
///
/// Needs `purchases` and `compensations` of every id.
///
/// # Errors
/// [`crate::error::Code::GuardLost`] where one batch names a purchase twice.
pub fn conclude(facts: &mut Facts, conclusions: &[Conclusion]) -> Result<ChangeSet, Error> {
    let mut draft = Draft::default();
    for conclusion in conclusions {
        conclude_one(facts, &mut draft, conclusion)?;
    }
    Ok(draft.finish(facts))
}

fn conclude_one(facts: &mut Facts, draft: &mut Draft, conclusion: &Conclusion) -> Result<(), Error> {
    let id = conclusion.purchase;
    let (Some(purchase), Some(task)) =
        (facts.purchases.get(&id).cloned(), facts.compensations.get(&id).cloned())
    else {
        draft.changes.due.push(DueChange::Complete(conclusion.held.clone()));
        return Ok(());
    };
    let (event, move_on) = match conclusion.code {
        Some(CompensateCode::Applied | CompensateCode::AlreadyApplied) => {
            (CompensationEvent::Apply, Some(ReservationEvent::Compensate))
        }
        None => (CompensationEvent::Postpone, None),
        Some(
            CompensateCode::Missing
            | CompensateCode::IdMismatch
            | CompensateCode::OrderExists
            | CompensateCode::WrongState
            | CompensateCode::MarkerConflict,
        ) => (CompensationEvent::GiveUp, Some(ReservationEvent::Freeze)),
    };
    let held = conclusion.held.clone();
    match (conclusion.code, conclusion.unanswered) {
        (None, Unanswered::Exhausted) => exhaust(facts, &mut draft.changes, &held),
        (None, Unanswered::Again(due_at, charge)) => {
            draft.changes.due.push(DueChange::Retry { held, due_at, body: None, charge });
        }
        (Some(_), _) => draft.changes.due.push(DueChange::Complete(held)),
    }
    let Some(task_row) = task.status.next(event) else {
        return Ok(());
    };
    let answer = conclusion.code.map_or("NO_ANSWER", CompensateCode::name);
    if event == CompensationEvent::GiveUp {
        let token = conclusion.held.token;
        draft.changes.new_notices.push(compensation_given_up(id, answer, token, facts.now));
    }
    let last_result = Some(Arc::from(answer));
    let moved = CompensationTask { status: task_row.to, last_result, updated_at: facts.now, ..task };
    draft.changes.compensations.push(moved.clone());
    facts.compensations.insert(id, moved);
    let next = move_on.and_then(|event| purchase.reservation?.next(event));
    if let Some(row) = next {
        let place = purchase.lines[0].place;
        let step = Step::Reservation { to: row.to, reason: None, inbox: None, place };
        draft.move_purchase(facts, &purchase, step)?;
        draft.note(facts, id, row, &Arc::from(ENGINE), Some(Arc::from(answer)));
        facts.purchases.get_mut(&id).expect("it was found above").reservation = Some(row.to);
    }
    debug_assert!(task_row.to != Compensation::Pending, "nothing leads back to pending");
    Ok(())
}
