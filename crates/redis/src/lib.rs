//! The gate, the due-work queue and two deadline triggers over Redis 7 or Valkey: one server, Sentinel, or Cluster (design.md §5, issue 5).
//!
//! **Invariants.** Everything that changes data is a script, one file each under `scripts/`: read and check first, write
//! last, safe to run twice, bounded, by the server's own clock. All keys of one bucket share a hash slot. A bucket carries
//! an epoch and the history of the server under which it was opened; where either is not what it was, nobody is let in
//! until what the store has decided has been projected onto it again (FS-18). Nothing is ever added blindly.
//!
//! **How it maps.** A reservation is one field of the bucket's `reservation` hash, under its id, so that the id is the map of
//! requests as well; a buyer is one field of the hash `user`. A batch of buyers is one script call and one member of
//! `send_due` and `deadline`. What follows which is the domain's table of the admission machine, handed to the scripts: [`moves`].
//!
//! **What the server must have.** `maxmemory-policy noeviction`, and an append-only file that is synced as often as the
//! operator means `QUEUED` to be true.
//!
//! **Deliberately absent.** Rules, and the store of record: it comes in through its port.
//!
//! **Read next.** [`admission`], then [`doors`] (how buyers are let in) and [`rebuild`].

mod admission;
mod bucket;
pub mod compare;
mod core;
mod doors;
mod ears;
mod failure;
mod keyspace;
mod lane;
mod lanes;
mod link;
mod loans;
mod moves;
mod names;
mod options;
mod primaries;
mod project;
mod queue;
mod rebuild;
mod record;
mod release;
mod reply;
mod retire;
mod script;
mod silence;
mod standing;
mod trigger;

pub use admission::RedisAdmission;
pub use keyspace::{KeyspaceTrigger, events_needed};
pub use options::{Options, Time};
pub use queue::RedisQueue;
pub use trigger::RedisTrigger;

use onceward_domain::error::Error;

/// Looks whether the servers of these options answer, and keep every key.
///
/// # Errors
/// `Unavailable` where nobody answers, `Invalid` where a server may evict keys.
pub async fn check(options: Options) -> Result<(), Error> {
    link::Link::new(options).check().await
}
