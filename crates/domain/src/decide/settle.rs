//! Settling group orders at their deadline: close, charge, settle — or try again, fail, cancel (GS-01 to GS-07).
//!
//! A worker that holds a group's due work takes a *turn*: [`begin`]; for wallets [`charge_wallets`], which is the turn's end;
//! for a provider [`advance`] before and between rounds of calls, then [`conclude`]. Invariants: every step is guarded by
//! the claim's token, so a worker that overslept its lease changes nothing; only the step `CLOSED` → `SETTLED` charges
//! wallets, in its own transaction (GS-03); a charge is `UNKNOWN` in a durable row before its provider is called, so
//! whoever comes next asks about it before it sends it again under the same id (GS-04); `DECLINED` is final and costs no
//! attempt (GS-05); exhaustion and its notices are one set of changes. Deliberately absent: calls.

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::credit::Credits;
use crate::decide::credit::{Charge as WalletCharge, Charged, charge_into};
use crate::decide::{Draft, ENGINE};
use crate::due::{Charge, DueChange, Held};
use crate::error::{Code, Error};
use crate::facts::Facts;
use crate::group::{GroupOrder, Participant};
use crate::id::{AccountId, GroupId, UserId};
use crate::machine::Machine;
use crate::machine::group::{Group as GroupStatus, GroupEvent};
use crate::machine::group_charge::{GroupCharge, GroupChargeEvent};
use crate::notice::{About, Notice, NoticeKind, Recipient};
use crate::payment::{CaseKind, ChargeWord};
use crate::retry::{After, RetryPolicy};
use crate::time::Millis;

/// A claim on a group whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Which group.
    pub group: GroupId,
    /// The claim; every change of the turn is guarded by its token.
    pub held: Held,
    /// Which claim since the deadline, or since a person's retry, this is.
    pub attempts: u32,
    /// How failures are repeated.
    pub policy: RetryPolicy,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// There was nothing to do: it was too early, or the group has had its end before.
    Nothing,
    /// Too few took part.
    Cancelled,
    /// Every charge is final.
    Settled,
    /// Part of the charges was made; the rest is another turn's.
    HandedBack,
    /// It is tried again later.
    Postponed,
    /// Tries are used up.
    Failed,
}

/// What a turn is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Nothing more.
    Ended(Ended),
    /// To make the open charges of this group: those that were never asked for first.
    Charge {
        /// The group, `CLOSED`.
        group: GroupOrder,
        /// Its open charges.
        open: Vec<Participant>,
    },
}

/// Begins a turn: what the deadline decides. Needs `groups` and `participants_of`.
///
/// # Errors
/// None of its own.
pub fn begin(facts: &mut Facts, turn: &Turn) -> Result<(ChangeSet, Begun), Error> {
    let mut draft = Draft::default();
    let Some(group) = facts.groups.get(&turn.group).cloned().filter(|one| one.status.waits()) else {
        draft.changes.due.push(DueChange::Complete(turn.held.clone()));
        return Ok((draft.finish(facts), Begun::Ended(Ended::Nothing)));
    };
    if group.may_change(facts.now) {
        let (held, due_at) = (turn.held.clone(), group.terms.deadline);
        draft.changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Refund });
        return Ok((draft.finish(facts), Begun::Ended(Ended::Nothing)));
    }
    let is_short = group.participants < group.terms.min_participants;
    if group.status == GroupStatus::Open && is_short {
        cancel(facts, &mut draft, turn, &group);
        return Ok((draft.finish(facts), Begun::Ended(Ended::Cancelled)));
    }
    let group = close(facts, &mut draft, &group);
    if turn.policy.is_spent(turn.attempts) {
        // Leases that ran out have used up the tries: their workers died, or were too slow.
        let trouble: Arc<str> = Arc::from("the workers did not come to an end");
        fail(facts, &mut draft, turn, group, &trouble);
        return Ok((draft.finish(facts), Begun::Ended(Ended::Failed)));
    }
    let group =
        draft.move_group(facts, GroupOrder { attempts: turn.attempts, next_attempt_at: None, ..group });
    let mut open: Vec<Participant> =
        facts.participants_of(&turn.group).filter(|one| one.charge.is_open()).cloned().collect();
    open.sort_by_key(|one| one.charge == GroupCharge::Unknown);
    Ok((draft.finish(facts), Begun::Charge { group, open }))
}

