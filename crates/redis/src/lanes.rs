//! The two lanes of a gate: batches whose message must be sent, and batches whose deadline comes (FS-05, FS-15).
//!
//! Invariants: a claim moves the score to the lease's end and takes nothing out; only its token ends it. A look over all
//! buckets costs one small command each, all on their way at once; only buckets with something due are claimed from; what one
//! bucket does not answer hides what lies in it, and nothing else (FS-19).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use onceward_domain::due::{Held, Lane, Token, pack_ids};
use onceward_domain::error::Error;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::machine::admission::Admission;
use onceward_domain::ports::admission::Unsent;
use onceward_domain::time::{Millis, Timestamp};
use redis::Value;

use crate::bucket::{Bucket, Sale};
use crate::core::{Core, LOOKS_AT_ONCE};
use crate::link::Link;
use crate::names::BucketId;
use crate::record::Record;
use crate::reply;
use crate::script;

/// Most batches that one script call claims or ends.
const BATCHES_OF_ONE_CALL: u32 = 16;

/// About so many batches are counted in one script call.
const BATCHES_OF_ONE_COUNT: &str = "256";

/// In a cluster each bucket is judged by its own server's clock, which may be so far ahead of the one that was asked.
const SKEW: Millis = Millis(1_000);

/// How long what could not be read waits until it is looked at again, perhaps by a node that can.
const UNREAD_WAIT: Millis = Millis(60_000);

const DOING: &str = "a claim";

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Send,
    Overdue,
}

impl Way {
    fn lane(self) -> Lane {
        Lane::new(match self {
            Self::Send => Lane::SEND_DUE,
            Self::Overdue => Lane::DEADLINE,
        })
    }

    fn scores(self, bucket: &Bucket) -> &str {
        match self {
            Self::Send => &bucket.keys.send_due,
            Self::Overdue => &bucket.keys.deadline,
        }
    }

    fn entries(self, bucket: &Bucket) -> &str {
        match self {
            Self::Send => &bucket.keys.send,
            Self::Overdue => &bucket.keys.overdue,
        }
    }
}

/// A claimed batch.
pub(crate) struct Batch {
    pub(crate) held: Held,
    pub(crate) attempts: u32,
    pub(crate) reserved_at: Timestamp,
    /// Its reservations, each with its state.
    pub(crate) messages: Vec<(Admission, OrderCreateRequested)>,
    /// Those whose record cannot be read here: it is damaged, or of a version that this node does not know.
    pub(crate) unread: Vec<PurchaseId>,
    /// When these are to be looked at again.
    pub(crate) again_at: Timestamp,
}

/// How a claim ends.
pub(crate) enum End {
    Done,
    After(Vec<PurchaseId>, Millis),
    At(Vec<PurchaseId>, Timestamp),
}

/// What several buckets answered, one after the other or all at once. One that fails is passed over, and is an error where nothing was
/// had of any.
struct Heard<'a> {
    link: &'a Link,
    answered: usize,
    failed: Option<Error>,
}

impl<'a> Heard<'a> {
    fn over(link: &'a Link) -> Self {
        Self { link, answered: 0, failed: None }
    }

    /// What one of them answered; none where it failed. Of one that is known not to answer that is no news.
    fn of<T>(&mut self, bucket: &Bucket, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.answered += 1;
                Some(answer)
            }
            Err(error) => {
                if !self.link.is_silent(&bucket.keys.counter) {
                    tracing::warn!(target: "onceward", event = "admission.bucket_failed", bucket = %bucket.id.text(), ?error);
                }
                self.failed = Some(error);
                None
            }
        }
    }

    /// Fails where nobody has answered and somebody has failed.
    fn end(self) -> Result<(), Error> {
        match self.failed {
            Some(error) if self.answered == 0 => Err(error),
            Some(_) | None => Ok(()),
        }
    }
}

