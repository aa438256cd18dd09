//! The gate itself: doors, lanes and projections behind the port.
//!
//! Invariants: everything runs on the runtime that the gate was made on, so that a caller needs none; a caller that hangs up
//! cuts nothing off. A sale is read from the store when it is first heard of, and its buckets are opened by whoever needs
//! them first.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use onceward_domain::catalogue::Bucket as Counters;
use onceward_domain::error::{Code, Error};
use onceward_domain::event::Event;
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::machine::admission::Admission as State;
use onceward_domain::machine::transport::Transport;
use onceward_domain::ports::Answer;
use onceward_domain::ports::admission::{
    Admission, AdmissionView, Compensate, CompensateCode, OverdueClaim, Part, Projected, Rebuilds, Reserve,
    ReserveAnswer, SendClaim, SendSettlement, Standing, Unsent,
};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::store::Store;
use onceward_domain::purchase::{Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::bucket::{Bucket, Sale};
use crate::core::{Core, LOOKS_AT_ONCE};
use crate::doors::Doors;
use crate::lanes::{Batch, End, Turn, Way};
use crate::options::Options;
use crate::record::Record;
use crate::reply;
use crate::retire::Opened;
use crate::script;

const DOING: &str = "a look-up";

/// The gate over Redis.
///
/// Making one needs a tokio runtime; it connects by itself and reconnects by itself.
pub struct RedisAdmission {
    inner: Arc<Inner>,
    runtime: Handle,
}

struct Inner {
    core: Arc<Core>,
    doors: Doors,
    send_turn: Turn,
    overdue_turn: Turn,
}

impl RedisAdmission {
    /// A gate over the servers of these options, in front of this store, on the present tokio runtime. Nothing is sent yet.
    /// `ids` names what moves between buckets.
    ///
    /// # Errors
    /// [`Code::Invalid`] outside of a runtime.
    pub fn open(options: Options, store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|cause| {
            Error::new(Code::Invalid, "opening a gate outside of a runtime").because(cause)
        })?;
        let core = Arc::new(Core::new(options, store, ids));
        let doors = Doors::new(Arc::clone(&core), runtime.clone());
        let inner = Inner { core, doors, send_turn: Turn::default(), overdue_turn: Turn::default() };
        Ok(Self { inner: Arc::new(inner), runtime })
    }

    /// Runs it on the gate's own runtime, so that the caller needs none and cannot cut it off.
    async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match self.runtime.spawn(work).await {
            Ok(answer) => answer,
            Err(cause) => Err(Error::new(Code::OutcomeUnknown, "asking Redis").because(cause)),
        }
    }
}

impl Inner {
    /// The row of a reservation.
    async fn row(&self, id: PurchaseId) -> Result<Option<Purchase>, Error> {
        Ok(self.core.purchases(vec![id]).await?.remove(&id).filter(|row| row.route == Route::Flash))
    }

    async fn find(&self, id: PurchaseId) -> Result<Option<AdmissionView>, Error> {
        match self.row(id).await? {
            Some(row) => self.find_row(row).await.map(Some),
            None => {
                let found = self.find_anywhere(id).await?;
                self.with_row(found).await
            }
        }
    }

    /// What the gate knows to be decided, the store has decided since it was asked: its row says more.
    async fn with_row(&self, found: Option<AdmissionView>) -> Result<Option<AdmissionView>, Error> {
        let Some(view) = found else { return Ok(None) };
        if view.purchase.admission == State::Reserved {
            return Ok(Some(view));
        }
        match self.row(view.purchase.id).await? {
            Some(row) => self.find_row(row).await.map(Some),
            None => Ok(Some(view)),
        }
    }

    async fn find_at(
        &self,
        id: PurchaseId,
        key: &SkuKey,
        user: &UserId,
    ) -> Result<Option<AdmissionView>, Error> {
        let row = self.row(id).await?;
        if let Some(row) = row {
            return self.find_row(row).await.map(Some);
        }
        let Some(sale) = self.core.sale(key).await? else { return Ok(None) };
        let view = self.find_in(sale.home(user), id).await?;
        self.with_row(view.filter(|view| view.purchase.route == Route::Flash)).await
    }

    /// A reservation that the store knows: its row is right, the gate only adds what it keeps itself.
    async fn find_row(&self, mut row: Purchase) -> Result<AdmissionView, Error> {
        let key = row.lines[0].key.clone();
        let found = match self.core.sale(&key).await? {
            Some(sale) => self.find_in(sale.home(&row.user), row.id).await?,
            None => None,
        };
        let Some(view) = found else {
            return Ok(AdmissionView { purchase: row, transport: Transport::Published });
        };
        row.admission = view.purchase.admission;
        let transport = if row.reservation.is_some() { Transport::Published } else { view.transport };
        Ok(AdmissionView { purchase: row, transport })
    }

