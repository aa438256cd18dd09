//! Credit accounts are their entries, and entries are only ever appended (CL-01, CL-02, CL-08).

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, Credits, Entry, EntryKind, Standing};
use onceward_domain::decide::credit::{self, Charge, Charged};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::AccountId;
use onceward_domain::ports::store::{Decide, PageRequest, Store, Work};
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{Ground, START};
use super::threads::at_once;
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("cl_01_accounts_and_entries_come_back_whole", come_back_whole),
    Case::new("c_110_c_112_big_balances_are_kept", big_balances),
    Case::new("cl_01_an_account_starts_empty_and_once", starts_empty),
    Case::new("cl_01_an_entry_only_goes_on_from_the_one_before", goes_on),
    Case::new("c_77_a_balance_never_moves_without_its_entry", no_balance_without_entry),
    Case::new("ot_01_a_stale_account_revision_loses", stale_account),
    Case::new("cl_07_an_overdraft_is_kept_without_an_entry", overdraft_kept),
    Case::new("c_101_a_reference_is_charged_once_per_account", reference_once),
    Case::new("cl_08_a_balance_is_known_at_every_moment", standings),
    Case::new("se_03_entries_are_listed_newest_first_in_stable_pages", pages),
    Case::new("rc_02_the_ledger_is_summed", summed),
    Case::new("c_66_cl_07_sixty_four_threads_never_overdraw", never_overdraw),
];

fn account(name: &str) -> AccountId {
    AccountId::trusted(name)
}

fn entry(account: &Account, kind: EntryKind, amount: i64) -> Entry {
    Entry {
        account: account.id.clone(),
        number: account.entries + 1,
        kind,
        amount,
        balance_after: account.balance + amount,
        job: None,
        reference: None,
        reason: None,
        actor: Arc::from("tester"),
        at: START,
    }
}

/// The account after an entry; its revision is still the one that was loaded.
fn after(account: &Account, entry: &Entry) -> Account {
    Account { balance: entry.balance_after, entries: entry.number, ..account.clone() }
}

fn set(accounts: Vec<Account>, entries: Vec<Entry>) -> ChangeSet {
    ChangeSet { accounts, entries, ..ChangeSet::default() }
}

fn read(ground: &Ground, name: &str) -> Account {
    let facts = ground.view(Need { accounts: vec![account(name)], ..Need::default() });
    facts.accounts.get(&account(name)).cloned().expect("the account is there")
}

fn open(ground: &Ground, name: &str) -> Account {
    let account = Account::empty(account(name), START);
    ground.must(ChangeSet { new_accounts: vec![account.clone()], ..ChangeSet::default() });
    account
}

/// An account that was given this much in one entry.
fn holding(ground: &Ground, name: &str, amount: i64) -> Account {
    let empty = open(ground, name);
    let gift = entry(&empty, EntryKind::Grant, amount);
    ground.must(set(vec![after(&empty, &gift)], vec![gift]));
    read(ground, name)
}

fn list(ground: &Ground, name: &str, limit: u32, before: Option<i64>) -> Vec<Entry> {
    block_on(ground.store.list_entries(account(name), PageRequest { limit, before }))
        .expect("list_entries answers")
}

fn come_back_whole(ground: &Ground) {
    let empty = open(ground, "a");
    assert_eq!(read(ground, "a"), empty);
    let mut gift = entry(&empty, EntryKind::Grant, 40);
    gift.reference = Some(Arc::from("新年 🎁"));
    let mut right = entry(&after(&empty, &gift), EntryKind::Adjust, -7);
    right.reason = Some(Arc::from("a mistake \"quoted\""));
    right.actor = Arc::from("ann");
    right.at = START.plus(Millis(5));
    let mut charge = entry(&after(&after(&empty, &gift), &right), EntryKind::Charge, -3);
    charge.reference = Some(Arc::from("settle:group:a"));
    charge.at = right.at;
    let mut last = after(&empty, &charge);
    last.overdraft = 11;
    last.updated_at = charge.at;
    ground.must(set(vec![last.clone()], vec![gift.clone(), right.clone(), charge.clone()]));
    last.revision += 1;
    assert_eq!(read(ground, "a"), last);
    let key = (account("a"), Arc::from("settle:group:a"));
    let facts = ground.view(Need { charges: vec![key.clone()], ..Need::default() });
    assert_eq!(facts.charges.get(&key), Some(&charge));
    assert_eq!(facts.accounts.get(&account("a")), Some(&last), "a charge comes with its account");
    assert_eq!(list(ground, "a", 10, None), [charge, right, gift]);
}

