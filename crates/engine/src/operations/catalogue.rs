//! Putting things on sale, looking at them, adjusting stock.

use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, Sku};
use onceward_domain::decide;
pub use onceward_domain::decide::catalogue::{NewSku, Put};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::{ActivityId, SkuKey};

use crate::engine::Engine;
use crate::execute::execute;
use crate::operations::once::once;
pub use crate::operations::once::{Idempotent, Render, StoredAnswer};

/// A SKU with the gate's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkuView {
    /// The SKU of record.
    pub sku: Sku,
    /// The gate's counters, where there are any.
    pub bucket: Option<Bucket>,
}

/// A person's change of stock.
#[derive(Clone)]
pub struct AdjustStock {
    /// Of what.
    pub key: SkuKey,
    /// By how many units.
    pub delta: i64,
    /// Why.
    pub reason: Arc<str>,
    /// Who.
    pub actor: Arc<str>,
    /// Key, fingerprint and rendering.
    pub idempotent: Idempotent<SkuView>,
}

/// Puts an activity.
///
/// # Errors
/// [`Code::Differs`] where it exists with other values.
pub async fn put_activity(engine: &Engine, activity: Activity) -> Result<Put, Error> {
    let need = Need { activities: vec![activity.id.clone()], ..Need::default() };
    execute(engine, "put_activity", need, move |facts| decide::catalogue::put_activity(facts, &activity))
        .await
}

/// Looks at an activity.
///
/// # Errors
/// [`Code::NotFound`].
pub async fn activity(engine: &Engine, id: &ActivityId) -> Result<Activity, Error> {
    let mut facts = engine.store().view(Need { activities: vec![id.clone()], ..Need::default() }).await?;
    facts.activities.remove(id).ok_or_else(|| Error::new(Code::NotFound, format!("looking at activity {id}")))
}

/// Puts a SKU.
///
/// # Errors
/// [`Code::NotFound`] without its activity; [`Code::Differs`] where stock, buckets or currency differ.
pub async fn put_sku(engine: &Engine, new: NewSku) -> Result<Put, Error> {
    let with_bucket = engine.admission().lives_in_store();
    let need =
        Need { activities: vec![new.key.activity.clone()], skus: vec![new.key.clone()], ..Need::default() };
    execute(engine, "put_sku", need, move |facts| decide::catalogue::put_sku(facts, &new, with_bucket)).await
}

/// Looks at a SKU.
///
/// # Errors
/// [`Code::NotFound`].
pub async fn sku(engine: &Engine, key: &SkuKey) -> Result<SkuView, Error> {
    let mut facts = engine.store().view(Need { skus: vec![key.clone()], ..Need::default() }).await?;
    let sku =
        facts.skus.remove(key).ok_or_else(|| Error::new(Code::NotFound, format!("looking at SKU {key}")))?;
    let bucket = engine.admission().counters(key.clone()).await?;
    Ok(SkuView { sku, bucket })
}

/// Adjusts stock; the rendered first answer, also a refusal, is kept under the key in the same transaction.
///
/// # Errors
/// [`Code::IdempotencyKeyReused`] for the key with another body; the store's own errors. Refusals of the rule
/// itself are answers, not errors.
pub async fn adjust_stock(engine: &Engine, command: AdjustStock) -> Result<StoredAnswer, Error> {
    let id = engine.keys().adjustment(&command.key, &command.idempotent.key);
    let rule = decide::catalogue::AdjustStock {
        id,
        key: command.key.clone(),
        delta: command.delta,
        reason: Arc::from(format!("{} (by {})", command.reason, command.actor)),
    };
    let need = Need {
        skus: vec![command.key.clone()],
        buckets: vec![command.key.clone()],
        answers: vec![command.idempotent.key.clone()],
        ..Need::default()
    };
    let answer = execute(engine, "adjust_stock", need, move |facts| {
        once(facts, &command.idempotent, |facts| {
            let changes = decide::catalogue::adjust_stock(facts, &rule)?;
            let sku = facts.skus[&rule.key].clone();
            Ok((changes, SkuView { sku, bucket: facts.buckets.get(&rule.key).cloned() }))
        })
    })
    .await?;
    engine.signals().relay.notify_one();
    Ok(answer)
}
