//! What is special about this store: several sessions and processes, lost answers, the server's own time, and hands that write
//! SQL. What every store promises is in the conformance suite.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

mod real;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use onceward_domain::catalogue::{Activity, LatePayment, Sku, Stock};
use onceward_domain::changes::{ChangeSet, StockMove};
use onceward_domain::due::{ClaimRequest, Claimed, DueChange, Held, Lane, Sequence, Token};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::notice::Notice as NoticeStatus;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::money::{Currency, Money};
use onceward_domain::notice::{Notice, work_exhausted};
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};
use onceward_postgres::{OpenOptions, PostgresStore, migrate};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use real::Ground;
use real::proxy::{Loss, Proxy};

const START: Timestamp = Timestamp(1_800_000_000_000);

fn work(need: Need, decide: impl Fn(&mut Facts) -> Result<ChangeSet, Error> + Send + Sync + 'static) -> Work {
    Work { name: "test", need, decide: Arc::new(decide) }
}

fn write(store: &PostgresStore, changes: ChangeSet) -> Result<(), Error> {
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

fn open_sale(store: &PostgresStore) {
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
    let body = b"[{\"n\":1},{\"n\":2}]".to_vec();
    DueChange::Put { lane: Lane::new(lane), member: member.into(), due_at: Timestamp(0), body }
}

fn putting(member: &str) -> ChangeSet {
    ChangeSet { due: vec![put("lane", member)], ..ChangeSet::default() }
}

fn members(store: &PostgresStore) -> Vec<String> {
    let found = block_on(store.list_due(Lane::new("lane"), 100, None)).unwrap();
    found.into_iter().map(|one| one.member.to_string()).collect()
}

fn claim(store: &PostgresStore, sequence: Sequence, limit: u32) -> Vec<Claimed> {
    let request = ClaimRequest { lane: Lane::new("lane"), limit, lease: Millis(30_000), sequence };
    block_on(store.claim_due(request)).unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START))
}

#[test]
fn em_04_migrating_is_said_by_many_and_any_number_of_times() {
    let ground = Ground::new("migrate");
    let url = ground.empty();
    let early = ground.runtime.block_on(PostgresStore::open(OpenOptions::new(&url))).unwrap_err();
    assert!(early.operator_text().contains("migrate first"), "{early}");
    let newest = thread::scope(|scope| {
        let migrating = || ground.runtime.block_on(migrate(&url)).unwrap();
        let started: Vec<_> = (0..4).map(|_| scope.spawn(migrating)).collect();
        let done: Vec<_> = started.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(done.iter().filter(|one| one.from == 0).count(), 1, "{done:?}");
        done[0].to
    });
    ground.open(&url, None);

    let by_hand = ground.connect(&url);
    let newer = format!("INSERT INTO onceward_migration (version, name) VALUES ({}, 'later')", newest + 1);
    ground.runtime.block_on(by_hand.batch_execute(&newer)).unwrap();
    for refused in [
        ground.runtime.block_on(migrate(&url)).unwrap_err(),
        ground.runtime.block_on(PostgresStore::open(OpenOptions::new(&url))).unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::ConstraintViolated);
        assert!(refused.operator_text().contains("start the newer program"), "{refused}");
    }

    let foreign = ground.empty();
    ground
        .runtime
        .block_on(ground.connect(&foreign).batch_execute("CREATE TABLE theirs (value TEXT)"))
        .unwrap();
    let refused = ground.runtime.block_on(migrate(&foreign)).unwrap_err();
    assert!(refused.operator_text().contains("another program"), "{refused}");
}

