//! What an operator asks about the gate: how it stands, and that it be made anew from the store (FS-18).
//!
//! Invariant: looking changes nothing. Deliberately absent: closing a gate by hand.

use futures_util::future::join_all;
use onceward_domain::catalogue::Sku;
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::SkuKey;
use onceward_domain::ports::admission::Standing;

use crate::engine::Engine;

/// SKUs that the gate is asked about at once: a buyer who comes meanwhile waits behind few of them.
const LOOKS_AT_ONCE: usize = 16;

/// One SKU, and how the gate stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateView {
    /// The SKU of record.
    pub sku: Sku,
    /// The gate; none where it knows nothing of the SKU.
    pub standing: Option<Standing>,
    /// Whether the gate's counters are rows of the store of record: then there is nothing to be made anew.
    pub in_store: bool,
}

impl GateView {
    /// Whether the gate has let go of it, because its sale is long past (FS-14).
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.is_retired)
    }

    /// Whether buyers are let in, as far as the gate is asked: the sale's hours and a backlog are another matter.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.closed == 0 && !standing.is_retired)
    }
}

/// How the gate stands for one SKU.
///
/// # Errors
/// [`Code::NotFound`]; the gate's and the store's.
pub async fn gate(engine: &Engine, key: &SkuKey) -> Result<GateView, Error> {
    let mut facts = engine.store().view(Need { skus: vec![key.clone()], ..Need::default() }).await?;
    let absent = || Error::new(Code::NotFound, format!("looking at the gate of {key}"));
    view(engine, facts.skus.remove(key).ok_or_else(absent)?).await
}

/// How it stands for SKUs in the order of their ids, from behind `after` on.
///
/// # Errors
/// The gate's and the store's.
pub async fn gates(engine: &Engine, limit: u32, after: Option<&SkuKey>) -> Result<Vec<GateView>, Error> {
    let skus = engine.store().list_skus(limit, after.cloned()).await?;
    let mut views = Vec::with_capacity(skus.len());
    for part in skus.chunks(LOOKS_AT_ONCE) {
        let looks = join_all(part.iter().map(|sku| view(engine, sku.clone()))).await;
        views.extend(looks.into_iter().collect::<Result<Vec<_>, _>>()?);
    }
    Ok(views)
}

/// Brings the gate back to what the store has decided, under the next epoch; a repeat is harmless.
///
/// # Errors
/// [`Code::NotFound`]; the gate's and the store's.
pub async fn rebuild(engine: &Engine, key: &SkuKey, actor: &str) -> Result<GateView, Error> {
    let before = gate(engine, key).await?;
    if before.in_store {
        return Ok(before);
    }
    tracing::info!(target: "onceward", event = "admission.rebuild_asked", sku = %key, actor);
    engine.admission().rebuild(key.clone()).await?;
    engine.signals().wake_all();
    gate(engine, key).await
}

async fn view(engine: &Engine, sku: Sku) -> Result<GateView, Error> {
    let standing = engine.admission().standing(sku.key.clone()).await?;
    Ok(GateView { sku, standing, in_store: engine.admission().lives_in_store() })
}
