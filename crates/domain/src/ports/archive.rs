//! Everything of a store, out and in: how data moves from one store to another (issue "from embedded to cluster").
//!
//! Both are for a store that nobody else uses meanwhile: whoever calls sees to that. Invariants: a dump is one snapshot; a
//! restore is one transaction that begins on an empty store, so that a crash in the middle of it leaves nothing, and a repeat
//! finishes it; after it, numbers and fencing tokens go on behind the greatest that was ever given out. The two are of any
//! length in bounded memory, because pages are handed over one by one. Deliberately absent: a format ([`crate::dump`] has the
//! rows; a file of them is the engine's), and a restore into a store that holds something. Read next: [`crate::dump`].

use crate::dump::Page;
use crate::error::{Code, Error};
use crate::ports::Answer;

/// Takes a dump, page by page. May block.
pub trait Sink: Send {
    /// Takes the next page; its error ends the dump.
    ///
    /// # Errors
    /// Where the page cannot be kept.
    fn take(&mut self, page: Page) -> Result<(), Error>;
}

/// Gives a dump, page by page, in the order of [`crate::dump::TABLES`]. May block.
pub trait Source: Send {
    /// The next page, or none after the last; its error undoes the restore and is handed through.
    ///
    /// # Errors
    /// Where the dump cannot be had, or is not whole.
    fn next(&mut self) -> Result<Option<Page>, Error>;
}

/// Refuses a restore into a store in which this table, or another holder, was found to hold something.
///
/// # Errors
/// `Differs` where there is one.
pub fn require_empty(holder: Option<&str>) -> Result<(), Error> {
    holder.map_or(Ok(()), |holder| {
        Err(Error::new(Code::Differs, format!("the store is not empty: `{holder}` holds something")))
    })
}

/// A store as a whole.
pub trait Archive: Send + Sync {
    /// Hands everything to the sink.
    fn dump(&self, sink: Box<dyn Sink>) -> Answer<'_, ()>;

    /// Puts everything of the source into the store, which must be empty: `Differs` where it is not. After an
    /// `UnknownOutcome` it is either all there or nothing is.
    fn restore(&self, source: Box<dyn Source>) -> Answer<'_, ()>;
}