#[test]
fn reference_003_9_8_a_lost_commit_answer_is_asked_for_on_a_new_connection() {
    let ground = Ground::new("lost");
    let url = ground.migrated();
    let direct = ground.open(&url, Some(clock()));
    let (proxy, through) = Proxy::to(&url);
    let store = ground.open(&through, Some(clock()));
    write(&store, putting("first")).unwrap();

    proxy.arm(Loss::Answer);
    write(&store, putting("answer")).expect("the server knows that it was committed");
    assert!(proxy.has_struck());
    proxy.arm(Loss::Answer);
    let claimed = claim(&store, Sequence::ByDue, 1);
    assert!(proxy.has_struck() && claimed.len() == 1, "a claim that was committed is handed out");

    proxy.arm(Loss::Request);
    let refused = write(&store, putting("request")).unwrap_err();
    assert_eq!(refused.class(), Class::Retryable, "{refused}");
    assert!(refused.operator_text().contains("was not committed"), "{refused}");

    proxy.arm(Loss::AnswerAndWay);
    let unknown = write(&store, putting("way")).unwrap_err();
    assert_eq!(unknown.code(), Code::OutcomeUnknown, "{unknown}");
    // It may have happened, and here it does, as soon as the server has come to it.
    let is_there = (0..10_000).any(|_look| members(&direct).len() == 3);
    assert!(is_there);
    assert_eq!(members(&direct), ["first", "answer", "way"]);
}

#[test]
fn dr_02_a_lost_commit_answer_is_unknown_where_the_server_has_fallen_silent() {
    let ground = Ground::new("voice");
    let url = ground.migrated();
    let (proxy, through) = Proxy::to(&url);
    let store = ground.open(&format!("{through}&connect_timeout=1"), Some(clock()));
    proxy.arm(Loss::AnswerAndVoice);
    let unknown = write(&store, putting("voice")).unwrap_err();
    assert!(proxy.has_struck());
    assert_eq!(unknown.code(), Code::OutcomeUnknown, "{unknown}");
    assert!(unknown.operator_text().contains("gave no answer within 1 s"), "{unknown}");
    let later = write(&store, putting("later")).unwrap_err();
    assert_eq!(later.code(), Code::Unavailable, "{later}: nothing of it was said yet");
    let direct = ground.open(&url, Some(clock()));
    let is_there = (0..10_000).any(|_look| members(&direct).len() == 1);
    assert!(is_there);
}

#[test]
fn dr_02_a_commit_that_hangs_is_waited_for_until_another_server_answers_in_its_place() {
    let ground = Ground::alone("moved");
    let url = ground.migrated();
    let (proxy, through) = Proxy::to(&url);
    let options = OpenOptions { sessions: 1, patience: Duration::from_secs(2), ..OpenOptions::new(through) };
    let store = ground.opened(OpenOptions { clock: Some(clock()), ..options });
    proxy.arm(Loss::Voice);
    let outcome = thread::scope(|scope| {
        let commits = scope.spawn(|| write(&store, putting("hung")));
        let direct = ground.open(&url, Some(clock()));
        while members(&direct).is_empty() {
            assert!(!commits.is_finished(), "its commit was to arrive");
        }
        assert!(proxy.has_struck() && !commits.is_finished(), "the server may be waiting for its standby");
        ground.begin_another_life();
        commits.join().unwrap()
    });
    assert_eq!(outcome.unwrap_err().code(), Code::OutcomeUnknown, "nobody can say what became of it");
    assert!(write(&store, putting("later")).is_ok(), "its session is given up");
    assert_eq!(members(&store), ["hung", "later"]);
}

/// One way to ask a store.
type Ask = fn(&PostgresStore) -> Result<(), Error>;

#[test]
fn dr_02_a_server_that_falls_silent_in_a_session_is_away_and_the_session_is_never_used_again() {
    let ground = Ground::new("hush");
    let (proxy, through) = Proxy::to(&ground.migrated());
    let options = OpenOptions { sessions: 1, patience: Duration::from_secs(1), ..OpenOptions::new(through) };
    let store = ground.opened(OpenOptions { clock: Some(clock()), ..options });
    assert!(write(&store, putting("first")).is_ok());
    let asked: [(&str, Ask); 3] = [
        ("a work", |store| write(store, putting("lost"))),
        ("a look-up", |store| block_on(store.view(Need::default())).map(drop)),
        ("a claim", |store| {
            let (lane, lease, sequence) = (Lane::new("lane"), Millis(1_000), Sequence::ByDue);
            block_on(store.claim_due(ClaimRequest { lane, limit: 1, lease, sequence })).map(drop)
        }),
    ];
    for (what, ask) in asked {
        proxy.hush();
        let away = ask(&store).unwrap_err();
        assert_eq!(away.code(), Code::Unavailable, "{what}: {away}");
        assert!(away.operator_text().contains("unanswered for 1 s"), "{what}: {away}");
        assert_eq!(members(&store), ["first"], "{what}: another session answers");
    }
}

