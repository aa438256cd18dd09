//! Suites that every adapter of a port must pass.
//!
//! Each suite is a list of named cases; a name carries the requirement it shows. Adapters run all of them from a
//! test of their own. Read next: [`store`].

pub mod provider;
pub mod store;
