//! What a node remembers of a SKU on sale and of its buckets.
//!
//! Invariant: only what never changes, or what a script checks again: an activity's rules are final, and so is the number of
//! buckets; the limit is told anew from time to time, the epoch is the server's.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use onceward_domain::catalogue::{Activity, Sku};
use onceward_domain::error::{Code, Error};
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use tokio::time::Instant;

use crate::core::lock;
use crate::moves::Moves;
use crate::names::{BucketId, Keys, home_of};

/// How long a bucket that could not be opened is left alone: each try asks the store, and buyers come faster than that.
const PAUSE: Duration = Duration::from_secs(1);

/// A SKU on sale.
#[derive(Debug)]
pub(crate) struct Sale {
    pub(crate) key: SkuKey,
    pub(crate) activity: Activity,
    pub(crate) moves: Moves,
    pub(crate) buckets: Vec<Bucket>,
}

/// One of its buckets.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) id: BucketId,
    pub(crate) keys: Keys,
    /// The newest epoch that this node has opened it under.
    pub(crate) epoch: AtomicI64,
    /// The limit that it was last told by this node.
    pub(crate) limit: AtomicU32,
    /// Who rebuilds it has the turn.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// How often this node has opened it: who waited for its turn sees that it was done.
    pub(crate) openings: AtomicU64,
    /// When this node tried last to open it and could not, and why.
    not_opened: Mutex<Option<(Instant, Code, String)>>,
    /// Whether a person was told of a loan that cannot be read: it is met at every look.
    is_loan_noted: AtomicBool,
}

impl Bucket {
    /// What those hear who want it opened, where it could not be a moment ago.
    pub(crate) fn left_alone(&self) -> Option<Error> {
        let not_opened = lock(&self.not_opened);
        let (at, code, text) = not_opened.as_ref()?;
        (at.elapsed() < PAUSE).then(|| Error::new(*code, format!("{text}, a moment ago")))
    }

    /// Notes how the last try to open it has ended, and tells a person where it could not be opened.
    pub(crate) fn note_opening(&self, failed: Option<&Error>) {
        if let Some(error) = failed {
            tracing::warn!(target: "onceward", event = "admission.not_opened", bucket = %self.id.text(), ?error);
        }
        *lock(&self.not_opened) =
            failed.map(|error| (Instant::now(), error.code(), error.operator_text().to_owned()));
    }

    /// Tells a person of a reservation whose record cannot be read.
    pub(crate) fn note_damage(&self, purchase: PurchaseId) {
        let (bucket, reservation) = (self.id.text(), purchase.reservation());
        tracing::error!(target: "onceward", event = "admission.damaged_record", %bucket, %reservation);
    }

    /// Tells a person, once, of a loan that cannot be read. Its units are in no bucket until somebody can.
    pub(crate) fn note_damaged_loan(&self) {
        if !self.is_loan_noted.swap(true, Ordering::Relaxed) {
            tracing::error!(target: "onceward", event = "admission.damaged_loan", bucket = %self.id.text());
        }
    }
}

impl Sale {
    pub(crate) fn new(prefix: &str, activity: Activity, sku: &Sku) -> Self {
        let bucket = |number| {
            let id = BucketId { key: sku.key.clone(), number };
            Bucket {
                keys: Keys::of(prefix, &id),
                id,
                epoch: AtomicI64::new(0),
                limit: AtomicU32::new(sku.per_user_limit),
                turn: tokio::sync::Mutex::default(),
                openings: AtomicU64::new(0),
                not_opened: Mutex::default(),
                is_loan_noted: AtomicBool::new(false),
            }
        };
        Self {
            key: sku.key.clone(),
            moves: Moves::under(activity.cancelled_frees_limit),
            activity,
            buckets: (0..sku.buckets.max(1)).map(bucket).collect(),
        }
    }

    /// The bucket that keeps this buyer.
    pub(crate) fn home(&self, user: &UserId) -> &Bucket {
        &self.buckets[self.home_number(user)]
    }

    /// The number of the bucket that keeps this buyer.
    pub(crate) fn home_number(&self, user: &UserId) -> usize {
        let count = u16::try_from(self.buckets.len()).expect("a SKU has few buckets");
        usize::from(home_of(user, count))
    }
}
