//! Due work of the model: claims under leases, settled by token.
//!
//! Invariants: a claim writes the lease's end from the time of the claim and counts an attempt; a token is never
//! handed out twice; a change that names a token which is not current loses its guard.

use onceward_domain::due::{
    Charge, ClaimRequest, Claimed, DueChange, Held, Lane, LaneStatus, Member, Sequence, Token, Waiting,
    unpack_ids,
};
use onceward_domain::error::Error;
use onceward_domain::id::PurchaseId;
use onceward_domain::time::Timestamp;

use super::Defect;
use super::apply::lost;
use super::rows::{DueRow, LaneRow, Rows};

impl Rows {
    /// Carries out one change of due work.
    pub(super) fn change_due(
        &mut self,
        change: DueChange,
        now: Timestamp,
        defect: Defect,
    ) -> Result<(), Error> {
        match change {
            DueChange::Put { lane, member, due_at, body } => {
                let is_known = |lane| self.due.contains(&(lane, member.clone()));
                if !is_known(lane.clone()) && !is_known(lane.dead_letters()) {
                    self.add_due(lane, member, due_at, body, now, Token::NONE);
                }
            }
            DueChange::Complete(held) => {
                self.held(&held, defect)?;
                self.drop_due(&held.lane, &held.member);
            }
            DueChange::Retry { held, due_at, body, charge } => {
                let mut row = self.held(&held, defect)?;
                row.due_at = due_at;
                row.is_held = false;
                row.body = body.unwrap_or(row.body);
                row.attempts = match charge {
                    Charge::Keep => row.attempts,
                    Charge::Refund => row.attempts.saturating_sub(1),
                };
                self.write_due(held.lane, held.member, row);
            }
            DueChange::Extend { held, lease_until } => {
                let mut row = self.held(&held, defect)?;
                row.due_at = lease_until;
                self.write_due(held.lane, held.member, row);
            }
            DueChange::Remove { lane, member } => self.drop_due(&lane, &member),
            DueChange::Exhaust(held) => {
                let row = self.held(&held, defect)?;
                self.move_due(&held.lane, held.lane.dead_letters(), &held.member, row, now);
            }
            DueChange::SetAside { held, member, body } => {
                self.held(&held, defect)?;
                let dead = held.lane.dead_letters();
                if !self.due.contains(&(dead.clone(), member.clone())) {
                    self.add_due(dead, member, now, body, now, held.token);
                }
            }
            DueChange::Replay { lane, member, token, due_at } => {
                let dead = lane.dead_letters();
                let row = self.due.get(&(dead.clone(), member.clone())).filter(|row| row.token == token);
                let row = row.cloned().ok_or_else(|| lost(format!("replaying {member} of {lane}")))?;
                self.move_due(&dead, lane, &member, row, due_at);
            }
            DueChange::Reschedule { lane, member, due_at } => {
                let row = self.due.get(&(lane.clone(), member.clone())).filter(|row| !row.is_held);
                let row = row.cloned().ok_or_else(|| lost(format!("rescheduling {member} of {lane}")))?;
                self.write_due(lane, member, DueRow { due_at, ..row });
            }
            DueChange::Pause(lane) => self.set_paused(lane, true),
            DueChange::Resume(lane) => self.set_paused(lane, false),
        }
        Ok(())
    }

    fn set_paused(&mut self, lane: Lane, paused: bool) {
        let row = self.lanes.get(&lane).copied().unwrap_or_default();
        self.lanes.put(lane, LaneRow { paused, ..row });
    }

    fn is_paused(&self, lane: &Lane) -> bool {
        self.lanes.get(lane).is_some_and(|row| row.paused)
    }

    fn add_due(
        &mut self,
        lane: Lane,
        member: Member,
        due_at: Timestamp,
        body: Vec<u8>,
        now: Timestamp,
        token: Token,
    ) {
        let sequence = self.number();
        self.by_arrival.put((lane.clone(), sequence), member.clone());
        let row = DueRow { sequence, due_at, created_at: now, attempts: 0, token, is_held: false, body };
        self.write_due(lane, member, row);
    }

