//! What is special about this store: group commit, what a failure takes with it, files, and time over restarts.
//! What every store promises is in the conformance suite.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use onceward_domain::catalogue::{Activity, LatePayment, Sku, Stock};
use onceward_domain::changes::{ChangeSet, Quarantined, StockEntry, StockMove, Transition};
use onceward_domain::due::{ClaimRequest, Claimed, DueChange, Held, Lane, Sequence, Token};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{Case, CaseKind};
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};
use onceward_sqlite::{OpenOptions, SqliteStore};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use rusqlite::Connection;

const START: Timestamp = Timestamp(1_800_000_000_000);

/// A folder of its own for each test, gone with it.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onceward-behaviour-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    fn file(&self) -> PathBuf {
        self.path.join("store.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn open_at(path: &Path, now: Timestamp) -> SqliteStore {
    SqliteStore::open(OpenOptions::new(path, Arc::new(ManualClock::new(now)))).unwrap()
}

fn open(path: &Path) -> SqliteStore {
    open_at(path, START)
}

fn work(need: Need, decide: impl Fn(&mut Facts) -> Result<ChangeSet, Error> + Send + Sync + 'static) -> Work {
    Work { name: "test", need, decide: Arc::new(decide) }
}

fn write(store: &SqliteStore, changes: ChangeSet) -> Result<(), Error> {
    block_on(store.transact(work(Need::default(), move |_| Ok(changes.clone()))))
}

fn key() -> SkuKey {
    SkuKey { activity: ActivityId::trusted("sale"), sku: SkuId::trusted("phone") }
}

fn id(number: u8) -> PurchaseId {
    PurchaseId::from_digest([number; 16], 1)
}

fn price() -> Money {
    Money::new(1999, Currency::CNY).unwrap()
}

fn open_sale(store: &SqliteStore) {
    let activity = Activity {
        id: key().activity,
        name: Arc::from("Sale"),
        starts_at: START,
        ends_at: START.plus(Millis(1000)),
        payment_window: Millis(1),
        cancel_grace: Millis(2),
        reservation_deadline: Millis(3),
        confirm_after_cancel: Millis(4),
        late_payment: LatePayment::Manual,
        cancelled_frees_limit: false,
    };
    let sku = Sku {
        key: key(),
        price: price(),
        per_user_limit: 1,
        limit_since: Timestamp(0),
        buckets: 1,
        opening: 100,
        stock: Stock::full(100),
        adjustments: 0,
        revision: 0,
    };
    let changes = ChangeSet { activities: vec![activity], new_skus: vec![sku], ..ChangeSet::default() };
    write(store, changes).unwrap();
}

fn ordered(number: u8) -> Purchase {
    Purchase {
        id: id(number),
        handle: 0,
        route: Route::Flash,
        user: UserId::trusted(&format!("user-{number}")),
        request: RequestId::trusted("request"),
        lines: vec![Line { key: key(), quantity: 2, place: 0, unit_price: Some(price()) }],
        admission: Admission::Reserved,
        compensation: None,
        reservation: Some(Reservation::OrderCreated),
        reason: None,
        reserved_at: START,
        business_deadline: START,
        inbox: Some(Inbox { payload_hash: [7; 32], result: InboxResult::OrderCreated }),
        order: Some(Order {
            status: OrderStatus::Created,
            total: price().times(2).unwrap(),
            paid: 0,
            refunded: 0,
            created_at: START,
            expires_at: START,
            cancel_due_at: START,
            paid_at: None,
            cancelled_at: None,
            cancel_reason: None,
        }),
        updated_at: START,
        revision: 0,
    }
}

fn put(lane: &str, member: &str) -> DueChange {
    DueChange::Put {
        lane: Lane::new(lane),
        member: member.into(),
        due_at: START,
        body: b"[{\"n\":1},{\"n\":2}]".to_vec(),
    }
}

fn lost_claim(lane: &str) -> DueChange {
    DueChange::Complete(Held { lane: Lane::new(lane), member: "nobody".into(), token: Token(99) })
}

fn claim(store: &SqliteStore, lane: &str, lease: i64) -> Vec<Claimed> {
    let request =
        ClaimRequest { lane: Lane::new(lane), limit: 10, lease: Millis(lease), sequence: Sequence::ByDue };
    block_on(store.claim_due(request)).unwrap()
}

