//! The clerk: judges group orders after every commit, and compares them with the bank and with the credit ledger.
//!
//! **Invariants checked.** States and charges move along their tables; nobody takes part who joined at the deadline or later
//! (C82); before the close nothing is charged and nothing is asked for; a charge exists at the bank only where a durable row
//! said before that it was asked for, and is taken once; what is called charged or declined was; a wallet is charged exactly
//! where its group is settled; who must be told of a failure or a cancellation is told, once each (LQ-05).

use std::collections::BTreeMap;

use onceward_domain::group::{GroupOrder, Participant};
use onceward_domain::id::{GroupId, UserId};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::machine::group_charge::GroupCharge;
use onceward_domain::notice::{NoticeKind, Recipient};

use super::audit::reaches;
use super::world::World;
use crate::model::rows::Rows;

/// What the clerk remembers of earlier looks.
#[derive(Default)]
pub(crate) struct Clerk {
    groups: BTreeMap<GroupId, GroupOrder>,
    participants: BTreeMap<(GroupId, UserId), Participant>,
}

/// What must hold, and whether it does.
pub(crate) type Rule = (&'static str, bool);

impl Clerk {
    /// Looks at every group after a commit.
    pub(crate) fn look(&mut self, world: &World, rows: &Rows) {
        for (id, group) in rows.groups.iter() {
            let before = self.groups.insert(id.clone(), group.clone());
            let rules = rules_of_group(rows, group, before.as_ref());
            report(world, &rules, || format!("{group:?}, before {before:?}"));
            count_cases(world, before.as_ref(), group);
        }
        for (key, participant) in rows.participants.iter() {
            let group = rows.groups.get(&key.0).expect("a participant has a group");
            let before = self.participants.insert(key.clone(), participant.clone());
            let mut rules = rules_of_charge(group, participant, before.as_ref());
            rules.extend(if group.terms.is_via_wallet() {
                rules_of_wallet(rows, participant)
            } else {
                rules_of_bank(world, participant)
            });
            report(world, &rules, || format!("{participant:?}, before {before:?}, in {:?}", group.status));
            count_charges(world, before.as_ref(), participant);
        }
        self.check_bank(world, rows);
    }

    /// Whatever the bank was asked for belongs to somebody who takes part, and whose row says so.
    fn check_bank(&self, world: &World, rows: &Rows) {
        for (id, charged) in world.bank.charges() {
            let owner = rows.participants.iter().map(|(_, one)| one).find(|one| one.charge_id() == id);
            let is_known = owner.is_some_and(|one| {
                let was_asked = !matches!(one.charge, GroupCharge::None | GroupCharge::Pending);
                was_asked && one.user == charged.customer && one.amount == charged.amount
            });
            if !is_known || charged.times > 1 {
                world.violated(format!("the bank has {charged:?} under {id}, the store has {owner:?}"));
            }
        }
    }

    /// Everything is quiet: every group has its end, and the bank took money exactly where the store says so.
    pub(crate) fn look_at_the_end(&self, world: &World) {
        let rows = world.store.rows();
        let taken = world.bank.charges();
        for (_, group) in rows.groups.iter() {
            if !matches!(group.status, GroupStatus::Settled | GroupStatus::Cancelled) {
                world.violated(format!("at rest: a group without an end: {group:?}"));
            }
        }
        for (key, participant) in rows.participants.iter() {
            let is_via_wallet = rows.groups.get(&key.0).is_some_and(|group| group.terms.is_via_wallet());
            let took = taken.get(&participant.charge_id()).is_some_and(|one| one.times == 1);
            if !is_via_wallet && took != (participant.charge == GroupCharge::Charged) {
                world.violated(format!("at rest: the bank took {took}, the store has {participant:?}"));
            }
        }
    }
}

/// Notes the rules that do not hold.
pub(crate) fn report(world: &World, rules: &[Rule], what: impl Fn() -> String) {
    for (rule, holds) in rules {
        if !holds {
            world.violated(format!("broken: {rule}: {}", what()));
        }
    }
}

fn notices(rows: &Rows, group: &GroupOrder, kind: NoticeKind, to: impl Fn(&Recipient) -> bool) -> usize {
    let about = |subject: &str| subject == group.id().as_str();
    let all = rows.notices.iter().map(|(_, notice)| notice);
    all.filter(|one| one.kind == kind && about(&one.subject) && to(&one.recipient)).count()
}

fn rules_of_group(rows: &Rows, group: &GroupOrder, before: Option<&GroupOrder>) -> Vec<Rule> {
    let id = group.id();
    let members: Vec<&Participant> = rows.participants_in(id).collect();
    let failures = rows.group_transitions.range((id.clone(), i64::MIN)..=(id.clone(), i64::MAX));
    let failures = failures.filter(|(_, line)| line.to == "FAILED").count();
    let told = |kind, to: &dyn Fn(&Recipient) -> bool| notices(rows, group, kind, to);
    let is_leader = |to: &Recipient| *to == Recipient::User(group.terms.leader.clone());
    let is_administrators = |to: &Recipient| *to == Recipient::Administrators;
    let is_cancelled = group.status == GroupStatus::Cancelled;
    let everybody_once = members
        .iter()
        .map(|one| Recipient::User(one.user.clone()))
        .all(|whom| told(NoticeKind::GroupCancelled, &|to| *to == whom) == 1);
    let enough = group.participants >= group.terms.min_participants;
    let is_after_close = !group.status.is_before_close();
    vec![
        ("a group's count is that of its participants", members.len() == group.participants as usize),
        (
            "a group moves along its table",
            before.is_none_or(|before| reaches(before.status, group.status) && before.terms == group.terms),
        ),
        ("only a group with too few is cancelled (GS-07)", !is_cancelled || !enough),
        ("only a group with enough is charged (GS-07, C80)", !is_after_close || enough),
        (
            "a settled group has no open charge (GS-04)",
            group.status != GroupStatus::Settled || members.iter().all(|one| !one.charge.is_open()),
        ),
        (
            "of each failure leader and administrators are told once (LQ-05)",
            told(NoticeKind::GroupFailed, &is_leader) == failures
                && told(NoticeKind::GroupFailed, &is_administrators) == failures,
        ),
        (
            "of a cancellation all are told once (GS-07)",
            !is_cancelled || (everybody_once && told(NoticeKind::GroupCancelled, &is_leader) == 1),
        ),
        (
            "nobody is told of a cancellation that is not",
            is_cancelled || told(NoticeKind::GroupCancelled, &|_| true) == 0,
        ),
        ("settled and cancelled are for good (C81)", before.is_none_or(|before| is_final(before, group))),
    ]
}

fn is_final(before: &GroupOrder, after: &GroupOrder) -> bool {
    let has_ended = matches!(before.status, GroupStatus::Settled | GroupStatus::Cancelled);
    !has_ended || before == after
}

fn rules_of_charge(group: &GroupOrder, participant: &Participant, before: Option<&Participant>) -> Vec<Rule> {
    // Who left and came again begins anew.
    let before = before.filter(|before| before.joined_at == participant.joined_at);
    vec![
        ("nobody joins at the deadline or later (C82)", participant.joined_at < group.terms.deadline),
        (
            "a charge moves along its table",
            before.is_none_or(|before| {
                reaches(before.charge, participant.charge) && before.amount == participant.amount
            }),
        ),
        (
            "nothing is charged before the close, everything is due after it",
            (participant.charge == GroupCharge::None) == group.status.is_before_close(),
        ),
    ]
}

fn rules_of_wallet(rows: &Rows, participant: &Participant) -> Vec<Rule> {
    let reference = participant.charge_id();
    let entries = rows.credit_entries.iter().map(|(_, entry)| entry);
    let of_charge: Vec<_> =
        entries.filter(|entry| entry.reference.as_deref() == Some(reference.as_str())).collect();
    let is_charged = participant.charge == GroupCharge::Charged;
    let is_right = |amount: i64| amount == -participant.amount.amount();
    vec![
        (
            "a wallet is charged exactly where the row says so (GS-03)",
            of_charge.len() == usize::from(is_charged),
        ),
        ("a wallet is charged what was agreed", of_charge.iter().all(|entry| is_right(entry.amount))),
    ]
}

fn rules_of_bank(world: &World, participant: &Participant) -> Vec<Rule> {
    let taken = world.bank.charges().get(&participant.charge_id()).map(|one| one.times);
    vec![
        ("what is called charged was taken", participant.charge != GroupCharge::Charged || taken == Some(1)),
        ("what is called declined was not", participant.charge != GroupCharge::Declined || taken == Some(0)),
    ]
}

fn count_cases(world: &World, before: Option<&GroupOrder>, after: &GroupOrder) {
    if before.is_some_and(|before| before.status == after.status) {
        return;
    }
    match after.status {
        GroupStatus::Open => {}
        GroupStatus::Closed => world.sometimes("group_closed"),
        GroupStatus::Settled => world.sometimes("group_settled"),
        GroupStatus::Failed => world.sometimes("group_failed"),
        GroupStatus::Cancelled => world.sometimes("group_cancelled"),
    }
}

fn count_charges(world: &World, before: Option<&Participant>, after: &Participant) {
    let was = before.map(|before| before.charge);
    if was == Some(after.charge) {
        return;
    }
    match after.charge {
        GroupCharge::None => {}
        GroupCharge::Pending if was == Some(GroupCharge::Unknown) => world.sometimes("charge_not_taken"),
        GroupCharge::Pending | GroupCharge::Unknown => {}
        GroupCharge::Charged => world.sometimes("charge_taken"),
        GroupCharge::Declined => world.sometimes("charge_declined"),
    }
}