    /// Moves a member between a lane and its exhausted set, with its counter cleared.
    fn move_due(&mut self, from: &Lane, to: Lane, member: &Member, row: DueRow, due_at: Timestamp) {
        self.drop_due(from, member);
        self.drop_due(&to, member);
        self.by_arrival.put((to.clone(), row.sequence), member.clone());
        self.write_due(to, member.clone(), DueRow { due_at, attempts: 0, is_held: false, ..row });
    }

    /// Claims what is due.
    pub(super) fn claim(&mut self, request: &ClaimRequest, now: Timestamp, defect: Defect) -> Vec<Claimed> {
        if self.is_paused(&request.lane) {
            return Vec::new();
        }
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        let members: Vec<Member> = match request.sequence {
            Sequence::ByDue => self.due_members(&request.lane, now).take(limit).collect(),
            Sequence::Strict => self.head(&request.lane, now).take(limit).collect(),
        };
        if !members.is_empty() {
            self.lanes.put(request.lane.clone(), LaneRow { paused: false, last_claim: Some(now) });
        }
        members.into_iter().map(|member| self.lease(request, member, now, defect)).collect()
    }

    /// Earliest due-time, or lease end.
    pub(crate) fn next_due(&self, lane: &Lane) -> Option<Timestamp> {
        if self.is_paused(lane) {
            return None;
        }
        let from = (lane.clone(), Timestamp(i64::MIN), i64::MIN);
        let to = (lane.clone(), Timestamp(i64::MAX), i64::MAX);
        self.by_due.range(from..=to).next().map(|((_, due_at, _), _)| *due_at)
    }

    /// The member whose packed body holds a purchase.
    pub(super) fn find_due(&self, lane: &Lane, purchase: PurchaseId, now: Timestamp) -> Option<Waiting> {
        self.arrivals(lane, i64::MIN)
            .map(|member| self.waiting(lane, member, now))
            .find(|waiting| unpack_ids(&waiting.body).contains(&purchase))
    }