/// Holds the writer inside a decision until the other works wait in the queue, so that they become one group.
fn as_one_group(store: &SqliteStore, works: Vec<Work>) -> Vec<Result<(), Error>> {
    let (release, released) = sync_channel::<()>(0);
    let (entered, inside) = sync_channel::<()>(1);
    let released = Mutex::new(released);
    let gate = work(Need::default(), move |_| {
        let _ = entered.try_send(());
        let _ = released.lock().unwrap().recv();
        Ok(ChangeSet::default())
    });
    let mut context = Context::from_waker(Waker::noop());
    let mut futures = vec![store.transact(gate)];
    assert!(futures[0].as_mut().poll(&mut context).is_pending());
    inside.recv().unwrap();
    for work in works {
        let mut future = store.transact(work);
        // The first poll puts the work into the queue.
        assert!(matches!(future.as_mut().poll(&mut context), Poll::Pending));
        futures.push(future);
    }
    release.send(()).unwrap();
    futures.into_iter().map(block_on).skip(1).collect()
}

#[test]
fn one_that_fails_takes_nothing_else_with_it() {
    let folder = Folder::new("group");
    let store = open(&folder.file());
    open_sale(&store);
    let changes = |changes: ChangeSet| work(Need::default(), move |_| Ok(changes.clone()));
    let due = |due: Vec<DueChange>| changes(ChangeSet { due, ..ChangeSet::default() });
    let doubled = Purchase { user: UserId::trusted("somebody-else"), ..ordered(1) };
    let answers = as_one_group(
        &store,
        vec![
            due(vec![put("new-lane", "first")]),
            due(vec![put("other-lane", "never"), lost_claim("new-lane")]),
            work(Need::default(), |_| panic!("a defect in a rule")),
            work(Need::default(), |_| Err(Error::new(Code::SoldOut, "nothing left"))),
            changes(ChangeSet { new_purchases: vec![ordered(1)], ..ChangeSet::default() }),
            changes(ChangeSet { new_purchases: vec![ordered(2), doubled], ..ChangeSet::default() }),
            due(vec![put("other-lane", "last")]),
        ],
    );
    let codes: Vec<Option<Code>> =
        answers.iter().map(|answer| answer.as_ref().err().map(Error::code)).collect();
    let (lost, defect) = (Some(Code::GuardLost), Some(Code::ConstraintViolated));
    assert_eq!(codes, [None, lost, defect, Some(Code::SoldOut), None, defect, None]);
    let text = |index: usize| answers[index].as_ref().unwrap_err().operator_text().to_owned();
    assert!(text(1).contains("nobody in new-lane is not held by token 99; it is gone"), "{}", text(1));
    assert!(text(2).contains("a defect in a rule"), "{}", text(2));
    assert!(text(5).contains("UNIQUE constraint failed: purchase.id"), "{}", text(5));

    let facts = block_on(store.view(Need { purchases: vec![id(1), id(2)], ..Need::default() })).unwrap();
    assert_eq!(facts.purchases.len(), 1, "the purchase beside a doubled one is gone with it");
    let lanes = block_on(store.lanes()).unwrap();
    let sizes: Vec<(&str, u64)> = lanes.iter().map(|lane| (lane.lane.as_str(), lane.size)).collect();
    assert_eq!(sizes, [("new-lane", 1), ("other-lane", 1)]);
    write(&store, ChangeSet::default()).unwrap();
}

#[test]
fn many_at_once_all_count() {
    const WORKS: i64 = 64;
    let folder = Folder::new("many");
    let store = open(&folder.file());
    open_sale(&store);
    let take_one = |facts: &mut Facts| {
        let sku = &facts.skus[&key()];
        let stock =
            Stock { available: sku.stock.available - 1, occupied: sku.stock.occupied + 1, ..sku.stock };
        let change = StockMove { key: key(), revision: sku.revision, stock, adjustments: 0 };
        Ok(ChangeSet { stock: vec![change], ..ChangeSet::default() })
    };
    thread::scope(|scope| {
        for _ in 0..WORKS {
            let need = Need { skus: vec![key()], ..Need::default() };
            scope.spawn(|| block_on(store.transact(work(need, take_one))).unwrap());
        }
    });
    let facts = block_on(store.view(Need { skus: vec![key()], ..Need::default() })).unwrap();
    assert_eq!(facts.skus[&key()].stock.occupied, WORKS);
    assert_eq!(facts.skus[&key()].revision, WORKS);
}

