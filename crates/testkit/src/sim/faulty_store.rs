//! The model store behind a bad line: calls are refused, delayed, or lose their answers.
//!
//! Invariants: a call that was refused, or lost before its effect, changed nothing; an effect is always whole.
//! Between the effect and the answer other actors may run, and the node may die.

use std::sync::{Arc, Mutex, PoisonError};

use onceward::workers::sweep;
use onceward_domain::catalogue::Sku;
use onceward_domain::changes::Transition;
use onceward_domain::credit::{Entry, Standing};
use onceward_domain::due::{ClaimRequest, Claimed, DueChange, Held, Lane, LaneStatus, Waiting};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTransition};
use onceward_domain::id::{AccountId, GroupId, PurchaseId, SkuKey};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::notice::Notice;
use onceward_domain::payment::Case;
use onceward_domain::ports::Answer;
use onceward_domain::ports::store::{Decide, Expiring, OrderFilter, PageRequest, Store, Work};
use onceward_domain::purchase::Purchase;
use onceward_domain::retention::Aged;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;

use super::world::{Fate, Fault, World};

/// One node's line to the store.
pub(crate) struct FaultyStore {
    world: Arc<World>,
    node: usize,
}

/// Counts a node's death between effect and answer: the future that held this was dropped.
struct Unanswered<'a> {
    world: &'a World,
    answered: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.world.sometimes("crash_after_effect");
        }
    }
}

impl FaultyStore {
    pub(crate) fn new(world: Arc<World>, node: usize) -> Self {
        Self { world, node }
    }

    async fn call<T>(&self, name: &str, is_read: bool, run: Answer<'_, T>) -> Result<T, Error> {
        let world = &*self.world;
        world.linger().await;
        let fate = world.fate(name, is_read);
        match fate {
            Fate::Go | Fate::Meet(Fault::CrashAfter | Fault::LoseAnswer) => {}
            Fate::Refuse => {
                world.sometimes("unavailable");
                return Err(Error::new(Code::Unavailable, format!("{name}: the line is down")));
            }
            Fate::Meet(Fault::LoseCall) => {
                world.sometimes("lost_call");
                return Err(unknown(name));
            }
            Fate::Meet(Fault::CrashBefore) => self.die().await,
        }
        let answer = run.await;
        self.observe(name, &answer);
        let mut unanswered = Unanswered { world, answered: is_read || answer.is_err() };
        if !unanswered.answered {
            // The auditor looks after every poll, so each commit ends one.
            world.step_aside().await;
        }
        world.linger().await;
        if fate == Fate::Meet(Fault::CrashAfter) {
            self.die().await;
        }
        unanswered.answered = true;
        if fate == Fate::Meet(Fault::LoseAnswer) {
            world.sometimes("lost_answer");
            return Err(unknown(name));
        }
        answer
    }

    /// Asks for this node's death and never goes on.
    async fn die(&self) {
        self.world.doom(self.node);
        std::future::pending::<()>().await;
    }

    fn observe<T>(&self, name: &str, answer: &Result<T, Error>) {
        let code = answer.as_ref().err().map(Error::code);
        let number = code.map_or(0, |code| 1 + code as u64);
        self.world.trace(name, number);
        match code {
            Some(Code::GuardLost) => self.world.sometimes("guard_lost"),
            Some(Code::ConstraintViolated) => {
                let text = answer.as_ref().err().map_or("", Error::operator_text);
                self.world.violated(format!("{name} ran into a constraint: {text}"));
            }
            _ => {}
        }
    }

