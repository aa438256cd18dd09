//! Sessions for works and questions: as many as were allowed, made when they are needed, and given up when they are spoilt.
//!
//! Invariants: the number has a limit, and so have the wait for one, its making, and what is asked on it, but for a commit; a session
//! that is closed, was left inside a transaction, or unanswered, is never handed out again. Works have plans that do not change with the size of the tables; sums over
//! everything have a pool of their own, in which the planner is free. Read next: `link`.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool::managed::{self, Metrics, PoolError, RecycleError, RecycleResult, TimeoutType};
use onceward_domain::error::{Code, Error};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;

use crate::address::Address;
use crate::failure::unanswered;
use crate::hold::{Tenure, share};
use crate::link::Link;

/// How long a work waits for a session before it is told to come back later.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the pool waits for a new session: all that opening one may take (`hosts::PATIENCE`), and what the server lets a lock be
/// waited for, whether or not it keeps to that.
const MAKE_PATIENCE: Duration = Duration::from_secs(25);

/// How long what is asked on one session may take together, before its commit. The server ends each statement of a work after 60 s, and
/// each sum after 600; one that hangs ends none, and its machine still answers for it.
pub(crate) const ANSWERS_PATIENCE: Duration = Duration::from_secs(120);
/// The same for sums.
pub(crate) const SUMS_PATIENCE: Duration = Duration::from_secs(3_600);

/// How long a machine may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// A peer that says nothing for this long is asked whether it is still there, so often, and then given up.
const SILENCE: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_secs(10);
const ASKED_LIMIT: u32 = 3;

/// What every session is started with. A transaction that was forgotten, a lock that nobody gives free and a statement that
/// never ends have an end. So has the session of a host that died without a word, and with it what it holds: the server asks whether
/// it is there as we ask for the server. Over a socket in the file system nobody dies alone, and these are ignored.
const SESSION: &str = "-c idle_in_transaction_session_timeout=60s -c lock_timeout=5s -c client_encoding=UTF8 \
                       -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c tcp_user_timeout=60s";

/// Works look up few rows by key among many, whatever the statistics say: a plan that was made while a table was empty must
/// still be right when it is not, and none is made again for each call. What disabled ways would cost must not wake the compiler.
const PINNED: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off \
                      -c enable_hashjoin=off -c enable_mergejoin=off -c enable_material=off -c jit=off \
                      -c statement_timeout=60s";

/// Sums read whole tables.
const FREE: &str = "-c statement_timeout=600s";

/// What sessions of a pool are for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// Works, claims and look-ups.
    Works,
    /// Sums over everything.
    Sums,
}

/// The settings of sessions for a purpose.
pub(crate) fn configured(address: &Address, purpose: Purpose) -> Address {
    let mut address = address.clone();
    let url = address.config.clone();
    let config = &mut address.config;
    let plans = match purpose {
        Purpose::Works => PINNED,
        Purpose::Sums => FREE,
    };
    let given = url.get_options().unwrap_or_default();
    config.options(format!("{SESSION} {plans} {given}"));
    if url.get_application_name().is_none() {
        config.application_name("onceward");
    }
    config
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .connect_timeout(CONNECT_PATIENCE)
        .keepalives(true)
        .keepalives_idle(SILENCE)
        .keepalives_interval(ASK_AGAIN)
        .keepalives_retries(ASKED_LIMIT)
        .tcp_user_timeout(SILENCE + ASK_AGAIN * ASKED_LIMIT);
    address
}

/// Makes sessions.
pub(crate) struct Maker {
    address: Address,
    tenure: Tenure,
}

impl managed::Manager for Maker {
    type Type = Link;
    type Error = Error;

    async fn create(&self) -> Result<Link, Error> {
        let link = Link::open(&self.address).await?;
        match self.tenure {
            Tenure::Shared => share(&link).await?,
            Tenure::Held => {}
        }
        Ok(link)
    }

    async fn recycle(&self, link: &mut Link, _: &Metrics) -> RecycleResult<Error> {
        if link.is_usable() { Ok(()) } else { Err(RecycleError::message("the session is spoilt")) }
    }
}

/// A session on loan.
pub(crate) type Lent = managed::Object<Maker>;

/// Sessions for one purpose.
#[derive(Clone)]
pub(crate) struct Pool {
    sessions: managed::Pool<Maker>,
    patience: Duration,
}

impl fmt::Debug for Pool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pool").field("status", &self.sessions.status()).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of at most so many sessions, on each of which the answers to what is asked may take this long; none is made yet.
    pub(crate) fn new(
        address: Address,
        limit: usize,
        tenure: Tenure,
        patience: Duration,
    ) -> Result<Self, Error> {
        let sessions = managed::Pool::builder(Maker { address, tenure })
            .max_size(limit.max(1))
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(MAKE_PATIENCE))
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|cause| Error::new(Code::Unavailable, "making a pool").because(cause.to_string()))?;
        Ok(Self { sessions, patience })
    }

    /// A session, as soon as one is free.
    pub(crate) async fn link(&self) -> Result<Lent, Error> {
        self.sessions.get().await.map_err(|cause| match cause {
            PoolError::Backend(error) => error,
            PoolError::Closed => Error::new(Code::Unavailable, "the store is closed"),
            PoolError::Timeout(TimeoutType::Create) => {
                Error::new(Code::Unavailable, "no session with the server came about in time")
            }
            PoolError::Timeout(TimeoutType::Wait | TimeoutType::Recycle) => {
                Error::new(Code::Unavailable, "no session with the server became free in time")
            }
            PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Error::new(Code::Unavailable, "the pool gives no session")
            }
        })
    }

    /// How long the answers to what is asked on a session may take.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// What is asked on a session, where the answers come in time; `giving_up` is the session's. It must be nothing that commits.
    pub(crate) async fn answered<T, E: From<Error>>(
        &self,
        giving_up: Arc<AtomicBool>,
        answers: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut answers = pin!(answers);
        match timeout(self.patience, &mut answers).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => {
                // Noted before the session goes back with whoever had it.
                giving_up.store(true, Ordering::SeqCst);
                Err(unanswered(self.patience).into())
            }
        }
    }

    /// A session that is new, whatever the pool holds, and only reads.
    pub(crate) async fn fresh(&self) -> Result<Link, Error> {
        Link::open(&self.sessions.manager().address).await
    }

    /// Gives out nothing any more.
    pub(crate) fn close(&self) {
        self.sessions.close();
    }
}
