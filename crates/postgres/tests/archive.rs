//! A schema moves whole, on a real server; every table and column of it is dumped.

mod real;

use std::collections::BTreeSet;
use std::sync::Arc;

use onceward_domain::dump::{Page, TABLES, Table, Value};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::archive::{Archive as _, Sink, Source};
use onceward_domain::ports::store::Store;
use onceward_postgres::{OpenOptions, PostgresArchive, PostgresStore, Tenure, begin};
use onceward_testkit::block_on::block_on;
use onceward_testkit::conformance::archive::{self, Place};
use real::Ground;

#[test]
fn em_02_the_cluster_store_moves_whole() {
    let ground = Arc::new(Ground::new("archive"));
    archive::run_all(&|clock| {
        // Without tables: a restore makes them, and so does whoever opens it first.
        let url = ground.empty();
        let inside = ground.runtime.enter();
        let archive = Arc::new(PostgresArchive::new(&url));
        drop(inside);
        let ground = Arc::clone(&ground);
        let open = move || {
            ground.runtime.block_on(begin(&url)).unwrap();
            Arc::new(ground.open(&url, Some(clock.clone()))) as Arc<dyn Store>
        };
        Place { archive, open: Box::new(open) }
    });
}

#[test]
fn em_02_a_schema_is_moved_while_no_node_uses_it_whatever_the_node_is_called() {
    let ground = Ground::new("hold");
    let url = ground.migrated();
    // Nobody waits for long here.
    let hasty = format!("{url}%20-clock_timeout%3D200ms");
    let archive_of = |url: &str| {
        let _inside = ground.runtime.enter();
        PostgresArchive::new(url)
    };
    let open = |url: &str, tenure| {
        let options = OpenOptions { tenure, ..OpenOptions::new(url) };
        ground.runtime.block_on(PostgresStore::open(options))
    };
    let store = open(&format!("{hasty}&application_name=another"), Tenure::Shared).unwrap();
    let refused = block_on(archive_of(&hasty).hold()).unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.operator_text().contains("stop every node first"), "{refused}");
    drop(store);

    // Its sessions are just ending.
    let hold = block_on(archive_of(&url).hold()).unwrap();
    let kept_out = open(&hasty, Tenure::Shared).unwrap_err();
    assert_eq!(kept_out.code(), Code::Unavailable, "a node that starts meanwhile is told to come back");
    assert!(kept_out.operator_text().contains("end of an export or an import"), "{kept_out}");
    assert_eq!(block_on(archive_of(&hasty).hold()).unwrap_err().code(), Code::Unavailable, "nor two at once");
    block_on(open(&hasty, Tenure::Held).unwrap().now()).unwrap();
    open(&ground.migrated(), Tenure::Shared).expect("another schema is another's");
    block_on(hold.check()).unwrap();
    let by_hand = ground.connect(&url);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    ground.runtime.block_on(by_hand.query(end, &[])).unwrap();
    assert!(block_on(hold.check()).is_err(), "a hold that was lost says so");
    drop(hold);
    open(&url, Tenure::Shared).unwrap();
}

/// One page.
struct Once(Option<Page>);

impl Source for Once {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        Ok(self.0.take())
    }
}

/// Has the server end the session that holds the schema, when the dump is at its end or the restore has everything.
struct Severs {
    runtime: tokio::runtime::Handle,
    people: Arc<tokio_postgres::Client>,
    pages: Option<Page>,
}

impl Severs {
    fn sever(&self) {
        let sql = "SELECT pg_terminate_backend(pid, 30000) FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 2 AND mode = 'ExclusiveLock'
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let ended = self.runtime.block_on(self.people.query(sql, &[])).expect("people are heard");
        assert!(ended.len() == 1 && ended[0].get(0), "one session holds it, and ends");
    }
}

impl Source for Severs {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        let page = self.pages.take();
        if page.is_none() {
            self.sever();
        }
        Ok(page)
    }
}

impl Sink for Severs {
    fn take(&mut self, _: Page) -> Result<(), Error> {
        if self.pages.take().is_some() {
            self.sever();
        }
        Ok(())
    }
}

#[test]
fn em_02_what_was_moved_while_the_hold_was_lost_is_none() {
    let ground = Ground::new("severed");
    let url = ground.migrated();
    let people = Arc::new(ground.connect(&url));
    let word = || {
        let rows = vec![vec![Value::Number(1), Value::Text("lane".to_owned())]];
        Some(Page { table: Table::named("word").unwrap(), rows })
    };
    let severs = || {
        let (runtime, people) = (ground.runtime.handle().clone(), Arc::clone(&people));
        Box::new(Severs { runtime, people, pages: word() })
    };
    let archive = {
        let _inside = ground.runtime.enter();
        PostgresArchive::new(&url)
    };
    let held = || archive.clone().under(Arc::new(block_on(archive.hold()).unwrap()));
    let lost = block_on(held().restore(severs())).unwrap_err();
    assert_eq!(lost.code(), Code::Unavailable, "{lost}");
    let count = ground.runtime.block_on(people.query_one("SELECT count(*) FROM word", &[])).unwrap();
    assert_eq!(count.get::<_, i64>(0), 0, "nothing is there");
    block_on(held().restore(Box::new(Once(word())))).expect("a repeat finishes it");
    let lost = block_on(held().dump(severs())).unwrap_err();
    assert_eq!(lost.code(), Code::Unavailable, "{lost}");
}

#[test]
fn dr_02_a_restore_waits_for_its_commit_for_as_long_as_that_takes() {
    let ground = Ground::new("slow_commit");
    let url = ground.migrated();
    let by_hand = ground.connect(&url);
    // As a standby that takes its time would, this holds up the commit for longer than a statement may take.
    let slow = "CREATE FUNCTION slow() RETURNS TRIGGER LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON word DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION slow()";
    ground.runtime.block_on(by_hand.batch_execute(slow)).unwrap();
    let archive = {
        let _inside = ground.runtime.enter();
        PostgresArchive::new(format!("{url}%20-cstatement_timeout%3D2s"))
    };
    let rows = vec![vec![Value::Number(1), Value::Text("lane".to_owned())]];
    let page = Page { table: Table::named("word").unwrap(), rows };
    block_on(archive.restore(Box::new(Once(Some(page))))).unwrap();
    let count = ground.runtime.block_on(by_hand.query_one("SELECT count(*) FROM word", &[])).unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
}

#[test]
fn every_table_and_every_column_is_dumped() {
    /// Names for people, and the list of migrations: the program brings them along.
    const LEFT_OUT: [&str; 2] = ["state", "onceward_migration"];
    let ground = Ground::new("columns");
    let client = ground.connect(&ground.migrated());
    let sql = "SELECT c.table_name, c.column_name FROM information_schema.columns AS c
        JOIN information_schema.tables AS t USING (table_schema, table_name)
        WHERE t.table_type = 'BASE TABLE' AND table_schema = current_schema()";
    let rows = ground.runtime.block_on(client.query(sql, &[])).unwrap();
    let there: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| (row.get::<_, String>(0), row.get::<_, String>(1)))
        .filter(|(table, _)| !LEFT_OUT.contains(&table.as_str()))
        .collect();
    let dumped: BTreeSet<(String, String)> = TABLES
        .iter()
        // The embedded store's table of counters is a sequence here.
        .filter(|table| table.name != "counter")
        .flat_map(|table| table.columns.iter().map(|column| (table.place.to_owned(), column.name.to_owned())))
        .collect();
    assert_eq!(dumped, there);
}
