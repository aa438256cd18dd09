//! The domain of Onceward: what an order engine means, without doing anything.
//!
//! **Purpose.** Ids, money, time, state machines, decisions and the ports. Every rule of the engine lives here once,
//! as a pure function over a batch: `(Facts, commands) → (ChangeSet, outcomes)`.
//!
//! **Invariants.** No I/O, no clock, no randomness, no runtime. Equal inputs give equal outputs, bit for bit.
//!
//! **Deliberately absent.** Serialization: the wire format lives in the engine, DTOs in `http` and `cli`.
//!
//! **Read next.** [`machine::reservation`] → [`decide::create_order`] → [`changes`] → [`ports::store`], then
//! `execute` in the engine crate.

pub mod audit;
pub mod carrier;
pub mod catalogue;
pub mod changes;
pub mod credit;
pub mod decide;
pub mod derive;
pub mod due;
pub mod dump;
pub mod error;
pub mod event;
pub mod facts;
pub mod flight;
pub mod governor;
pub mod group;
pub mod guard;
pub mod id;
pub mod job;
pub mod journal;
pub mod machine;
pub mod money;
pub mod notice;
pub mod payment;
pub mod ports;
pub mod purchase;
pub mod retention;
pub mod retry;
pub mod tally;
pub mod time;