    /// One that only the gate knows: its id does not say in which bucket, and it may be in one that was opened a moment ago.
    async fn find_anywhere(&self, id: PurchaseId) -> Result<Option<AdmissionView>, Error> {
        let asked_at = Instant::now();
        let known = self.core.everywhere().await?;
        if let Some(found) = self.find_among(&known, id).await? {
            return Ok(Some(found));
        }
        let looked_at: HashSet<(&SkuKey, u16)> =
            known.iter().map(|(sale, number)| (&sale.key, *number)).collect();
        let mut others = self.core.everywhere_since(asked_at).await?;
        others.retain(|(sale, number)| !looked_at.contains(&(&sale.key, *number)));
        self.find_among(&others, id).await
    }

    async fn find_among(
        &self,
        everywhere: &[(Arc<Sale>, u16)],
        id: PurchaseId,
    ) -> Result<Option<AdmissionView>, Error> {
        let mut failed = None;
        for part in everywhere.chunks(LOOKS_AT_ONCE) {
            let look = |(sale, number): &(Arc<Sale>, u16)| {
                let (sale, number) = (Arc::clone(sale), usize::from(*number));
                async move { self.find_in(&sale.buckets[number], id).await }
            };
            for found in join_all(part.iter().map(look)).await {
                match found {
                    Ok(Some(view)) if view.purchase.route == Route::Flash => return Ok(Some(view)),
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
        }
        // It may be where nobody answers.
        failed.map_or(Ok(None), Err)
    }

    async fn find_in(&self, bucket: &Bucket, id: PurchaseId) -> Result<Option<AdmissionView>, Error> {
        let keys = [bucket.keys.counter.as_str(), &bucket.keys.reservation, &bucket.keys.send];
        let answer = self.core.link.run(&script::FIND, &keys, &[id.bytes()]).await?;
        let mut parts = reply::list(DOING, answer)?.into_iter();
        let (Some(record), Some(entry), Some(wait)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(None);
        };
        let wait = Millis(reply::number(DOING, &wait)?);
        let record = Record::read(&reply::bytes(DOING, record)?)?;
        let transport = transport_of(&reply::bytes(DOING, entry)?);
        Ok(Some(AdmissionView { purchase: record.purchase(id, &bucket.id.key, wait), transport }))
    }

    async fn claim_send(&self, limit: u32, lease: Millis) -> Result<Vec<SendClaim>, Error> {
        let claimed = self.core.claim(Way::Send, &self.send_turn, limit, lease).await?;
        let claim = |batch: Batch| SendClaim {
            held: batch.held,
            attempts: batch.attempts,
            oldest: batch.reserved_at,
            messages: batch.messages.into_iter().map(|(_, message)| message).collect(),
        };
        Ok(claimed.into_iter().map(claim).collect())
    }

    /// Those that have had their end are left out; the store judges the others. What cannot be read here keeps its entry.
    async fn claim_overdue(&self, limit: u32, lease: Millis) -> Result<Vec<OverdueClaim>, Error> {
        let claimed = self.core.claim(Way::Overdue, &self.overdue_turn, limit, lease).await?;
        let claim = |batch: Batch| {
            let open = batch.messages.into_iter().filter(|(state, _)| *state == State::Reserved);
            let reservations = open.map(|(_, message)| message).collect();
            let remaining = (!batch.unread.is_empty()).then_some((batch.again_at, batch.unread));
            OverdueClaim { held: batch.held, reservations, remaining }
        };
        Ok(claimed.into_iter().map(claim).collect())
    }

    async fn counters(&self, key: SkuKey) -> Result<Option<Counters>, Error> {
        let Some(sale) = self.core.sale(&key).await? else { return Ok(None) };
        let mut sum = Counters::full(key, 0);
        for (number, bucket) in sale.buckets.iter().enumerate() {
            let mut part = self.core.stand(bucket).await?;
            if part.is_none_or(|stand| !stand.is_open) {
                // Of a sale that is past people may ask often, and there is nothing to be done about it.
                let standing = self.core.standing(sale.key.clone()).await?;
                if let Some(standing) = standing.filter(|standing| standing.is_retired) {
                    return Ok(standing.counters);
                }
                if self.core.open_soon(&sale, number).await? == Opened::Retired {
                    let standing = self.core.standing(sale.key.clone()).await?;
                    return Ok(standing.and_then(|standing| standing.counters));
                }
                part = self.core.stand(bucket).await?;
            }
            let gone = || Error::new(Code::Unavailable, "reading a gate's counters: it lost its data again");
            part.ok_or_else(gone)?.add_to(&mut sum);
        }
        Ok(Some(sum))
    }

    async fn rebuild(&self, key: SkuKey) -> Result<(), Error> {
        let missing = || Error::new(Code::NotFound, format!("rebuilding the gate of {key}"));
        let sale = self.core.sale(&key).await?.ok_or_else(missing)?;
        let mut failed = None;
        for bucket in &sale.buckets {
            match self.core.open_now(&sale, bucket).await {
                Ok(Opened::Open) => {}
                Ok(Opened::Retired) => break,
                // One that cannot be opened leaves the others to be opened.
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// How far a message has travelled, by what the lane says of it.
fn transport_of(entry: &[u8]) -> Transport {
    match entry.split_first() {
        None => Transport::Published,
        Some((b'1', _)) => Transport::Publishing,
        Some((_, rest)) if rest.starts_with(&[0; 4]) => Transport::Pending,
        Some(_) => Transport::Unknown,
    }
}

impl Admission for RedisAdmission {
    fn reserve(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<ReserveAnswer>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.doors.reserve(commands).await }))
    }

    fn reserve_each(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<Result<ReserveAnswer, Error>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.doors.reserve_each(commands).await }))
    }

