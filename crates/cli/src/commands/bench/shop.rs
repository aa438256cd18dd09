//! An engine with one sale in a store of its own, to be measured.
//!
//! Invariants: the store is a fresh file on the disk that was chosen, opened as `serve` opens it; the folder goes when
//! the shop goes. Every order is of a buyer of its own, so that no limit is ever reached.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceward::governor::GovernorSettings;
use onceward::operations::catalogue::{NewSku, put_activity, put_sku};
use onceward::store_bus::lane_of;
use onceward::{Engine, Ports, Settings, wire};
use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::derive::KeyRing;
use onceward_domain::due::{Lane, LaneStatus};
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::governor::{Band, Limits};
use onceward_domain::id::{ActivityId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::admission::{Reserve, ReserveAnswer, SendSettlement};
use onceward_domain::ports::bus::{Delivery, Receipt, Topic};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::{Millis, Timestamp};
use onceward_sqlite::SqliteStore;

use super::memory_bus::MemoryBus;
use crate::client::pause;
use crate::failure::Failure;
use crate::settings::STORE_FILE;
use crate::temp_dir::Folder;
use crate::time::{SystemClock, SystemIds};
use crate::wiring;

/// The sale.
pub(crate) const ACTIVITY: &str = "sale";
/// A SKU with more stock than any measurement sells.
pub(crate) const PLENTY: &str = "plenty";
/// A SKU of which there is nothing.
pub(crate) const NOTHING: &str = "nothing";

/// Its stock.
pub(crate) const PLENTY_STOCK: i64 = 1_000_000_000;
const DAY: Millis = Millis(24 * 60 * 60 * 1000);
/// Longer than any measurement: nothing expires in between.
pub(crate) const WINDOW: Millis = Millis(30 * 24 * 60 * 60 * 1000);
/// Reservations made together, and messages claimed together, when a round is prepared.
const PREPARED_TOGETHER: usize = 500;
/// Longest wait for the last order.
const REST_TIME: Duration = Duration::from_secs(300);
/// Between two looks: a look reads the queues alone, so it costs little beside what is measured.
const LOOK: Duration = Duration::from_millis(5);

/// The shop. Fields go in this order: the folder last.
pub(crate) struct Shop {
    /// The engine; no worker runs by itself.
    pub(crate) engine: Engine,
    /// Its store.
    pub(crate) store: Arc<SqliteStore>,
    /// The bus that the consumer reads, where it is the one in memory.
    pub(crate) messages: Arc<MemoryBus>,
    /// Where it all lies.
    pub(crate) folder: Folder,
}

/// From where the consumer gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// From memory, as the plain way does.
    Memory,
    /// From the store, as `serve` does.
    Store,
}

impl Shop {
    /// A fresh shop inside a folder.
    ///
    /// # Errors
    /// When the store cannot be had.
    pub(crate) async fn open(
        parent: &Path,
        transport: Transport,
        order_batch: usize,
    ) -> Result<Self, Failure> {
        let messages = Arc::new(MemoryBus::default());
        let settings = Settings { order_batch, ..never_closed() };
        let read = Arc::clone(&messages);
        let with_bus = |ports: Ports| match transport {
            Transport::Memory => Ports { bus: read, ..ports },
            Transport::Store => ports,
        };
        Self::build(parent, messages, settings, Terms::ENDLESS, with_bus).await
    }

    /// A fresh shop whose direct orders are due so long after they were placed, with these changes to its ports.
    ///
    /// # Errors
    /// When the store cannot be had.
    pub(crate) async fn expiring(
        parent: &Path,
        window: Millis,
        change: impl FnOnce(Ports) -> Ports,
    ) -> Result<Self, Failure> {
        let terms = Terms { window, grace: Millis(0) };
        Self::build(parent, Arc::default(), never_closed(), terms, change).await
    }

    async fn build(
        parent: &Path,
        messages: Arc<MemoryBus>,
        settings: Settings,
        terms: Terms,
        change: impl FnOnce(Ports) -> Ports,
    ) -> Result<Self, Failure> {
        let folder = Folder::inside(parent)?;
        let store = wiring::open_store(&folder.path().join(STORE_FILE))?;
        let ports = change(Ports::embedded(Arc::clone(&store) as _, Arc::new(SystemIds)));
        let keys =
            KeyRing::new(&[(1, vec![7; 32])]).map_err(|cause| Failure::other("making a key", cause))?;
        let engine = Engine::new(ports, keys, settings);
        put_on_sale(&engine, terms, &[(sku_key(PLENTY), PLENTY_STOCK), (sku_key(NOTHING), 0)]).await?;
        Ok(Self { engine, store, messages, folder })
    }

    /// Lets buyers `first..first + count` in.
    ///
    /// # Errors
    /// When one of them is not let in.
    pub(crate) async fn reserve(&self, first: u64, count: u64) -> Result<(), Failure> {
        let step = PREPARED_TOGETHER as u64;
        for start in (first..first + count).step_by(PREPARED_TOGETHER) {
            let commands: Vec<Reserve> =
                (start..(start + step).min(first + count)).map(|number| self.command(number)).collect();
            let answers = self.engine.admission().reserve(commands).await?;
            if let Some(other) = answers.iter().find(|one| !matches!(one, ReserveAnswer::Queued { .. })) {
                return Err(Failure::Other(format!("preparing reservations: {other:?}")));
            }
        }
        Ok(())
    }

