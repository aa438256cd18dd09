//! A notifier: tells people (LQ-05).
//!
//! Invariants: it is called from a durable row, outside any transaction; a call that had no answer is repeated with the
//! same notice, whose id lets the receiver drop the repeat; it holds no state of its own that a crash could lose.
//! Deliberately absent: who the administrators are; the adapter's settings say that.

use crate::notice::Notice;
use crate::ports::Answer;

/// Tells people.
pub trait Notifier: Send + Sync {
    /// Its name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Hands a notice over. `Ok` means that the other side has it; any error means that it is to be sent again, also one
    /// that says that nothing arrived.
    fn notify(&self, notice: Notice) -> Answer<'_, ()>;
}