    /// Members in order of arrival, behind `after`.
    pub(super) fn list_due(
        &self,
        lane: &Lane,
        limit: u32,
        after: Option<&Member>,
        now: Timestamp,
    ) -> Vec<Waiting> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let row = after.and_then(|member| self.due.get(&(lane.clone(), member.clone())));
        let from = row.map_or(i64::MIN, |row| row.sequence + 1);
        self.arrivals(lane, from).take(limit).map(|member| self.waiting(lane, member, now)).collect()
    }

    /// Every lane that has members or is paused.
    pub(super) fn paused(&self) -> Vec<Lane> {
        self.lanes.iter().filter(|(_, row)| row.paused).map(|(lane, _)| lane.clone()).collect()
    }

    pub(super) fn lanes(&self, now: Timestamp) -> Vec<LaneStatus> {
        let mut lanes: Vec<LaneStatus> = Vec::new();
        for ((lane, _), row) in self.due.iter() {
            if lanes.last().is_none_or(|last| last.lane != *lane) {
                lanes.push(LaneStatus::empty(lane.clone()));
            }
            let status = lanes.last_mut().expect("one was pushed just now");
            status.size += 1;
            status.leased += u64::from(row.is_leased(now));
            status.next_due = Some(status.next_due.map_or(row.due_at, |due| due.min(row.due_at)));
            status.oldest = Some(status.oldest.map_or(row.created_at, |oldest| oldest.min(row.created_at)));
        }
        for (lane, row) in self.lanes.iter() {
            let found = lanes.iter().position(|status| status.lane == *lane);
            if found.is_none() && row.paused {
                lanes.push(LaneStatus::empty(lane.clone()));
            }
            let place = found.or_else(|| row.paused.then(|| lanes.len() - 1));
            if let Some(status) = place.map(|place| &mut lanes[place]) {
                (status.paused, status.last_claim) = (row.paused, row.last_claim);
            }
        }
        lanes.sort_by(|left, right| left.lane.cmp(&right.lane));
        lanes
    }

    fn arrivals(&self, lane: &Lane, from: i64) -> impl Iterator<Item = &Member> {
        self.by_arrival.range((lane.clone(), from)..=(lane.clone(), i64::MAX)).map(|(_, member)| member)
    }

    fn due_members(&self, lane: &Lane, now: Timestamp) -> impl Iterator<Item = Member> {
        let from = (lane.clone(), Timestamp(i64::MIN), i64::MIN);
        self.by_due.range(from..=(lane.clone(), now, i64::MAX)).map(|(_, member)| member.clone())
    }

    /// The unbroken run of due members at the head of a strict lane.
    fn head(&self, lane: &Lane, now: Timestamp) -> impl Iterator<Item = Member> {
        let is_due = move |member: &&Member| {
            self.due.get(&(lane.clone(), Member::clone(member))).is_some_and(|row| row.due_at <= now)
        };
        self.arrivals(lane, i64::MIN).take_while(is_due).cloned()
    }

    fn lease(&mut self, request: &ClaimRequest, member: Member, now: Timestamp, defect: Defect) -> Claimed {
        let lane = request.lane.clone();
        let mut row = self.due.get(&(lane.clone(), member.clone())).expect("it was found just now").clone();
        self.last_token += 1;
        let number = if defect == Defect::RepeatTokens { row.sequence } else { self.last_token };
        let (token, due_at) = (Token(number), row.due_at);
        (row.token, row.is_held) = (token, true);
        row.due_at = now.plus(request.lease);
        row.attempts += 1;
        let claimed = Claimed {
            held: Held { lane: lane.clone(), member: member.clone(), token },
            attempts: row.attempts,
            due_at,
            created_at: row.created_at,
            lease_until: row.due_at,
            body: row.body.clone(),
        };
        self.write_due(lane, member, row);
        claimed
    }

    /// The row of a claim that is still current.
    fn held(&self, held: &Held, defect: Defect) -> Result<DueRow, Error> {
        let row = self.due.get(&(held.lane.clone(), held.member.clone()));
        let row =
            row.filter(|row| (row.is_held && row.token == held.token) || defect == Defect::IgnoreTokens);
        row.cloned().ok_or_else(|| lost(format!("settling {} of {}", held.member, held.lane)))
    }

    fn write_due(&mut self, lane: Lane, member: Member, row: DueRow) {
        if let Some(before) = self.due.get(&(lane.clone(), member.clone())) {
            let key = (lane.clone(), before.due_at, before.sequence);
            self.by_due.remove(&key);
        }
        self.by_due.put((lane.clone(), row.due_at, row.sequence), member.clone());
        self.due.put((lane, member), row);
    }

    fn drop_due(&mut self, lane: &Lane, member: &Member) {
        let key = (lane.clone(), member.clone());
        let Some(row) = self.due.get(&key) else { return };
        let (due_at, sequence) = (row.due_at, row.sequence);
        self.by_due.remove(&(lane.clone(), due_at, sequence));
        self.by_arrival.remove(&(lane.clone(), sequence));
        self.due.remove(&key);
    }

    fn waiting(&self, lane: &Lane, member: &Member, now: Timestamp) -> Waiting {
        let row = self.due.get(&(lane.clone(), member.clone())).expect("the index names rows that are there");
        Waiting {
            lane: lane.clone(),
            member: member.clone(),
            due_at: row.due_at,
            created_at: row.created_at,
            attempts: row.attempts,
            leased: row.is_leased(now),
            token: row.token,
            body: row.body.clone(),
        }
    }
}
