//! Which texts and SKUs a set names by number.

use std::collections::HashSet;
use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{DueChange, Lane};
use onceward_domain::id::SkuKey;

/// The SKUs whose numbers a set needs.
pub(super) fn skus(changes: &ChangeSet) -> impl Iterator<Item = &SkuKey> {
    let terms = changes.changed_skus.iter().map(|sku| &sku.key);
    let stock = changes.stock.iter().map(|change| &change.key);
    let new_buckets = changes.new_buckets.iter().map(|bucket| &bucket.key);
    let buckets = changes.buckets.iter().map(|change| &change.bucket.key);
    let lines = changes.new_purchases.iter().flat_map(|purchase| &purchase.lines).map(|line| &line.key);
    let entries = changes.stock_entries.iter().map(|entry| &entry.key);
    terms.chain(stock).chain(new_buckets).chain(buckets).chain(lines).chain(entries)
}

/// The texts whose numbers a set needs, each once. With a lane comes its exhausted set, so that looking there costs nothing.
pub(super) fn texts(changes: &ChangeSet) -> Vec<Arc<str>> {
    let mut texts: HashSet<&str> = HashSet::new();
    for entry in &changes.stock_entries {
        texts.insert(entry.cause);
    }
    for one in &changes.transitions {
        texts.extend([one.kind, one.to, one.cause, &*one.actor]);
        texts.extend(one.from);
    }
    for one in &changes.group_transitions {
        texts.extend([one.to, one.cause, &*one.actor]);
        texts.extend(one.from);
    }
    for entry in &changes.entries {
        texts.insert(&*entry.actor);
    }
    let lanes: HashSet<&Lane> = changes.due.iter().map(lane_of).collect();
    let dead = lanes.iter().map(|lane| Arc::from(lane.dead_letters().as_str()));
    let own = lanes.iter().map(|lane| Arc::from(lane.as_str()));
    dead.chain(own).chain(texts.into_iter().map(Arc::from)).collect()
}

/// The lane that a change is about.
pub(super) fn lane_of(change: &DueChange) -> &Lane {
    match change {
        DueChange::Put { lane, .. }
        | DueChange::Remove { lane, .. }
        | DueChange::Replay { lane, .. }
        | DueChange::Reschedule { lane, .. }
        | DueChange::Pause(lane)
        | DueChange::Resume(lane) => lane,
        DueChange::Complete(held)
        | DueChange::Exhaust(held)
        | DueChange::Retry { held, .. }
        | DueChange::Extend { held, .. }
        | DueChange::SetAside { held, .. } => &held.lane,
    }
}
