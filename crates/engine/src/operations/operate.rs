//! What an operator asks: invariants, overview, readiness.

use onceward_domain::audit;
pub use onceward_domain::audit::Check;
use onceward_domain::due::LaneStatus;
use onceward_domain::error::Error;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;

use crate::engine::Engine;

/// Most SKUs whose counters a gate outside of the store is asked for.
const GATES_LIMIT: usize = 256;

/// After so many SKUs whose part of a gate did not answer, all of it counts as away.
const AWAY_AFTER: usize = 3;

/// The engine at a glance.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The store's time.
    pub now: Timestamp,
    /// Every lane with work in it.
    pub lanes: Vec<LaneStatus>,
    /// Sums over everything.
    pub tally: Tally,
}

/// Judges every invariant now, from the store.
///
/// # Errors
/// The store's.
pub async fn invariants(engine: &Engine) -> Result<Vec<Check>, Error> {
    Ok(audit::judge(&engine.store().tally().await?))
}

/// Lanes and sums, with the counters of the gate, wherever it lives.
///
/// # Errors
/// The store's.
pub async fn overview(engine: &Engine) -> Result<Overview, Error> {
    let mut lanes = engine.store().lanes().await?;
    lanes.retain(|one| one.lane.is_work());
    let mut tally = engine.store().tally().await?;
    if !engine.admission().lives_in_store() {
        let mut away = 0;
        for sku in tally.skus.iter_mut().take(GATES_LIMIT) {
            // A gate that is away hides counters and nothing else, and is not waited for again and again.
            match engine.admission().counters(sku.sku.key.clone()).await {
                Ok(counters) => sku.bucket = counters,
                Err(_) if away + 1 == AWAY_AFTER => break,
                Err(_) => away += 1,
            }
        }
    }
    Ok(Overview { now: tally.now, lanes, tally })
}

/// Whether the store answers.
///
/// # Errors
/// The store's.
pub async fn ready(engine: &Engine) -> Result<(), Error> {
    engine.store().now().await.map(|_| ())
}
