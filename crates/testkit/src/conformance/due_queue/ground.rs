//! What the cases stand on: a queue, its clock, and short words for its calls.

use std::sync::Arc;

use onceward_domain::due::{Claimed, Held, Lane, Member, Waiting};
use onceward_domain::notice::Notice;
use onceward_domain::ports::due_queue::{
    ClaimWork, Due, DueQueue, Exhaustion, NewWork, Put, Removed, Replayed, Rescheduled, Settled, Settlement,
};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::{Millis, Timestamp};

use super::super::store::ground::LEASE;
use crate::block_on::block_on;
use crate::clock::ManualClock;

/// A queue under test and its clock.
pub(crate) struct Ground {
    pub(super) clock: Arc<ManualClock>,
    pub(super) queue: Arc<dyn DueQueue>,
    pub(super) notices: Box<dyn Fn() -> Vec<Notice>>,
}

pub(super) fn lane() -> Lane {
    Lane::new("work")
}

pub(super) fn work(member: &str, due: Due) -> NewWork {
    NewWork { member: Arc::from(member), due, body: format!("body of {member}").into_bytes() }
}

pub(super) fn names(claims: &[Claimed]) -> Vec<&str> {
    claims.iter().map(|one| &*one.held.member).collect()
}

pub(super) fn members(waiting: &[Waiting]) -> Vec<&str> {
    waiting.iter().map(|one| &*one.member).collect()
}

pub(super) fn retry(held: &Held) -> Settlement {
    Settlement::Retry { held: held.clone(), policy: RetryPolicy::default() }
}

pub(super) fn exhaustion(waiting: &Waiting) -> Exhaustion {
    Exhaustion { member: waiting.member.clone(), token: waiting.token }
}

impl Ground {
    pub(super) fn put_all(&self, work: Vec<NewWork>) -> Vec<Put> {
        block_on(self.queue.put(lane(), work)).expect("puts answer")
    }

    pub(super) fn put(&self, member: &str, due: Due) -> Put {
        self.put_all(vec![work(member, due)])[0]
    }

    /// Puts in what is due now.
    pub(super) fn put_now(&self, member: &str) {
        assert_eq!(self.put(member, Due::After(Millis(0))), Put::Added);
    }

    pub(super) fn claim_under(&self, limit: u32, policy: RetryPolicy) -> Vec<Claimed> {
        let request = ClaimWork { lane: lane(), limit, lease: LEASE, policy };
        block_on(self.queue.claim(request)).expect("claims answer")
    }

    pub(super) fn claim(&self, limit: u32) -> Vec<Claimed> {
        self.claim_under(limit, RetryPolicy::default())
    }

    /// Claims the one member that is due.
    pub(super) fn claim_one(&self) -> Claimed {
        let mut claims = self.claim(10);
        assert_eq!(claims.len(), 1, "one member is due");
        claims.remove(0)
    }

    pub(super) fn settle_all(&self, settlements: Vec<Settlement>) -> Vec<Settled> {
        block_on(self.queue.settle(settlements)).expect("settlements answer")
    }

    pub(super) fn settle(&self, settlement: Settlement) -> Settled {
        self.settle_all(vec![settlement])[0]
    }

    pub(super) fn complete(&self, held: &Held) -> Settled {
        self.settle(Settlement::Complete(held.clone()))
    }

    pub(super) fn remove(&self, member: &str) -> Removed {
        block_on(self.queue.remove(lane(), vec![Arc::from(member)])).expect("removals answer")[0]
    }

    pub(super) fn reschedule(&self, member: &str, due: Due) -> Rescheduled {
        block_on(self.queue.reschedule(lane(), Arc::from(member), due)).expect("rescheduling answers")
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        block_on(self.queue.next_due(lane())).expect("next_due answers")
    }

    pub(super) fn waiting(&self) -> Vec<Waiting> {
        block_on(self.queue.list(lane(), 10_000, None)).expect("lists answer")
    }

    pub(super) fn exhausted_page(&self, limit: u32, after: Option<Member>) -> Vec<Waiting> {
        block_on(self.queue.exhausted(lane(), limit, after)).expect("lists answer")
    }

    pub(super) fn exhausted(&self) -> Vec<Waiting> {
        self.exhausted_page(10_000, None)
    }

    pub(super) fn replay(&self, which: Vec<Exhaustion>) -> Vec<Replayed> {
        block_on(self.queue.replay(lane(), which)).expect("replays answer")
    }

    pub(super) fn notices(&self) -> Vec<Notice> {
        (self.notices)()
    }

    /// The invariant of every moment: a member is in one place, and each exhaustion has exactly one notice.
    pub(super) fn check(&self) {
        let (waiting, exhausted) = (self.waiting(), self.exhausted());
        let mut all = members(&waiting);
        all.extend(members(&exhausted));
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count, "a member is in two places: {all:?}");
        let notices = self.notices();
        for dead in &exhausted {
            let expected =
                onceward_domain::notice::work_exhausted(&lane(), &dead.member, dead.token, dead.due_at);
            let told = notices.iter().filter(|one| one.id == expected.id).count();
            assert_eq!(told, 1, "{} was exhausted and told {told} times", dead.member);
        }
    }
}
