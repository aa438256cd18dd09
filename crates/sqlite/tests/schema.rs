//! `schema.sql` is the sum of the migrations, and the lists in its checks are those of the machines.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use onceward_domain::due::Lane;
use onceward_domain::machine::{Machine, order};
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use onceward_sqlite::{OpenOptions, SqliteStore};
use onceward_testkit::codes::checks_allow_exactly_the_codes;
use rusqlite::Connection;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp(43_200_000)
    }
}

fn fresh(name: &str) -> Connection {
    let folder = std::env::temp_dir().join(format!("onceward-schema-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("store.db");
    SqliteStore::open(OpenOptions::new(&path, Arc::new(Noon))).unwrap().close();
    Connection::open(path).unwrap()
}

fn dump(conn: &Connection) -> String {
    let sql =
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'view', type = 'trigger', rowid";
    let mut statement = conn.prepare(sql).unwrap();
    let statements = statement.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    let mut text =
        "-- @generated from migrations/ by tests/schema.rs: run it with ONCEWARD_BLESS=1 to write it anew.\n"
            .to_owned();
    for statement in statements {
        text.push_str(&format!("\n{statement};\n"));
    }
    text
}

#[test]
fn schema_sql_is_the_sum_of_the_migrations() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema.sql");
    let made = dump(&fresh("dump"));
    if std::env::var_os("ONCEWARD_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, made, "run this test with ONCEWARD_BLESS=1 and look at what changed");
}

/// A table that is made anew takes its triggers with it: the list is what a person knows to be append-only.
#[test]
fn every_append_only_table_refuses_changes_and_deletions() {
    let schema = dump(&fresh("triggers"));
    for table in
        ["stock_entry", "transition", "quarantine", "word", "open_case", "group_transition", "credit_entry"]
    {
        for (name, what) in [("rows", "DELETE"), ("values", "UPDATE")] {
            let trigger = format!("CREATE TRIGGER {table}_keeps_{name} BEFORE {what} ON {table}\n");
            assert!(schema.contains(&trigger), "the schema lacks {trigger}");
        }
    }
}

#[test]
fn checks_allow_exactly_the_codes_of_the_machines() {
    checks_allow_exactly_the_codes(&dump(&fresh("checks")));
}

#[test]
fn ot_10_the_index_of_what_may_expire_names_the_states_of_the_machine() {
    let schema = dump(&fresh("expiry"));
    let states = order::Order::STATES.iter().filter(|state| state.next(order::OrderEvent::Expire).is_some());
    let codes: Vec<String> = states.map(|state| state.code().to_string()).collect();
    let column = format!("(CASE WHEN order_status IN ({}) THEN cancel_due_at END) VIRTUAL", codes.join(", "));
    assert!(schema.contains(&column), "the schema lacks {column}");
}

#[test]
fn views_can_be_read_and_know_the_states_and_the_lane() {
    let conn = fresh("views");
    let views = ["inventory_reservation", "orders", "consumer_inbox", "inventory_ledger", "event_outbox"];
    let later = ["compensation_tasks", "payment_record", "group_charge", "credit_ledger"];
    for view in views.into_iter().chain(later) {
        let rows: i64 =
            conn.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{view}");
    }
    let machines = "SELECT count(DISTINCT machine) FROM state WHERE machine IN
        ('reservation', 'admission', 'order', 'compensation', 'inbox_result')";
    assert_eq!(conn.query_row(machines, [], |row| row.get::<_, i64>(0)).unwrap(), 5);
    assert!(dump(&conn).contains(&format!("w.text = '{}'", Lane::OUTBOX)));
}
