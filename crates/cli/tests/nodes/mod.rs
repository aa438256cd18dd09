//! Nodes over real servers: a schema of one's own in PostgreSQL, Redis servers of one's own, and `onceward serve` over both.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

pub(crate) mod redis;

use std::process::Command;
use std::time::{Duration, Instant};

use onceward_testkit::services;
use tokio_postgres::NoTls;

use crate::house::{Folder, PATIENCE, Server, onceward};

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(5);

/// A schema that nobody else has, and a session in it; the next run with this name begins it anew.
pub(crate) struct Database {
    /// Where nodes find it.
    pub(crate) url: String,
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Database {
    pub(crate) fn new(name: &str) -> Self {
        let server = services::address("postgres", "ONCEWARD_TEST_POSTGRES_URL");
        let url = format!("{server}?options=-csearch_path%3D{name}");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        let database = Self { url, runtime, client };
        database.say(&format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"));
        database
    }

    /// Runs statements whose rows nobody wants.
    pub(crate) fn say(&self, statements: &str) {
        self.runtime.block_on(self.client.batch_execute(statements)).unwrap();
    }

    /// The one number that a query answers.
    pub(crate) fn number(&self, query: &str) -> i64 {
        self.runtime.block_on(self.client.query_one(query, &[])).unwrap().get(0)
    }
}

/// A running node, with the secret of the first folder.
pub(crate) fn start(folder: &Folder, first: &Folder, urls: &[(&str, &str)]) -> Server {
    let mut command: Command = onceward();
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(folder.path()).envs(urls.iter().copied());
    if folder.path() != first.path() {
        command.env("ONCEWARD_SECRET_FILE", first.path().join("secret"));
    }
    Server::spawn(&mut command).unwrap_or_else(|said| panic!("it did not start: {said:?}"))
}

/// Looks until it is so, or patience ends.
pub(crate) fn comes_true(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::park_timeout(LOOK);
    }
}