/// Charges every open participant's wallet and settles the group: all in one transaction (GS-03). A wallet that does not hold
/// enough is declined for good. Needs `groups`, `participants_of` and `charges` of every open participant.
///
/// # Errors
/// [`Code::GuardLost`] where the group is not `CLOSED`; a ledger that cannot take the entries.
pub fn charge_wallets(facts: &mut Facts, turn: &Turn) -> Result<(ChangeSet, Ended), Error> {
    let mut draft = Draft::default();
    let group = closed(facts, turn)?;
    let open: Vec<Participant> =
        facts.participants_of(&turn.group).filter(|one| one.charge.is_open()).cloned().collect();
    for participant in open {
        let amount = Credits::new(participant.amount.amount()).map_err(|cause| {
            let about = format!("charging {} to a wallet", participant.charge_id());
            Error::new(Code::ConstraintViolated, about).because(cause)
        })?;
        let charge = WalletCharge {
            // A buyer's wallet is the account with the buyer's id (api.md, Group orders).
            account: AccountId::trusted(participant.user.as_str()),
            amount,
            reference: Arc::from(participant.charge_id().as_str()),
            actor: Arc::from(ENGINE),
        };
        match charge_into(facts, &mut draft, &charge) {
            Ok(Charged::Now(entry) | Charged::Before(entry)) => {
                let transaction = Some(Arc::from(entry.id().to_string()));
                let paid = Participant { transaction, ..participant };
                draft.move_charge(facts, paid, GroupChargeEvent::Succeed);
            }
            Err(error) if matches!(error.code(), Code::InsufficientCredit | Code::Differs) => {
                draft.move_charge(facts, participant, GroupChargeEvent::Decline);
            }
            Err(error) => return Err(error),
        }
    }
    settle(facts, &mut draft, turn, group);
    Ok((draft.finish(facts), Ended::Settled))
}

/// What a provider said of a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its word.
    Word(ChargeWord),
    /// It did not answer: it may have taken the money.
    Silent,
    /// It did not take the request.
    Refused,
}

/// A participant's charge that was asked for or asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Whose.
    pub user: UserId,
    /// Whether it may have been asked for before this turn.
    pub was_asked: bool,
    /// What came of it.
    pub answer: Answer,
}

/// One step of a provider turn: hears a round of answers, and notes whom the next round asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Answers of the round before.
    pub heard: Vec<Heard>,
    /// Users whose charges are asked for next.
    pub next: Vec<UserId>,
    /// How long the lease lasts from now on.
    pub lease: Millis,
}

/// Takes a step. Needs `groups` and the `participants` that the step names.
///
/// # Errors
/// [`Code::GuardLost`] where the group is not `CLOSED`.
pub fn advance(facts: &mut Facts, turn: &Turn, step: &Step) -> Result<ChangeSet, Error> {
    let mut draft = Draft::default();
    closed(facts, turn)?;
    hear_all(facts, &mut draft, turn, &step.heard);
    for user in &step.next {
        let participant = facts.participants.get(&(turn.group.clone(), user.clone())).cloned();
        if let Some(participant) = participant.filter(|one| one.charge == GroupCharge::Pending) {
            draft.move_charge(facts, participant, GroupChargeEvent::Ask);
        }
    }
    let lease_until = facts.now.plus(step.lease);
    draft.changes.due.push(DueChange::Extend { held: turn.held.clone(), lease_until });
    Ok(draft.finish(facts))
}

/// How far a turn came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It asked about some of the open charges; the others are another turn's.
    Part,
    /// It asked about all of them, or could not go on; what was in the way.
    Whole(Arc<str>),
}