#[test]
fn a_commit_that_comes_with_a_warning_is_an_unknown_outcome() {
    let ground = Ground::new("warning");
    let url = ground.migrated();
    let store = ground.open(&url, Some(clock()));
    // The server says in this way that a commit was not confirmed by its standby.
    let warn = "CREATE FUNCTION warn() RETURNS TRIGGER LANGUAGE plpgsql AS
            $$ BEGIN RAISE WARNING 'the wait was cut short'; RETURN NULL; END; $$;
        CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON quarantine DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION warn()";
    ground.runtime.block_on(ground.connect(&url).batch_execute(warn)).unwrap();
    let message = onceward_domain::changes::Quarantined {
        message_id: Arc::from("m"),
        payload_hash: [1; 32],
        reason: "hash_differs",
        payload: vec![1],
        at: START,
    };
    let unknown =
        write(&store, ChangeSet { quarantined: vec![message], ..ChangeSet::default() }).unwrap_err();
    assert_eq!(unknown.code(), Code::OutcomeUnknown, "{unknown}");
    write(&store, putting("next")).expect("the warning was about the other commit");
}

#[test]
fn two_deciders_of_a_row_that_was_not_there_decide_again_and_a_defect_stays_one() {
    let ground = Ground::new("race");
    let url = ground.migrated();
    let store = ground.open(&url, Some(clock()));
    open_sale(&store);
    // In a runtime of its own, because the decision that waits for it holds a thread of the first.
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let rival = elsewhere.block_on(PostgresStore::open(OpenOptions::new(&url))).unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let need = Need { purchases: vec![id(1)], ..Need::default() };
    let race = work(need, move |facts| {
        counted.fetch_add(1, Ordering::SeqCst);
        if facts.purchases.contains_key(&id(1)) {
            return Ok(putting("seen"));
        }
        let set = ChangeSet { new_purchases: vec![ordered(1)], ..ChangeSet::default() };
        let _ = write(&rival, set.clone());
        Ok(set)
    });
    block_on(store.transact(race)).unwrap();
    assert_eq!((runs.load(Ordering::SeqCst), members(&store)), (2, vec!["seen".to_owned()]));
    let again = ChangeSet { new_purchases: vec![ordered(1)], ..ChangeSet::default() };
    assert_eq!(write(&store, again).unwrap_err().code(), Code::ConstraintViolated);
}

#[test]
fn pr_02_many_sessions_of_two_processes_move_one_hot_row() {
    const WORKS: i64 = 64;
    let ground = Ground::new("hot");
    let url = ground.migrated();
    let stores = [ground.open(&url, Some(clock())), ground.open(&url, Some(clock()))];
    open_sale(&stores[0]);
    let take_one = |facts: &mut Facts| {
        let sku = &facts.skus[&key()];
        let stock =
            Stock { available: sku.stock.available - 1, occupied: sku.stock.occupied + 1, ..sku.stock };
        let change = StockMove { key: key(), revision: sku.revision, stock, adjustments: 0 };
        Ok(ChangeSet { stock: vec![change], ..ChangeSet::default() })
    };
    thread::scope(|scope| {
        for store in stores.iter().cycle().take(64) {
            let need = Need { skus: vec![key()], ..Need::default() };
            scope.spawn(|| block_on(store.transact(work(need, take_one))).expect("locks leave no conflict"));
        }
    });
    let facts = block_on(stores[1].view(Need { skus: vec![key()], ..Need::default() })).unwrap();
    assert_eq!((facts.skus[&key()].stock.occupied, facts.skus[&key()].revision), (WORKS, WORKS));
}

