//! A gate for one process: open reservations in memory over a journal in the store, as Redis keeps them over its
//! append-only file (design.md §10). A batch of reservations is one journal entry instead of a row and two index
//! entries each; a reservation gets its row when the store decides on it.
//!
//! Invariants: `QUEUED` is durable before it is said; memory holds what the journal holds and no row states, and where a
//! row exists the row is right, so forgetting late is harmless; after any answer but success memory is read anew from the
//! journal before it is used. Batches take turns, so that each is decided on what the one before has really written.
//! Deliberately absent: several processes on one store — they use [`crate::store_admission`]. Everything that happens to
//! a reservation after its row exists is that module's too, also the deadlines of rows that came here with a store of theirs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::catalogue::Bucket;
use onceward_domain::decide::reserve::{keep_in_journal, reserve};
use onceward_domain::due::{Charge, DueChange, Lane, unpack_ids};
use onceward_domain::error::Error;
use onceward_domain::event::{Event, OrderCreateRequested};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::journal;
use onceward_domain::ports::Answer;
use onceward_domain::ports::admission::{
    Admission, AdmissionView, Birth, Compensate, CompensateCode, OverdueClaim, Projected, Reserve,
    ReserveAnswer, SendClaim, SendSettlement, Unsent,
};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};

use crate::execute::{Ending, settle, transact};
use crate::open_reservations::OpenReservations;
use crate::store_admission::{StoreAdmission, need_of_reserve, part};

/// Journal entries that are read at once after a start.
const ENTRIES_OF_ONE_READ: u32 = 64;

/// The gate.
pub struct JournalAdmission {
    rows: StoreAdmission,
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    turn: tokio::sync::Mutex<()>,
    memory: Mutex<Memory>,
    /// Whether there may be deadlines of rows: until none is left, because nobody here adds one.
    has_deadlines: AtomicBool,
}

/// What is open, and whether that has been read from the journal.
#[derive(Default)]
struct Memory {
    open: OpenReservations,
    is_read: bool,
}

