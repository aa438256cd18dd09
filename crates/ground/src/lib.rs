//! Ground for end-to-end tests: one place per test, in each of the three ways to run (EM-02, EM-05).
//!
//! **Purpose.** A test's body is written once, takes a [`Mode`] and opens its [`Place`]; [`in_every_mode!`] makes a test of it in
//! each mode. A place hands out an engine's ports for tests in this process, and the environment of a server for those with
//! processes.
//!
//! **Invariants.** Two places share nothing: each has a file, or a schema, a key prefix and topics of its own, so that tests
//! run at once; they are gone when the place is dropped. Without the feature `real-services` there is the embedded mode alone,
//! and no server is needed; with it, a server that is missing fails the test. Time in a place is the clock that is handed in,
//! in every mode; only a broker has its own, see `carried.rs`.
//!
//! **Deliberately absent.** Anything that ships. Read next: `place.rs`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

// Making topics speaks the broker's own protocol, which the adapter's tests know.
#[cfg(feature = "real-services")]
#[path = "../../rocketmq/tests/real/mod.rs"]
mod broker;
#[cfg(feature = "real-services")]
mod carried;
mod place;
#[cfg(feature = "real-services")]
mod servers;

pub use place::Place;

/// The ways to run an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One process, everything in one file of SQLite.
    Embedded,
    /// PostgreSQL alone (EM-05).
    #[cfg(feature = "real-services")]
    Postgres,
    /// PostgreSQL, the gate and deadlines in Redis, transport over RocketMQ.
    #[cfg(feature = "real-services")]
    Cluster,
}

impl Mode {
    /// Whether a file of this process is the store, which answers some hundred times faster than a server.
    #[must_use]
    pub fn is_embedded(self) -> bool {
        self == Self::Embedded
    }
}

/// Makes tests of bodies, one in each mode: `embedded::NAME`, and with the feature `real-services` of the calling crate
/// `postgres::NAME` and `cluster::NAME`. A body takes the mode; it is `async`, or with `plain` in front of the names it is not.
#[macro_export]
macro_rules! in_every_mode {
    (plain: $($body:ident,)*) => {
        mod embedded {
            $(#[test] fn $body() { super::$body($crate::Mode::Embedded); })*
        }
        #[cfg(feature = "real-services")]
        mod postgres {
            $(#[test] fn $body() { super::$body($crate::Mode::Postgres); })*
        }
        #[cfg(feature = "real-services")]
        mod cluster {
            $(#[test] fn $body() { super::$body($crate::Mode::Cluster); })*
        }
    };
    ($($body:ident,)*) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $body() { super::$body($crate::Mode::Embedded).await; })*
        }
        #[cfg(feature = "real-services")]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $body() { super::$body($crate::Mode::Postgres).await; })*
        }
        #[cfg(feature = "real-services")]
        mod cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $body() { super::$body($crate::Mode::Cluster).await; })*
        }
    };
}
