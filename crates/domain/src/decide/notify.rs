//! What follows from sending a notice (LQ-05): `SENT`, or again later.
//!
//! Invariants: a notice leaves `PENDING` once; one that did not arrive, or whose arrival is unknown, comes again with the
//! same id and is never given up; the notice's move and the end of its due work are one ChangeSet. Needs `notices` of every
//! id. Read next: [`crate::machine::notice`].

use crate::changes::ChangeSet;
use crate::due::{Charge, DueChange, Held};
use crate::facts::Facts;
use crate::id::NoticeId;
use crate::machine::Machine;
use crate::machine::notice::NoticeEvent;
use crate::notice::Notice;
use crate::time::Millis;

/// What a worker learnt about a claimed notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Which; none where the due work names no notice.
    pub notice: Option<NoticeId>,
    /// The claim.
    pub held: Held,
    /// How it went.
    pub outcome: Outcome,
}

/// How sending went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The other side has it.
    Arrived,
    /// It has not, or nobody knows: again after this long.
    Again(Millis),
}

/// Whether a notice must be sent at all.
#[must_use]
pub fn must_send(notice: &Notice) -> bool {
    notice.status.next(NoticeEvent::Send).is_some()
}

/// Writes the ends of claimed notices.
#[must_use]
pub fn conclude(facts: &mut Facts, told: &[Told]) -> ChangeSet {
    let mut changes = ChangeSet::default();
    for one in told {
        let held = one.held.clone();
        let found = one.notice.and_then(|id| facts.notices.get_mut(&id));
        let next = found.and_then(|notice| notice.status.next(NoticeEvent::Send).map(|row| (notice, row)));
        changes.due.push(match (next, one.outcome) {
            (None, _) => DueChange::Complete(held),
            (Some((notice, row)), Outcome::Arrived) => {
                notice.status = row.to;
                notice.updated_at = facts.now;
                changes.notices.push(notice.clone());
                DueChange::Complete(held)
            }
            (Some(_), Outcome::Again(wait)) => {
                DueChange::Retry { held, due_at: facts.now.plus(wait), body: None, charge: Charge::Keep }
            }
        });
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::due::{Lane, Token};
    use crate::machine::notice::Notice as Status;
    use crate::notice::work_exhausted;
    use crate::time::Timestamp;

    #[test]
    fn lq_05_a_notice_is_sent_once_and_never_given_up() {
        let notice = work_exhausted(&Lane::new("q"), "m", Token(1), Timestamp(1));
        let mut facts = Facts::empty(Timestamp(9));
        facts.notices.insert(notice.id, notice.clone());
        let held = Held { lane: Lane::new(Lane::NOTICE), member: Arc::from("n"), token: Token(3) };
        let told = |outcome| vec![Told { notice: Some(notice.id), held: held.clone(), outcome }];
        for _round in 0..10 {
            let changes = conclude(&mut facts, &told(Outcome::Again(Millis(5))));
            assert_eq!((changes.notices.len(), must_send(&facts.notices[&notice.id])), (0, true));
            assert!(matches!(changes.due[..], [DueChange::Retry { due_at: Timestamp(14), .. }]));
        }
        let changes = conclude(&mut facts, &told(Outcome::Arrived));
        assert_eq!((changes.notices[0].status, changes.notices[0].revision), (Status::Sent, 0));
        let changes = conclude(&mut facts, &told(Outcome::Arrived));
        assert_eq!((changes.notices.len(), changes.due), (0, vec![DueChange::Complete(held)]));
    }
}
