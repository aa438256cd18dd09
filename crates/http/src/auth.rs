//! Who asks, and what they may do (SE-01).
//!
//! Invariants: keys are known only as SHA-256; every known key is compared, in constant time, whichever matches;
//! scopes are granted one by one and none implies another. Deliberately absent: users and sessions.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limit::TokenBucket;
use crate::problem::{self, Problem};

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Looking at business objects.
    Read,
    /// Changing them.
    Write,
    /// Running the engine.
    Ops,
    /// Approving repairs.
    Approve,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Ops, Self::Approve];

    /// The scope's name in settings and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Ops => "ops",
            Self::Approve => "approve",
        }
    }
}

/// One API key.
#[derive(Clone)]
pub struct ApiKey {
    /// What the key is called in logs, timelines and idempotency scopes.
    pub name: Arc<str>,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// What it may be used for.
    pub scopes: Vec<Scope>,
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ApiKey")
            .field("name", &self.name)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Who may ask.
#[derive(Debug)]
pub struct Access(Rule);

#[derive(Debug)]
enum Rule {
    Open { caller: Caller, bucket: Option<TokenBucket> },
    Keys(Vec<(ApiKey, Option<TokenBucket>)>),
}

/// Name of the caller where no key is asked for.
pub const DEV_CALLER: &str = "dev";

impl Access {
    /// Everybody may do everything; for `--dev` on loopback.
    #[must_use]
    pub fn open() -> Self {
        Self(Rule::Open { caller: Caller(Arc::from(DEV_CALLER)), bucket: None })
    }

    /// Only who has one of these keys.
    #[must_use]
    pub fn keys(keys: Vec<ApiKey>) -> Self {
        Self(Rule::Keys(keys.into_iter().map(|key| (key, None)).collect()))
    }

    /// The same with a rate limit for each key.
    pub(crate) fn limited(self, per_second: Option<NonZeroU32>) -> Self {
        let bucket = || per_second.map(TokenBucket::new);
        Self(match self.0 {
            Rule::Open { caller, .. } => Rule::Open { caller, bucket: bucket() },
            Rule::Keys(keys) => Rule::Keys(keys.into_iter().map(|(key, _)| (key, bucket())).collect()),
        })
    }

    /// Who asks, where they may.
    ///
    /// # Errors
    /// 401 without a known key, 403 without the scope, 429 above the rate.
    pub(crate) fn admit(&self, headers: &HeaderMap, scope: Scope) -> Result<Caller, Problem> {
        let (caller, bucket) = match &self.0 {
            Rule::Open { caller, bucket } => (caller.clone(), bucket),
            Rule::Keys(keys) => {
                let (key, bucket) =
                    find(keys, headers).ok_or_else(|| Problem::of(&problem::UNAUTHENTICATED))?;
                if !key.scopes.contains(&scope) {
                    let detail = format!("This API key lacks the scope {}.", scope.name());
                    return Err(Problem::of(&problem::FORBIDDEN).with_detail(detail));
                }
                (Caller(Arc::clone(&key.name)), bucket)
            }
        };
        match bucket.as_ref().map(TokenBucket::take) {
            None | Some(Ok(())) => Ok(caller),
            Some(Err(wait)) => Err(Problem::of(&problem::RATE_LIMITED).retry_after(wait)),
        }
    }
}

fn find<'a>(
    keys: &'a [(ApiKey, Option<TokenBucket>)],
    headers: &HeaderMap,
) -> Option<&'a (ApiKey, Option<TokenBucket>)> {
    let digest: [u8; 32] = Sha256::digest(bearer(headers)?).into();
    // No early end: how long this takes must not tell which key came close.
    keys.iter().fold(
        None,
        |found, entry| if bool::from(entry.0.sha256.ct_eq(&digest)) { Some(entry) } else { found },
    )
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !key.is_empty()).then_some(key)
}

/// Name of the key that a request came with.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Arc<str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let key = |name: &str, secret: &str, scopes: &[Scope]| ApiKey {
            name: Arc::from(name),
            sha256: Sha256::digest(secret).into(),
            scopes: scopes.to_vec(),
        };
        Access::keys(vec![
            key("shop", "shop-secret", &[Scope::Read, Scope::Write]),
            key("admin", "admin-secret", &[Scope::Ops]),
        ])
    }

    #[test]
    fn se_01_a_key_opens_what_its_scopes_say() {
        let table = [
            (Some("Bearer shop-secret"), Scope::Write, Ok("shop")),
            (Some("bearer shop-secret"), Scope::Read, Ok("shop")),
            (Some("Bearer shop-secret"), Scope::Ops, Err(403)),
            (Some("Bearer admin-secret"), Scope::Ops, Ok("admin")),
            (Some("Bearer admin-secret"), Scope::Read, Err(403)),
            (Some("Bearer wrong"), Scope::Read, Err(401)),
            (Some("Bearer "), Scope::Read, Err(401)),
            (Some("Basic shop-secret"), Scope::Read, Err(401)),
            (Some("shop-secret"), Scope::Read, Err(401)),
            (None, Scope::Read, Err(401)),
        ];
        for (header, scope, expected) in table {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(AUTHORIZATION, value.parse().unwrap());
            }
            let found = access().admit(&headers, scope);
            let found = found.as_ref().map(|caller| &*caller.0).map_err(|problem| problem.status().as_u16());
            assert_eq!(found, expected, "{header:?} {scope:?}");
        }
    }

    #[test]
    fn se_05_a_key_does_not_show_its_hash() {
        assert!(!format!("{:?}", access()).contains("sha256"));
    }

    #[test]
    fn se_03_a_key_above_its_rate_is_told_when_to_come_back() {
        let open = Access::open().limited(NonZeroU32::new(2));
        let ask = || open.admit(&HeaderMap::new(), Scope::Read);
        assert!(ask().is_ok() && ask().is_ok());
        let refusal = ask().unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.wait_seconds()), (429, Some(1)));
    }
}
