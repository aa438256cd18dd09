//! A due-work queue that lives in the store, written once over the `Store` port (design.md §8, EM-05).
//!
//! Invariants: every move is one transaction of the store, decided by [`onceward_domain::decide::queue`]; its members are
//! rows beside everything else, so what a decision puts in and what this port puts in are one queue. What leases have
//! exhausted is found at the claim: it is not given out, but moved, with its notice, in one step.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::queue as decide;
use onceward_domain::due::{ClaimRequest, Claimed, DueChange, Lane, LaneStatus, Member, Sequence, Waiting};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::Answer;
use onceward_domain::ports::due_queue::{
    Capabilities, ClaimWork, Due, DueQueue, Exhaustion, NewWork, Put, QUEUE_BATCH_LIMIT, Removed, Replayed,
    Rescheduled, Settled, Settlement,
};
use onceward_domain::ports::store::Store;
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Timestamp;

use crate::execute::transact;

/// Most claims in a row that find nothing but exhausted members before the caller is asked to come again.
pub const SPENT_ROUNDS_LIMIT: u32 = 8;

/// The queue.
pub struct StoreQueue {
    store: Arc<dyn Store>,
}

impl StoreQueue {
    /// A queue over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    async fn decide<O, F>(&self, name: &'static str, need: Need, decide: F) -> Result<O, Error>
    where
        F: Fn(&mut Facts) -> (ChangeSet, O) + Send + Sync + 'static,
        O: Send + 'static,
    {
        transact(&*self.store, name, need, move |facts| Ok(decide(facts))).await
    }

    async fn put_all(&self, lane: Lane, work: Vec<NewWork>) -> Result<Vec<Put>, Error> {
        check_batch(work.len())?;
        let need = decide::need_of(work.iter().map(|one| (&lane, &one.member)));
        self.decide("queue.put", need, move |facts| decide::put(facts, &lane, &work)).await
    }

    async fn settle_all(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        check_batch(settlements.len())?;
        let members = settlements.iter().map(|one| (&one.held().lane, &one.held().member));
        let need = decide::need_of(members);
        self.decide("queue.settle", need, move |facts| decide::settle(facts, &settlements)).await
    }

    async fn remove_all(&self, lane: Lane, members: Vec<Member>) -> Result<Vec<Removed>, Error> {
        check_batch(members.len())?;
        let need = decide::need_of(members.iter().map(|one| (&lane, one)));
        self.decide("queue.remove", need, move |facts| decide::remove(facts, &lane, &members)).await
    }

    async fn reschedule_one(&self, lane: Lane, member: Member, due: Due) -> Result<Rescheduled, Error> {
        let need = decide::need_of(std::iter::once((&lane, &member)));
        self.decide("queue.reschedule", need, move |facts| decide::reschedule(facts, &lane, &member, due))
            .await
    }

    async fn set_paused(&self, name: &'static str, change: DueChange) -> Result<(), Error> {
        let changes = ChangeSet { due: vec![change], ..ChangeSet::default() };
        self.decide(name, Need::default(), move |_| (changes.clone(), ())).await
    }

    async fn status_of(&self, lane: Lane) -> Result<LaneStatus, Error> {
        let lanes = self.store.lanes().await?;
        Ok(lanes.into_iter().find(|one| one.lane == lane).unwrap_or_else(|| LaneStatus::empty(lane)))
    }

    async fn exhausted_of(
        &self,
        lane: Lane,
        limit: u32,
        after: Option<Member>,
    ) -> Result<Vec<Waiting>, Error> {
        let found = self.store.list_due(lane.dead_letters(), limit, after).await?;
        Ok(found.into_iter().map(|one| Waiting { lane: lane.clone(), ..one }).collect())
    }

    async fn replay_all(&self, lane: Lane, which: Vec<Exhaustion>) -> Result<Vec<Replayed>, Error> {
        check_batch(which.len())?;
        let need = decide::need_of(which.iter().map(|one| (&lane, &one.member)));
        self.decide("queue.replay", need, move |facts| decide::replay(facts, &lane, &which)).await
    }
}