fn big_balances(ground: &Ground) {
    holding(ground, "many", 3_616_672_277);
    assert_eq!(read(ground, "many").balance, 3_616_672_277);
    let most = holding(ground, "most", i64::MAX);
    let mut least = open(ground, "least");
    least.overdraft = i64::MAX;
    let mut debt = entry(&least, EntryKind::Adjust, i64::MIN + 1);
    debt.at = Timestamp(i64::MAX);
    ground.must(set(vec![after(&least, &debt)], vec![debt]));
    assert_eq!((read(ground, "most").balance, most.balance), (i64::MAX, i64::MAX));
    assert_eq!(read(ground, "least").balance, i64::MIN + 1);
    let facts = ground.view(Need { accounts: vec![account("many"), account("least")], ..Need::default() });
    assert_eq!(facts.accounts.len(), 2, "C112: every other row is readable");
    assert_eq!(block_on(ground.store.tally()).expect("tally answers").credit.balance_contradictions, 0);
}

fn starts_empty(ground: &Ground) {
    let new = |account: Account| ChangeSet { new_accounts: vec![account], ..ChangeSet::default() };
    let empty = Account::empty(account("a"), START);
    ground.refuses(new(Account { balance: 5, ..empty.clone() }), Code::ConstraintViolated);
    ground.refuses(new(Account { entries: 1, ..empty.clone() }), Code::ConstraintViolated);
    ground.must(new(empty.clone()));
    ground.refuses(new(Account { overdraft: 9, ..empty.clone() }), Code::ConstraintViolated);
    assert_eq!(read(ground, "a"), empty);
}

fn goes_on(ground: &Ground) {
    let known = holding(ground, "a", 40);
    let good = entry(&known, EntryKind::Charge, -10);
    for wrong in [
        Entry { number: 1, ..good.clone() },
        Entry { number: 3, ..good.clone() },
        Entry { number: 0, ..good.clone() },
        Entry { balance_after: 31, ..good.clone() },
        Entry { amount: -11, ..good.clone() },
        Entry { amount: 0, balance_after: 40, ..good.clone() },
        Entry { at: START.minus(Millis(1)), ..good.clone() },
    ] {
        ground.refuses(set(vec![after(&known, &wrong)], vec![wrong]), Code::ConstraintViolated);
    }
    ground.refuses(set(Vec::new(), vec![good.clone()]), Code::ConstraintViolated);
    let stranger = Account::empty(account("stranger"), START);
    let first = entry(&stranger, EntryKind::Grant, 1);
    ground.refuses(set(vec![after(&stranger, &first)], vec![first]), Code::GuardLost);
    assert_eq!((read(ground, "a"), list(ground, "a", 10, None).len()), (known.clone(), 1));
    ground.must(set(vec![after(&known, &good)], vec![good]));
}

fn no_balance_without_entry(ground: &Ground) {
    let known = holding(ground, "a", 40);
    for wrong in [
        Account { balance: 41, ..known.clone() },
        Account { entries: 2, ..known.clone() },
        Account { balance: 0, entries: 0, ..known.clone() },
    ] {
        ground.refuses(set(vec![wrong], Vec::new()), Code::ConstraintViolated);
    }
    let good = entry(&known, EntryKind::Charge, -10);
    ground.refuses(set(vec![known.clone()], vec![good]), Code::ConstraintViolated);
    assert_eq!(read(ground, "a"), known);
}

fn stale_account(ground: &Ground) {
    let known = holding(ground, "a", 40);
    let charge = entry(&known, EntryKind::Charge, -10);
    let change = || set(vec![after(&known, &charge)], vec![charge.clone()]);
    ground.must(change());
    ground.refuses(change(), Code::GuardLost);
    let again = Entry { number: 3, balance_after: 20, ..charge.clone() };
    ground.refuses(set(vec![after(&known, &again)], vec![again]), Code::GuardLost);
    let now = read(ground, "a");
    assert_eq!((now.balance, now.entries, now.revision), (30, 2, known.revision + 1));
    let gone = Account::empty(account("nobody"), START);
    ground.refuses(set(vec![gone], Vec::new()), Code::GuardLost);
}

fn overdraft_kept(ground: &Ground) {
    let known = holding(ground, "a", 40);
    ground.must(set(vec![Account { overdraft: 15, ..known.clone() }], Vec::new()));
    let now = read(ground, "a");
    assert_eq!((now.overdraft, now.balance, now.entries), (15, 40, 1));
}

