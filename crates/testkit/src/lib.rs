//! What proves Onceward: a model store, conformance suites, and a simulator; never shipped in the library.
//!
//! **Purpose.** One suite per port that every adapter passes; an in-memory store that passes it; and, over that
//! store, a seeded simulation of the real engine with crashes, lost answers and jumping clocks (PR-03), and a look at every
//! interleaving of one order's money.
//!
//! **Invariants.** No real time, no chance from the side, no iteration over hash maps: equal seeds give equal runs.
//!
//! **Deliberately absent.** Rules of the business. They live in the domain; the auditor here looks at rows.
//!
//! **Read next.** [`conformance::store`] for what a store promises, [`model`] for the shortest store that keeps it.

pub mod bank;
pub mod block_on;
pub mod clock;
pub mod codes;
pub mod conformance;
pub mod ids;
pub mod interleave;
pub mod interrupted;
pub mod model;
pub mod notifier;
pub mod passing_on;
pub mod services;
pub mod sim;

mod treasury;
