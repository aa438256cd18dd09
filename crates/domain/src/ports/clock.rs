//! Time and randomness.

use std::sync::Arc;

use crate::due::Member;
use crate::time::Timestamp;

/// A wall clock. Only stores judge due-times by it; nobody compares two of them (DR-06).
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now(&self) -> Timestamp;
}

/// Names for batches. They need not be recomputable, only unique; later ones should sort later.
pub trait Ids: Send + Sync {
    /// A name that nobody else has.
    fn member(&self) -> Member;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}
