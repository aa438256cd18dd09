//! The measuring tools behind `onceward bench`.
//!
//! Purpose: everything a measurement needs that is not the engine: a load generator, a histogram, the baselines (a bare
//! endpoint, the plain ways of writing an order into SQLite and into PostgreSQL), rounds that alternate, and the report.
//!
//! Invariants: nothing here imports the engine or a store, so a baseline cannot be slowed down or sped up by
//! the thing it is compared with. A figure is either measured in this process or absent.
//!
//! Deliberately absent: the scenarios themselves, which pair a baseline with the engine.
//!
//! Read next: `interleave` for the method, then `load` and `plain`, which do the measuring.

pub(crate) mod interleave;

pub(crate) mod load;
pub(crate) mod response;

pub(crate) mod bare;
pub(crate) mod bullmq;
pub(crate) mod plain;
pub(crate) mod row_by_row;
pub(crate) mod server;

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod histogram;
pub(crate) mod report;
