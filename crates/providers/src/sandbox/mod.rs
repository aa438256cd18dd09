//! The sandbox bank: plays a real provider, with a truth of its own in a store of its own.
//!
//! Invariants: what it answered is on disk, so a kill of the process that hosts it makes it forget nothing; it calls
//! back over real HTTP with real signatures, so nothing about it is easier than a real provider. Read next: `book`
//! (its truth) → `journal` (how that lasts) → `bank` (its rules) → `charge` → `provider` (how the engine sees it) → `courier`.

mod bank;
mod book;
mod callback;
mod charge;
mod courier;
mod journal;
mod provider;

pub use crate::signature::{Signer, WINDOW};
pub use bank::{Bank, BankOptions, Policy, TIMEOUT};
pub use courier::{Courier, Target};
pub use provider::SandboxProvider;

/// The provider's name in the API and in rows.
pub const NAME: &str = "sandbox";
