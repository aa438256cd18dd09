//! Group orders in the model.
//!
//! Invariants: a participant belongs to a group; changed rows name the revision they were decided on; who leaves had no
//! charge.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTransition, Participant};
use onceward_domain::id::{AccountId, GroupId, UserId};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::machine::group_charge::GroupCharge;
use onceward_domain::ports::store::PageRequest;
use onceward_domain::tally::GroupTally;

use super::Defect;
use super::apply::{lost, violated};
use super::rows::Rows;

fn key_of(participant: &Participant) -> (GroupId, UserId) {
    (participant.group.clone(), participant.user.clone())
}

impl Rows {
    pub(super) fn apply_groups(&mut self, changes: &mut ChangeSet, defect: Defect) -> Result<(), Error> {
        for mut group in std::mem::take(&mut changes.new_groups) {
            if self.groups.contains(group.id()) {
                return Err(violated(format!("the group {} exists", group.id())));
            }
            group.handle = self.number();
            self.group_handles.put(group.handle, group.id().clone());
            self.groups.put(group.id().clone(), group);
        }
        for group in std::mem::take(&mut changes.groups) {
            self.move_group(group, defect)?;
        }
        for participant in std::mem::take(&mut changes.new_participants) {
            let key = key_of(&participant);
            if self.participants.contains(&key) || !self.groups.contains(&participant.group) {
                return Err(violated(format!("{} exists, or has no group", participant.charge_id())));
            }
            self.participants.put(key, participant);
        }
        for mut participant in std::mem::take(&mut changes.participants) {
            let before = self.known_participant(&participant, defect)?;
            participant.revision = before.revision + 1;
            participant.joined_at = before.joined_at;
            self.participants.put(key_of(&participant), participant);
        }
        for participant in std::mem::take(&mut changes.left_participants) {
            let before = self.known_participant(&participant, defect)?;
            if before.charge != GroupCharge::None {
                return Err(violated(format!("{} has begun", participant.charge_id())));
            }
            self.participants.remove(&key_of(&participant));
        }
        for transition in std::mem::take(&mut changes.group_transitions) {
            let key = (transition.group.clone(), self.number());
            self.group_transitions.put(key, transition);
        }
        Ok(())
    }

    fn move_group(&mut self, group: GroupOrder, defect: Defect) -> Result<(), Error> {
        let before = self.groups.get(group.id());
        let before = before.filter(|row| row.revision == group.revision || defect == Defect::IgnoreRevisions);
        let before = before.ok_or_else(|| lost(format!("moving the group {}", group.id())))?;
        let after = GroupOrder {
            terms: before.terms.clone(),
            handle: before.handle,
            created_at: before.created_at,
            revision: before.revision + 1,
            ..group
        };
        self.groups.put(after.id().clone(), after);
        Ok(())
    }

    fn known_participant(&self, participant: &Participant, defect: Defect) -> Result<Participant, Error> {
        let before = self.participants.get(&key_of(participant));
        let before =
            before.filter(|row| row.revision == participant.revision || defect == Defect::IgnoreRevisions);
        before.cloned().ok_or_else(|| lost(format!("moving {}", participant.charge_id())))
    }

    pub(super) fn load_groups(&self, need: &Need, facts: &mut Facts) {
        for id in &need.groups {
            facts.groups.extend(self.groups.get(id).map(|row| (id.clone(), row.clone())));
        }
        for key in &need.participants {
            facts.participants.extend(self.participants.get(key).map(|row| (key.clone(), row.clone())));
        }
        for id in &need.participants_of {
            facts.participants.extend(self.participants_in(id).map(|row| (key_of(row), row.clone())));
        }
    }

    /// The participants of a group, by user.
    pub(crate) fn participants_in<'a>(&'a self, id: &'a GroupId) -> impl Iterator<Item = &'a Participant> {
        let rows = self.participants.range((id.clone(), UserId::trusted(""))..);
        rows.map(|(_, row)| row).take_while(move |row| row.group == *id)
    }

    pub(super) fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Vec<GroupOrder> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        self.group_handles
            .range(..page.before.unwrap_or(i64::MAX))
            .rev()
            .filter_map(|(_, id)| self.groups.get(id))
            .filter(|group| status.is_none_or(|status| status == group.status))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn group_history(&self, id: &GroupId) -> Vec<GroupTransition> {
        let rows = self.group_transitions.range((id.clone(), i64::MIN)..=(id.clone(), i64::MAX));
        rows.map(|(_, transition)| transition.clone()).collect()
    }

    pub(super) fn tally_groups(&self) -> GroupTally {
        let count = |wanted: &dyn Fn(&GroupOrder) -> bool| {
            let found = self.groups.iter().filter(|(_, group)| wanted(group)).count();
            u64::try_from(found).expect("memory is smaller")
        };
        let lane = Lane::new(Lane::SETTLEMENT);
        let is_scheduled =
            |group: &GroupOrder| self.due.contains(&(lane.clone(), group.id().as_str().into()));
        GroupTally {
            groups: count(&|_| true),
            participants: u64::try_from(self.participants.len()).expect("memory is smaller"),
            state_contradictions: count(&|group| self.contradicts_charges(group)),
            wallet_contradictions: self.wallet_contradictions(),
            unscheduled: count(&|group| group.status.waits() && !is_scheduled(group)),
        }
    }

    /// Wallet charges that are not what the ledger says.
    fn wallet_contradictions(&self) -> u64 {
        let paid = |one: &Participant| {
            let key = (AccountId::trusted(one.user.as_str()), Arc::from(one.charge_id().as_str()));
            let number = self.charges.get(&key)?;
            self.credit_entries.get(&(key.0, *number)).map(|entry| -entry.amount)
        };
        let owed = |one: &Participant| {
            if one.charge == GroupCharge::Charged { one.amount.amount() } else { 0 }
        };
        let by_wallet =
            |one: &Participant| self.groups.get(&one.group).is_some_and(|group| group.terms.is_via_wallet());
        let all = self.participants.iter().map(|(_, one)| one).filter(|one| by_wallet(one));
        let wrong = all.filter(|one| paid(one).unwrap_or(0) != owed(one)).count();
        u64::try_from(wrong).expect("memory is smaller")
    }

    fn contradicts_charges(&self, group: &GroupOrder) -> bool {
        let is_open = |one: &Participant| one.charge.is_open();
        let mut all = self.participants_in(group.id());
        let agrees = |one: &Participant| {
            (one.charge == GroupCharge::None) == group.status.is_before_close()
                && !(group.status == GroupStatus::Settled && is_open(one))
        };
        let counted = self.participants_in(group.id()).count();
        u32::try_from(counted) != Ok(group.participants) || !all.all(agrees)
    }
}
