//! The bus over Apache RocketMQ 5, through its gRPC proxy: a thin client of our own (design.md §9, issue 5).
//!
//! **Invariants.** What was acknowledged to a publisher is in the broker; a send whose answer is lost is `Unknown`, and
//! is repeated by the caller with the same ids. A message's id is ours: it is in the body and among the keys, never the
//! broker's. Every call has a deadline. Nothing is taken off the broker before all messages of its carrier have an end.
//!
//! **How it maps.** Many messages travel in one of the broker's, a *carrier*, because the broker's work is by the
//! message: [`publish`]. A lease is the broker's invisible time: [`consume`]. The end of a carrier is an acknowledgement,
//! or a new invisible time; dead messages go to the group's own dead-letter topic: [`settle`]. Ordered topics are FIFO
//! topics whose message groups are shards of our keys.
//!
//! **What the broker must have.** The topics of [`Names`] with their types, `onceward-order-create` NORMAL and
//! `onceward-events` FIFO; the groups, of which `projector` with `consumeMessageOrderly`; the topics
//! `%DLQ%order-consumer` and `%DLQ%projector`; for the deadline trigger, [`deadline`] says what. The proxy in its local mode makes none of them by itself. A group that has
//! never asked for anything starts at the end of queues whose first messages are gone: let consumers run before the first
//! sale. Retention must be longer than any outage of the consumers.
//!
//! **Deliberately absent.** Transactional messages (the outbox has their task), push consumers, a certificate of our own.
//!
//! **Read next.** [`bus`], then [`link`] and [`session`].

mod bus;
mod consume;
mod deadline;
mod expiries;
mod failure;
#[cfg(test)]
mod fake;
mod link;
mod options;
mod polls;
#[rustfmt::skip]
#[allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub, unused_qualifications, reason = "generated")]
mod proto;
mod publish;
mod session;
mod settle;

pub use bus::{Found, RocketBus};
pub use deadline::RocketTrigger;
pub use options::{Names, Options};