/// Claims due members that still have tries; those whose leases have used them up are exhausted on the way (LQ-03, LQ-05).
pub(crate) async fn claim_within(
    store: &dyn Store,
    request: ClaimRequest,
    policy: RetryPolicy,
) -> Result<Vec<Claimed>, Error> {
    for _round in 0..SPENT_ROUNDS_LIMIT {
        let claimed = store.claim_due(request.clone()).await?;
        if claimed.is_empty() {
            return Ok(claimed);
        }
        let (spent, ready): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|one| policy.is_spent(one.attempts));
        exhaust_spent(store, spent).await?;
        if !ready.is_empty() {
            return Ok(ready);
        }
    }
    Ok(Vec::new())
}

/// Exhausts claims that are one too many, or of no use to anybody. What could not be said for lack of an answer comes again after its lease, with
/// one attempt more, and is exhausted then.
pub(crate) async fn exhaust_spent(store: &dyn Store, spent: Vec<Claimed>) -> Result<(), Error> {
    if spent.is_empty() {
        return Ok(());
    }
    let need = decide::need_of(spent.iter().map(|one| (&one.held.lane, &one.held.member)));
    let outcome =
        transact(store, "queue.exhaust", need, move |facts| Ok((decide::exhaust_spent(facts, &spent), ())));
    match outcome.await {
        Err(error) if error.class() == Class::UnknownOutcome => Ok(()),
        outcome => outcome,
    }
}

fn check_batch(count: usize) -> Result<(), Error> {
    if count <= QUEUE_BATCH_LIMIT {
        return Ok(());
    }
    Err(Error::new(Code::Invalid, format!("{count} members in one call, {QUEUE_BATCH_LIMIT} are allowed")))
}

impl DueQueue for StoreQueue {
    fn capabilities(&self) -> Capabilities {
        Capabilities { notices_at_once: true, settles_after_lease: true }
    }

    fn put(&self, lane: Lane, work: Vec<NewWork>) -> Answer<'_, Vec<Put>> {
        Box::pin(self.put_all(lane, work))
    }

    fn claim(&self, request: ClaimWork) -> Answer<'_, Vec<Claimed>> {
        let ClaimWork { lane, limit, lease, policy } = request;
        let request = ClaimRequest { lane, limit, lease, sequence: Sequence::ByDue };
        Box::pin(claim_within(&*self.store, request, policy))
    }

    fn settle(&self, settlements: Vec<Settlement>) -> Answer<'_, Vec<Settled>> {
        Box::pin(self.settle_all(settlements))
    }

    fn remove(&self, lane: Lane, members: Vec<Member>) -> Answer<'_, Vec<Removed>> {
        Box::pin(self.remove_all(lane, members))
    }

    fn reschedule(&self, lane: Lane, member: Member, due: Due) -> Answer<'_, Rescheduled> {
        Box::pin(self.reschedule_one(lane, member, due))
    }

    fn pause(&self, lane: Lane) -> Answer<'_, ()> {
        Box::pin(self.set_paused("queue.pause", DueChange::Pause(lane)))
    }

    fn resume(&self, lane: Lane) -> Answer<'_, ()> {
        Box::pin(self.set_paused("queue.resume", DueChange::Resume(lane)))
    }

    fn status(&self, lane: Lane) -> Answer<'_, LaneStatus> {
        Box::pin(self.status_of(lane))
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        self.store.next_due(lane)
    }

    fn list(&self, lane: Lane, limit: u32, after: Option<Member>) -> Answer<'_, Vec<Waiting>> {
        self.store.list_due(lane, limit, after)
    }

    fn exhausted(&self, lane: Lane, limit: u32, after: Option<Member>) -> Answer<'_, Vec<Waiting>> {
        Box::pin(self.exhausted_of(lane, limit, after))
    }

    fn replay(&self, lane: Lane, which: Vec<Exhaustion>) -> Answer<'_, Vec<Replayed>> {
        Box::pin(self.replay_all(lane, which))
    }

    fn to_announce(&self, _lane: Lane, _limit: u32) -> Answer<'_, Vec<Exhaustion>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn announced(&self, _lane: Lane, _which: Vec<Exhaustion>) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}
