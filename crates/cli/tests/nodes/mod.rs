//! Nodes over real servers: a schema of one's own in PostgreSQL, Redis servers of one's own, and `onceward serve` over both.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

pub(crate) mod redis;

use tokio_postgres::NoTls;

use crate::house::{Folder, Server, cluster};

/// A schema that nobody else has, and a session in it; the next run with this name begins it anew.
pub(crate) struct Database {
    /// Where nodes find it.
    pub(crate) url: String,
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Database {
    pub(crate) fn new(name: &str) -> Self {
        let url = cluster::database("postgres", "ONCEWARD_TEST_POSTGRES_URL", name);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Self { url, runtime, client }
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
    cluster::start(&mut cluster::usual_node(folder, first.path(), urls))
}