    /// Runs a transaction in one piece, or as an optimistic store does: read, decide, and write later under guards.
    async fn run(&self, mut work: Work) -> Result<(), Error> {
        let wanted = Arc::new(Mutex::new(Wanted::default()));
        if work.name == sweep::NAME {
            self.world.sometimes("swept");
        }
        work.decide = watched(work.decide, wanted.clone());
        let stale = self.world.rates().stale;
        if self.world.draw(|rng| rng.chance(stale)) {
            let need = std::mem::take(&mut work.need);
            let mut facts = self.world.store.view(need).await?;
            let changes = (work.decide)(&mut facts)?;
            self.world.step_aside().await;
            self.world.linger().await;
            self.world.sometimes("stale_read");
            work.decide = Arc::new(move |_| Ok(changes.clone()));
            // A row that appeared meanwhile breaks a constraint here; such a store would answer a conflict.
            self.world.store.transact(work).await.map_err(|error| {
                let is_new_row = error.code() == Code::ConstraintViolated;
                if is_new_row { Error::new(Code::GuardLost, error.operator_text()) } else { error }
            })?;
        } else {
            self.world.store.transact(work).await?;
        }
        let wanted = std::mem::take(&mut *wanted.lock().unwrap_or_else(PoisonError::into_inner));
        wanted.settled.iter().for_each(|held| self.world.saw_settlement(held));
        wanted.outbox.into_iter().for_each(|body| self.world.saw_outbox(body));
        Ok(())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, Error> {
        let claimed = self.world.store.claim_due(request).await?;
        for claim in &claimed {
            self.world.saw_claim(&claim.held);
            self.world.trace(&claim.held.member, claim.attempts.into());
            if claim.attempts > 1 {
                self.world.sometimes("claimed_again");
            }
        }
        Ok(claimed)
    }
}

/// What a decision wants done with due work, as far as the auditor cares.
#[derive(Default)]
struct Wanted {
    settled: Vec<Held>,
    outbox: Vec<Vec<u8>>,
}

/// The same decision, noting the claims that it settles and the events that it tells.
fn watched(decide: Decide, wanted: Arc<Mutex<Wanted>>) -> Decide {
    Arc::new(move |facts| {
        let changes = decide(facts)?;
        let mut noted = Wanted::default();
        for change in &changes.due {
            match change {
                DueChange::Complete(held)
                | DueChange::Exhaust(held)
                | DueChange::Retry { held, .. }
                | DueChange::SetAside { held, .. }
                | DueChange::Extend { held, .. } => {
                    noted.settled.push(held.clone());
                }
                DueChange::Put { lane, body, .. } if lane.as_str() == Lane::OUTBOX => {
                    noted.outbox.push(body.clone());
                }
                DueChange::Put { .. }
                | DueChange::Remove { .. }
                | DueChange::Replay { .. }
                | DueChange::Reschedule { .. }
                | DueChange::Pause(_)
                | DueChange::Resume(_) => {}
            }
        }
        *wanted.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        Ok(changes)
    })
}

fn unknown(name: &str) -> Error {
    Error::new(Code::OutcomeUnknown, format!("{name}: the answer was lost"))
}

impl Store for FaultyStore {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        let name = work.name;
        Box::pin(async move { self.call(name, false, Box::pin(self.run(work))).await })
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        Box::pin(self.call("view", true, self.world.store.view(need)))
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        Box::pin(async move {
            let name = format!("claim {}", request.lane);
            self.call(&name, false, Box::pin(self.claim(request))).await
        })
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        Box::pin(self.call("next_due", true, self.world.store.next_due(lane)))
    }

    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>> {
        Box::pin(self.call("find_due", true, self.world.store.find_due(lane, purchase)))
    }

    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>> {
        Box::pin(self.call("list_due", true, self.world.store.list_due(lane, limit, after)))
    }

    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>> {
        Box::pin(self.call("lanes", true, self.world.store.lanes()))
    }

    fn paused(&self) -> Answer<'_, Vec<Lane>> {
        Box::pin(self.call("paused", true, self.world.store.paused()))
    }

    fn list_skus(&self, limit: u32, after: Option<SkuKey>) -> Answer<'_, Vec<Sku>> {
        Box::pin(self.call("list_skus", true, self.world.store.list_skus(limit, after)))
    }

    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>> {
        Box::pin(self.call("list_orders", true, self.world.store.list_orders(filter, page)))
    }

    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>> {
        Box::pin(self.call("expiries", true, self.world.store.expiries(limit, after)))
    }

    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>> {
        Box::pin(self.call("list_cases", true, self.world.store.list_cases(page)))
    }

    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>> {
        Box::pin(self.call("list_notices", true, self.world.store.list_notices(page)))
    }

    fn aged(&self, limit: u32, after: Aged) -> Answer<'_, Vec<Aged>> {
        Box::pin(self.call("aged", true, self.world.store.aged(limit, after)))
    }

    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>> {
        Box::pin(self.call("list_groups", true, self.world.store.list_groups(status, page)))
    }

    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>> {
        Box::pin(self.call("group_transitions", true, self.world.store.group_transitions(group)))
    }

    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>> {
        Box::pin(self.call("list_entries", true, self.world.store.list_entries(account, page)))
    }

    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>> {
        Box::pin(self.call("standing", true, self.world.store.standing(account, at)))
    }

    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>> {
        Box::pin(self.call("transitions", true, self.world.store.transitions(purchase)))
    }

    fn tally(&self) -> Answer<'_, Tally> {
        Box::pin(self.call("tally", true, self.world.store.tally()))
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        Box::pin(self.call("now", true, self.world.store.now()))
    }
}
