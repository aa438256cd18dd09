//! The cluster store: PostgreSQL 15 or newer, shared by any number of processes (design.md §7).
//!
//! **Purpose.** Implements [`onceward_domain::ports::store::Store`]. It loads what a decision names and applies what
//! the decision says; every rule is in the domain. Where the embedded store has a file, this one has a file of the same
//! name.
//!
//! **Invariants.** READ COMMITTED, and correctness never rests on more: rows are locked in one documented order
//! ([`locks`]), every change names what it was decided on, and one that hits other than one row is refused. A work is one
//! transaction in a task of its own, so that a caller who hangs up cuts nothing off. An `Ok` was committed; a commit whose
//! answer was lost is asked about on a new connection, and where nobody can tell it is an unknown outcome. Time is the
//! server's. The statements live in `queries/<noun>/<verb>.sql`, the tables in `migrations/`.
//!
//! **Deliberately absent.** Rules, states by name, an order by commit time, and partitions: a key is unique over all time.
//!
//! **Read next.** `address` and `open` → `transact` → `locks` and `load` → `apply` → `commit` → `failure`.

mod address;
mod apply;
mod archive;
mod claim;
mod commit;
mod credit;
mod due;
mod failure;
mod group;
mod hold;
mod hosts;
mod job;
mod link;
mod list;
mod load;
mod locks;
mod migrate;
mod money;
mod notice;
mod open;
mod pipeline;
mod pool;
mod purchases;
mod queries;
mod refs;
mod retention;
mod rows;
mod settings;
mod store;
mod tally;
mod transact;

pub use address::judged_by;
pub use archive::PostgresArchive;
pub use hold::{Hold, Tenure};
pub use migrate::{Migrated, begin, is_new, migrate};
pub use open::{OpenOptions, PostgresStore};
pub use settings::{Security, ServerSettings};
