//! Making a bucket from what the store has decided, for the first time or after Redis has lost something (FS-18).
//!
//! A rebuild is a replay: whatever the bucket still has is a state that it once was in, because each script is all or
//! nothing; every order of the store is projected onto it again, as its event would be, and the machine's table says what is
//! still to be done. So nothing is computed twice, and it may run beside the projector, and on several nodes at once.
//! Invariants: nobody is let in before it is over; reservations that the store does not know are kept where Redis still has
//! them; it is done again where Redis lost its data meanwhile. A reservation that was lost comes back as an order of nobody's,
//! when its message is consumed, or under the same id, when its buyer asks again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onceward_domain::catalogue::Sku;
use onceward_domain::error::{Code, Error};
use onceward_domain::id::PurchaseId;
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::Compensate;
use onceward_domain::ports::store::{OrderFilter, PageRequest};
use onceward_domain::purchase::Purchase;
use tokio::time::timeout;

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::project::Step;
use crate::record::{digit_of, record_of};
use crate::reply;
use crate::retire::Opened;
use crate::script;

/// How long a rebuild may take before whoever needs the bucket is told to come back; it goes on without them.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How often a rebuild begins anew because Redis lost its data meanwhile, or somebody else was faster.
const ROUNDS_LIMIT: u32 = 4;
/// Orders of one page of the store's list.
const ORDERS_OF_ONE_PAGE: u32 = 200;
/// About as many reservations are looked at in one call.
const RESERVATIONS_OF_ONE_PAGE: &[u8] = b"500";

const DOING: &str = "a rebuild";

/// Which bucket a rebuild works on: if any of this is another at its end, the bucket has lost something meanwhile.
struct Made {
    epoch: i64,
    /// The server's.
    history: Vec<u8>,
    /// The name that the bucket was made under.
    name: Vec<u8>,
}

impl Core {
    /// Opens a bucket, after bringing it up to what the store has decided, unless its sale is past. Who comes while another one does
    /// it waits, and does nothing.
    pub(crate) async fn open(&self, sale: &Sale, bucket: &Bucket) -> Result<Opened, Error> {
        self.open_unless(sale, bucket, Bucket::left_alone).await
    }

    /// The same for a person, who waits for no pause.
    pub(crate) async fn open_now(&self, sale: &Sale, bucket: &Bucket) -> Result<Opened, Error> {
        self.open_unless(sale, bucket, |_| None).await
    }

    async fn open_unless(
        &self,
        sale: &Sale,
        bucket: &Bucket,
        refusal: fn(&Bucket) -> Option<Error>,
    ) -> Result<Opened, Error> {
        let seen = bucket.openings.load(Ordering::Acquire);
        let _turn = bucket.turn.lock().await;
        let _running = Running::of(&self.rebuilding);
        if bucket.openings.load(Ordering::Acquire) != seen {
            return Ok(Opened::Open);
        }
        if let Some(refusal) = refusal(bucket) {
            return Err(refusal);
        }
        let opened = self.open_in_rounds(sale, bucket).await;
        bucket.note_opening(opened.as_ref().err());
        opened
    }

    async fn open_in_rounds(&self, sale: &Sale, bucket: &Bucket) -> Result<Opened, Error> {
        for _round in 0..ROUNDS_LIMIT {
            if self.retire(sale).await? {
                return Ok(Opened::Retired);
            }
            if self.rebuild(sale, bucket).await? {
                return Ok(Opened::Open);
            }
        }
        Err(Error::new(
            Code::Unavailable,
            format!("rebuilding the gate of {}: it lost its data again", sale.key),
        ))
    }

