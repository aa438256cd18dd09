//! How buckets stand, looked at without changing anything (FS-18).

use futures_util::future::join_all;
use onceward_domain::catalogue::Bucket as Counters;
use onceward_domain::error::Error;
use onceward_domain::id::SkuKey;
use onceward_domain::ports::admission::Standing;

use crate::bucket::Bucket;
use crate::core::Core;
use crate::reply;
use crate::script;

const DOING: &str = "a look at the gate";

/// One bucket that is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stand {
    /// Whether it lets buyers in.
    pub(crate) is_open: bool,
    pub(crate) initial: i64,
    pub(crate) available: i64,
    pub(crate) open_reserved: i64,
    pub(crate) committed: i64,
    pub(crate) adjustments: i64,
    pub(crate) epoch: i64,
    /// When it was opened last, or made; milliseconds of the server's clock.
    pub(crate) since: i64,
}

impl Stand {
    /// Adds it to those of the same SKU.
    pub(crate) fn add_to(self, sum: &mut Counters) {
        sum.initial += self.initial;
        sum.available += self.available;
        sum.open_reserved += self.open_reserved;
        sum.committed += self.committed;
        sum.adjustments = sum.adjustments.max(u32::try_from(self.adjustments).unwrap_or(u32::MAX));
        sum.revision = sum.revision.max(self.epoch);
    }
}

impl Core {
    /// How a bucket stands; none where it is not there.
    pub(crate) async fn stand(&self, bucket: &Bucket) -> Result<Option<Stand>, Error> {
        let answer = self.link.run(&script::STAND, &[&bucket.keys.counter], &[]).await?;
        match reply::numbers(DOING, answer)?[..] {
            [] => Ok(None),
            [open, initial, available, open_reserved, committed, adjustments, epoch, since] => {
                let is_open = open == 1;
                Ok(Some(Stand {
                    is_open,
                    initial,
                    available,
                    open_reserved,
                    committed,
                    adjustments,
                    epoch,
                    since,
                }))
            }
            _ => Err(reply::unexpected(DOING)),
        }
    }

    /// How all buckets of a SKU stand; none where there is no such SKU.
    pub(crate) async fn standing(&self, key: SkuKey) -> Result<Option<Standing>, Error> {
        let Some(sale) = self.sale(&key).await? else { return Ok(None) };
        let buckets = u16::try_from(sale.buckets.len()).expect("a SKU has few buckets");
        let mut standing = Standing { counters: None, buckets, closed: 0, epoch: 0, is_retired: false };
        for stand in join_all(sale.buckets.iter().map(|bucket| self.stand(bucket))).await {
            let stand = stand?;
            standing.closed += u16::from(stand.is_none_or(|stand| !stand.is_open));
            if let Some(stand) = stand {
                standing.epoch = standing.epoch.max(stand.epoch);
                stand.add_to(standing.counters.get_or_insert_with(|| Counters::full(key.clone(), 0)));
            }
        }
        if standing.counters.is_none()
            && let Some(sku) = self.past(&sale).await?
        {
            (standing.counters, standing.closed) = (Some(Counters::settled(&sku)), 0);
            standing.is_retired = true;
        }
        Ok(Some(standing))
    }
}
