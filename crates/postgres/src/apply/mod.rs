//! Applying what a decision wants written: all of a `ChangeSet`, or a refusal and a rollback by the caller.
//!
//! Invariants: what is forgotten goes first; then the order is that of the tables' references, catalogue first; every
//! guarded write hits exactly the rows that were decided on or the set is refused; a new row that exists already is refused
//! by its constraint. Everything goes out in one round trip, after the numbers of new SKUs and words are known. `events` are
//! refused: the engine has turned them into an outbox entry in `due`. Read next: `script`, `purchases`, then `history`.

mod catalogue;
mod credit;
mod due;
mod group;
mod history;
mod money;
mod notices;
mod places;
mod purchases;
mod retention;
mod script;
mod words;

use onceward_domain::changes::ChangeSet;
use onceward_domain::time::Timestamp;

pub(crate) use script::{Loss, Script};

use crate::failure::defect;
use crate::link::Link;
use crate::refs::Names;
use crate::transact::{Places, Refusal};

/// Writes a set of changes inside the caller's transaction, and gives the transaction's name; none where nothing was written.
pub(crate) async fn apply(
    link: &Link,
    names: &mut Names<'_>,
    changes: &ChangeSet,
    (now, places): (Timestamp, &Places),
) -> Result<Option<String>, Refusal> {
    if !changes.events.is_empty() {
        return Err(defect("events reached the store that should be in an outbox entry").into());
    }
    let ChangeSet { activities, new_skus, .. } = changes;
    if !activities.is_empty() || !new_skus.is_empty() {
        catalogue::add(link, names, (activities, new_skus)).await?;
    }
    names.find_skus(link, words::skus(changes)).await?;
    names.find_words(link, words::texts(changes).iter().map(|text| &**text)).await?;

    let mut script = Script::new(link);
    retention::write(&mut script, &changes.forgotten).await?;
    catalogue::write(&mut script, names, changes).await?;
    purchases::write(&mut script, names, changes, places).await?;
    money::write(&mut script, changes).await?;
    group::write(&mut script, names, changes).await?;
    credit::write(&mut script, names, changes).await?;
    history::write(&mut script, names, changes).await?;
    notices::write(&mut script, changes).await?;
    due::write(&mut script, names, &changes.due, now).await?;
    script.carry_out().await
}
