//! What every [`Archive`] promises, as a table of cases.
//!
//! The ground is that of the store's suite: each of its cases leaves a store behind, which must move whole. The model store has
//! no archive, because it keeps nothing that could be moved. Deliberately absent: keeping others away, which is the caller's.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{DueChange, Lane};
use onceward_domain::dump::{Page, Row, TABLES, Table, Value};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::id::{IdKind, PaymentId, RefundId};
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::payment::{Callback, Case, CaseKind, Payment, Refund, RefundCause};
use onceward_domain::ports::archive::{Archive, Sink, Source};
use onceward_domain::ports::store::{OrderFilter, PageRequest, Store};
use onceward_domain::tally::Tally;
use onceward_domain::time::Millis;

use super::store;
use super::store::ground::{Ground, START, cny, due, funded, id, ordered, put};
use crate::block_on::block_on;
use crate::clock::ManualClock;

/// An empty place for a store: what moves it as a whole, and what opens it.
pub struct Place {
    /// Its archive.
    pub archive: Arc<dyn Archive>,
    /// Opens the store in it.
    pub open: Box<dyn Fn() -> Arc<dyn Store>>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Place").finish_non_exhaustive()
    }
}

/// Makes an empty place whose store takes its time from the clock.
pub type MakePlace<'a> = &'a dyn Fn(Arc<ManualClock>) -> Place;

type Check = fn(MakePlace<'_>);

const CASES: &[(&str, Check)] = &[
    ("em_02_whatever_a_store_holds_moves_whole", moves_whole),
    ("lq_02_numbers_and_tokens_go_on_where_they_were", goes_on),
    ("what_holds_something_is_refused_and_kept", refuses_full),
    ("what_comes_to_nothing_leaves_nothing_and_a_repeat_finishes_it", leaves_nothing),
    ("cl_01_rows_that_break_a_law_are_refused_with_all_others", refuses_unlawful),
];

/// Runs every case, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakePlace<'_>) {
    super::run_named("archive", CASES.iter().map(|(name, check)| (*name, move || check(make))));
}

/// Keeps what a dump gives.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Page>>>);

impl Sink for Kept {
    fn take(&mut self, page: Page) -> Result<(), Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(page);
        Ok(())
    }
}

/// Gives pages, and then an end or a failure.
struct Given {
    pages: VecDeque<Page>,
    is_torn: bool,
}

impl Source for Given {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        match self.pages.pop_front() {
            Some(page) => Ok(Some(page)),
            None if self.is_torn => Err(Error::new(Code::Invalid, "the dump is cut off")),
            None => Ok(None),
        }
    }
}

fn dump(place: &Place) -> Vec<Page> {
    let kept = Kept::default();
    block_on(place.archive.dump(Box::new(kept.clone()))).expect("dumps answer");
    let pages = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    for page in pages.iter() {
        let all_fit = page.rows.iter().all(|row| page.table.admits(row));
        assert!(all_fit && !page.rows.is_empty(), "{}", page.table.name);
    }
    let positions: Vec<usize> = pages.iter().map(|page| page.table.position()).collect();
    assert!(positions.is_sorted(), "what is named comes first");
    pages.clone()
}

fn restore(place: &Place, pages: Vec<Page>) -> Result<(), Error> {
    block_on(place.archive.restore(Box::new(Given { pages: pages.into(), is_torn: false })))
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START))
}

/// A place with the rows of one sale and some due work.
fn filled(make: MakePlace<'_>) -> (Place, Ground) {
    let clock = clock();
    let place = make(Arc::clone(&clock));
    let ground = Ground::new(clock, (place.open)());
    let key = ground.sale(10);
    ground.must(ChangeSet {
        new_purchases: (1..=5).map(|number| ordered(number, &format!("user-{number}"), &key, 0)).collect(),
        ..ChangeSet::default()
    });
    ground.must(money());
    let lane = Lane::new("lane");
    ground.must(due((1..=3).map(|number| put(&lane, &format!("m{number}"), START)).collect()));
    (place, ground)
}

/// An attempt at the first order, a refund of it, what was said of it, and a case for people.
fn money() -> ChangeSet {
    let payment = Payment {
        id: PaymentId(id(1).with_kind(IdKind::Payment)),
        purchase: id(1),
        provider: Arc::from("sandbox"),
        amount: cny(1999),
        status: PaymentStatus::Pending,
        transaction: Some(Arc::from("tx \"1\" 🎁")),
        created_at: START,
        updated_at: START,
        revision: 3,
    };
    let refund = Refund {
        id: RefundId(id(1).with_kind(IdKind::Refund)),
        purchase: id(1),
        payment: payment.id,
        amount: cny(500),
        status: RefundStatus::Pending,
        cause: RefundCause::LatePayment,
        reason: Arc::from("late"),
        created_at: START,
        updated_at: START,
        revision: 0,
    };
    let callback = Callback {
        provider: Arc::from("sandbox"),
        event: Arc::from("e-1"),
        payload_hash: [9; 32],
        payload: vec![0, 255, 10, 34],
        received_at: START,
    };
    let case = Case {
        kind: CaseKind::LatePayment,
        subject: Arc::from("subject"),
        detail: Arc::from("line\nline"),
        at: START,
    };
    ChangeSet {
        new_payments: vec![payment],
        new_refunds: vec![refund],
        callbacks: vec![callback],
        cases: vec![case],
        ..ChangeSet::default()
    }
}

/// Sums without what is about the place, and without a time that never runs back in one that has written of later ones.
fn comparable(store: &dyn Store) -> Tally {
    let tally = block_on(store.tally()).expect("sums answer");
    Tally { now: START, bytes: 0, about: Arc::from(""), ..tally }
}

