//! The id of a request: echoed where the caller sent a fair one, made otherwise.
//!
//! Invariants: 1–128 visible ASCII characters; a made id is a UUID of version 7 that no other request of this
//! process has; behind the edge [`RequestIds::of`] finds the one that the edge decided on. Deliberately absent: secrecy. The id is for logs; nothing is decided by it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use onceward_domain::ports::clock::Clock;
use uuid::{Builder, Uuid};

/// The header.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LENGTH_LIMIT: usize = 128;

/// Makes request ids.
pub(crate) struct RequestIds {
    clock: Arc<dyn Clock>,
    process: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// Ids that begin with this clock's time.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        // A fresh hasher is keyed by chance, which is all that is needed to tell processes apart.
        let chance = |part: u8| RandomState::new().hash_one((std::process::id(), part));
        Self { clock, process: chance(0), next: AtomicU64::new(chance(1)) }
    }

    /// The id for a request with these headers.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(HEADER) {
            Some(value) if is_fair(value.as_bytes()) => value.clone(),
            Some(_) | None => self.make(),
        }
    }

    fn make(&self) -> HeaderValue {
        let millis = u64::try_from(self.clock.now().0).unwrap_or(0);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Version and variant overwrite the high bits of the first and the third byte, both the process's;
        // the number keeps its 56 bits, and starts somewhere by chance.
        let process = self.process.to_be_bytes();
        let [_, n1, n2, n3, n4, n5, n6, n7] = number.to_be_bytes();
        let bytes = [process[0], process[1], process[2], n1, n2, n3, n4, n5, n6, n7];
        let id = Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid();
        let mut buffer = Uuid::encode_buffer();
        HeaderValue::from_str(id.hyphenated().encode_lower(&mut buffer)).expect("a UUID is visible ASCII")
    }
}

/// Writes the id into the request, so that everybody behind the edge speaks of the same one.
pub(crate) fn put(headers: &mut HeaderMap, id: &HeaderValue) {
    if headers.get(HEADER) != Some(id) {
        headers.insert(HEADER, id.clone());
    }
}

/// The id as text.
pub(crate) fn text(id: &HeaderValue) -> &str {
    id.to_str().expect("a request id was checked to be visible ASCII")
}

fn is_fair(id: &[u8]) -> bool {
    (1..=LENGTH_LIMIT).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onceward_domain::time::Timestamp;

    use super::*;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp(1_762_819_200_000)
        }
    }

    #[test]
    fn a_fair_id_is_echoed_and_any_other_replaced() {
        let ids = RequestIds::new(Arc::new(Stopped));
        let longest = "x".repeat(LENGTH_LIMIT);
        let too_long = "x".repeat(LENGTH_LIMIT + 1);
        let table = [("r-1", true), (&longest, true), (&too_long, false), ("two words", false), ("", false)];
        for (sent, is_echoed) in table {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, sent.parse().unwrap());
            let id = ids.of(&headers);
            assert_eq!(text(&id) == sent, is_echoed, "{sent}");
        }
    }

    #[test]
    fn made_ids_are_version_7_and_differ() {
        let ids = RequestIds::new(Arc::new(Stopped));
        let made: BTreeSet<String> =
            (0..1_000).map(|_| text(&ids.of(&HeaderMap::new())).to_owned()).collect();
        assert_eq!(made.len(), 1_000);
        for id in made {
            assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 7);
        }
    }
}
