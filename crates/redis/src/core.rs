//! What everything in the adapter shares: the line, the store of record, and the sales that this node has met.
//!
//! Invariant: a sale is read from the store once and kept; which buckets other nodes have opened is asked anew when it is
//! older than a second.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use onceward_domain::catalogue::Sku;
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::ports::admission::{Part, Reserve};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::store::Store;
use onceward_domain::purchase::Purchase;
use onceward_domain::time::Millis;
use tokio::time::Instant;

use crate::bucket::{Bucket, Sale};
use crate::link::Link;
use crate::names::{BucketId, registry};
use crate::options::{Options, Time};
use crate::reply;
use crate::script;

/// Most buckets that are looked at at once, where all of them are.
pub(crate) const LOOKS_AT_ONCE: usize = 128;
/// How old the list of all buckets may be.
const REGISTRY_AGE: Duration = Duration::from_secs(1);

pub(crate) struct Core {
    pub(crate) link: Link,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) time: Time,
    pub(crate) prefix: String,
    /// See [`Options::with_retention`].
    pub(crate) retention: Option<Millis>,
    sales: Mutex<HashMap<SkuKey, Arc<Sale>>>,
    registered: Mutex<Registered>,
    /// Who reads the list of buckets has the turn: whoever waited finds it read.
    reading: tokio::sync::Mutex<()>,
    /// Up to which SKU of the store it was looked for sales that are past.
    pub(crate) looked_until: Mutex<Option<SkuKey>>,
    /// Buckets that are being rebuilt here.
    pub(crate) rebuilding: AtomicU64,
    /// How often one was opened here.
    pub(crate) rebuilt: AtomicU64,
}

#[derive(Default)]
struct Registered {
    /// When somebody began to read it last, and could.
    read_at: Option<Instant>,
    /// When it was found that it cannot be read, and why.
    unread: Option<(Instant, Code, String)>,
    /// Until when the list that was read last has to do.
    rests_until: Option<Instant>,
    /// As the servers have it.
    buckets: Vec<BucketId>,
    /// Those that this node has opened or let somebody into.
    own: HashSet<BucketId>,
}

impl Registered {
    fn is_old(&self) -> bool {
        self.read_at.is_none_or(|at| at.elapsed() > REGISTRY_AGE)
            && self.rests_until.is_none_or(|until| until < Instant::now())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(crate) fn new(options: Options, store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        let (time, prefix, retention) = (options.time.clone(), options.prefix.clone(), options.retention);
        Self {
            link: Link::new(options),
            store,
            ids,
            time,
            prefix,
            retention,
            sales: Mutex::default(),
            registered: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            looked_until: Mutex::default(),
            rebuilding: AtomicU64::default(),
            rebuilt: AtomicU64::default(),
        }
    }

    /// The sale of a SKU; none where the store has no such SKU.
    pub(crate) async fn sale(&self, key: &SkuKey) -> Result<Option<Arc<Sale>>, Error> {
        if let Some(known) = lock(&self.sales).get(key) {
            return Ok(Some(Arc::clone(known)));
        }
        let mut facts = self.store.view(Need { skus: vec![key.clone()], ..Need::default() }).await?;
        let (Some(sku), Some(activity)) = (facts.skus.remove(key), facts.activities.remove(&key.activity))
        else {
            return Ok(None);
        };
        let mut sales = lock(&self.sales);
        let sale =
            sales.entry(key.clone()).or_insert_with(|| Arc::new(Sale::new(&self.prefix, activity, &sku)));
        Ok(Some(Arc::clone(sale)))
    }

    /// The bucket of a buyer, as a number that is its own. Sales that were not heard of yet wait for the store, and so for each other:
    /// names that nobody sells under take no place from those who know where they go.
    pub(crate) fn part(&self, command: &Reserve) -> Part {
        let known = lock(&self.sales).get(&command.key).map(Arc::clone);
        let Some(sale) = known else { return Part::WHOLE };
        let mut digest = DefaultHasher::new();
        (&command.key, sale.home_number(&command.user)).hash(&mut digest);
        Part(digest.finish())
    }

    /// The SKU as it is now.
    pub(crate) async fn sku(&self, key: &SkuKey) -> Result<Option<Sku>, Error> {
        let mut facts = self.store.view(Need { skus: vec![key.clone()], ..Need::default() }).await?;
        Ok(facts.skus.remove(key))
    }

    /// What the store knows of these purchases.
    pub(crate) async fn purchases(
        &self,
        ids: Vec<PurchaseId>,
    ) -> Result<HashMap<PurchaseId, Purchase>, Error> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        Ok(self.store.view(Need { purchases: ids, ..Need::default() }).await?.purchases)
    }