#[test]
fn a_work_that_was_taken_runs_although_nobody_waits() {
    let folder = Folder::new("dropped");
    let store = open(&folder.file());
    let mut future = store.transact(work(Need::default(), |_| {
        Ok(ChangeSet { due: vec![put("lane", "member")], ..ChangeSet::default() })
    }));
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(future);
    write(&store, ChangeSet::default()).unwrap();
    assert_eq!(block_on(store.lanes()).unwrap().len(), 1);
    store.close();
    assert_eq!(write(&store, ChangeSet::default()).unwrap_err().code(), Code::Unavailable);
    assert_eq!(block_on(store.now()).unwrap_err().code(), Code::Unavailable);
}

#[test]
fn append_only_tables_refuse_by_hand_too() {
    let folder = Folder::new("append-only");
    let store = open(&folder.file());
    open_sale(&store);
    let entry = StockEntry {
        key: key(),
        purchase: Some(id(1)),
        adjustment: None,
        cause: "cancelled",
        available: 2,
        occupied: -2,
        sold: 0,
        note: None,
        at: START,
    };
    let transition = Transition {
        purchase: id(1),
        at: START,
        kind: "order",
        from: None,
        to: "CREATED",
        cause: "a label of an older version",
        actor: Arc::from("engine"),
        reference: None,
    };
    let message = Quarantined {
        message_id: Arc::from("m"),
        payload_hash: [1; 32],
        reason: "hash_differs",
        payload: vec![1],
        at: START,
    };
    let case = Case {
        kind: CaseKind::EventReused,
        subject: Arc::from("bank:e1"),
        detail: Arc::from("{}"),
        at: START,
    };
    let changes = ChangeSet {
        new_purchases: vec![ordered(1)],
        stock_entries: vec![entry],
        transitions: vec![transition.clone()],
        quarantined: vec![message],
        cases: vec![case],
        ..ChangeSet::default()
    };
    write(&store, changes).unwrap();
    assert_eq!(block_on(store.transitions(id(1))).unwrap(), [transition]);

    let by_hand = Connection::open(folder.file()).unwrap();
    for table in ["stock_entry", "transition", "quarantine", "open_case", "word"] {
        let column = if table == "word" { "text" } else { "at" };
        for sql in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET {column} = {column}")] {
            let refused = by_hand.execute(&sql, []).unwrap_err();
            assert!(refused.to_string().contains("append-only"), "{sql}: {refused}");
        }
    }
}

#[test]
fn what_was_answered_is_in_a_copy_of_the_files_taken_at_that_moment() {
    let folder = Folder::new("crash");
    let store = open(&folder.file());
    open_sale(&store);
    for number in 1..=20 {
        let change = ChangeSet { new_purchases: vec![ordered(number)], ..ChangeSet::default() };
        write(&store, change).unwrap();
        // What a crash leaves: the file and its log, without the shared memory, and nobody closed anything.
        let copy = folder.path.join(format!("crash-{number}.db"));
        std::fs::copy(folder.file(), &copy).unwrap();
        std::fs::copy(folder.path.join("store.db-wal"), folder.path.join(format!("crash-{number}.db-wal")))
            .unwrap();
        let survivor = open(&copy);
        let need = Need { purchases: (1..=20).map(id).collect(), ..Need::default() };
        assert_eq!(block_on(survivor.view(need)).unwrap().purchases.len(), usize::from(number));
    }
}

#[test]
fn lq_02_tokens_and_time_go_on_after_a_restart() {
    let folder = Folder::new("restart");
    let store = open_at(&folder.file(), START.plus(Millis(5_000)));
    write(&store, ChangeSet { due: vec![put("lane", "member")], ..ChangeSet::default() }).unwrap();
    let first = claim(&store, "lane", 0).remove(0);
    drop(store);

    let store = open_at(&folder.file(), START);
    let now = block_on(store.now()).unwrap();
    assert_eq!(now, START.plus(Millis(5_000)), "a clock that was set back does not take time back");
    let second = claim(&store, "lane", 10_000).remove(0);
    assert!(second.held.token > first.held.token);
    assert_eq!((second.attempts, second.lease_until), (2, now.plus(Millis(10_000))));
    assert!(claim(&store, "lane", 1).is_empty());
    let stale = ChangeSet { due: vec![DueChange::Complete(first.held)], ..ChangeSet::default() };
    let refused = write(&store, stale).unwrap_err();
    assert!(refused.operator_text().contains(&format!("but by {}", second.held.token.0)), "{refused}");
}