fn moves_whole(make: MakePlace<'_>) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut moves = |name: &str, from: &Place, ground: &Ground| {
        let to = make(Arc::clone(&ground.clock));
        let pages = dump(from);
        assert_eq!(dump(from), pages, "{name}: a dump changes nothing");
        seen.extend(pages.iter().map(|page| page.table.name));
        restore(&to, pages.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(dump(&to), pages, "{name}: all of it is there again");
        assert_eq!(comparable(&*(to.open)()), comparable(&*ground.store), "{name}: and means the same");
    };
    for case in store::cases() {
        let clock = clock();
        let from = make(Arc::clone(&clock));
        let ground = Ground::new(clock, (from.open)());
        case.check_on(&ground);
        moves(case.name, &from, &ground);
    }
    let (from, ground) = filled(make);
    moves("money", &from, &ground);
    let all: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(seen, all, "the cases leave rows in every table");
}

fn goes_on(make: MakePlace<'_>) {
    let (from, ground) = filled(make);
    let lane = Lane::new("lane");
    let held = ground.claim(&lane, 2);
    let place = make(Arc::clone(&ground.clock));
    restore(&place, dump(&from)).expect("the place is empty");
    let moved = Ground::new(Arc::clone(&ground.clock), (place.open)());

    let page = PageRequest { limit: 10, before: None };
    let list =
        |ground: &Ground| block_on(ground.store.list_orders(OrderFilter::default(), page)).expect("lists");
    let before = list(&ground);
    assert_eq!(list(&moved), before, "orders keep their numbers, which are cursors");
    moved.must(ChangeSet {
        new_purchases: vec![ordered(9, "late", &before[0].lines[0].key, 0)],
        ..ChangeSet::default()
    });
    assert!(list(&moved)[0].handle > before[0].handle, "a new one comes behind them");

    let later = moved.claim(&lane, 2);
    assert_eq!(later.len(), 1, "a lease moves along");
    assert!(held.iter().all(|one| one.held.token < later[0].held.token), "and no token is given out twice");
    moved.must(due(vec![DueChange::Complete(held[0].held.clone())]));
    moved.clock.advance(Millis(30_001));
    let again = moved.claim(&lane, 5);
    assert_eq!(again.len(), 2, "what nobody settled is due again");
    moved.must(due(vec![put(&lane, "m4", START)]));
    assert_eq!(moved.claim_one(&lane).held.member.as_ref(), "m4");
}

fn refuses_full(make: MakePlace<'_>) {
    let (from, _ground) = filled(make);
    let pages = dump(&from);
    let (full, _other) = filled(make);
    let before = dump(&full);
    for pages in [pages, Vec::new()] {
        let refused = restore(&full, pages).expect_err("it holds something");
        assert_eq!(refused.code(), Code::Differs, "{refused}");
        assert!(refused.operator_text().contains("not empty"), "{refused}");
    }
    assert_eq!(dump(&full), before);
}

/// What a dump of an empty store holds: how far nothing has come.
fn is_empty(pages: &[Page]) -> bool {
    pages
        .iter()
        .all(|page| page.table.name == "counter" && page.rows.iter().all(|row| row[1] == Value::Number(0)))
}

fn leaves_nothing(make: MakePlace<'_>) {
    let (from, ground) = filled(make);
    let pages = dump(&from);
    let place = make(Arc::clone(&ground.clock));
    for length in 0..=pages.len() {
        let torn = Given { pages: pages[..length].to_vec().into(), is_torn: true };
        let refused = block_on(place.archive.restore(Box::new(torn))).expect_err("it is cut off");
        assert_eq!(refused.operator_text(), "the dump is cut off");
        assert!(is_empty(&dump(&place)), "after {length} pages nothing is there");
    }
    restore(&place, pages.clone()).expect("a repeat finishes it");
    assert_eq!(dump(&place), pages);
}

/// The pages with one value of the first row of a table changed.
fn with(pages: &[Page], name: &str, column: &str, value: Value) -> Vec<Page> {
    let table = Table::named(name).expect("it is listed");
    let index = table.columns.iter().position(|one| one.name == column).expect("it has the column");
    let mut changed = pages.to_vec();
    let page = changed.iter_mut().find(|page| page.table == table).expect("it has rows");
    page.rows[0][index] = value;
    changed
}

fn refuses_unlawful(make: MakePlace<'_>) {
    let (from, ground) = filled(make);
    ground.must(funded("studio", 40));
    let pages = dump(&from);
    let place = make(Arc::clone(&ground.clock));
    let mut short = pages.clone();
    short.last_mut().expect("there are pages").rows[0].pop();
    let mut twice = pages.clone();
    let second: Vec<Row> = twice[0].rows.clone();
    twice[0].rows.extend(second);
    for (what, changed) in [
        ("stock that does not add up", with(&pages, "sku", "available", Value::Number(11))),
        ("a balance that no entry makes", with(&pages, "credit_balance", "balance", Value::Number(41))),
        ("a balance of nobody", with(&pages, "credit_balance", "seq", Value::Number(99))),
        ("an entry that does not go on", with(&pages, "credit_entry", "number", Value::Number(2))),
        ("a state that no table knows", with(&pages, "purchase", "admission", Value::Number(77))),
        ("nothing where something must be", with(&pages, "purchase", "user_id", Value::Nothing)),
        ("a text where a number must be", with(&pages, "purchase", "revision", Value::Text("1".to_owned()))),
        ("a row twice", twice),
        ("a row that is cut short", short),
    ] {
        let refused = restore(&place, changed).expect_err(what);
        assert!(matches!(refused.class(), Class::Manual | Class::Rejected), "{what}: {refused}");
        assert!(is_empty(&dump(&place)), "{what}: nothing is there");
    }
    restore(&place, pages).expect("as it was, it is lawful");
}