#[test]
fn fs_11_two_processes_never_overtake_the_head_of_a_strict_lane() {
    let ground = Ground::new("strict");
    let url = ground.migrated();
    let stores = [ground.open(&url, Some(clock())), ground.open(&url, Some(clock()))];
    let names: Vec<String> = (0..40).map(|number| format!("m{number:02}")).collect();
    let due = names.iter().map(|name| put("lane", name)).collect();
    write(&stores[0], ChangeSet { due, ..ChangeSet::default() }).unwrap();
    let mut seen: Vec<String> = Vec::new();
    while seen.len() < names.len() {
        let gate = Barrier::new(8);
        let round: Vec<Claimed> = thread::scope(|scope| {
            let one = |store| {
                gate.wait();
                claim(store, Sequence::Strict, 2)
            };
            let all: Vec<_> =
                stores.iter().cycle().take(8).map(|store| scope.spawn(move || one(store))).collect();
            all.into_iter().flat_map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(round.len(), 2, "one of eight has the head, and nobody what is behind it");
        seen.extend(round.iter().map(|one| one.held.member.to_string()));
        let due = round.into_iter().map(|one| DueChange::Complete(one.held)).collect();
        write(&stores[1], ChangeSet { due, ..ChangeSet::default() }).unwrap();
    }
    assert_eq!(seen, names);
}

#[test]
fn a_work_that_was_taken_runs_although_nobody_waits_and_a_closed_store_takes_none() {
    let ground = Ground::new("dropped");
    let store = ground.store(clock());
    let (entered, inside) = std::sync::mpsc::sync_channel::<()>(1);
    let mut future = store.transact(work(Need::default(), move |_| {
        let _ = entered.try_send(());
        Ok(putting("member"))
    }));
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    inside.recv().unwrap();
    drop(future);
    // It is there as soon as its own session has committed it.
    let is_there = (0..10_000).any(|_look| !members(&store).is_empty());
    assert!(is_there);
    store.close();
    assert_eq!(write(&store, ChangeSet::default()).unwrap_err().code(), Code::Unavailable);
    assert_eq!(block_on(store.now()).unwrap_err().code(), Code::Unavailable);
}

#[test]
fn a_panic_in_a_rule_is_the_works_error_and_its_session_goes_on() {
    let ground = Ground::new("panic");
    let store = ground.store(clock());
    for _more_often_than_there_are_sessions in 0..10 {
        let panicked =
            block_on(store.transact(work(Need::default(), |_| panic!("a defect in a rule")))).unwrap_err();
        assert_eq!(panicked.code(), Code::ConstraintViolated);
        assert!(panicked.operator_text().contains("a defect in a rule"), "{panicked}");
    }
    write(&store, putting("next")).unwrap();
}

#[test]
fn dr_06_time_is_the_servers_and_a_lost_guard_says_what_is_there() {
    let ground = Ground::new("time");
    let url = ground.migrated();
    let store = ground.open(&url, None);
    write(&store, putting("m")).unwrap();
    let before = block_on(store.now()).unwrap();
    let first = claim(&store, Sequence::ByDue, 1).remove(0);
    let after = block_on(store.now()).unwrap();
    let begun = first.lease_until.minus(Millis(30_000));
    assert!(before <= begun && begun <= after, "{before:?} {begun:?} {after:?}");
    assert!(first.created_at <= before);
    assert!(claim(&store, Sequence::ByDue, 1).is_empty());
    let stranger = Held { token: Token(first.held.token.0 + 99), ..first.held.clone() };
    let stale = ChangeSet { due: vec![DueChange::Complete(stranger)], ..ChangeSet::default() };
    let refused = write(&store, stale).unwrap_err();
    assert!(refused.operator_text().contains(&format!("but by {}", first.held.token.0)), "{refused}");
    open_sale(&store);
    let change = StockMove { key: key(), revision: 7, stock: Stock::full(100), adjustments: 0 };
    let refused = write(&store, ChangeSet { stock: vec![change], ..ChangeSet::default() }).unwrap_err();
    assert!(refused.operator_text().contains("decided on at revision 7, it is at 0"), "{refused}");
}

#[test]
fn people_find_the_familiar_tables_and_cannot_change_what_is_append_only() {
    let ground = Ground::new("hands");
    let url = ground.migrated();
    let store = ground.open(&url, Some(clock()));
    open_sale(&store);
    let due = vec![put(Lane::OUTBOX, "batch")];
    write(&store, ChangeSet { new_purchases: vec![ordered(9)], due, ..ChangeSet::default() }).unwrap();
    let by_hand = ground.connect(&url);
    let text = |sql: &str| ground.runtime.block_on(by_hand.query_one(sql, &[])).unwrap().get::<_, String>(0);
    let number = |sql: &str| ground.runtime.block_on(by_hand.query_one(sql, &[])).unwrap().get::<_, i64>(0);
    assert_eq!(text("SELECT order_id FROM orders WHERE status = 'CREATED'"), id(9).order().to_string());
    assert_eq!(text("SELECT reservation_id FROM orders"), id(9).reservation().to_string());
    assert_eq!(number("SELECT total FROM orders"), 2 * 1999);
    assert_eq!(text("SELECT status FROM inventory_reservation"), "ORDER_CREATED");
    assert_eq!(text("SELECT message_id FROM consumer_inbox"), id(9).message().to_string());
    assert_eq!(text("SELECT result FROM consumer_inbox"), "ORDER_CREATED");
    assert_eq!(number("SELECT occupied FROM inventory_ledger WHERE cause = 'order_created'"), 2);
    assert_eq!(number("SELECT count(*) FROM event_outbox WHERE event ->> 'n' IN ('1', '2')"), 2);
    for view in ["compensation_tasks", "payment_record", "group_charge", "credit_ledger"] {
        assert_eq!(number(&format!("SELECT count(*) FROM {view}")), 0, "{view}");
    }
    for (table, column) in [
        ("stock_entry", "at"),
        ("transition", "at"),
        ("quarantine", "at"),
        ("word", "text"),
        ("open_case", "at"),
        ("group_transition", "at"),
        ("credit_entry", "amount"),
    ] {
        for sql in [
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table} CASCADE"),
            format!("UPDATE {table} SET {column} = {column}"),
        ] {
            let refused = ground.runtime.block_on(by_hand.batch_execute(&sql)).unwrap_err();
            let said = refused.as_db_error().unwrap().message().to_owned();
            assert!(said.contains("append-only"), "{sql}: {said}");
        }
    }
    for sql in ["UPDATE callback SET event = event", "TRUNCATE callback", "TRUNCATE notice"] {
        assert!(ground.runtime.block_on(by_hand.batch_execute(sql)).is_err(), "{sql}");
    }
}

#[test]
fn lq_05_a_notice_that_was_not_sent_is_not_deleted_by_hand_either() {
    let ground = Ground::new("notices");
    let url = ground.migrated();
    let store = ground.open(&url, Some(clock()));
    let notice = work_exhausted(&Lane::new("q"), "m", Token(1), START);
    write(&store, ChangeSet { new_notices: vec![notice.clone()], ..ChangeSet::default() }).unwrap();
    let by_hand = ground.connect(&url);
    let delete = || ground.runtime.block_on(by_hand.batch_execute("DELETE FROM notice"));
    assert!(delete().unwrap_err().as_db_error().unwrap().message().contains("was not sent"));
    let sent = Notice { status: NoticeStatus::Sent, ..notice };
    write(&store, ChangeSet { notices: vec![sent], ..ChangeSet::default() }).unwrap();
    delete().unwrap();
}

#[test]
fn the_servers_settings_are_read_for_people() {
    let ground = Ground::new("settings");
    let store = ground.store(clock());
    let settings = ground.runtime.block_on(store.settings()).unwrap();
    assert!(settings.version_number >= 150_000 && settings.fsync, "{settings:?}");
    assert!(settings.about().starts_with("PostgreSQL "));
    assert!(block_on(store.tally()).unwrap().about.contains("synchronous_commit=on"));
}