fn reference_once(ground: &Ground) {
    let append = |name: &str, kind, amount| {
        let known = read(ground, name);
        let mut new = entry(&known, kind, amount);
        new.reference = Some(Arc::from("k"));
        set(vec![after(&known, &new)], vec![new])
    };
    holding(ground, "a", 40);
    holding(ground, "b", 40);
    for name in ["a", "b"] {
        ground.must(append(name, EntryKind::Grant, 5));
        ground.must(append(name, EntryKind::Charge, -5));
        ground.refuses(append(name, EntryKind::Charge, -5), Code::ConstraintViolated);
        ground.must(append(name, EntryKind::Grant, 5));
        assert_eq!(read(ground, name).balance, 45);
    }
}

fn standings(ground: &Ground) {
    assert_eq!(block_on(ground.store.standing(account("a"), START)).expect("standing answers"), None);
    let mut known = open(ground, "a");
    let at = |number: i64| START.plus(Millis(number / 3 * 10));
    for number in 1..=20 {
        let mut new = entry(&known, EntryKind::Grant, number);
        new.at = at(number);
        ground.must(set(vec![after(&known, &new)], vec![new]));
        known = read(ground, "a");
    }
    for moment in
        (-15..=90).map(|ms| START.plus(Millis(ms))).chain([Timestamp(i64::MIN), Timestamp(i64::MAX)])
    {
        let there: Vec<i64> = (1..=20).filter(|number| at(*number) <= moment).collect();
        let expected = Standing {
            balance: there.iter().sum(),
            entries: there.last().copied().unwrap_or(0),
            as_of: moment,
        };
        let found = block_on(ground.store.standing(account("a"), moment)).expect("standing answers");
        assert_eq!(found, Some(expected));
    }
}

fn pages(ground: &Ground) {
    let mut known = holding(ground, "a", 1);
    holding(ground, "b", 1);
    for amount in 2..=7 {
        let new = entry(&known, EntryKind::Grant, amount);
        ground.must(set(vec![after(&known, &new)], vec![new]));
        known = read(ground, "a");
    }
    let numbers = |page: &[Entry]| page.iter().map(|entry| entry.number).collect::<Vec<_>>();
    let first = list(ground, "a", 3, None);
    assert_eq!(numbers(&first), [7, 6, 5]);
    let new = entry(&known, EntryKind::Grant, 8);
    ground.must(set(vec![after(&known, &new)], vec![new]));
    assert_eq!(numbers(&list(ground, "a", 3, Some(5))), [4, 3, 2]);
    assert_eq!(numbers(&list(ground, "a", 3, Some(2))), [1]);
    assert!(list(ground, "a", 3, Some(1)).is_empty() && list(ground, "nobody", 3, None).is_empty());
}

fn summed(ground: &Ground) {
    let sums = || block_on(ground.store.tally()).expect("tally answers").credit;
    assert_eq!((sums().accounts, sums().entries, sums().balance_contradictions), (0, 0, 0));
    let known = holding(ground, "a", 40);
    open(ground, "b");
    let charge = entry(&known, EntryKind::Charge, -41);
    ground.must(set(vec![after(&known, &charge)], vec![charge]));
    assert_eq!((sums().accounts, sums().entries, sums().balance_contradictions), (2, 2, 0));
}

/// Charges one credit as the engine does: again, where somebody else was first.
fn charge_one(store: &dyn Store, number: u64) -> Result<(), Error> {
    let command = Charge {
        account: account("a"),
        amount: Credits::new(1).expect("it is 1"),
        reference: Arc::from(format!("charge-{number}")),
        actor: Arc::from("tester"),
    };
    let need =
        Need { charges: vec![(command.account.clone(), command.reference.clone())], ..Need::default() };
    let decide: Decide = Arc::new(move |facts| {
        let (changes, mut outcomes) = credit::charge(facts, std::slice::from_ref(&command));
        match outcomes.remove(0)? {
            Charged::Now(_) => Ok(changes),
            Charged::Before(_) => panic!("nobody else has this reference"),
        }
    });
    let work = Work { name: "charge", need, decide };
    for _ in 0..64 {
        match block_on(store.transact(work.clone())) {
            Err(error) if error.class() == Class::Conflict => {}
            answer => return answer,
        }
    }
    Err(Error::new(Code::GuardLost, "every try met a conflict"))
}

fn never_overdraw(ground: &Ground) {
    holding(ground, "a", 50);
    let store = Arc::clone(&ground.store);
    let answers = at_once(move |number| charge_one(&*store, number).map_err(|error| error.code()));
    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    let refused = answers.iter().filter(|answer| **answer == Err(Code::InsufficientCredit)).count();
    assert_eq!((won, refused), (50, 14), "{answers:?}");
    let now = read(ground, "a");
    assert_eq!((now.balance, now.entries), (0, 51));
}
