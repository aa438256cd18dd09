//! A schema moves whole, on a real server; every table and column of it is dumped.

mod real;

use std::collections::BTreeSet;
use std::sync::Arc;

use onceward_domain::dump::TABLES;
use onceward_domain::ports::store::Store;
use onceward_postgres::{PostgresArchive, begin};
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