/// Ends a turn: settled where every charge is final, else handed back or tried again. Needs `groups` and `participants_of`.
///
/// # Errors
/// [`Code::GuardLost`] where the group is not `CLOSED`.
pub fn conclude(
    facts: &mut Facts,
    turn: &Turn,
    heard: &[Heard],
    reach: &Reach,
) -> Result<(ChangeSet, Ended), Error> {
    let mut draft = Draft::default();
    let group = closed(facts, turn)?;
    hear_all(facts, &mut draft, turn, heard);
    let is_open = facts.participants_of(&turn.group).any(|one| one.charge.is_open());
    let ended = match reach {
        _ if !is_open => {
            settle(facts, &mut draft, turn, group);
            Ended::Settled
        }
        Reach::Part => {
            // What was done is done: going on is no second attempt.
            let (held, due_at) = (turn.held.clone(), facts.now);
            draft.changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Refund });
            Ended::HandedBack
        }
        Reach::Whole(trouble) => match turn.policy.after(turn.attempts, turn.held.seed()) {
            After::Again(wait) => {
                postpone(facts, &mut draft, turn, group, trouble, wait);
                Ended::Postponed
            }
            After::Exhausted => {
                fail(facts, &mut draft, turn, group, trouble);
                Ended::Failed
            }
        },
    };
    Ok((draft.finish(facts), ended))
}

/// The group of a turn that has begun. The token keeps others from it; this is the second look.
fn closed(facts: &Facts, turn: &Turn) -> Result<GroupOrder, Error> {
    let group = facts.groups.get(&turn.group).filter(|one| one.status == GroupStatus::Closed);
    group.cloned().ok_or_else(|| Error::new(Code::GuardLost, format!("settling group {}", turn.group)))
}

fn close(facts: &mut Facts, draft: &mut Draft, group: &GroupOrder) -> GroupOrder {
    let Some(row) = group.status.next(GroupEvent::Close) else { return group.clone() };
    draft.note_group(facts, group, row, &Arc::from(ENGINE));
    let due: Vec<Participant> = facts.participants_of(group.id()).cloned().collect();
    for participant in due {
        draft.move_charge(facts, participant, GroupChargeEvent::FallDue);
    }
    draft.move_group(facts, GroupOrder { status: row.to, ..group.clone() })
}

fn cancel(facts: &mut Facts, draft: &mut Draft, turn: &Turn, group: &GroupOrder) {
    let row = group.status.next(GroupEvent::Cancel).expect("an open group may be cancelled");
    draft.note_group(facts, group, row, &Arc::from(ENGINE));
    draft.move_group(facts, GroupOrder { status: row.to, attempts: turn.attempts, ..group.clone() });
    draft.changes.due.push(DueChange::Complete(turn.held.clone()));
    let detail = format!(
        "Group {} was cancelled: {} of {} took part at the deadline. Nobody is charged.",
        group.id(),
        group.participants,
        group.terms.min_participants
    );
    let told: Vec<UserId> = facts.participants_of(group.id()).map(|one| one.user.clone()).collect();
    draft.tell(facts, group, NoticeKind::GroupCancelled, &detail, told);
}

fn settle(facts: &mut Facts, draft: &mut Draft, turn: &Turn, group: GroupOrder) {
    let row = group.status.next(GroupEvent::Settle).expect("the caller found it closed");
    draft.note_group(facts, &group, row, &Arc::from(ENGINE));
    draft.changes.due.push(DueChange::Complete(turn.held.clone()));
    let declined: Vec<UserId> = facts
        .participants_of(group.id())
        .filter(|one| one.charge == GroupCharge::Declined)
        .map(|one| one.user.clone())
        .collect();
    let after = GroupOrder {
        status: row.to,
        attempts: turn.attempts,
        next_attempt_at: None,
        last_error: None,
        ..group
    };
    let group = draft.move_group(facts, after);
    if !declined.is_empty() {
        let (few, all) = (declined.len(), group.participants);
        let detail = format!("Group {} is settled; {few} of {all} charges were declined.", group.id());
        draft.tell(facts, &group, NoticeKind::GroupChargeDeclined, &detail, declined);
    }
}

fn postpone(
    facts: &mut Facts,
    draft: &mut Draft,
    turn: &Turn,
    group: GroupOrder,
    trouble: &Arc<str>,
    wait: Millis,
) {
    let due_at = facts.now.plus(wait);
    let held = turn.held.clone();
    draft.changes.due.push(DueChange::Retry { held, due_at, body: None, charge: Charge::Keep });
    let (next_attempt_at, last_error) = (Some(due_at), Some(trouble.clone()));
    draft.move_group(facts, GroupOrder { attempts: turn.attempts, next_attempt_at, last_error, ..group });
}