    fn part(&self, command: &Reserve) -> Part {
        self.inner.core.part(command)
    }

    fn find_at(
        &self,
        purchase: PurchaseId,
        key: &SkuKey,
        user: &UserId,
    ) -> Answer<'_, Option<AdmissionView>> {
        let (inner, key, user) = (Arc::clone(&self.inner), key.clone(), user.clone());
        Box::pin(self.on_runtime(async move { inner.find_at(purchase, &key, &user).await }))
    }

    fn find(&self, purchase: PurchaseId) -> Answer<'_, Option<AdmissionView>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.find(purchase).await }))
    }

    fn claim_send(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<SendClaim>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.claim_send(limit, lease).await }))
    }

    fn settle_send(&self, settlements: Vec<SendSettlement>) -> Answer<'_, u32> {
        let ends = settlements.into_iter().map(|one| match one {
            SendSettlement::Sent(held) => (held, End::Done),
            SendSettlement::Again { held, unsent, wait } => (held, End::After(unsent, wait)),
        });
        let (inner, ends) = (Arc::clone(&self.inner), ends.collect());
        Box::pin(self.on_runtime(async move { inner.core.settle(Way::Send, ends).await }))
    }

    fn next_send(&self) -> Answer<'_, Option<Timestamp>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.core.next(Way::Send).await }))
    }

    fn unsent(&self, limit: u64) -> Answer<'_, Unsent> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.core.unsent(limit).await }))
    }

    fn claim_overdue(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<OverdueClaim>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.claim_overdue(limit, lease).await }))
    }

    fn settle_overdue(&self, claims: Vec<OverdueClaim>) -> Answer<'_, u32> {
        let ends = claims.into_iter().map(|one| match one.remaining {
            None => (one.held, End::Done),
            Some((due_at, ids)) => (one.held, End::At(ids, due_at)),
        });
        let (inner, ends) = (Arc::clone(&self.inner), ends.collect());
        Box::pin(self.on_runtime(async move { inner.core.settle(Way::Overdue, ends).await }))
    }

    fn next_overdue(&self) -> Answer<'_, Option<Timestamp>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.core.next(Way::Overdue).await }))
    }

    fn project(&self, events: Vec<Event>) -> Answer<'_, Vec<Result<Projected, Error>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { Ok(inner.core.project(&events).await) }))
    }

    fn compensate(&self, commands: Vec<Compensate>) -> Answer<'_, Vec<Result<CompensateCode, Error>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.core.compensate(&commands).await }))
    }

    fn lives_in_store(&self) -> bool {
        false
    }

    fn rebuild(&self, key: SkuKey) -> Answer<'_, ()> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.rebuild(key).await }))
    }

    fn retire(&self) -> Answer<'_, u64> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.core.retire_all().await }))
    }

    fn counters(&self, key: SkuKey) -> Answer<'_, Option<Counters>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.counters(key).await }))
    }

    fn standing(&self, key: SkuKey) -> Answer<'_, Option<Standing>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.core.standing(key).await }))
    }

    fn rebuilds(&self) -> Rebuilds {
        let core = &self.inner.core;
        Rebuilds {
            running: core.rebuilding.load(Ordering::Relaxed),
            done: core.rebuilt.load(Ordering::Relaxed),
        }
    }
}
