//! A PostgreSQL server as a measurement uses it: sessions, a schema of its own, and how far the log has come.
//!
//! Invariants: whatever is made lies in one schema with a name that nobody else has, which is dropped when the work in it has
//! ended, well or not; nothing else of the server is written. Where this process is killed, the schema stays: it is named
//! `onceward_bench_…`. Deliberately absent: settings, since what is measured is the server as it is, and TLS.

use tokio_postgres::{Client, Error, NoTls};

/// How far the server's log has come, in bytes.
pub(crate) async fn log_position(client: &Client) -> Result<u64, Error> {
    let row = client.query_one("SELECT (pg_current_wal_lsn() - '0/0'::PG_LSN)::BIGINT", &[]).await?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

/// A session.
pub(crate) async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        // Whoever waits for an answer hears of the error too.
        drop(connection.await);
    });
    Ok(client)
}

/// A schema that nobody else has.
pub(crate) struct Schema {
    name: String,
    server: String,
    admin: Client,
}

impl Schema {
    /// Makes it, under a name that ends in this number. Whoever makes one must call [`Self::remove`].
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn make(server: &str, number: u64) -> Result<Self, Error> {
        let admin = connect(server).await?;
        let name = format!("onceward_bench_{number:016x}");
        admin.batch_execute(&format!("CREATE SCHEMA {name}")).await?;
        Ok(Self { name, server: server.to_owned(), admin })
    }

    /// The server's URL, for sessions that work in this schema.
    pub(crate) fn url(&self) -> String {
        let joint = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{joint}options=-csearch_path%3D{}", self.server, self.name)
    }

    /// A session that only looks.
    pub(crate) fn admin(&self) -> &Client {
        &self.admin
    }

    /// Removes it and all that is in it.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn remove(self) -> Result<(), Error> {
        self.admin
            .batch_execute(&format!("SET client_min_messages = error; DROP SCHEMA {} CASCADE", self.name))
            .await
    }
}
