//! The governor's worker: looks behind the gate, so that the gate's front knows whether to let buyers in (FS-16, FS-17).
//!
//! Invariants: it changes nothing anywhere; where nothing waits a look is one question about an empty lane; a look that fails
//! leaves things as they were, and is repeated; a part of the gate that is away leaves the others to be looked at. Read next:
//! [`crate::governor`].

use futures_util::future::join_all;
use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::SkuKey;
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::governor::Look;
use crate::observe;
use crate::outage::is_outage;
use crate::workers::Next;

/// A reservation's time where nothing on sale says another.
const USUAL_DEADLINE: Millis = Millis(300_000);

/// Most SKUs that the gate is asked of at once: one that hangs is waited for once, and not in turn.
const COUNTED_AT_ONCE: usize = 16;

/// Looks once.
///
/// # Errors
/// The gate's or the store's.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let governor = engine.governor();
    let (keys, admitted) = governor.watched();
    let found = look(engine, &keys, admitted).await;
    let (found, decided) = found.inspect_err(|_| governor.put_back(admitted))?;
    governor.forget(&decided);
    let settings = &engine.settings().governor;
    let (before, after) = governor.look(found, &settings.limits);
    observe::governed(before, after);
    let is_idle = found.unsent == 0 && found.undecided == 0 && found.admitted == 0;
    Ok(Next::Wait((!is_idle).then_some(settings.interval)))
}

async fn look(engine: &Engine, keys: &[SkuKey], admitted: u64) -> Result<(Look, Vec<SkuKey>), Error> {
    let settings = &engine.settings().governor;
    let unsent = engine.admission().unsent(settings.limits.unsent.closes()).await?;
    let (mut undecided, mut decided) = (0, Vec::new());
    let counters = |key: &SkuKey| engine.admission().counters(key.clone());
    let mut found = Vec::with_capacity(keys.len());
    for some in keys.chunks(COUNTED_AT_ONCE) {
        found.extend(join_all(some.iter().map(counters)).await);
    }
    for (key, counters) in keys.iter().zip(found) {
        let open = match counters {
            Ok(bucket) => bucket.map_or(0, |bucket| bucket.open_reserved.max(0).unsigned_abs()),
            // One sale whose part of the gate is away leaves the others to be looked at, and counts as it did before.
            Err(error) if is_outage(&error) => {
                tracing::warn!(target: "onceward", event = "governor.not_counted", sale = %key, ?error);
                undecided += engine.governor().counted(key);
                continue;
            }
            Err(error) => return Err(error),
        };
        engine.governor().count(key, open);
        undecided += open;
        if open == 0 {
            decided.push(key.clone());
        }
    }
    let facts = engine.store().view(Need { skus: keys.to_vec(), ..Need::default() }).await?;
    let deadline = keys.iter().filter_map(|key| facts.activities.get(&key.activity));
    let deadline = deadline.map(|activity| activity.reservation_deadline).min().unwrap_or(USUAL_DEADLINE);
    let oldest_unsent = unsent.oldest.unwrap_or(Millis(0));
    let found =
        Look { now: facts.now, unsent: unsent.reservations, oldest_unsent, undecided, admitted, deadline };
    Ok((found, decided))
}