/// Where the next look begins, so that no bucket is always first.
#[derive(Default)]
pub(crate) struct Turn(AtomicUsize);

impl Core {
    /// Claims up to `limit` due batches.
    pub(crate) async fn claim(
        &self,
        way: Way,
        turn: &Turn,
        limit: u32,
        lease: Millis,
    ) -> Result<Vec<Batch>, Error> {
        let mut due = self.heads(way).await?;
        let Some((sale, number, _)) = due.first() else { return Ok(Vec::new()) };
        // One that has just answered is asked; where it is away now, each bucket finds for itself what is due.
        let now = self.now(&sale.buckets[usize::from(*number)]).await.ok();
        let latest = now.map_or(Timestamp(i64::MAX), |now| now.plus(SKEW));
        due.retain(|(_, _, at)| *at <= latest);
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let first = turn.0.fetch_add(1, Ordering::Relaxed) % due.len();
        due.rotate_left(first);
        let (mut batches, mut heard): (Vec<Batch>, _) = (Vec::new(), Heard::over(&self.link));
        for (sale, number, _) in due {
            let left = limit.saturating_sub(u32::try_from(batches.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let bucket = &sale.buckets[usize::from(number)];
            let claimed = self.claim_in(way, &sale, bucket, left, lease).await;
            batches.extend(heard.of(bucket, claimed).unwrap_or_default());
        }
        for batch in batches.iter_mut().filter(|batch| !batch.unread.is_empty()) {
            batch.again_at = now.unwrap_or(batch.reserved_at).plus(UNREAD_WAIT);
        }
        // Where nothing came and something is due, whoever asked is to ask again later, and not at once.
        if batches.is_empty() { heard.end().map(|()| batches) } else { Ok(batches) }
    }

    async fn claim_in(
        &self,
        way: Way,
        sale: &Sale,
        bucket: &Bucket,
        limit: u32,
        lease: Millis,
    ) -> Result<Vec<Batch>, Error> {
        let (time, lease) = (self.time.argument(), lease.0.to_string());
        let keys = [&bucket.keys.counter, &bucket.keys.reservation, way.scores(bucket), way.entries(bucket)];
        let mut batches: Vec<Batch> = Vec::new();
        loop {
            let claimed = u32::try_from(batches.len()).unwrap_or(u32::MAX);
            let part = BATCHES_OF_ONE_CALL.min(limit.saturating_sub(claimed));
            if part == 0 {
                return Ok(batches);
            }
            let count = part.to_string();
            let arguments: [&[u8]; 3] = [time.as_bytes(), count.as_bytes(), lease.as_bytes()];
            let mut answer =
                reply::list(DOING, self.link.run(&script::CLAIM, &keys, &arguments).await?)?.into_iter();
            let Some(wait) = answer.next() else { return Ok(batches) };
            let wait = Millis(reply::number(DOING, &wait)?);
            let mut answered = 0;
            for one in answer {
                match read_batch(way, &sale.key, bucket, wait, one) {
                    Ok(batch) => batches.push(batch),
                    // It comes again when its lease ends, and holds up nothing beside it.
                    Err(error) => {
                        tracing::error!(target: "onceward", event = "admission.damaged_batch", bucket = %bucket.id.text(), ?error);
                    }
                }
                answered += 1;
            }
            if answered < part {
                return Ok(batches);
            }
        }
    }

    /// Ends claims; answers how many were still held.
    pub(crate) async fn settle(&self, way: Way, ends: Vec<(Held, End)>) -> Result<u32, Error> {
        let mut by_bucket: HashMap<BucketId, Vec<(Vec<u8>, Token, End)>> = HashMap::new();
        for (held, end) in ends {
            if let Some((bucket, batch)) = BucketId::of_member(&held.member) {
                by_bucket.entry(bucket).or_default().push((batch, held.token, end));
            }
        }
        let (mut still_held, mut heard) = (0, Heard::over(&self.link));
        for (id, ends) in by_bucket {
            let Some(sale) = self.sale(&id.key).await? else { continue };
            let Some(bucket) = sale.buckets.get(usize::from(id.number)) else { continue };
            for part in ends.chunks(usize::try_from(BATCHES_OF_ONE_CALL).unwrap_or(1)) {
                let settled = self.settle_in(way, bucket, part).await;
                let Some(held) = heard.of(bucket, settled) else { break };
                still_held += held;
            }
        }
        // What was not settled comes again when its lease ends.
        heard.end().map(|()| still_held)
    }

    async fn settle_in(
        &self,
        way: Way,
        bucket: &Bucket,
        ends: &[(Vec<u8>, Token, End)],
    ) -> Result<u32, Error> {
        let mut arguments: Vec<Vec<u8>> = vec![self.time.argument().into_bytes()];
        for (batch, token, end) in ends {
            let (how, when, ids) = match end {
                End::Done => ("done", 0, Vec::new()),
                End::After(ids, wait) => ("after", wait.0, pack_ids(ids)),
                End::At(ids, at) => ("at", at.0, pack_ids(ids)),
            };
            arguments.extend([batch.clone(), token.0.to_string().into_bytes(), how.into()]);
            arguments.extend([when.to_string().into_bytes(), ids]);
        }
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let answer =
            self.link.run(&script::SETTLE, &[way.scores(bucket), way.entries(bucket)], &arguments).await?;
        u32::try_from(reply::number(DOING, &answer)?).map_err(|_| reply::unexpected(DOING))
    }

    /// What waits to be sent; counting stops once it has passed the limit.
    pub(crate) async fn unsent(&self, limit: u64) -> Result<Unsent, Error> {
        let (mut reservations, mut heard) = (0, Heard::over(&self.link));
        let mut oldest: Option<(Timestamp, Arc<Sale>, u16)> = None;
        for (sale, number, _) in self.heads(Way::Send).await? {
            let bucket = &sale.buckets[usize::from(number)];
            let counted = self.unsent_in(bucket, limit - reservations).await;
            let Some((count, since)) = heard.of(bucket, counted) else { continue };
            reservations += count;
            if let Some(since) = since.filter(|since| oldest.as_ref().is_none_or(|(at, ..)| since < at)) {
                oldest = Some((since, sale, number));
            }
            if reservations > limit {
                break;
            }
        }
        heard.end()?;
        let oldest = match oldest {
            // A figure that cannot be had closes nothing.
            Some((at, sale, number)) => {
                let now = self.now(&sale.buckets[usize::from(number)]).await;
                now.ok().map(|now| now.since(at))
            }
            None => None,
        };
        Ok(Unsent { reservations, oldest })
    }

    /// How many wait in one bucket, and since when the first of them.
    async fn unsent_in(&self, bucket: &Bucket, limit: u64) -> Result<(u64, Option<Timestamp>), Error> {
        let (mut reservations, mut oldest) = (0, None);
        let mut cursor = b"0".to_vec();
        loop {
            let arguments = [cursor.as_slice(), BATCHES_OF_ONE_COUNT.as_bytes()];
            let answer = self.link.run(&script::UNSENT, &[&bucket.keys.send], &arguments).await?;
            let parts = reply::list(DOING, answer)?;
            let [next, count, stamps @ ..] = parts.as_slice() else { return Err(reply::unexpected(DOING)) };
            reservations += reply::number(DOING, count)?.unsigned_abs();
            for stamp in stamps {
                let since = Timestamp(reply::number(DOING, stamp)? / 1_000);
                oldest = oldest.into_iter().chain([since]).min();
            }
            cursor = reply::bytes(DOING, next.clone())?;
            if cursor == b"0" || reservations > limit {
                return Ok((reservations, oldest));
            }
        }
    }

    /// Earliest score of a lane over all buckets.
    pub(crate) async fn next(&self, way: Way) -> Result<Option<Timestamp>, Error> {
        Ok(self.heads(way).await?.into_iter().map(|(_, _, at)| at).min())
    }

    /// The earliest score of each bucket that has one.
    async fn heads(&self, way: Way) -> Result<Vec<(Arc<Sale>, u16, Timestamp)>, Error> {
        let everywhere = self.everywhere().await?;
        let (mut heads, mut heard) = (Vec::new(), Heard::over(&self.link));
        for part in everywhere.chunks(LOOKS_AT_ONCE) {
            let look = |(sale, number): &(Arc<Sale>, u16)| {
                let (sale, number) = (Arc::clone(sale), *number);
                async move { self.head(way, &sale.buckets[usize::from(number)]).await }
            };
            let looks = join_all(part.iter().map(look)).await;
            for ((sale, number), head) in part.iter().zip(looks) {
                let bucket = &sale.buckets[usize::from(*number)];
                let head = heard.of(bucket, head).flatten();
                heads.extend(head.map(|at| (Arc::clone(sale), *number, at)));
            }
        }
        heard.end().map(|()| heads)
    }

    /// The earliest score of a bucket; none where nothing waits.
    async fn head(&self, way: Way, bucket: &Bucket) -> Result<Option<Timestamp>, Error> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(way.scores(bucket)).arg(0).arg(0).arg("WITHSCORES");
        let answer = reply::list(DOING, self.link.call(&command).await?)?;
        answer.get(1).map(|one| reply::score(DOING, one)).transpose()
    }

    /// The time by which the lanes are judged, as the server of this bucket has it: any server of a cluster would say, but it may be one
    /// that hangs.
    async fn now(&self, bucket: &Bucket) -> Result<Timestamp, Error> {
        if let Some(now) = self.time.handed() {
            return Ok(now);
        }
        let answer = self.link.run(&script::TIME, &[&bucket.keys.counter], &[]).await?;
        let parts = reply::numbers(DOING, answer)?;
        match parts[..] {
            [seconds, micros] => Ok(Timestamp(seconds * 1_000 + micros / 1_000)),
            _ => Err(reply::unexpected(DOING)),
        }
    }
}

fn read_batch(way: Way, key: &SkuKey, bucket: &Bucket, wait: Millis, value: Value) -> Result<Batch, Error> {
    let unexpected = || reply::unexpected(DOING);
    let mut parts = reply::list(DOING, value)?.into_iter();
    let mut part = || parts.next().ok_or_else(unexpected);
    let name = reply::bytes(DOING, part()?)?;
    let token = Token(reply::number(DOING, &part()?)?);
    let attempts = u32::try_from(reply::number(DOING, &part()?)?).map_err(|_| unexpected())?;
    let ids = reply::bytes(DOING, part()?)?;
    let records = reply::all_bytes(DOING, reply::list(DOING, part()?)?)?;
    let stamp: [u8; 8] = name.as_slice().try_into().map_err(|_| unexpected())?;
    if ids.is_empty() {
        tracing::error!(target: "onceward", event = "admission.damaged_batch", bucket = %bucket.id.text(), "it names nobody");
    }
    let (mut messages, mut unread) = (Vec::with_capacity(records.len()), Vec::new());
    for (id, record) in onceward_domain::due::unpack_ids(&ids).into_iter().zip(records) {
        if record.is_empty() {
            continue;
        }
        let Ok(record) = Record::read(&record) else {
            // It holds up nobody who was let in beside it.
            bucket.note_damage(id);
            unread.push(id);
            continue;
        };
        let state = record.state;
        messages.push((state, OrderCreateRequested::of(&record.purchase(id, key, wait))));
    }
    let held = Held { lane: way.lane(), member: bucket.id.member(&name), token };
    let reserved_at = Timestamp(i64::from_be_bytes(stamp) / 1_000);
    Ok(Batch { held, attempts, reserved_at, messages, unread, again_at: reserved_at })
}
