//! First answers: what makes a POST repeatable (style 15).
//!
//! Invariants: the key is asked before the rule; the rendered first answer, also a refusal, is kept under the key in the
//! same transaction as the effect; the key with another body is refused. The answer of an effect is kept for ever, so that a
//! repeat never lands twice, whatever becomes of keys and ids; a refusal, which has none, may be forgotten by age
//! ([`onceward_domain::decide::forget`]).

use std::sync::Arc;

use onceward_domain::changes::{Answered, ChangeSet};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::Facts;

/// Renders a first answer: status and body.
pub type Render<T> = Arc<dyn Fn(Result<&T, &Error>) -> (u16, Vec<u8>) + Send + Sync>;

/// What makes a POST repeatable.
pub struct Idempotent<T> {
    /// Caller scope and key.
    pub key: Arc<str>,
    /// SHA-256 of what was asked.
    pub fingerprint: [u8; 32],
    /// How the first answer is written down.
    pub render: Render<T>,
}

impl<T> Clone for Idempotent<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), fingerprint: self.fingerprint, render: self.render.clone() }
    }
}

/// A first answer, or its repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: Vec<u8>,
    /// Whether it had been given before.
    pub replayed: bool,
}

pub(crate) fn once<T>(
    facts: &mut Facts,
    idempotent: &Idempotent<T>,
    rule: impl FnOnce(&mut Facts) -> Result<(ChangeSet, T), Error>,
) -> Result<(ChangeSet, StoredAnswer), Error> {
    if let Some(first) = facts.answers.get(&idempotent.key) {
        if first.fingerprint != idempotent.fingerprint {
            return Err(Error::new(Code::IdempotencyKeyReused, "the key came with another body"));
        }
        let answer = StoredAnswer { status: first.status, body: first.body.clone(), replayed: true };
        return Ok((ChangeSet::default(), answer));
    }
    let (mut changes, (status, body), has_effect) = match rule(facts) {
        Ok((changes, outcome)) => (changes, (idempotent.render)(Ok(&outcome)), true),
        Err(error) if error.class() == Class::Rejected => {
            (ChangeSet::default(), (idempotent.render)(Err(&error)), false)
        }
        Err(error) => return Err(error),
    };
    changes.answers.push(Answered {
        key: idempotent.key.clone(),
        fingerprint: idempotent.fingerprint,
        status,
        body: body.clone(),
        at: facts.now,
        lasting: has_effect,
    });
    Ok((changes, StoredAnswer { status, body, replayed: false }))
}
