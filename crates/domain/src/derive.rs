//! How ids come about: HMAC-SHA256 over what the caller said, so that a retry can never make a new one.
//!
//! Invariants (FS-03): equal inputs and key version give equal ids; the parts are joined by `|`, which no
//! caller-owned id may contain, so no two different inputs meet in one text. Keys rotate by adding a version;
//! the version is part of the id. Deliberately absent: a time prefix — it could not be recomputed from the
//! request alone.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::id::{AdjustmentId, IdKind, PaymentId, PurchaseId, RefundId, RequestId, SkuKey, UserId};

/// Shortest secret that is accepted, in bytes.
pub const SECRET_MIN_BYTES: usize = 32;

/// The secrets that ids are derived with, newest last.
#[derive(Clone)]
pub struct KeyRing {
    keys: Vec<(u8, Hmac<Sha256>)>,
}

/// Why a key ring was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// A ring needs a secret.
    #[error("the key ring is empty")]
    Empty,
    /// A secret has fewer than [`SECRET_MIN_BYTES`] bytes.
    #[error("a secret must have at least 32 bytes")]
    TooShort,
    /// Two secrets claim one version.
    #[error("two secrets have the same version")]
    SameVersion,
}

impl KeyRing {
    /// Builds a ring from `(version, secret)` pairs; the last one derives new ids.
    ///
    /// ```
    /// use onceward_domain::derive::KeyRing;
    /// let ring = KeyRing::new(&[(1, vec![7; 32])]).unwrap();
    /// assert_eq!(ring.current_version(), 1);
    /// ```
    ///
    /// # Errors
    /// [`KeyRingError`] for an empty ring, a short secret or a doubled version.
    pub fn new(secrets: &[(u8, Vec<u8>)]) -> Result<Self, KeyRingError> {
        let mut keys: Vec<(u8, Hmac<Sha256>)> = Vec::with_capacity(secrets.len());
        for (version, secret) in secrets {
            if secret.len() < SECRET_MIN_BYTES {
                return Err(KeyRingError::TooShort);
            }
            if keys.iter().any(|(known, _)| known == version) {
                return Err(KeyRingError::SameVersion);
            }
            let mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| KeyRingError::TooShort)?;
            keys.push((*version, mac));
        }
        if keys.is_empty() {
            return Err(KeyRingError::Empty);
        }
        Ok(Self { keys })
    }

    /// The version new ids carry.
    #[must_use]
    pub fn current_version(&self) -> u8 {
        self.keys[self.keys.len() - 1].0
    }

    /// Derives the purchase of a flash-sale request: HMAC over `activity|sku|user|request`.
    #[must_use]
    pub fn reservation(&self, sku: &SkuKey, user: &UserId, request: &RequestId) -> PurchaseId {
        let parts = [sku.activity.as_str(), sku.sku.as_str(), user.as_str(), request.as_str()];
        self.derive(self.current_version(), &parts).expect("the current version is in the ring")
    }

    /// What the older keys of the ring would have derived for the request, newest first; usually nothing.
    #[must_use]
    pub fn older_reservations(&self, sku: &SkuKey, user: &UserId, request: &RequestId) -> Vec<PurchaseId> {
        let parts = [sku.activity.as_str(), sku.sku.as_str(), user.as_str(), request.as_str()];
        let older = self.keys.iter().rev().skip(1);
        older.filter_map(|(version, _)| self.derive(*version, &parts)).collect()
    }

    /// Derives the purchase of a direct order: HMAC over `direct|user|request`.
    #[must_use]
    pub fn direct_order(&self, user: &UserId, request: &RequestId) -> PurchaseId {
        let parts = ["direct", user.as_str(), request.as_str()];
        self.derive(self.current_version(), &parts).expect("the current version is in the ring")
    }

    /// Derives the id of a stock adjustment from the caller's idempotency key.
    #[must_use]
    pub fn adjustment(&self, sku: &SkuKey, idempotency_key: &str) -> AdjustmentId {
        let parts = ["adjust", sku.activity.as_str(), sku.sku.as_str(), idempotency_key];
        let base = self.derive(self.current_version(), &parts).expect("the current version is in the ring");
        AdjustmentId(base.with_kind(IdKind::StockAdjustment))
    }

    /// Derives the id of a payment attempt from its order and the caller's idempotency key.
    #[must_use]
    pub fn payment(&self, order: PurchaseId, idempotency_key: &str) -> PaymentId {
        let order = order.order().to_string();
        let parts = ["pay", order.as_str(), idempotency_key];
        let base = self.derive(self.current_version(), &parts).expect("the current version is in the ring");
        PaymentId(base.with_kind(IdKind::Payment))
    }

    /// Derives the id of a refund from its order and what asks for it: an idempotency key, or the payment that
    /// came too late. The same cause never makes a second refund (DR-04).
    #[must_use]
    pub fn refund(&self, order: PurchaseId, cause: &str) -> RefundId {
        let order = order.order().to_string();
        let parts = ["refund", order.as_str(), cause];
        let base = self.derive(self.current_version(), &parts).expect("the current version is in the ring");
        RefundId(base.with_kind(IdKind::Refund))
    }

    /// Whether `purchase` really belongs to this request, under the key version it carries. A message that
    /// fails this was not made by us: FS-02, one user's request never reaches another's reservation.
    #[must_use]
    pub fn owns(&self, purchase: PurchaseId, sku: &SkuKey, user: &UserId, request: &RequestId) -> bool {
        let parts = [sku.activity.as_str(), sku.sku.as_str(), user.as_str(), request.as_str()];
        self.derive(purchase.key_version(), &parts) == Some(purchase)
    }

    fn derive(&self, version: u8, parts: &[&str]) -> Option<PurchaseId> {
        let (_, keyed) = self.keys.iter().find(|(known, _)| *known == version)?;
        let mut mac = keyed.clone();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                mac.update(b"|");
            }
            mac.update(part.as_bytes());
        }
        let digest = mac.finalize().into_bytes();
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&digest[..16]);
        Some(PurchaseId::from_digest(bytes, version))
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<u8> = self.keys.iter().map(|(version, _)| *version).collect();
        write!(out, "KeyRing(versions {versions:?}, secrets hidden)")
    }
}

