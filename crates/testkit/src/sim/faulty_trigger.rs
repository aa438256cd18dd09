//! A deadline trigger that loses what it was told, or tells it twice.
//!
//! Invariant: what it loses, it loses for good only on the way in; a taken signal that gets lost is under a lease and is told
//! again. Deliberately absent: early and late signals, which the jumping clock makes.

use std::sync::Arc;

use onceward_domain::due::{DueChange, Member};
use onceward_domain::error::Error;
use onceward_domain::ports::Answer;
use onceward_domain::ports::deadline::{
    Capabilities, DeadlineTrigger, Expiry, Signal, SignalEnd, TriggerKind,
};
use onceward_domain::time::Millis;

use super::world::World;

pub(crate) struct FaultyTrigger {
    world: Arc<World>,
    inner: Arc<dyn DeadlineTrigger>,
}

impl FaultyTrigger {
    pub(crate) fn new(world: Arc<World>, inner: Arc<dyn DeadlineTrigger>) -> Self {
        Self { world, inner }
    }

    fn strikes(&self, case: &'static str) -> bool {
        let signal = self.world.rates().signal;
        let strikes = self.world.draw(|rng| rng.chance(signal));
        if strikes {
            self.world.sometimes(case);
        }
        strikes
    }

    async fn take_some(&self, limit: u32, lease: Millis) -> Result<Vec<Signal>, Error> {
        let mut taken = Vec::new();
        for signal in self.inner.take(limit, lease).await? {
            self.world.trace("signal", signal.attempts.into());
            if self.strikes("signal_lost_on_the_way_out") {
                continue;
            }
            if self.strikes("signal_doubled") {
                taken.push(signal.clone());
            }
            taken.push(signal);
        }
        Ok(taken)
    }
}

impl DeadlineTrigger for FaultyTrigger {
    fn kind(&self) -> TriggerKind {
        self.inner.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn within(&self, member: &Member, expiries: &[Expiry]) -> Vec<DueChange> {
        let rows = self.inner.within(member, expiries);
        if !rows.is_empty() && self.strikes("signal_lost_in_the_store") { Vec::new() } else { rows }
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        let is_queue = self.inner.kind() == TriggerKind::Queue;
        if is_queue && self.strikes("signal_lost_in_the_queue") {
            return Box::pin(async { Ok(()) });
        }
        self.inner.offer(expiries)
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        Box::pin(self.take_some(limit, lease))
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        self.inner.settle(ends)
    }

    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        self.inner.next_in()
    }
}