/// Held while a batch is on its way: whoever is cut off, or hears an error, leaves a memory that must be read anew.
struct Doubt<'a> {
    memory: &'a Mutex<Memory>,
    is_over: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            lock(self.memory).is_read = false;
        }
    }
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JournalAdmission {
    /// A gate over a store that no other process lets buyers into.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        let rows = StoreAdmission::new(store.clone(), ids.clone());
        Self {
            rows,
            store,
            ids,
            turn: tokio::sync::Mutex::default(),
            memory: Mutex::default(),
            has_deadlines: AtomicBool::new(true),
        }
    }

    /// Asks memory, which is read from the journal first where it must be.
    async fn ask<T>(&self, question: impl FnOnce(&OpenReservations) -> T) -> Result<T, Error> {
        if !lock(&self.memory).is_read {
            return self.ask_in_turn(question).await;
        }
        Ok(question(&lock(&self.memory).open))
    }

    /// The same, but only when every batch on its way has been remembered: what is durable is in memory then.
    async fn ask_in_turn<T>(&self, question: impl FnOnce(&OpenReservations) -> T) -> Result<T, Error> {
        let _turn = self.turn.lock().await;
        self.read_journal().await?;
        Ok(question(&lock(&self.memory).open))
    }

    /// The caller has the turn, so that nothing is added to the journal meanwhile.
    async fn read_journal(&self) -> Result<(), Error> {
        if lock(&self.memory).is_read {
            return Ok(());
        }
        let mut open = OpenReservations::default();
        let mut after = None;
        loop {
            let page =
                self.store.list_due(Lane::new(Lane::JOURNAL), ENTRIES_OF_ONE_READ, after.take()).await?;
            for entry in &page {
                let reservations = journal::unpack(&entry.body)?;
                let decided = self.decided(&reservations).await?;
                let is_open = |one: &OrderCreateRequested| !decided.purchases.contains_key(&one.purchase);
                open.extend(reservations.into_iter().filter(is_open));
            }
            match page.last() {
                Some(last) => after = Some(last.member.clone()),
                None => break,
            }
        }
        *lock(&self.memory) = Memory { open, is_read: true };
        Ok(())
    }

    /// The rows of these reservations, as far as the store has decided on them.
    async fn decided(&self, reservations: &[OrderCreateRequested]) -> Result<Facts, Error> {
        let purchases = reservations.iter().map(|one| one.purchase).collect();
        self.store.view(Need { purchases, ..Need::default() }).await
    }

    fn forget(&self, decided: impl IntoIterator<Item = PurchaseId>) {
        let mut memory = lock(&self.memory);
        decided.into_iter().for_each(|id| memory.open.forget(id));
    }

    async fn reserve_all(&self, commands: Vec<Reserve>) -> Result<Vec<ReserveAnswer>, Error> {
        let _turn = self.turn.lock().await;
        self.read_journal().await?;
        let known = lock(&self.memory).open.concerning(&commands);
        let mut need = need_of_reserve(&commands);
        need.purchases.extend(known.iter().map(|purchase| purchase.id));
        let member = self.ids.member();
        let decide = move |facts: &mut Facts| {
            for purchase in &known {
                if !facts.purchases.contains_key(&purchase.id) {
                    facts.remember(purchase.clone());
                }
            }
            let (mut changes, answers) = reserve(facts, &commands, &member);
            let admitted = keep_in_journal(&mut changes);
            Ok((changes, (answers, admitted)))
        };
        let mut doubt = Doubt { memory: &self.memory, is_over: false };
        let (answers, admitted) = transact(&*self.store, "admission.reserve", need, decide).await?;
        doubt.is_over = true;
        let mut memory = lock(&self.memory);
        admitted.into_iter().for_each(|purchase| memory.open.remember(purchase));
        Ok(answers)
    }

    async fn find_one(&self, id: PurchaseId) -> Result<Option<AdmissionView>, Error> {
        // Memory first: what leaves it has a row by then.
        let open = self.ask(|open| open.get(id).cloned()).await?;
        if let Some(decided) = self.rows.find_row(id).await? {
            return self.rows.view(decided).await.map(Some);
        }
        match open {
            Some(purchase) => self.rows.view(purchase).await.map(Some),
            None => Ok(None),
        }
    }

    async fn claim_send_some(&self, limit: u32, lease: Millis) -> Result<Vec<SendClaim>, Error> {
        let claims = self.rows.claim(Lane::SEND_DUE, limit, lease).await?;
        let mut sends = Vec::with_capacity(claims.len());
        for one in claims {
            let ids = unpack_ids(&one.body);
            let find = |open: &OpenReservations| -> Vec<OrderCreateRequested> {
                ids.iter().filter_map(|id| open.get(*id)).map(OrderCreateRequested::of).collect()
            };
            let mut messages = self.ask(find).await?;
            if messages.len() < ids.len() {
                // An entry is durable a moment before its batch is remembered: who is fast enough finds it first.
                messages = self.ask_in_turn(find).await?;
            }
            if messages.len() < ids.len() {
                messages = self.with_decided(messages, &ids).await?;
            }
            sends.push(SendClaim {
                messages,
                oldest: one.created_at,
                attempts: one.attempts,
                held: one.held,
            });
        }
        Ok(sends)
    }

    /// What is open of an entry, and what has been decided since: a message is sent until the bus has acknowledged it.
    async fn with_decided(
        &self,
        open: Vec<OrderCreateRequested>,
        ids: &[PurchaseId],
    ) -> Result<Vec<OrderCreateRequested>, Error> {
        let facts = self.store.view(Need { purchases: ids.to_vec(), ..Need::default() }).await?;
        let find = |id: &PurchaseId| {
            let row = facts.purchases.get(id).map(OrderCreateRequested::of);
            row.or_else(|| open.iter().find(|one| one.purchase == *id).cloned())
        };
        Ok(ids.iter().filter_map(find).collect())
    }

    /// The next deadline of a row; after the last of them nobody asks again.
    async fn next_of_rows(&self) -> Result<Option<Timestamp>, Error> {
        if !self.has_deadlines.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let next = self.rows.next_overdue().await?;
        // A paused lane has no next one either: what waits in it would be forgotten until the next start.
        if next.is_none() && self.store.list_due(Lane::new(Lane::DEADLINE), 1, None).await?.is_empty() {
            self.has_deadlines.store(false, Ordering::Relaxed);
        }
        Ok(next)
    }

    async fn claim_overdue_some(&self, limit: u32, lease: Millis) -> Result<Vec<OverdueClaim>, Error> {
        if self.next_of_rows().await?.is_some() {
            let overdue = self.rows.claim_overdue(limit, lease).await?;
            if !overdue.is_empty() {
                return Ok(overdue);
            }
        }
        let claims = self.rows.claim(Lane::JOURNAL, limit, lease).await?;
        let mut overdue = Vec::with_capacity(claims.len());
        for one in claims {
            let reservations = journal::unpack(&one.body)?;
            let decided = self.decided(&reservations).await?;
            self.forget(decided.purchases.keys().copied());
            let undecided =
                reservations.into_iter().filter(|one| !decided.purchases.contains_key(&one.purchase));
            overdue.push(part(one, undecided, decided.now));
        }
        Ok(overdue)
    }

    async fn settle_overdue_all(&self, claims: Vec<OverdueClaim>) -> Result<u32, Error> {
        let (of_rows, claims): (Vec<OverdueClaim>, Vec<OverdueClaim>) =
            claims.into_iter().partition(|claim| claim.held.lane.as_str() == Lane::DEADLINE);
        if !of_rows.is_empty() {
            // A claim is of one lane, and so are all that came with it.
            return self.rows.settle_overdue(of_rows).await;
        }
        let mut endings: Vec<Ending> = Vec::with_capacity(claims.len());
        for claim in claims {
            let end = match claim.remaining {
                None => DueChange::Complete(claim.held),
                Some((due_at, ids)) => {
                    let remaining = |open: &OpenReservations| {
                        let open = ids.iter().filter_map(|id| open.get(*id));
                        journal::pack(&open.map(OrderCreateRequested::of).collect::<Vec<_>>())
                    };
                    let body = Some(self.ask(remaining).await?);
                    DueChange::Retry { held: claim.held, due_at, body, charge: Charge::Refund }
                }
            };
            endings.push(Ending::at(move |_now| end.clone()));
        }
        settle(&*self.store, "admission.settle_overdue", endings).await
    }
}

