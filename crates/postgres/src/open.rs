//! Opening and closing a store.
//!
//! Invariants: a store is opened only on tables of exactly this version; tasks run on the runtime in which it was opened,
//! whoever awaits the answers. Deliberately absent: migrating by the way (`migrate` is a step of its own, because several
//! processes share the tables). Read next: `store` for the port, `transact` for what happens to a work.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use tokio::runtime::Handle;
use tokio_postgres::Row;

use crate::address::Address;
use crate::failure::defect;
use crate::hold::Tenure;
use crate::link::Link;
use crate::migrate::require_newest;
use crate::pool::{ANSWERS_PATIENCE, Pool, Purpose, SUMS_PATIENCE, configured};
use crate::queries;
use crate::refs::Refs;
use crate::rows::get;

/// Sessions for works where nothing else is said. Two cores commit no faster with more.
const SESSIONS: usize = 8;

/// Sessions for sums over everything.
const SESSIONS_FOR_SUMS: usize = 2;

/// How to open a store.
#[derive(Clone)]
pub struct OpenOptions {
    /// Where the server is: `postgres://user:password@host:port/database`, several hosts separated by commas; the one that
    /// can be written to is used. The store's tables are in the schema that the session finds first. `sslmode` and `sslrootcert`
    /// say how the line is secured, and by whom the server is judged.
    pub url: String,
    /// Sessions for works, at least 1; a work takes one while it runs.
    pub sessions: usize,
    /// A clock instead of the server's, for tests that move time.
    pub clock: Option<Arc<dyn Clock>>,
    /// Whether others may use the schema besides.
    pub tenure: Tenure,
    /// How long what a work or a look-up asks may take together, before its commit, and after how long of a commit without an answer it
    /// is looked whether the server is still the same: longer than it takes to end a statement, because it is meant for one that hangs.
    pub patience: Duration,
}

impl OpenOptions {
    /// The usual options: the server's own clock, beside other nodes.
    pub fn new(url: impl Into<String>) -> Self {
        let (sessions, tenure, patience) = (SESSIONS, Tenure::Shared, ANSWERS_PATIENCE);
        Self { url: url.into(), sessions, clock: None, tenure, patience }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL holds a password.
        out.debug_struct("OpenOptions").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}

/// Where the store's time comes from.
#[derive(Clone)]
pub(crate) enum Time {
    /// The server (DR-06).
    Server,
    /// A clock that was handed in.
    Clock(Arc<dyn Clock>),
}

impl Time {
    /// The time that was handed in; none where the server says it.
    pub(crate) fn given(&self) -> Option<Timestamp> {
        match self {
            Self::Server => None,
            Self::Clock(clock) => Some(clock.now()),
        }
    }

    /// The store's time.
    pub(crate) async fn now(&self, link: &Link) -> Result<Timestamp, Error> {
        let row = link.first("reading the time", queries::SERVER_NOW, Vec::new()).await?;
        let server = time_of(row.as_ref())?;
        Ok(self.given().unwrap_or(server))
    }
}

/// The time in an answer to `queries/server/now.sql`.
pub(crate) fn time_of(row: Option<&Row>) -> Result<Timestamp, Error> {
    let row = row.ok_or_else(|| defect("the server says no time"))?;
    Ok(Timestamp(get(row, 0)?))
}

/// What every task of the store shares.
pub(crate) struct Shared {
    pub(crate) works: Pool,
    pub(crate) sums: Pool,
    pub(crate) refs: Refs,
    pub(crate) time: Time,
}

/// The cluster store. Dropping it closes it.
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
    runtime: Handle,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PostgresStore").field("works", &self.shared.works).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects and looks whether the tables are of this version. Must be called inside a Tokio runtime, which then runs the
    /// store's tasks.
    ///
    /// # Errors
    /// `Invalid` where the URL is none, or names authorities that cannot be read; `Unavailable` where the server cannot be
    /// reached or refuses, or the schema is being moved; `ConstraintViolated` where the tables are of another version or of
    /// another program.
    pub async fn open(options: OpenOptions) -> Result<Self, Error> {
        let OpenOptions { url, sessions, clock, tenure, patience } = options;
        let address = Address::parse(&url)?;
        let works = Pool::new(configured(&address, Purpose::Works), sessions, tenure, patience)?;
        let sums = configured(&address, Purpose::Sums);
        let sums = Pool::new(sums, SESSIONS_FOR_SUMS, tenure, SUMS_PATIENCE)?;
        let link = works.link().await?;
        works.answered(link.giving_up(), require_newest(&link)).await?;
        drop(link);
        let time = clock.map_or(Time::Server, Time::Clock);
        let shared = Arc::new(Shared { works, sums, refs: Refs::default(), time });
        Ok(Self { shared, runtime: Handle::current() })
    }

    /// Takes nothing any more; what runs is carried out. What comes later is refused as `Unavailable`.
    pub fn close(&self) {
        self.shared.works.close();
        self.shared.sums.close();
    }

    /// Runs something in a task of its own, to its end, whether or not somebody still waits for it.
    pub(crate) async fn apart<T, F>(&self, doing: &'static str, task: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        match self.runtime.spawn(task).await {
            Ok(answer) => answer,
            Err(cause) if cause.is_panic() => Err(defect(format!("{doing} panicked")).because(cause)),
            // The runtime ended under the task, perhaps while it committed.
            Err(cause) => {
                Err(Error::new(Code::OutcomeUnknown, format!("{doing}: the runtime ended")).because(cause))
            }
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    //! What is said of a URL gives nothing away.

    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        let options = OpenOptions::new("postgres://me:secret@host/database");
        assert!(!format!("{options:?}").contains("secret"));
    }
}
