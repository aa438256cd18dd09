//! Letting go of sales that are past (FS-14): their buckets go, and the store answers in their place.
//!
//! Invariants: no mark stays behind, so a retired bucket is one that is not there and whose sale is past by the store's own word:
//! a node that never heard of it, and a Redis that lost everything, come to the same answer. A SKU goes as a whole or waits as a whole,
//! where one of its buckets still keeps somebody; one that was cut off in between is finished by the next look. What the list of buckets
//! has lost is found by the store's SKUs, some thousand of them at each look. Deliberately absent: a time to live, which would end at its hour
//! whoever still waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use onceward_domain::catalogue::Sku;
use onceward_domain::decide::reserve::recognise;
use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::SkuKey;
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::purchase::Route;
use onceward_domain::retention::{is_over, is_past};
use onceward_domain::time::{Millis, Timestamp};

use crate::bucket::{Bucket, Sale};
use crate::core::{Core, lock};
use crate::reply;
use crate::script;

/// SKUs of the store that are read at once, whether or not the list names them.
const SKUS_OF_ONE_PAGE: u32 = 200;
/// Pages of one look; the next look goes on behind them.
const PAGES_OF_ONE_LOOK: usize = 10;
/// How many of them are looked for in Redis at once, each with all of its buckets.
const SALES_AT_ONCE: usize = 20;

const DOING: &str = "letting go of a sale that is past";

/// What has become of a bucket that was to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// It lets buyers in.
    Open,
    /// Its sale is past, and the store answers in its place.
    Retired,
}

impl Core {
    /// Lets go of every SKU of the list that is past, and of those among the store's next ones that the list has lost; says how many
    /// buckets went.
    pub(crate) async fn retire_all(&self) -> Result<u64, Error> {
        let Some(window) = self.retention else { return Ok(0) };
        let now = self.store.now().await?;
        let everywhere = self.everywhere().await?;
        let mut ended: BTreeMap<SkuKey, Arc<Sale>> = everywhere
            .into_iter()
            .filter(|(sale, _)| is_over(sale.activity.ends_at, window, now))
            .map(|(sale, _)| (sale.key.clone(), sale))
            .collect();
        for _ in 0..PAGES_OF_ONE_LOOK {
            let (mut unlisted, is_last) = self.next_past(window, now).await?;
            unlisted.retain(|sale| !ended.contains_key(&sale.key));
            for some in unlisted.chunks(SALES_AT_ONCE) {
                let there = join_all(some.iter().map(|sale| self.is_there(sale))).await;
                let found = some.iter().zip(there).filter(|(_, is_there)| *is_there);
                ended.extend(found.map(|(sale, _)| (sale.key.clone(), Arc::clone(sale))));
            }
            if is_last {
                break;
            }
        }
        let (mut gone, mut failed) = (0, None);
        for sale in ended.into_values() {
            match self.retire(&sale).await {
                Ok(true) => {
                    tracing::info!(target: "onceward", event = "admission.retired", sku = %sale.key);
                    gone += u64::try_from(sale.buckets.len()).unwrap_or(u64::MAX);
                }
                Ok(false) => {}
                // One that cannot be let go of leaves the others to be let go of.
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if gone == 0 => Err(error),
            Some(_) | None => Ok(gone),
        }
    }

    /// The past ones of the store's next SKUs, and whether these were the last; then it begins anew. They are not remembered, because they
    /// only become more.
    async fn next_past(&self, window: Millis, now: Timestamp) -> Result<(Vec<Arc<Sale>>, bool), Error> {
        let after = lock(&self.looked_until).clone();
        let skus = self.store.list_skus(SKUS_OF_ONE_PAGE, after).await?;
        let is_last = skus.len() < usize::try_from(SKUS_OF_ONE_PAGE).unwrap_or(usize::MAX);
        let need = Need { skus: skus.iter().map(|sku| sku.key.clone()).collect(), ..Need::default() };
        let activities = self.store.view(need).await?.activities;
        *lock(&self.looked_until) = skus.last().filter(|_| !is_last).map(|sku| sku.key.clone());
        let past = skus.iter().filter_map(|sku| {
            let activity = activities.get(&sku.key.activity)?;
            let is_past = is_past(activity.ends_at, &sku.stock, window, now);
            is_past.then(|| Arc::new(Sale::new(&self.prefix, activity.clone(), sku)))
        });
        Ok((past.collect(), is_last))
    }

    /// Whether a bucket of it is there; one that does not answer is looked at when its turn comes again.
    async fn is_there(&self, sale: &Sale) -> bool {
        let stands = join_all(sale.buckets.iter().map(|bucket| self.stand(bucket))).await;
        stands.iter().any(|stand| matches!(stand, Ok(Some(_))))
    }

    /// Drops the buckets of a SKU that is past, where nobody waits at any of them. Says whether all are gone.
    pub(crate) async fn retire(&self, sale: &Sale) -> Result<bool, Error> {
        if self.past(sale).await?.is_none() {
            return Ok(false);
        }
        for stand in join_all(sale.buckets.iter().map(|bucket| self.stand(bucket))).await {
            if stand?.is_some_and(|stand| stand.open_reserved != 0) {
                return Ok(false);
            }
        }
        for bucket in &sale.buckets {
            if !self.drop_bucket(bucket).await? {
                return Ok(false);
            }
        }
        self.strike_off(&sale.buckets).await?;
        Ok(true)
    }

    /// The SKU as it is now, where its sale is past.
    pub(crate) async fn past(&self, sale: &Sale) -> Result<Option<Sku>, Error> {
        let Some(window) = self.retention else { return Ok(None) };
        let (ended_at, now) = (sale.activity.ends_at, self.store.now().await?);
        if !is_over(ended_at, window, now) {
            return Ok(None);
        }
        let sku = self.sku(&sale.key).await?;
        Ok(sku.filter(|sku| is_past(ended_at, &sku.stock, window, now)))
    }

    async fn drop_bucket(&self, bucket: &Bucket) -> Result<bool, Error> {
        let keys = &bucket.keys;
        let others = [keys.comp.as_str(), &keys.loans, &keys.borrowed];
        let keys = [&keys.reserving()[..], &others].concat();
        Ok(reply::number(DOING, &self.link.run(&script::RETIRE, &keys, &[]).await?)? == 1)
    }

    /// What the bucket would have said to those who ask again, after the end of the sale.
    pub(crate) async fn recall(&self, commands: &[&Reserve]) -> Result<Vec<ReserveAnswer>, Error> {
        let ids = commands.iter().flat_map(|command| command.names()).copied();
        let rows = self.purchases(ids.collect()).await?;
        let answer = |command: &&Reserve| match command.names().find_map(|id| rows.get(id)) {
            // As in a bucket, what is kept under the id and is not this request is another one (FS-02).
            Some(row) => Some(row)
                .filter(|row| row.route == Route::Flash)
                .and_then(|row| recognise(row, command))
                .unwrap_or(ReserveAnswer::RequestConflict),
            None => ReserveAnswer::NotOpen,
        };
        Ok(commands.iter().map(answer).collect())
    }
}
