//! Writing group orders, their participants and their history.
//!
//! Invariants: changed rows name the revision they were decided on; who leaves had no charge.

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Error;
use onceward_domain::group::{GroupOrder, GroupTransition, Participant};

use super::script::{Guarded, Loss, Script, column};
use crate::pipeline::params;
use crate::queries;
use crate::refs::Names;
use crate::rows::{code, currency_code};
use crate::transact::Refusal;

/// What a row of a group that is not there is called.
const HOMELESS: &str = "a row names a group that is not there";

pub(super) async fn write<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    changes: &'a ChangeSet,
) -> Result<(), Refusal> {
    if !changes.new_groups.is_empty() {
        add_groups(script, &changes.new_groups).await?;
    }
    if !changes.groups.is_empty() {
        move_groups(script, &changes.groups).await?;
    }
    if !changes.new_participants.is_empty() {
        add_participants(script, &changes.new_participants).await?;
    }
    if !changes.participants.is_empty() {
        move_participants(script, &changes.participants).await?;
    }
    if !changes.left_participants.is_empty() {
        remove_participants(script, &changes.left_participants).await?;
    }
    if !changes.group_transitions.is_empty() {
        add_transitions(script, names, &changes.group_transitions).await?;
    }
    Ok(())
}

async fn add_groups<'a>(script: &mut Script<'a>, groups: &'a [GroupOrder]) -> Result<(), Refusal> {
    let parameters = params![
        column(groups, |one| one.terms.id.as_str()),
        column(groups, |one| one.terms.leader.as_str()),
        column(groups, |one| one.terms.deadline.0),
        column(groups, |one| &*one.terms.charge_via),
        column(groups, |one| currency_code(one.terms.currency)),
        column(groups, |one| i64::from(one.terms.min_participants)),
        column(groups, |one| code(one.status)),
        column(groups, |one| i64::from(one.participants)),
        column(groups, |one| i64::from(one.attempts)),
        column(groups, |one| i64::from(one.retries)),
        column(groups, |one| one.next_attempt_at.map(|at| at.0)),
        column(groups, |one| one.last_error.as_deref()),
        column(groups, |one| one.created_at.0),
        column(groups, |one| one.updated_at.0),
        column(groups, |one| one.revision),
    ];
    script.any("adding a group order", queries::GROUP_ORDER_INSERT, parameters).await
}

async fn move_groups<'a>(script: &mut Script<'a>, groups: &'a [GroupOrder]) -> Result<(), Refusal> {
    let parameters = params![
        column(groups, |one| one.id().as_str()),
        column(groups, |one| one.revision),
        column(groups, |one| code(one.status)),
        column(groups, |one| i64::from(one.participants)),
        column(groups, |one| i64::from(one.attempts)),
        column(groups, |one| i64::from(one.retries)),
        column(groups, |one| one.next_attempt_at.map(|at| at.0)),
        column(groups, |one| one.last_error.as_deref()),
        column(groups, |one| one.updated_at.0),
    ];
    let row = |one: &GroupOrder| Guarded {
        shown: one.id().to_string(),
        key: params![one.id().as_str().to_owned()],
        revision: one.revision,
    };
    let loss = move || Loss::Revision {
        what: "group order",
        peek: queries::GROUP_ORDER_PEEK,
        rows: groups.iter().map(row).collect(),
    };
    script
        .guarded("changing a group order", queries::GROUP_ORDER_MOVE, parameters, (groups.len(), loss))
        .await
}

async fn add_participants<'a>(
    script: &mut Script<'a>,
    participants: &'a [Participant],
) -> Result<(), Refusal> {
    let parameters = params![
        column(participants, |one| one.group.as_str()),
        column(participants, |one| one.user.as_str()),
        column(participants, |one| one.amount.amount()),
        column(participants, |one| code(one.charge)),
        column(participants, |one| one.transaction.as_deref()),
        column(participants, |one| one.joined_at.0),
        column(participants, |one| one.updated_at.0),
        column(participants, |one| one.revision),
    ];
    let missing = (participants.len(), HOMELESS);
    script.each("adding a participant", queries::PARTICIPANT_INSERT, parameters, missing).await
}

fn lost(participants: &[Participant]) -> Loss {
    let row = |one: &Participant| Guarded {
        shown: one.charge_id().to_string(),
        key: params![one.group.as_str().to_owned(), one.user.as_str().to_owned()],
        revision: one.revision,
    };
    Loss::Revision {
        what: "participant",
        peek: queries::PARTICIPANT_PEEK,
        rows: participants.iter().map(row).collect(),
    }
}

async fn move_participants<'a>(
    script: &mut Script<'a>,
    participants: &'a [Participant],
) -> Result<(), Refusal> {
    let parameters = params![
        column(participants, |one| one.group.as_str()),
        column(participants, |one| one.user.as_str()),
        column(participants, |one| one.revision),
        column(participants, |one| one.amount.amount()),
        column(participants, |one| code(one.charge)),
        column(participants, |one| one.transaction.as_deref()),
        column(participants, |one| one.updated_at.0),
    ];
    let guard = (participants.len(), move || lost(participants));
    script.guarded("changing a participant", queries::PARTICIPANT_MOVE, parameters, guard).await
}

async fn remove_participants<'a>(
    script: &mut Script<'a>,
    participants: &'a [Participant],
) -> Result<(), Refusal> {
    let parameters = params![
        column(participants, |one| one.group.as_str()),
        column(participants, |one| one.user.as_str()),
        column(participants, |one| one.revision),
    ];
    let guard = (participants.len(), move || lost(participants));
    script.guarded("taking a participant out", queries::PARTICIPANT_REMOVE, parameters, guard).await
}

async fn add_transitions<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    transitions: &'a [GroupTransition],
) -> Result<(), Refusal> {
    let words = |text: &dyn Fn(&GroupTransition) -> &str| -> Result<Vec<i32>, Error> {
        transitions.iter().map(|one| names.word(text(one))).collect()
    };
    let from: Vec<Option<i32>> = transitions
        .iter()
        .map(|one| one.from.map(|from| names.word(from)).transpose())
        .collect::<Result<_, _>>()?;
    let parameters = params![
        column(transitions, |one| one.group.as_str()),
        column(transitions, |one| one.at.0),
        from,
        words(&|one| one.to)?,
        words(&|one| one.cause)?,
        words(&|one| &one.actor)?,
    ];
    let missing = (transitions.len(), HOMELESS);
    let doing = "adding a line of a group's history";
    script.each(doing, queries::GROUP_TRANSITION_INSERT, parameters, missing).await
}
