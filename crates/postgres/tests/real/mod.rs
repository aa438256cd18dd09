//! A real server: where it is, and schemas in it that nobody else has.
//!
//! Each test has a database of its own, and each store in it a schema of its own, which costs less than a database. Read next:
//! `onceward_testkit::services`, which finds the server or fails.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]
#![allow(dead_code, reason = "each test file uses another part of it")]

pub(crate) mod proxy;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward_domain::ports::clock::Clock;
use onceward_postgres::{OpenOptions, PostgresStore, migrate};
use onceward_testkit::services;
use onceward_tls::{Authorities, Judgement};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The service, and the variable in which its address is.
const SERVICE: &str = "postgres";
const URL: &str = "ONCEWARD_TEST_POSTGRES_URL";

/// A primary and its standby.
const PAIR: &str = "postgres-pair";
const PAIR_URL: &str = "ONCEWARD_TEST_POSTGRES_PAIR_URL";

/// A server that takes only encrypted lines, and who vouches for it and who does not.
const ENCRYPTED: &str = "postgres-tls";
const ENCRYPTED_URL: &str = "ONCEWARD_TEST_POSTGRES_TLS_URL";
const AUTHORITY: &str = "ONCEWARD_TEST_POSTGRES_TLS_AUTHORITY";
const STRANGER: &str = "ONCEWARD_TEST_POSTGRES_TLS_STRANGER";

/// A database of one test; gone when it is dropped.
pub(crate) struct Ground {
    pub(crate) runtime: Runtime,
    server: String,
    /// How people come to it, and what URLs ask for.
    tls: Option<MakeRustlsConnect>,
    asked: String,
    database: String,
    schemas: AtomicU32,
}

impl Ground {
    /// Makes a database whose name ends in this test's name and the process's id.
    pub(crate) fn new(test: &str) -> Self {
        Self::on(services::address(SERVICE, URL), None, "", test)
    }

    /// The same on a server whose life a test may end for everybody else who is there.
    pub(crate) fn alone(test: &str) -> Self {
        let pair = services::address(PAIR, PAIR_URL);
        let (before, rest) = pair.split_once(',').unwrap();
        let (_, database) = rest.split_once('/').unwrap();
        let database = database.split('?').next().unwrap();
        Self::on(format!("{before}/{database}"), None, "", test)
    }

    /// The same on a server that takes only encrypted lines, which stores come to by such URLs as are usual.
    pub(crate) fn encrypted(test: &str) -> Self {
        let authority = services::address(ENCRYPTED, AUTHORITY);
        let judged = Judgement::Named.config(&Authorities::of_file(Path::new(&authority)).unwrap()).unwrap();
        let asked = format!("&sslmode=verify-full&sslrootcert={authority}");
        let server = services::address(ENCRYPTED, ENCRYPTED_URL);
        Self::on(server, Some(MakeRustlsConnect::new(judged)), &asked, test)
    }

    fn on(server: String, tls: Option<MakeRustlsConnect>, asked: &str, test: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let database = format!("onceward_test_{test}_{}", std::process::id());
        let schemas = AtomicU32::new(0);
        let ground = Self { runtime, server, tls, asked: asked.to_owned(), database, schemas };
        ground.on_server(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", ground.database));
        ground.on_server(&format!("CREATE DATABASE {}", ground.database));
        ground
    }

    fn on_server(&self, sql: &str) {
        let client = self.connect(&self.server);
        self.runtime.block_on(client.batch_execute(sql)).unwrap();
    }

    /// The server's life becomes another one, as by a promotion.
    pub(crate) fn begin_another_life(&self) {
        self.on_server("SELECT pg_stat_reset_shared('wal')");
    }

    /// A plain session, as a person has who writes SQL by hand.
    pub(crate) fn connect(&self, url: &str) -> Client {
        self.runtime.block_on(async {
            match self.tls.clone() {
                None => {
                    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
                    tokio::spawn(connection);
                    client
                }
                Some(tls) => {
                    let (client, connection) = tokio_postgres::connect(url, tls).await.unwrap();
                    tokio::spawn(connection);
                    client
                }
            }
        })
    }

    /// The URL of a schema that nobody else has, without tables.
    pub(crate) fn empty(&self) -> String {
        let (before, _) = self.server.rsplit_once('/').unwrap();
        let schema = format!("s{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        let url = format!("{before}/{}", self.database);
        let client = self.connect(&url);
        self.runtime.block_on(client.batch_execute(&format!("CREATE SCHEMA {schema}"))).unwrap();
        format!("{url}?options=-csearch_path%3D{schema}{}", self.asked)
    }

    /// The URL of a schema with the tables of this version.
    pub(crate) fn migrated(&self) -> String {
        let url = self.empty();
        self.runtime.block_on(migrate(&url)).unwrap();
        url
    }

    /// The same URL, asking for this instead.
    pub(crate) fn asking(&self, url: &str, query: &str) -> String {
        url.replace(&self.asked, &format!("&{query}"))
    }

    /// The files of who vouches for the encrypted server, and of who does not.
    pub(crate) fn authorities() -> [String; 2] {
        [AUTHORITY, STRANGER].map(|variable| services::address(ENCRYPTED, variable))
    }

    /// A store over tables that are there.
    pub(crate) fn open(&self, url: &str, clock: Option<Arc<dyn Clock>>) -> PostgresStore {
        self.opened(OpenOptions { clock, ..OpenOptions::new(url) })
    }

    /// The same, as it is said.
    pub(crate) fn opened(&self, options: OpenOptions) -> PostgresStore {
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