/// The tries are used up: `FAILED`, and both the leader and the administrators are told, in one step (LQ-05). The group
/// itself is what waits for a person, so its due work is over.
fn fail(facts: &mut Facts, draft: &mut Draft, turn: &Turn, group: GroupOrder, trouble: &Arc<str>) {
    let row = group.status.next(GroupEvent::Fail).expect("the caller found it closed");
    draft.note_group(facts, &group, row, &Arc::from(ENGINE));
    draft.changes.due.push(DueChange::Complete(turn.held.clone()));
    let after = GroupOrder {
        status: row.to,
        attempts: turn.policy.attempts.map_or(turn.attempts, |allowed| turn.attempts.min(allowed)),
        next_attempt_at: None,
        last_error: Some(trouble.clone()),
        ..group
    };
    let group = draft.move_group(facts, after);
    let detail = format!("Group {} could not be settled and waits for a person: {trouble}.", group.id());
    draft.tell(facts, &group, NoticeKind::GroupFailed, &detail, Vec::new());
    let occasion = occasion_of(&group);
    let about = about(&group, NoticeKind::GroupFailed, &occasion, &detail);
    draft.changes.new_notices.push(Notice::new(about, Recipient::Administrators, facts.now));
}

/// What tells one round of attempts from another.
fn occasion_of(group: &GroupOrder) -> String {
    group.retries.to_string()
}

fn about<'a>(group: &'a GroupOrder, kind: NoticeKind, occasion: &'a str, detail: &'a str) -> About<'a> {
    About { kind, subject: group.id().as_str(), occasion, detail }
}

fn hear_all(facts: &mut Facts, draft: &mut Draft, turn: &Turn, heard: &[Heard]) {
    for one in heard {
        let participant = facts.participants.get(&(turn.group.clone(), one.user.clone())).cloned();
        // What is final stays: its word has been heard before.
        if let Some(participant) = participant.filter(|one| one.charge.is_open()) {
            hear(facts, draft, participant, one);
        }
    }
}

fn hear(facts: &mut Facts, draft: &mut Draft, participant: Participant, heard: &Heard) {
    match &heard.answer {
        Answer::Word(ChargeWord::Taken { transaction, amount }) if *amount == participant.amount => {
            let transaction = Some(transaction.clone());
            draft.move_charge(facts, Participant { transaction, ..participant }, GroupChargeEvent::Succeed);
        }
        Answer::Word(ChargeWord::Taken { amount, transaction }) => {
            let detail =
                format!("expected {}, the provider took {amount} ({transaction})", participant.amount);
            draft.open_case(facts, CaseKind::AmountMismatch, participant.charge_id().to_string(), detail);
        }
        Answer::Word(ChargeWord::Declined) => {
            draft.move_charge(facts, participant, GroupChargeEvent::Decline);
        }
        Answer::Refused if !heard.was_asked => {
            draft.move_charge(facts, participant, GroupChargeEvent::Miss);
        }
        // It stays unknown: whoever comes next asks before it sends anything.
        Answer::Word(ChargeWord::Unheard) | Answer::Refused | Answer::Silent => {}
    }
}

impl Draft {
    /// Moves a participant's charge, where its table allows it.
    fn move_charge(&mut self, facts: &mut Facts, participant: Participant, event: GroupChargeEvent) {
        let Some(row) = participant.charge.next(event) else { return };
        let after = Participant { charge: row.to, updated_at: facts.now, ..participant };
        facts.participants.insert((after.group.clone(), after.user.clone()), after.clone());
        // One event each: no step of a turn moves a charge twice.
        self.changes.participants.push(after);
    }

    /// Writes notices to a group's leader and to these users, each once.
    fn tell(
        &mut self,
        facts: &Facts,
        group: &GroupOrder,
        kind: NoticeKind,
        detail: &str,
        mut users: Vec<UserId>,
    ) {
        users.push(group.terms.leader.clone());
        users.sort();
        users.dedup();
        let occasion = occasion_of(group);
        let about = about(group, kind, &occasion, detail);
        let notices = users.into_iter().map(|user| Notice::new(about, Recipient::User(user), facts.now));
        self.changes.new_notices.extend(notices);
    }
}
