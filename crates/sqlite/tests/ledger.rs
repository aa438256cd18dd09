//! The credit ledger against whoever writes SQL: its rows cannot be changed, taken away, replaced or left out, and a figure
//! that is wrong all the same is found.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

use std::path::PathBuf;
use std::sync::Arc;

use onceward_domain::audit;
use onceward_domain::credit::Credits;
use onceward_domain::decide::credit::{self, Charge, Grant};
use onceward_domain::facts::Need;
use onceward_domain::id::AccountId;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::Timestamp;
use onceward_sqlite::{OpenOptions, SqliteStore};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use rusqlite::Connection;

const START: Timestamp = Timestamp(1_800_000_000_000);

/// A file of its own for each test, gone with its folder.
struct File {
    folder: PathBuf,
}

impl File {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onceward-ledger-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(OpenOptions::new(self.path(), Arc::new(ManualClock::new(START)))).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    /// A plain connection, as a person has who opens the file with some other program: no pragma is set.
    fn sql(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn account() -> AccountId {
    AccountId::trusted("a")
}

/// An account that was given 100 and charged 40 and 10.
fn fill(store: &SqliteStore) {
    let give = |facts: &mut _| {
        let gift = Grant {
            account: account(),
            amount: Credits::new(100).unwrap(),
            reference: Arc::from("gift"),
            actor: Arc::from("tester"),
        };
        credit::grant(facts, &gift).map(|(changes, _)| changes)
    };
    let take = |facts: &mut _| {
        let charge = |amount, reference: &str| Charge {
            account: account(),
            amount: Credits::new(amount).unwrap(),
            reference: Arc::from(reference),
            actor: Arc::from("tester"),
        };
        Ok(credit::charge(facts, &[charge(40, "k1"), charge(10, "k2")]).0)
    };
    let need = Need { accounts: vec![account()], ..Need::default() };
    block_on(store.transact(Work { name: "give", need: need.clone(), decide: Arc::new(give) })).unwrap();
    block_on(store.transact(Work { name: "take", need, decide: Arc::new(take) })).unwrap();
}

#[test]
fn cl_01_no_sql_changes_what_was_entered() {
    let file = File::new("append-only");
    let store = file.open();
    fill(&store);
    let conn = file.sql();
    let dump = || -> Vec<(i64, i64, i64, i64)> {
        let sql = "SELECT account, number, amount, balance_after FROM credit_entry ORDER BY account, number";
        let mut rows = conn.prepare(sql).unwrap();
        let rows =
            rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let before = dump();
    assert_eq!(before, [(1, 1, 100, 100), (1, 2, -40, 60), (1, 3, -10, 50)]);
    let insert = |verb: &str, row: &str| {
        format!(
            "{verb} INTO credit_entry (account, number, kind, amount, balance_after, reference, actor, created_at) {row}"
        )
    };
    for sql in [
        "UPDATE credit_entry SET amount = -1".to_owned(),
        "UPDATE credit_entry SET reason = 'x' WHERE number = 3".to_owned(),
        "UPDATE OR REPLACE credit_entry SET number = 1 WHERE number = 3".to_owned(),
        "DELETE FROM credit_entry".to_owned(),
        "DELETE FROM credit_entry WHERE number = 3".to_owned(),
        // REPLACE deletes without asking the triggers on DELETE; so it is refused as an insert.
        insert(
            "REPLACE",
            "SELECT account, number, kind, -1, 59, reference, actor, created_at FROM credit_entry WHERE number = 2",
        ),
        insert(
            "INSERT OR REPLACE",
            "SELECT account, 4, kind, -40, 10, reference, actor, created_at FROM credit_entry WHERE number = 2",
        ),
        // Entries that do not go on: a gap, another sum, an earlier time, nothing moved.
        insert(
            "INSERT",
            "SELECT account, 5, kind, -1, 49, NULL, actor, created_at FROM credit_entry WHERE number = 3",
        ),
        insert(
            "INSERT",
            "SELECT account, 4, kind, -1, 50, NULL, actor, created_at FROM credit_entry WHERE number = 3",
        ),
        insert(
            "INSERT",
            "SELECT account, 4, kind, -1, 49, NULL, actor, created_at - 1 FROM credit_entry WHERE number = 3",
        ),
        insert(
            "INSERT",
            "SELECT account, 4, kind, 0, 50, NULL, actor, created_at FROM credit_entry WHERE number = 3",
        ),
        "UPDATE credit_account SET balance = 1000".to_owned(),
        "UPDATE credit_account SET entries = 2, balance = 60".to_owned(),
        "UPDATE credit_account SET entries = 0, balance = 0".to_owned(),
        "UPDATE credit_account SET id = 'b'".to_owned(),
        "DELETE FROM credit_account".to_owned(),
        "REPLACE INTO credit_account SELECT seq, id, 0, 0, overdraft, 0, 0, 0 FROM credit_account".to_owned(),
        "INSERT INTO credit_account VALUES (9, 'rich', 1000, 0, 0, 0, 0, 0)".to_owned(),
    ] {
        let refused = conn.execute_batch(&sql);
        assert!(refused.is_err(), "{sql}");
        assert_eq!(dump(), before, "{sql}");
    }
    let balance: i64 = conn.query_row("SELECT balance FROM credit_account", [], |row| row.get(0)).unwrap();
    assert_eq!(balance, 50);
}

#[test]
fn c_77_cl_01_a_wrong_figure_is_found_even_where_the_triggers_were_taken_away() {
    for (name, sabotage) in [
        ("balance", "DROP TRIGGER credit_account_is_its_entries; UPDATE credit_account SET balance = 51;"),
        ("count", "DROP TRIGGER credit_account_is_its_entries; UPDATE credit_account SET entries = 4;"),
        ("lost", "DROP TRIGGER credit_entry_keeps_rows; DELETE FROM credit_entry WHERE number = 3;"),
        ("middle", "DROP TRIGGER credit_entry_keeps_rows; DELETE FROM credit_entry WHERE number = 2;"),
        (
            "amount",
            "DROP TRIGGER credit_entry_keeps_values; UPDATE credit_entry SET amount = -41 WHERE number = 2;",
        ),
        (
            "after",
            "DROP TRIGGER credit_entry_keeps_values; UPDATE credit_entry SET balance_after = 1 WHERE number = 2;",
        ),
        (
            "pair",
            "DROP TRIGGER credit_entry_keeps_values; \
             UPDATE credit_entry SET amount = amount + CASE number WHEN 2 THEN 5 ELSE -5 END WHERE number > 1;",
        ),
    ] {
        let file = File::new(name);
        let store = file.open();
        fill(&store);
        let check = || {
            let checks = audit::judge(&block_on(store.tally()).unwrap());
            checks.into_iter().find(|check| check.name == "balances_are_their_entries").unwrap()
        };
        assert!(check().holds, "{name}: {}", check().detail);
        file.sql().execute_batch(sabotage).unwrap();
        assert!(!check().holds, "{name} went unnoticed");
    }
}