#[test]
fn dr_06_a_clock_that_jumps_back_does_not_take_time_back() {
    let folder = Folder::new("clock");
    let clock = Arc::new(ManualClock::new(START));
    let store = SqliteStore::open(OpenOptions::new(folder.file(), clock.clone())).unwrap();
    clock.advance(Millis(100));
    assert_eq!(block_on(store.now()).unwrap(), START.plus(Millis(100)));
    clock.advance(Millis(-90));
    assert_eq!(block_on(store.now()).unwrap(), START.plus(Millis(100)));
    let seen = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&seen);
    let look = work(Need::default(), move |facts| {
        *kept.lock().unwrap() = Some(facts.now);
        Ok(ChangeSet::default())
    });
    block_on(store.transact(look)).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(START.plus(Millis(100))));
}

#[test]
fn people_find_the_familiar_tables() {
    let folder = Folder::new("views");
    let store = open(&folder.file());
    open_sale(&store);
    let due = vec![put(Lane::OUTBOX, "batch")];
    write(&store, ChangeSet { new_purchases: vec![ordered(9)], due, ..ChangeSet::default() }).unwrap();
    let by_hand = Connection::open(folder.file()).unwrap();
    let text = |sql: &str| by_hand.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |sql: &str| by_hand.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(text("SELECT order_id FROM orders WHERE status = 'CREATED'"), id(9).order().to_string());
    assert_eq!(text("SELECT reservation_id FROM orders"), id(9).reservation().to_string());
    assert_eq!(number("SELECT total FROM orders"), 2 * 1999);
    assert_eq!(text("SELECT status FROM inventory_reservation"), "ORDER_CREATED");
    assert_eq!(text("SELECT message_id FROM consumer_inbox"), id(9).message().to_string());
    assert_eq!(text("SELECT result FROM consumer_inbox"), "ORDER_CREATED");
    assert_eq!(number("SELECT occupied FROM inventory_ledger WHERE cause = 'order_created'"), 2);
    assert_eq!(number("SELECT count(*) FROM event_outbox WHERE event ->> 'n' IN (1, 2)"), 2);
}

/// Bytes of the log beside the store.
fn log_bytes(folder: &Folder) -> u64 {
    std::fs::metadata(folder.path.join("store.db-wal")).map_or(0, |log| log.len())
}

/// Commits until the log has passed this many bytes; answers how many commits that took.
fn write_log(store: &SqliteStore, folder: &Folder, bytes: u64) -> u32 {
    const COMMITS_LIMIT: u32 = 20_000;
    for number in 0..COMMITS_LIMIT {
        if log_bytes(folder) > bytes {
            return number;
        }
        let member = format!("member-{}-{number}", log_bytes(folder));
        write(store, ChangeSet { due: vec![put("lane", &member)], ..ChangeSet::default() }).unwrap();
    }
    panic!("the log does not grow");
}

/// Looks again and again, for longer than the keeper rests.
fn comes_true(is_true: impl Fn() -> bool) -> bool {
    const LOOKS: u32 = 3_000;
    let (_nobody, never) = sync_channel::<()>(1);
    (0..LOOKS).any(|_| {
        let found = is_true();
        if !found {
            let _ = never.recv_timeout(std::time::Duration::from_millis(10));
        }
        found
    })
}

#[test]
fn the_log_is_moved_into_the_file_when_commits_stop_and_a_reader_only_delays_that() {
    const MIB: u64 = 1024 * 1024;
    let folder = Folder::new("log");
    let store = open(&folder.file());
    write_log(&store, &folder, 6 * MIB);
    assert!(comes_true(|| log_bytes(&folder) == 0), "{} bytes are left", log_bytes(&folder));

    let reader = Connection::open(folder.file()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;").unwrap();
    write_log(&store, &folder, 6 * MIB);
    assert!(comes_true(|| log_bytes(&folder) > 6 * MIB));
    write(&store, ChangeSet::default()).unwrap();
    reader.execute_batch("COMMIT").unwrap();
    assert!(comes_true(|| log_bytes(&folder) == 0), "{} bytes are left", log_bytes(&folder));
    assert_eq!(block_on(store.lanes()).unwrap().len(), 1, "nothing of it is lost");
    write(&store, ChangeSet { due: vec![put("lane", "last")], ..ChangeSet::default() }).unwrap();
    store.close();
}
