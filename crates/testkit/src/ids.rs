//! Batch names that count up, so that a run can be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onceward_domain::due::Member;
use onceward_domain::ports::clock::Ids;

/// Names `<prefix>-0000000000000001`, `…2` and so on; later ones sort later.
///
/// ```
/// use onceward_domain::ports::clock::Ids;
/// use onceward_testkit::ids::CountingIds;
/// let ids = CountingIds::new("a");
/// assert_eq!(&*ids.member(), "a-0000000000000001");
/// assert_eq!(&*ids.member(), "a-0000000000000002");
/// ```
#[derive(Debug)]
pub struct CountingIds {
    prefix: String,
    last: AtomicU64,
}

impl CountingIds {
    /// Names under this prefix; two sources need two prefixes.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), last: AtomicU64::new(0) }
    }
}

impl Ids for CountingIds {
    fn member(&self) -> Member {
        let number = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        Arc::from(format!("{}-{number:016}", self.prefix).as_str())
    }
}