    /// Tells the bucket of its SKU's limit, where that has changed.
    pub(crate) async fn tell_limit(&self, bucket: &Bucket) -> Result<(), Error> {
        let Some(sku) = self.sku(&bucket.id.key).await? else { return Ok(()) };
        if bucket.limit.load(Ordering::Relaxed) != sku.per_user_limit {
            let limit = sku.per_user_limit.to_string();
            self.link.run(&script::RULES, &[&bucket.keys.counter], &[limit.as_bytes()]).await?;
            bucket.limit.store(sku.per_user_limit, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes a bucket into the list that workers look through. The list lies in a slot of its own, whose server may lose it
    /// while the bucket's own server loses nothing: so it is said again from time to time.
    pub(crate) async fn register(&self, bucket: &Bucket) -> Result<(), Error> {
        self.enlist(std::slice::from_ref(&bucket.id)).await?;
        let mut registered = lock(&self.registered);
        if !registered.buckets.contains(&bucket.id) {
            registered.buckets.push(bucket.id.clone());
        }
        registered.own.insert(bucket.id.clone());
        Ok(())
    }

    async fn enlist(&self, buckets: &[BucketId]) -> Result<(), Error> {
        let mut command = redis::cmd("SADD");
        command.arg(registry(&self.prefix));
        for bucket in buckets {
            command.arg(bucket.text());
        }
        self.link.call(&command).await.map(drop)
    }

    /// Takes buckets off the list.
    pub(crate) async fn strike_off(&self, buckets: &[Bucket]) -> Result<(), Error> {
        let mut command = redis::cmd("SREM");
        command.arg(registry(&self.prefix));
        for bucket in buckets {
            command.arg(bucket.id.text());
        }
        self.link.call(&command).await?;
        let is_kept = |id: &BucketId| buckets.iter().all(|bucket| bucket.id != *id);
        let mut registered = lock(&self.registered);
        registered.buckets.retain(is_kept);
        registered.own.retain(is_kept);
        Ok(())
    }

    /// Says again which of its own buckets the list has lost. One that is not there has nothing to be looked through: it went with its
    /// sale, or whoever opens it anew says so before anybody is let in.
    async fn say_again(&self, listed: &[BucketId]) -> Result<Vec<BucketId>, Error> {
        let listed: HashSet<&BucketId> = listed.iter().collect();
        let is_lost = |one: &&BucketId| !listed.contains(one);
        let lost: Vec<BucketId> = lock(&self.registered).own.iter().filter(is_lost).cloned().collect();
        let mut there = Vec::with_capacity(lost.len());
        for some in lost.chunks(LOOKS_AT_ONCE) {
            let looks = join_all(some.iter().map(|id| self.may_be_there(id))).await;
            for (id, may_be_there) in some.iter().zip(looks) {
                if may_be_there? {
                    there.push(id.clone());
                } else {
                    lock(&self.registered).own.remove(id);
                }
            }
        }
        if !there.is_empty() {
            self.enlist(&there).await?;
        }
        Ok(there)
    }

    /// One that does not answer may well be there, and is no reason to overlook the others.
    async fn may_be_there(&self, id: &BucketId) -> Result<bool, Error> {
        let sale = self.sale(&id.key).await?;
        let bucket = sale.as_ref().and_then(|sale| sale.buckets.get(usize::from(id.number)));
        Ok(match bucket {
            Some(bucket) => !matches!(self.stand(bucket).await, Ok(None)),
            None => false,
        })
    }

    /// All buckets that were opened and not let go of, as of a second ago, with the sales they belong to. The list's own server may be
    /// away while those of the buckets are there: then they are the ones that it named last.
    pub(crate) async fn everywhere(&self) -> Result<Vec<(Arc<Sale>, u16)>, Error> {
        let is_old = lock(&self.registered).is_old();
        if is_old && let Err(error) = self.read_since(Instant::now()).await {
            let mut registered = lock(&self.registered);
            if registered.buckets.is_empty() {
                return Err(error);
            }
            tracing::warn!(target: "onceward", event = "admission.list_unread", ?error);
            // Not again for a moment. Whoever must know reads it all the same.
            registered.rests_until = Some(Instant::now() + REGISTRY_AGE);
        }
        self.listed().await
    }

    /// All buckets that were opened before this time and not let go of.
    ///
    /// # Errors
    /// Where the list cannot be read: whoever is looked for may be in one that it names.
    pub(crate) async fn everywhere_since(&self, time: Instant) -> Result<Vec<(Arc<Sale>, u16)>, Error> {
        self.read_since(time).await?;
        self.listed().await
    }

    /// Reads the list where it was read before this time. Whoever waited while another one could not read it does not try in turn.
    async fn read_since(&self, time: Instant) -> Result<(), Error> {
        let _turn = self.reading.lock().await;
        let (read_at, unread) = {
            let registered = lock(&self.registered);
            (registered.read_at, registered.unread.clone())
        };
        if read_at.is_some_and(|at| at >= time) {
            return Ok(());
        }
        if let Some((_, code, text)) = unread.filter(|(at, ..)| *at >= time) {
            return Err(Error::new(code, text));
        }
        let began = Instant::now();
        let read = self.read_registry().await;
        let mut registered = lock(&self.registered);
        let failed = read.as_ref().err();
        registered.unread = failed.map(|why| (Instant::now(), why.code(), why.operator_text().to_owned()));
        registered.buckets = read?;
        registered.read_at = Some(began);
        Ok(())
    }

    async fn listed(&self) -> Result<Vec<(Arc<Sale>, u16)>, Error> {
        let known = lock(&self.registered).buckets.clone();
        let mut found = Vec::with_capacity(known.len());
        for BucketId { key, number } in known {
            if let Some(sale) = self.sale(&key).await?.filter(|sale| usize::from(number) < sale.buckets.len())
            {
                found.push((sale, number));
            }
        }
        Ok(found)
    }

    /// The list, with what it has lost of this node's own.
    async fn read_registry(&self) -> Result<Vec<BucketId>, Error> {
        const DOING: &str = "the list of buckets";
        let mut command = redis::cmd("SMEMBERS");
        command.arg(registry(&self.prefix));
        let answer = reply::list(DOING, self.link.call(&command).await?)?;
        let mut buckets: Vec<BucketId> = Vec::with_capacity(answer.len());
        for one in reply::all_bytes(DOING, answer)? {
            // Whatever else is on the list is nobody's bucket.
            buckets.extend(reply::text(DOING, &one).ok().and_then(BucketId::parse));
        }
        buckets.extend(self.say_again(&buckets).await?);
        buckets.sort_by(|one, other| (&one.key, one.number).cmp(&(&other.key, other.number)));
        Ok(buckets)
    }
}
