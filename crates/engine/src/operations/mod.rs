//! Operations: what a caller can ask of the engine, one function each.
//!
//! Each derives ids, names the rows it needs, and executes one decision. Invariant: any operation may be repeated
//! with the same ids. Deliberately absent: DTOs and statuses (in `http` and `cli`).

pub mod admission;
pub mod catalogue;
pub mod credit;
pub mod group;
pub mod job;
pub mod once;
pub mod operate;
pub mod order;
pub mod payment;
pub mod queue;
pub mod reservation;
pub mod statement;