    /// Turns every waiting reservation into a message of the bus in memory.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn send_all(&self) -> Result<u64, Failure> {
        let limit = u32::try_from(PREPARED_TOGETHER).unwrap_or(u32::MAX);
        let mut sent = 0;
        loop {
            let claims = self.engine.admission().claim_send(limit, DAY).await?;
            if claims.is_empty() {
                return Ok(sent);
            }
            let messages = claims.iter().flat_map(|claim| &claim.messages);
            let deliveries: Vec<Delivery> = messages.map(delivery).collect();
            sent += deliveries.len() as u64;
            self.messages.fill(deliveries);
            let ends = claims.into_iter().map(|claim| SendSettlement::Sent(claim.held)).collect();
            self.engine.admission().settle_send(ends).await?;
        }
    }

    /// Waits until every reservation has its decision: nothing is left to be sent or consumed.
    ///
    /// # Errors
    /// When that takes too long.
    pub(crate) async fn until_decided(&self) -> Result<(), Failure> {
        let started = Instant::now();
        let consumed = lane_of(Topic::OrderCreate);
        loop {
            let lanes = self.engine.store().lanes().await?;
            let is_open = |lane: &LaneStatus| lane.lane.as_str() == Lane::SEND_DUE || lane.lane == consumed;
            if !lanes.iter().any(is_open) {
                return Ok(());
            }
            if started.elapsed() > REST_TIME {
                return Err(Failure::Other("not every reservation was decided in time".to_owned()));
            }
            pause(LOOK).await;
        }
    }

    /// How many orders there are.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn orders(&self) -> Result<u64, Failure> {
        let tally = self.engine.store().tally().await?;
        let groups = tally.skus.iter().flat_map(|sku| &sku.groups);
        Ok(groups.filter(|group| group.order.is_some()).map(|group| group.purchases).sum())
    }

    /// Closes the store, which moves its log into the file; gives the folder back.
    ///
    /// # Errors
    /// When the closing thread fails.
    pub(crate) async fn close(self) -> Result<Folder, Failure> {
        let Self { engine, store, messages, folder } = self;
        let closing = tokio::task::spawn_blocking(move || {
            store.close();
            drop((engine, store, messages));
        });
        closing.await.map_err(|cause| Failure::other("closing the store", cause))?;
        Ok(folder)
    }

    fn command(&self, number: u64) -> Reserve {
        let (key, user, request) = (sku_key(PLENTY), user(number), RequestId::trusted("r"));
        let purchase = self.engine.keys().reservation(&key, &user, &request);
        Reserve { purchase, older: Vec::new(), key, user, request, quantity: 1 }
    }
}

/// A message as the bus in memory hands it out.
pub(crate) fn delivery(message: &OrderCreateRequested) -> Delivery {
    Delivery {
        receipt: Receipt { carrier: Arc::from(""), token: 0, index: 0 },
        message: wire::encode_message(message),
        attempts: 1,
        published_at: message.reserved_at,
    }
}

/// A SKU of the sale.
pub(crate) fn sku_key(sku: &str) -> SkuKey {
    SkuKey { activity: ActivityId::trusted(ACTIVITY), sku: SkuId::trusted(sku) }
}

/// The n-th buyer.
pub(crate) fn user(number: u64) -> UserId {
    UserId::trusted(&format!("u{number}"))
}

/// How long an order may stay unpaid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    window: Millis,
    grace: Millis,
}

impl Terms {
    /// Nothing expires while it is measured.
    pub(crate) const ENDLESS: Self = Self { window: WINDOW, grace: DAY };
}

/// Puts SKUs of the sale on sale, one unit a buyer.
///
/// # Errors
/// The store's.
pub(crate) async fn put_on_sale(
    engine: &Engine,
    terms: Terms,
    skus: &[(SkuKey, i64)],
) -> Result<(), Failure> {
    let now = SystemClock.now();
    let activity = Activity {
        id: ActivityId::trusted(ACTIVITY),
        name: Arc::from("A sale to be measured"),
        starts_at: Timestamp(now.0 - DAY.0),
        ends_at: now.plus(WINDOW),
        payment_window: terms.window,
        cancel_grace: terms.grace,
        reservation_deadline: WINDOW,
        confirm_after_cancel: DAY,
        late_payment: LatePayment::Refund,
        cancelled_frees_limit: true,
    };
    put_activity(engine, activity).await?;
    let price = Money::new(1999, Currency::CNY).map_err(|cause| Failure::other("making a price", cause))?;
    for (key, stock) in skus {
        let new = NewSku { key: key.clone(), stock: *stock, price, per_user_limit: 1, buckets: 1 };
        put_sku(engine, new).await?;
    }
    Ok(())
}

/// Settings under which admission never closes: what is measured is how fast the gate is, also where nobody sends what it lets in.
pub(crate) fn never_closed() -> Settings {
    let never = Band::above(u64::MAX);
    let limits = Limits { unsent: never, outage: never, drain: never, undecided_floor: u64::MAX };
    let governor = GovernorSettings { limits, ..GovernorSettings::default() };
    Settings { governor, ..Settings::default() }
}
