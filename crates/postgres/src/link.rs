//! One session with the server: its client, the statements it has prepared, and what the server said beside its answers.
//!
//! Invariants: a session comes about in a bounded time or not at all, whatever the server says or does not say; a statement is
//! prepared once for each session; a warning of the server is noted before the answer that follows
//! it is handed out, so whoever has the answer sees the warning; a session that was left inside a transaction, or unanswered, is
//! never used again. Read next: `hosts`, `pool`, `commit`.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::error::{Code, Error};
use tokio::time::timeout;
use tokio_postgres::error::Severity;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row, Socket, Statement};

use crate::address::{Address, Demand};
use crate::failure::{defect, failed, silent, unreachable};
use crate::pipeline::Params;
use crate::rows::get;
use crate::{hosts, queries};

/// A session.
pub(crate) struct Link {
    client: Client,
    /// By the place of the text: every statement is a constant.
    prepared: Mutex<HashMap<(usize, usize), Statement>>,
    warned: Arc<AtomicBool>,
    in_transaction: AtomicBool,
    given_up: Arc<AtomicBool>,
    epoch: String,
    demand: Demand,
}

impl fmt::Debug for Link {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Link").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Link {
    /// Opens a session with the first server that gives one. Must be called inside the runtime, whose task then carries the
    /// messages. Nothing was asked yet that could have an effect, so one that does not come about is `Unavailable`.
    pub(crate) async fn open(address: &Address) -> Result<Self, Error> {
        let servers = hosts::each(&address.config);
        let patience = hosts::patience(address.patience, servers.len());
        let mut refused = Error::new(Code::Unavailable, "connecting to PostgreSQL: none is named");
        for server in &servers {
            // The server's own time-outs begin with the session, and a server that hangs keeps none.
            refused = match timeout(patience, Self::begin(server, address)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(cause)) => cause,
                Err(_elapsed) => silent(patience),
            };
        }
        Err(refused)
    }

    async fn begin(server: &Config, address: &Address) -> Result<Self, Error> {
        let warned = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&warned);
        let client = match address.connector.clone() {
            None => {
                let (client, connection) = server.connect(NoTls).await.map_err(unreachable)?;
                tokio::spawn(carry(connection, heard));
                client
            }
            Some(tls) => {
                let (client, connection) = server.connect(tls).await.map_err(unreachable)?;
                tokio::spawn(carry(connection, heard));
                client
            }
        };
        let mut link = Self {
            client,
            prepared: Mutex::default(),
            warned,
            in_transaction: AtomicBool::new(false),
            given_up: Arc::default(),
            epoch: String::new(),
            demand: address.demand,
        };
        let rows = link.rows("naming the life of the server", queries::SERVER_EPOCH, Vec::new()).await?;
        let row = rows.first().ok_or_else(|| defect("the server has no name for its life"))?;
        link.epoch = get(row, 0)?;
        Ok(link)
    }

    /// The driver's side.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Which life of the server the session belongs to (`queries/server/epoch.sql`).
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// What the line had to be for the session to come about.
    pub(crate) fn demand(&self) -> Demand {
        self.demand
    }

    /// Whether the session can be used again.
    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.in_transaction.load(Ordering::SeqCst) && !self.is_given_up()
    }

    /// Whether the server has left something unanswered on it.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::SeqCst)
    }

    /// Where it is noted that it is given up, by whoever has lent the session on.
    pub(crate) fn giving_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.given_up)
    }

    /// Notes that a transaction begins, or has ended.
    pub(crate) fn set_in_transaction(&self, is: bool) {
        self.in_transaction.store(is, Ordering::SeqCst);
    }

    /// Whether the server has warned of something since this was last asked.
    pub(crate) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::SeqCst)
    }

    /// A statement, prepared now or before.
    pub(crate) async fn statement(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let key = (sql.as_ptr().addr(), sql.len());
        let known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).insert(key, statement.clone());
        Ok(statement)
    }

    /// The rows of a prepared statement.
    pub(crate) async fn rows_of(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let borrowed: Vec<_> =
            params.iter().map(|value| &**value as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        self.client.query(statement, &borrowed).await
    }

    /// The rows of one statement.
    pub(crate) async fn rows(
        &self,
        doing: &str,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.statement(sql).await.map_err(failed(doing))?;
        self.rows_of(&statement, params).await.map_err(failed(doing))
    }

    /// The first row of one statement.
    pub(crate) async fn first(
        &self,
        doing: &str,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        Ok(self.rows(doing, sql, params).await?.into_iter().next())
    }

    /// Carries out text that is no prepared statement: the words around transactions, and migrations.
    pub(crate) async fn batch(&self, doing: &str, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await.map_err(failed(doing))
    }
}

/// Carries a session's messages for as long as it lasts, and notes the server's warnings.
async fn carry<T: TlsStream + Unpin>(mut connection: Connection<Socket, T>, warned: Arc<AtomicBool>) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                if notice.parsed_severity() == Some(Severity::Warning) {
                    warned.store(true, Ordering::SeqCst);
                    tracing::warn!(target: "onceward", event = "postgres.warning", %notice);
                }
            }
            Ok(_) => {}
            // Whoever waits for an answer hears it too.
            Err(error) => {
                tracing::debug!(%error, "a session ended");
                return;
            }
        }
    }
}
