//! The embedded store: one SQLite file, one writer, many readers (design.md §8).
//!
//! **Purpose.** Implements [`onceward_domain::ports::store::Store`]. It loads what a decision names and applies what
//! the decision says; every rule is in the domain.
//!
//! **Invariants.** An `Ok` is on disk (WAL, `synchronous=FULL`) before it is said. Works are carried out one after
//! another by one thread, all that wait in one commit, and one that fails takes nothing else with it. Every change
//! names what it was decided on, and one that hits other than one row is refused with what is there. Time never runs
//! back. The statements live in `queries/<noun>/<verb>.sql`, the tables in `migrations/`, and `schema.sql` shows the
//! sum of the migrations.
//!
//! **Deliberately absent.** Rules, states by name, an async runtime (answers work on any executor), and a second
//! writer: other processes may read the file, and a writing one would only make this one wait.
//!
//! **Read next.** `open` → `writer` (group commit) → `load` and `apply` → `due` → `failure`; `archive` for the
//! file as a whole.

mod apply;
mod archive;
mod clock;
mod credit;
mod due;
mod failure;
mod group;
mod job;
mod keeper;
mod list;
mod load;
mod migrate;
mod money;
mod notice;
mod open;
mod queries;
mod readers;
mod refs;
mod remembered;
mod retention;
mod rows;
mod store;
mod tally;
mod writer;

pub use archive::SqliteArchive;
pub use open::{OpenOptions, SqliteStore};