impl Admission for JournalAdmission {
    fn reserve(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<ReserveAnswer>> {
        Box::pin(self.reserve_all(commands))
    }

    fn find(&self, purchase: PurchaseId) -> Answer<'_, Option<AdmissionView>> {
        Box::pin(self.find_one(purchase))
    }

    fn claim_send(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<SendClaim>> {
        Box::pin(self.claim_send_some(limit, lease))
    }

    fn settle_send(&self, settlements: Vec<SendSettlement>) -> Answer<'_, u32> {
        self.rows.settle_send(settlements)
    }

    fn next_send(&self) -> Answer<'_, Option<Timestamp>> {
        self.rows.next_send()
    }

    fn unsent(&self, limit: u64) -> Answer<'_, Unsent> {
        self.rows.unsent(limit)
    }

    fn claim_overdue(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<OverdueClaim>> {
        Box::pin(self.claim_overdue_some(limit, lease))
    }

    fn settle_overdue(&self, claims: Vec<OverdueClaim>) -> Answer<'_, u32> {
        Box::pin(self.settle_overdue_all(claims))
    }

    fn next_overdue(&self) -> Answer<'_, Option<Timestamp>> {
        Box::pin(async move {
            let (of_rows, of_journal) =
                (self.next_of_rows().await?, self.store.next_due(Lane::new(Lane::JOURNAL)).await?);
            Ok(of_rows.into_iter().chain(of_journal).min())
        })
    }

    fn project(&self, events: Vec<Event>) -> Answer<'_, Vec<Result<Projected, Error>>> {
        Box::pin(async move {
            let told: Vec<PurchaseId> = events.iter().filter_map(|event| event.fact.purchase()).collect();
            let outcomes = self.rows.project(events).await?;
            self.forget(told);
            Ok(outcomes)
        })
    }

    fn compensate(&self, commands: Vec<Compensate>) -> Answer<'_, Vec<Result<CompensateCode, Error>>> {
        Box::pin(async move {
            let decided: Vec<PurchaseId> = commands.iter().map(|command| command.purchase).collect();
            let codes = self.rows.compensate(commands).await?;
            self.forget(decided);
            Ok(codes)
        })
    }

    fn lives_in_store(&self) -> bool {
        true
    }

    fn births(&self, messages: Vec<OrderCreateRequested>) -> Answer<'_, Vec<Birth>> {
        Box::pin(async move {
            let birth =
                |open: &OpenReservations, message: &OrderCreateRequested| match open.get(message.purchase) {
                    None => Birth::Absent,
                    Some(known) if OrderCreateRequested::of(known) == *message => Birth::Reserved,
                    Some(_) => Birth::Contradicted,
                };
            let judge = |open: &OpenReservations| -> Vec<Birth> {
                messages.iter().map(|message| birth(open, message)).collect()
            };
            let births = self.ask(judge).await?;
            if births.contains(&Birth::Absent) {
                // An entry is durable a moment before its batch is remembered: a deadline may pass in between.
                return self.ask_in_turn(judge).await;
            }
            Ok(births)
        })
    }

    fn counters(&self, key: SkuKey) -> Answer<'_, Option<Bucket>> {
        self.rows.counters(key)
    }
}
