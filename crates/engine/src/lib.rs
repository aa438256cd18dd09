//! The engine of Onceward: the library that people embed.
//!
//! **Purpose.** Run the domain's decisions against a store, a gate and a bus, so that an action may run any number
//! of times and its business effect lands once.
//!
//! **Invariants.** [`execute`] is the only transaction boundary and the only retry loop. Nothing outside the store is
//! called inside a transaction; every outside action starts from a durable row. Workers hold no state that a crash
//! could lose.
//!
//! **Deliberately absent.** Rules (in the domain), drivers (in adapters), HTTP.
//!
//! **Read next.** [`execute`] → [`workers::consumer`] → [`store_admission`], [`journal_admission`] →
//! [`runtime`].

pub mod dump_file;
pub mod engine;
pub mod execute;
mod front;
pub mod gate;
pub mod governor;
pub mod hand_over;
pub mod journal_admission;
pub mod ledger;
mod lines;
pub mod observe;
mod open_reservations;
pub mod operations;
mod outage;
mod pauses;
pub mod queue_deadline;
pub mod runtime;
mod rush;
pub mod store_admission;
pub mod store_bus;
pub mod store_deadline;
pub mod store_queue;
pub mod wire;
pub mod workers;

pub use engine::{Engine, Ports, Settings};
pub use onceward_domain as domain;