    /// The same for whoever has other buckets to look after as well: it is waited for no longer than for [`PATIENCE`], and goes on
    /// without them.
    pub(crate) async fn open_soon(
        self: &Arc<Self>,
        sale: &Arc<Sale>,
        number: usize,
    ) -> Result<Opened, Error> {
        let bucket = &sale.buckets[number];
        let seen = bucket.openings.load(Ordering::Acquire);
        let opened = async {
            if bucket.turn.try_lock().is_err() {
                // Somebody does it already.
                drop(bucket.turn.lock().await);
                return if self.retire(sale).await? { Ok(Opened::Retired) } else { Ok(Opened::Open) };
            }
            let (core, sale) = (Arc::clone(self), Arc::clone(sale));
            let opening = tokio::spawn(async move { core.open(&sale, &sale.buckets[number]).await });
            opening
                .await
                .map_err(|cause| Error::new(Code::Unavailable, "rebuilding a gate").because(cause))?
        };
        match timeout(PATIENCE, opened).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(Opened::Retired)) => Ok(Opened::Retired),
            Ok(Ok(Opened::Open)) if bucket.openings.load(Ordering::Acquire) != seen => Ok(Opened::Open),
            Ok(Ok(Opened::Open)) | Err(_) => Err(Error::new(
                Code::Unavailable,
                format!("waiting for a bucket of {} to be rebuilt", sale.key),
            )),
        }
    }

    async fn rebuild(&self, sale: &Sale, bucket: &Bucket) -> Result<bool, Error> {
        let missing = || Error::new(Code::NotFound, format!("rebuilding the gate of {}", sale.key));
        let sku = self.sku(&sale.key).await?.ok_or_else(missing)?;
        let made = self.prepare(sale, bucket, &sku).await?;
        // Before anybody is let in: a batch in a bucket that workers do not look through would never be sent.
        self.register(bucket).await?;
        for lender in &sale.buckets {
            self.finish_loans(sale, lender).await?;
        }
        self.catch_up_adjustments(sale, bucket, &sku).await?;
        self.replay_orders(sale, bucket).await?;
        self.replay_compensations(sale, bucket).await?;
        let (epoch, limit) = (made.epoch.to_string(), sku.per_user_limit.to_string());
        let time = self.time.argument();
        let arguments = [epoch.as_bytes(), &made.history, limit.as_bytes(), time.as_bytes(), &made.name];
        let answer = self.link.run(&script::OPEN, &[&bucket.keys.counter], &arguments).await?;
        let opened = reply::number(DOING, &answer)?;
        if opened > 0 {
            bucket.limit.store(sku.per_user_limit, Ordering::Relaxed);
            bucket.epoch.store(opened, Ordering::Release);
            bucket.openings.fetch_add(1, Ordering::AcqRel);
            self.rebuilt.fetch_add(1, Ordering::Relaxed);
            tracing::info!(target: "onceward", event = "admission.opened", bucket = %bucket.id.text(), epoch = opened);
        }
        Ok(opened > 0)
    }

    /// Makes sure that it is there.
    async fn prepare(&self, sale: &Sale, bucket: &Bucket, sku: &Sku) -> Result<Made, Error> {
        let units = self.share_of(sale, bucket, sku).await?;
        let rules = &sale.activity;
        let adjustments = if bucket.id.number == 0 { sku.adjustments } else { 0 };
        let arguments = [
            units.to_string(),
            adjustments.to_string(),
            sku.per_user_limit.to_string(),
            rules.starts_at.0.to_string(),
            rules.ends_at.0.to_string(),
            rules.reservation_deadline.0.to_string(),
            self.time.argument(),
            self.ids.member().to_string(),
        ];
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        let answer = self.link.run(&script::PREPARE, &[&bucket.keys.counter], &arguments).await?;
        let mut parts = reply::list(DOING, answer)?.into_iter();
        let (Some(epoch), Some(history), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(reply::unexpected(DOING));
        };
        Ok(Made {
            epoch: reply::number(DOING, &epoch)?,
            history: reply::bytes(DOING, history)?,
            name: reply::bytes(DOING, name)?,
        })
    }

    /// The units of a bucket that is not there: what the others do not have, in equal parts with those that are not there
    /// either. The store's own stock is what keeps a sale from overselling, not this sum (FS-09).
    async fn share_of(&self, sale: &Sale, bucket: &Bucket, sku: &Sku) -> Result<i64, Error> {
        let (mut rest, mut missing) = (sku.stock.initial, 1);
        for other in sale.buckets.iter().filter(|other| other.id != bucket.id) {
            match self.field(other, "initial").await? {
                Some(units) => rest -= units,
                None => missing += 1,
            }
        }
        Ok(rest.max(0) / missing)
    }

    /// A number among a bucket's counters; none where the bucket is not there.
    pub(crate) async fn field(&self, bucket: &Bucket, name: &str) -> Result<Option<i64>, Error> {
        let mut command = redis::cmd("HGET");
        command.arg(&bucket.keys.counter).arg(name);
        let answer = self.link.call(&command).await?;
        if answer == redis::Value::Nil { Ok(None) } else { reply::number(DOING, &answer).map(Some) }
    }

    /// Adjustments whose projection was lost do not come again: their sum is what the stock of record has more.
    async fn catch_up_adjustments(&self, sale: &Sale, bucket: &Bucket, sku: &Sku) -> Result<(), Error> {
        if bucket.id.number != 0 {
            return Ok(());
        }
        let Some(known) = self.field(bucket, "adjustments").await? else { return Ok(()) };
        if known >= i64::from(sku.adjustments) {
            return Ok(());
        }
        let mut delta = sku.stock.initial;
        for one in &sale.buckets {
            delta -= self.field(one, "initial").await?.unwrap_or_default();
        }
        self.adjust(bucket, delta, i64::from(sku.adjustments), known).await.map(drop)
    }

    /// Projects every order of the activity that has a line of this SKU and a buyer of this bucket.
    async fn replay_orders(&self, sale: &Sale, bucket: &Bucket) -> Result<(), Error> {
        let filter = OrderFilter { activity: Some(sale.key.activity.clone()), ..OrderFilter::default() };
        let mut page = PageRequest { limit: ORDERS_OF_ONE_PAGE, before: None };
        loop {
            let orders = self.store.list_orders(filter.clone(), page).await?;
            let Some(last) = orders.last() else { return Ok(()) };
            page.before = Some(last.handle);
            let here = orders.iter().filter(|one| sale.home(&one.user).id == bucket.id);
            let steps: Vec<Step<'_>> = here.filter_map(|order| step_of(sale, order)).collect();
            self.step_readable(bucket, &steps).await?;
        }
    }

    /// Gives back what the store has seen given back and the bucket has not: a compensation that was lost does not come
    /// again.
    async fn replay_compensations(&self, sale: &Sale, bucket: &Bucket) -> Result<(), Error> {
        let wanted = [digit_of(Admission::Reserved)];
        let mut cursor = b"0".to_vec();
        loop {
            let arguments: [&[u8]; 3] = [&cursor, RESERVATIONS_OF_ONE_PAGE, &wanted];
            let answer = self.link.run(&script::WALK, &[&bucket.keys.reservation], &arguments).await?;
            let mut parts = reply::all_bytes(DOING, reply::list(DOING, answer)?)?.into_iter();
            cursor = parts.next().ok_or_else(|| reply::unexpected(DOING))?;
            let ids = parts.map(|one| reply::id(DOING, &one)).collect::<Result<Vec<PurchaseId>, Error>>()?;
            let known = self.purchases(ids.clone()).await?;
            let given_back = |id: &PurchaseId| {
                known.get(id).is_some_and(|row| row.reservation == Some(Reservation::Compensated))
            };
            let commands: Vec<Compensate> = ids
                .into_iter()
                .filter(given_back)
                .map(|id| Compensate { purchase: id, key: sale.key.clone(), compensation: id.compensation() })
                .collect();
            let commands: Vec<&Compensate> = commands.iter().collect();
            self.compensate_readable(sale, bucket, &commands).await?;
            if cursor == b"0" {
                return Ok(());
            }
        }
    }
}

/// Counts a rebuild for as long as it goes on, however it ends.
struct Running<'a>(&'a AtomicU64);

impl<'a> Running<'a> {
    fn of(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an order's last event would do. An order that was paid is never cancelled afterwards, so whatever was projected of it
/// before, its units are committed: this is also what reinstates one (OT-07).
fn step_of<'a>(sale: &'a Sale, order: &'a Purchase) -> Option<Step<'a>> {
    let line = order.lines.iter().find(|line| line.key == sale.key)?;
    let known = order.order.as_ref()?;
    let moves = match known.status {
        OrderStatus::Cancelled => &sale.moves.cancelled,
        OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded => &sale.moves.reinstated,
        OrderStatus::Created
        | OrderStatus::Paying
        | OrderStatus::CancelPending
        | OrderStatus::ManualReview => {
            if known.cancelled_at.is_some() {
                &sale.moves.cancelled
            } else {
                &sale.moves.created
            }
        }
    };
    Some(Step { id: order.id, moves, record: record_of(order, line) })
}
