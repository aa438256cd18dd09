//! Letting go of sales that are past (FS-14): their buckets go, and the store answers in their place.
//!
//! Invariants: no mark stays behind, so a retired bucket is one that is not there and whose sale is past by the store's own word:
//! a node that never heard of it, and a Redis that lost everything, come to the same answer. A SKU goes as a whole or waits as a whole,
//! where one of its buckets still keeps somebody; one that was cut off in between is finished by the next look. Deliberately absent:
//! a time to live, which would end at its hour whoever still waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use onceward_domain::catalogue::Sku;
use onceward_domain::decide::reserve::recognise;
use onceward_domain::error::Error;
use onceward_domain::id::SkuKey;
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::purchase::Route;
use onceward_domain::retention::{is_over, is_past};

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::reply;
use crate::script;

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
    /// Lets go of every SKU of the list that is past; says how many buckets went.
    pub(crate) async fn retire_all(&self) -> Result<u64, Error> {
        let Some(window) = self.retention else { return Ok(0) };
        let now = self.store.now().await?;
        let everywhere = self.everywhere().await?;
        let ended: BTreeMap<&SkuKey, &Arc<Sale>> = everywhere
            .iter()
            .filter(|(sale, _)| is_over(sale.activity.ends_at, window, now))
            .map(|(sale, _)| (&sale.key, sale))
            .collect();
        let (mut gone, mut failed) = (0, None);
        for sale in ended.into_values() {
            match self.retire(sale).await {
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
