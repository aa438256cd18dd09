//! A gate in parts, one for each SKU, of which each can be away or hang, for tests of what that means to the others (FS-19).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use onceward_domain::catalogue::Bucket;
use onceward_domain::error::{Code, Error};
use onceward_domain::event::{Event, Fact};
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::ports::Answer;
use onceward_domain::ports::admission::{
    Admission, AdmissionView, Compensate, CompensateCode, OverdueClaim, Part, Projected, Reserve,
    ReserveAnswer, SendClaim, SendSettlement, Unsent,
};
use onceward_domain::time::{Millis, Timestamp};
use tokio::sync::watch;

/// The gate; it does not live in the store, as far as anybody can tell.
pub(crate) struct Parted {
    inner: Arc<dyn Admission>,
    /// Whether it says in which part a buyer is.
    tells_parts: bool,
    away: Mutex<Vec<SkuKey>>,
    /// The part that lets its buyers wait, until it is away.
    hanging: watch::Sender<Option<SkuKey>>,
    /// Whether all of it is away.
    is_away: Mutex<bool>,
    /// A defect of ours: events of this SKU fail everything that is projected together with them.
    poison: Mutex<Option<SkuKey>>,
}

fn nobody() -> Error {
    Error::new(Code::Unavailable, "this part of the gate is away")
}

impl Parted {
    pub(crate) fn over(inner: Arc<dyn Admission>, tells_parts: bool) -> Arc<Self> {
        let hanging = watch::Sender::new(None);
        let (away, is_away, poison) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { inner, tells_parts, away, hanging, is_away, poison })
    }

    pub(crate) fn hang(&self, key: SkuKey) {
        self.hanging.send_replace(Some(key));
    }

    /// Who hung is told that nobody is there.
    pub(crate) fn end(&self) {
        let hung = self.hanging.send_replace(None);
        self.away.lock().unwrap().extend(hung);
    }

    pub(crate) fn take_away(&self, key: SkuKey) {
        self.away.lock().unwrap().push(key);
    }

    pub(crate) fn take_all_away(&self) {
        *self.is_away.lock().unwrap() = true;
    }

    pub(crate) fn poison(&self, key: SkuKey) {
        *self.poison.lock().unwrap() = Some(key);
    }

    pub(crate) fn mend(&self) {
        *self.poison.lock().unwrap() = None;
        self.away.lock().unwrap().clear();
        *self.is_away.lock().unwrap() = false;
    }

    fn is_away(&self, key: &SkuKey) -> bool {
        *self.is_away.lock().unwrap() || self.away.lock().unwrap().contains(key)
    }

    fn unless_all_is_away<'a, T: Send + 'a>(&self, answer: Answer<'a, T>) -> Answer<'a, T> {
        if *self.is_away.lock().unwrap() { Box::pin(async { Err(nobody()) }) } else { answer }
    }

    /// Asks the inner gate for those whose part is there.
    async fn each<T, A>(
        &self,
        all: Vec<T>,
        key_of: impl Fn(&T) -> Option<SkuKey> + Send,
        ask: impl AsyncFnOnce(Vec<T>) -> Result<Vec<Result<A, Error>>, Error>,
    ) -> Result<Vec<Result<A, Error>>, Error> {
        let mut answers = BTreeMap::new();
        let (mut places, mut asked) = (Vec::new(), Vec::new());
        for (place, one) in all.into_iter().enumerate() {
            if key_of(&one).is_some_and(|key| self.is_away(&key)) {
                answers.insert(place, Err(nobody()));
            } else {
                places.push(place);
                asked.push(one);
            }
        }
        answers.extend(places.into_iter().zip(ask(asked).await?));
        Ok(answers.into_values().collect())
    }
}

fn key_of(event: &Event) -> Option<SkuKey> {
    match &event.fact {
        Fact::OrderCreated { lines, .. }
        | Fact::OrderCancelled { lines, .. }
        | Fact::OrderReinstated { lines, .. } => Some(lines[0].key.clone()),
        Fact::StockAdjusted { key, .. } => Some(key.clone()),
        Fact::ReservationRejected { .. } | Fact::OrderPaid { .. } | Fact::OrderRefunded { .. } => None,
    }
}

impl Admission for Parted {
    fn reserve(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<ReserveAnswer>> {
        Box::pin(async move { self.reserve_each(commands).await?.into_iter().collect() })
    }

    fn reserve_each(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<Result<ReserveAnswer, Error>>> {
        Box::pin(async move {
            let hangs = |key: &Option<SkuKey>| commands.iter().any(|one| key.as_ref() == Some(&one.key));
            self.hanging.subscribe().wait_for(|key| !hangs(key)).await.expect("the gate is there");
            let ask = async |asked| self.inner.reserve_each(asked).await;
            self.each(commands, |one| Some(one.key.clone()), ask).await
        })
    }

    fn part(&self, command: &Reserve) -> Part {
        if !self.tells_parts {
            return Part::WHOLE;
        }
        Part(command.key.sku.as_str().bytes().fold(0, |sum, byte| sum * 256 + u64::from(byte)))
    }

    fn find(&self, purchase: PurchaseId) -> Answer<'_, Option<AdmissionView>> {
        self.unless_all_is_away(self.inner.find(purchase))
    }

    fn claim_send(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<SendClaim>> {
        self.unless_all_is_away(self.inner.claim_send(limit, lease))
    }

    fn settle_send(&self, settlements: Vec<SendSettlement>) -> Answer<'_, u32> {
        self.unless_all_is_away(self.inner.settle_send(settlements))
    }

    fn next_send(&self) -> Answer<'_, Option<Timestamp>> {
        self.unless_all_is_away(self.inner.next_send())
    }

    fn unsent(&self, limit: u64) -> Answer<'_, Unsent> {
        self.unless_all_is_away(self.inner.unsent(limit))
    }

    fn claim_overdue(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<OverdueClaim>> {
        self.unless_all_is_away(self.inner.claim_overdue(limit, lease))
    }

    fn settle_overdue(&self, claims: Vec<OverdueClaim>) -> Answer<'_, u32> {
        self.unless_all_is_away(self.inner.settle_overdue(claims))
    }

    fn next_overdue(&self) -> Answer<'_, Option<Timestamp>> {
        self.unless_all_is_away(self.inner.next_overdue())
    }

    fn project(&self, events: Vec<Event>) -> Answer<'_, Vec<Result<Projected, Error>>> {
        let poison = self.poison.lock().unwrap().clone();
        if poison.is_some() && events.iter().any(|event| key_of(event) == poison) {
            return Box::pin(async { Err(Error::new(Code::ConstraintViolated, "a defect of the gate")) });
        }
        Box::pin(self.each(events, key_of, async |asked| self.inner.project(asked).await))
    }

    fn compensate(&self, commands: Vec<Compensate>) -> Answer<'_, Vec<Result<CompensateCode, Error>>> {
        Box::pin(self.each(
            commands,
            |one| Some(one.key.clone()),
            async |asked| self.inner.compensate(asked).await,
        ))
    }

    fn lives_in_store(&self) -> bool {
        false
    }

    fn counters(&self, key: SkuKey) -> Answer<'_, Option<Bucket>> {
        if self.is_away(&key) {
            return Box::pin(async { Err(nobody()) });
        }
        self.inner.counters(key)
    }
}
