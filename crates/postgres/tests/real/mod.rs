//! A real server: where it is, and schemas in it that nobody else has.
//!
//! Each test has a database of its own, and each store in it a schema of its own, which costs less than a database. Read next:
//! `onceward_testkit::services`, which finds the server or fails.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]
#![allow(dead_code, reason = "each test file uses another part of it")]

pub(crate) mod proxy;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward_domain::ports::clock::Clock;
use onceward_postgres::{OpenOptions, PostgresStore, migrate};
use onceward_testkit::services;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// The service, and the variable in which its address is.
const SERVICE: &str = "postgres";
const URL: &str = "ONCEWARD_TEST_POSTGRES_URL";

/// A database of one test; gone when it is dropped.
pub(crate) struct Ground {
    pub(crate) runtime: Runtime,
    server: String,
    database: String,
    schemas: AtomicU32,
}

impl Ground {
    /// Makes a database whose name ends in this test's name and the process's id.
    pub(crate) fn new(test: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = services::address(SERVICE, URL);
        let database = format!("onceward_test_{test}_{}", std::process::id());
        let ground = Self { runtime, server, database, schemas: AtomicU32::new(0) };
        ground.on_server(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", ground.database));
        ground.on_server(&format!("CREATE DATABASE {}", ground.database));
        ground
    }

    fn on_server(&self, sql: &str) {
        let client = self.connect(&self.server);
        self.runtime.block_on(client.batch_execute(sql)).unwrap();
    }

    /// A plain session, as a person has who writes SQL by hand.
    pub(crate) fn connect(&self, url: &str) -> Client {
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        })
    }

    /// The URL of a schema that nobody else has, without tables.
    pub(crate) fn empty(&self) -> String {
        let (before, _) = self.server.rsplit_once('/').unwrap();
        let schema = format!("s{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        let url = format!("{before}/{}", self.database);
        let client = self.connect(&url);
        self.runtime.block_on(client.batch_execute(&format!("CREATE SCHEMA {schema}"))).unwrap();
        format!("{url}?options=-csearch_path%3D{schema}")
    }

    /// The URL of a schema with the tables of this version.
    pub(crate) fn migrated(&self) -> String {
        let url = self.empty();
        self.runtime.block_on(migrate(&url)).unwrap();
        url
    }

    /// A store over tables that are there.
    pub(crate) fn open(&self, url: &str, clock: Option<Arc<dyn Clock>>) -> PostgresStore {
        let options = OpenOptions { clock, ..OpenOptions::new(url) };
        self.runtime.block_on(PostgresStore::open(options)).unwrap()
    }

    /// A fresh, empty store.
    pub(crate) fn store(&self, clock: Arc<dyn Clock>) -> PostgresStore {
        self.open(&self.migrated(), Some(clock))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.on_server(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database));
    }
}
