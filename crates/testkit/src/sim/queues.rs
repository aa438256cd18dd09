//! The part of the auditor that looks at due work (LQ-02 to LQ-05).
//!
//! **Invariants checked, after every step.** A member is in one place: in its lane, or exhausted, never both; the attempts of
//! a member never shrink but for a hand-back of the claim that counted one; each exhaustion has exactly one notice, and no
//! notice tells of an exhaustion that never was; a notice that was sent stays sent. That a token is handed out once, and
//! that only the last one settles, is watched where claims are made.

use std::collections::{BTreeMap, BTreeSet};

use onceward_domain::due::{Lane, Member, Token};
use onceward_domain::id::NoticeId;
use onceward_domain::machine::notice::Notice as NoticeStatus;
use onceward_domain::notice::{NoticeKind, work_exhausted};

use super::world::World;
use crate::model::rows::{DueRow, Rows};

/// What it remembers of earlier looks.
#[derive(Default)]
pub(crate) struct QueueAuditor {
    seen: BTreeMap<(Lane, Member), DueRow>,
    exhaustions: BTreeSet<(Lane, Member, Token)>,
    sent: BTreeSet<NoticeId>,
}

impl QueueAuditor {
    /// Looks at the rows.
    pub(crate) fn look(&mut self, world: &World, rows: &Rows) {
        let now: BTreeMap<(Lane, Member), DueRow> =
            rows.due.iter().map(|(key, row)| (key.clone(), row.clone())).collect();
        for (key, row) in &now {
            match key.0.living() {
                Some(lane) => self.check_exhausted(world, rows, (&lane, &key.1), row),
                None => self.check_attempts(world, key, row),
            }
        }
        self.seen = now;
        self.check_notices(world, rows);
    }

    fn check_exhausted(&mut self, world: &World, rows: &Rows, member: (&Lane, &Member), row: &DueRow) {
        let (lane, name) = member;
        if rows.due.contains(&(lane.clone(), name.clone())) {
            world.violated(format!("{name} is in {lane} and exhausted at once"));
        }
        let id = work_exhausted(lane, name, row.token, row.due_at).id;
        if !rows.notices.contains(&id) {
            world.violated(format!("LQ-05: {name} of {lane} was exhausted and nobody is told"));
        }
        if row.attempts != 0 || row.is_held {
            world.violated(format!("LQ-04: {name} of {lane} is exhausted with {row:?}"));
        }
        if self.exhaustions.insert((lane.clone(), name.clone(), row.token)) {
            world.sometimes("exhausted");
        }
    }

    fn check_attempts(&self, world: &World, key: &(Lane, Member), row: &DueRow) {
        // A row of another number is another member of the same name.
        let Some(before) = self.seen.get(key).filter(|before| before.sequence == row.sequence) else {
            return;
        };
        let is_hand_back = before.is_held && !row.is_held && before.token == row.token;
        let least = if is_hand_back { before.attempts.saturating_sub(1) } else { before.attempts };
        if row.attempts < least {
            world
                .violated(format!("LQ-03: attempts of {} in {} shrank: {before:?} to {row:?}", key.1, key.0));
        }
    }

    fn check_notices(&mut self, world: &World, rows: &Rows) {
        let told = rows.notices.iter().filter(|(_, one)| one.kind == NoticeKind::WorkExhausted).count();
        if told != self.exhaustions.len() {
            let deaths = self.exhaustions.len();
            world.violated(format!("LQ-05: {told} notices tell of {deaths} exhaustions"));
        }
        for (id, notice) in rows.notices.iter() {
            match notice.status {
                NoticeStatus::Sent => {
                    self.sent.insert(*id);
                }
                NoticeStatus::Pending if self.sent.contains(id) => {
                    world.violated(format!("LQ-05: {id} was sent and is pending again"));
                }
                NoticeStatus::Pending => {}
            }
        }
    }

    /// Looks after everything has settled: everybody was told.
    pub(crate) fn look_at_the_end(&self, world: &World, rows: &Rows) {
        for (id, notice) in rows.notices.iter() {
            if notice.status != NoticeStatus::Sent || !world.was_told(*id) {
                world.violated(format!("LQ-05: people never heard {notice:?}"));
            }
        }
    }
}
