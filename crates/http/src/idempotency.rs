//! `Idempotency-Key`: the same key and body give the first answer again (RFC draft; C101, C102).
//!
//! Invariants: a key belongs to one caller and one operation on one object; the fingerprint covers method, path
//! and the values of the body, not its blanks or the order of its fields; the first answer is kept by the engine in
//! the transaction that it speaks of. While the first request is running in this process, its twins hear
//! `idempotency_in_progress`; between processes the store's own lock decides.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use onceward_domain::error::Code;
use sha2::{Digest, Sha256};

use crate::auth::Caller;
use crate::problem::{self, Problem};

/// The request header.
pub(crate) const HEADER: &str = "idempotency-key";
/// The header of an answer that was given before.
pub(crate) const REPLAYED_HEADER: &str = "idempotency-replayed";
const LENGTH_LIMIT: usize = 255;

/// Reads the key.
///
/// # Errors
/// 400 `idempotency_key_required` where there is none, or not one fair one.
pub(crate) fn key(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(HEADER).iter();
    let only = match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        (Some(_), Some(_)) | (None, _) => None,
    };
    let is_fair =
        |key: &&[u8]| (1..=LENGTH_LIMIT).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    let text = only.filter(is_fair).and_then(|key| std::str::from_utf8(key).ok());
    text.ok_or_else(|| Problem::of(&problem::KEY_REQUIRED))
}

/// The key as it is kept: with its caller and operation. No part can hold a line break.
pub(crate) fn scoped(caller: &Caller, operation: &str, key: &str) -> Arc<str> {
    Arc::from(format!("{}\n{operation}\n{key}", caller.0))
}

/// SHA-256 over the operation and the values of the body.
pub(crate) fn fingerprint(operation: &str, body: &impl serde::Serialize) -> [u8; 32] {
    let body = serde_json::to_vec(body).expect("texts and numbers are always JSON");
    let mut digest = Sha256::new();
    digest.update(operation);
    digest.update(b"\n");
    digest.update(body);
    digest.finalize().into()
}

/// The keys whose first request is still running in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct InProgress(Arc<Mutex<HashSet<Arc<str>>>>);

/// Marks a key as running; dropping it ends that.
#[derive(Debug)]
pub(crate) struct Running {
    all: InProgress,
    key: Arc<str>,
}

impl InProgress {
    /// Marks the key.
    ///
    /// # Errors
    /// 409 `idempotency_in_progress` where it is marked already.
    pub(crate) fn begin(&self, key: &Arc<str>) -> Result<Running, Problem> {
        if !self.keys().insert(Arc::clone(key)) {
            return Err(Problem::code(Code::IdempotencyInProgress));
        }
        Ok(Running { all: self.clone(), key: Arc::clone(key) })
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        // Inserting and removing leave the set whole, whatever panics around them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.keys().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_04_keys_are_visible_ascii_of_1_to_255() {
        let longest = "k".repeat(LENGTH_LIMIT);
        let too_long = "k".repeat(LENGTH_LIMIT + 1);
        let table: [(&[&str], bool); 7] = [
            (&["k-1"], true),
            (&[&longest], true),
            (&[&too_long], false),
            (&["two words"], false),
            (&[""], false),
            (&["one", "two"], false),
            (&[], false),
        ];
        for (sent, is_fair) in table {
            let mut headers = HeaderMap::new();
            for value in sent {
                headers.append(HEADER, value.parse().unwrap());
            }
            assert_eq!(key(&headers).is_ok(), is_fair, "{sent:?}");
        }
    }

    #[test]
    fn c_102_a_twin_hears_that_the_first_is_running() {
        let all = InProgress::default();
        let key: Arc<str> = Arc::from("k");
        let first = all.begin(&key).unwrap();
        assert_eq!(all.begin(&key).unwrap_err().code_text(), "idempotency_in_progress");
        drop(first);
        assert!(all.begin(&key).is_ok());
    }
}
