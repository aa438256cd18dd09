//! A sale in a store of record, and a gate before it by the server's own time.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onceward_domain::catalogue::{Activity, LatePayment, Sku, Stock};
use onceward_domain::changes::ChangeSet;
use onceward_domain::event::Event;
use onceward_domain::facts::Need;
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::order::Order as Status;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::admission::{Admission, Compensate, CompensateCode, Reserve};
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::purchase::{Line, Order, Purchase};
use onceward_domain::time::{Millis, Timestamp};
use onceward_redis::{Options, RedisAdmission};
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::ModelStore;

/// The machine's time, which is the server's as well.
pub(crate) struct MachineClock;

impl Clock for MachineClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server beside this test takes its time from the machine"
    )]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        Timestamp(i64::try_from(since.as_millis()).expect("it is earlier than the year 200,000,000"))
    }
}

/// What is on sale.
pub(crate) struct Sale {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: SkuKey,
    sku: Sku,
}

impl Sale {
    /// An hour-long sale of so many units in so many buckets.
    pub(crate) async fn of(units: i64, per_user_limit: u32, buckets: u16) -> Self {
        Self::by(Arc::new(MachineClock), units, per_user_limit, buckets).await
    }

    /// The same by another clock.
    pub(crate) async fn by(clock: Arc<dyn Clock>, units: i64, per_user_limit: u32, buckets: u16) -> Self {
        let now = clock.now();
        let key = SkuKey { activity: ActivityId::trusted("sale"), sku: SkuId::trusted("sku") };
        let activity = Activity {
            id: key.activity.clone(),
            name: Arc::from("A sale"),
            starts_at: now.minus(Millis(3_600_000)),
            ends_at: now.plus(Millis(3_600_000)),
            payment_window: Millis(900_000),
            cancel_grace: Millis(60_000),
            reservation_deadline: Millis(120_000),
            confirm_after_cancel: Millis(45_000),
            late_payment: LatePayment::Refund,
            cancelled_frees_limit: true,
        };
        let sku = Sku {
            key: key.clone(),
            price: Money::new(1999, Currency::CNY).expect("within the limit"),
            per_user_limit,
            limit_since: Timestamp(0),
            buckets,
            opening: units,
            stock: Stock::full(units),
            adjustments: 0,
            revision: 0,
        };
        let sale = Self { store: Arc::new(ModelStore::new(clock)), key, sku: sku.clone() };
        let changes = ChangeSet { activities: vec![activity], new_skus: vec![sku], ..ChangeSet::default() };
        sale.write(changes).await;
        sale
    }

    async fn write(&self, changes: ChangeSet) {
        let decide = Arc::new(move |_: &mut _| Ok(changes.clone()));
        let work = Work { name: "test", need: Need::default(), decide };
        self.store.transact(work).await.expect("the store takes it");
    }

    /// The store has rejected these reservations and seen their units given back, and so has the gate.
    pub(crate) async fn give_all_back(&self, gate: &RedisAdmission, numbers: Range<u64>) {
        let (mut rows, mut commands) = (Vec::new(), Vec::new());
        for id in numbers.map(id) {
            let view = gate.find(id).await.expect("the gate answers").expect("it was let in");
            rows.push(Purchase { reservation: Some(Reservation::Compensated), ..view.purchase });
            commands.push(self.compensation(id));
        }
        self.write(ChangeSet { new_purchases: rows, ..ChangeSet::default() }).await;
        let answers = gate.compensate(commands).await.expect("the gate answers");
        assert!(answers.iter().all(|answer| matches!(answer, Ok(CompensateCode::Applied))), "{answers:?}");
    }

    /// What the store says to the gate when it has made an order of this.
    pub(crate) fn ordered(&self, command: &Reserve) -> Event {
        let line = Line { key: self.key.clone(), quantity: 1, place: 0, unit_price: None };
        Event::order_created(command.purchase, command.user.clone(), vec![line], Timestamp(0))
    }

    /// What it says when it has rejected this.
    pub(crate) fn compensation(&self, purchase: PurchaseId) -> Compensate {
        Compensate { purchase, key: self.key.clone(), compensation: purchase.compensation() }
    }

    /// The store has an order for this one, and has rejected that one and seen its units given back; the gate has heard of neither.
    pub(crate) async fn decide(&self, ordered: Purchase, refused: Purchase) {
        let at = ordered.reserved_at;
        let order = Order {
            status: Status::Created,
            total: self.sku.price,
            paid: 0,
            refunded: 0,
            created_at: at,
            expires_at: at,
            cancel_due_at: at,
            paid_at: None,
            cancelled_at: None,
            cancel_reason: None,
        };
        let reservation = Some(Reservation::OrderCreated);
        let ordered = Purchase { reservation, order: Some(order), ..ordered };
        let refused = Purchase { reservation: Some(Reservation::Compensated), ..refused };
        self.write(ChangeSet { new_purchases: vec![ordered, refused], ..ChangeSet::default() }).await;
    }

    /// Another limit from now on.
    pub(crate) async fn limit(&self, per_user_limit: u32) {
        let changed = Sku { per_user_limit, ..self.sku.clone() };
        self.write(ChangeSet { changed_skus: vec![changed], ..ChangeSet::default() }).await;
    }

    pub(crate) fn gate(&self, options: Options) -> RedisAdmission {
        RedisAdmission::open(options, self.store.clone(), Arc::new(CountingIds::new("gate")))
            .expect("inside of a runtime")
    }

    /// A gate before another way to the same store.
    pub(crate) fn gate_before(&self, store: Arc<dyn Store>, options: Options) -> RedisAdmission {
        RedisAdmission::open(options, store, Arc::new(CountingIds::new("gate"))).expect("inside of a runtime")
    }

    /// Commands of as many buyers, of one unit each.
    pub(crate) fn commands(&self, numbers: Range<u64>) -> Vec<Reserve> {
        numbers.map(|number| self.command(number, &format!("u{number}"), 1)).collect()
    }

    /// A buyer's command; the number makes id and request.
    pub(crate) fn command(&self, number: u64, user: &str, quantity: u32) -> Reserve {
        Reserve {
            purchase: id(number),
            older: Vec::new(),
            key: self.key.clone(),
            user: UserId::trusted(user),
            request: RequestId::trusted(&format!("request-{number}")),
            quantity,
        }
    }
}

/// A purchase id from a number.
pub(crate) fn id(number: u64) -> PurchaseId {
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    digest[10..].copy_from_slice(&number.to_be_bytes()[2..]);
    PurchaseId::from_digest(digest, 1)
}