/// SHA-256 of a payload, as the inbox keeps it (FS-06).
#[must_use]
pub fn payload_hash(payload: &[u8]) -> [u8; 32] {
    Sha256::digest(payload).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ActivityId, SkuId};

    fn key(activity: &str, sku: &str) -> SkuKey {
        SkuKey { activity: ActivityId::trusted(activity), sku: SkuId::trusted(sku) }
    }

    #[test]
    fn fs_03_ids_are_stable_and_survive_rotation() {
        let old = KeyRing::new(&[(1, vec![1; 32])]).unwrap();
        let rotated = KeyRing::new(&[(1, vec![1; 32]), (2, vec![2; 32])]).unwrap();
        let (sku, user, request) = (key("a", "s"), UserId::trusted("u"), RequestId::trusted("r"));
        let first = old.reservation(&sku, &user, &request);
        assert_eq!(first, old.reservation(&sku, &user, &request));
        assert!(rotated.owns(first, &sku, &user, &request));
        assert_ne!(rotated.reservation(&sku, &user, &request), first);
    }

    #[test]
    fn fs_02_another_user_never_derives_the_same_id() {
        let ring = KeyRing::new(&[(1, vec![1; 32])]).unwrap();
        let (sku, request) = (key("a", "s"), RequestId::trusted("r"));
        let mine = ring.reservation(&sku, &UserId::trusted("u1"), &request);
        assert!(!ring.owns(mine, &sku, &UserId::trusted("u2"), &request));
    }

    #[test]
    fn se_05_secrets_never_print() {
        let ring = KeyRing::new(&[(1, b"this-is-a-very-secret-value-32byte".to_vec())]).unwrap();
        assert!(!format!("{ring:?}").contains("secret-value"));
    }

    #[test]
    fn bad_rings_are_refused() {
        assert_eq!(KeyRing::new(&[]).unwrap_err(), KeyRingError::Empty);
        assert_eq!(KeyRing::new(&[(1, vec![0; 8])]).unwrap_err(), KeyRingError::TooShort);
        let twice = [(1, vec![0; 32]), (1, vec![1; 32])];
        assert_eq!(KeyRing::new(&twice).unwrap_err(), KeyRingError::SameVersion);
    }
}
