//! The due-work queue over Redis: a lane is a sorted set of due-times, beside a hash of the work (LQ-01 to LQ-08).
//!
//! Invariants: each move is one script, so a member is in one place; a claim moves the score to the lease's end and takes
//! nothing out, so a lease that ran out needs nobody to bring it back; a token is the microsecond of its claim, or the next
//! free one, so that it never comes again, not even from a copy that lacks the last claims. What is exhausted waits to be
//! announced in the same step (LQ-05). How long to wait after a failure is the policy's; it is handed to the script as a list.
//!
//! Deliberately absent: the notices themselves. They are rows of the store; whoever asks [`DueQueue::to_announce`] makes them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use onceward_domain::due::{Claimed, Lane, LaneStatus, Member, Token, Waiting};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::due_queue::{
    Capabilities, ClaimWork, Due, DueQueue, Exhaustion, NewWork, Put, QUEUE_BATCH_LIMIT, Removed, Replayed,
    Rescheduled, Settled, Settlement,
};
use onceward_domain::time::{Millis, Timestamp};
use redis::Value;
use tokio::runtime::Handle;

use crate::lane::{Keys, START, due_of, how_of, read_claims, read_page, settled_of, text_of, time_or_none};
use crate::link::Link;
use crate::options::{Options, Time};
use crate::reply;
use crate::script::{self, Script};

/// Most claims in a row that find exhausted members before the caller gets what there is.
const SPENT_ROUNDS_LIMIT: u32 = 8;
/// Most members of one page of a list, and of one claim.
const PAGE_LIMIT: u32 = 1_000;

const DOING: &str = "the due-work queue";

/// The queue.
///
/// Making one needs a tokio runtime; it connects by itself and reconnects by itself.
pub struct RedisQueue {
    inner: Arc<Inner>,
    runtime: Handle,
}

struct Inner {
    link: Link,
    time: Time,
    prefix: String,
}

impl RedisQueue {
    /// A queue over the servers of these options, on the present tokio runtime. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Code::Invalid`] outside of a runtime.
    pub fn open(options: Options) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|cause| {
            Error::new(Code::Invalid, "opening a queue outside of a runtime").because(cause)
        })?;
        let (time, prefix) = (options.time.clone(), options.prefix.clone());
        Ok(Self { inner: Arc::new(Inner { link: Link::new(options), time, prefix }), runtime })
    }

    /// How long until something of the lane is due, by the clock that judges it.
    pub(crate) fn next_in(&self, lane: Lane) -> Answer<'_, Option<Millis>> {
        self.on_runtime(|inner| async move {
            let (status, now) = inner.status(lane).await?;
            Ok(status.next_due.filter(|_| !status.paused).map(|due_at| due_at.since(now)))
        })
    }

    /// Runs it on the queue's own runtime, so that the caller needs none and cannot cut it off.
    fn on_runtime<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = self.runtime.spawn(work(Arc::clone(&self.inner)));
        Box::pin(async move {
            match task.await {
                Ok(answer) => answer,
                Err(cause) => Err(Error::new(Code::OutcomeUnknown, "asking Redis").because(cause)),
            }
        })
    }
}

impl Inner {
    fn keys(&self, lane: &Lane) -> Keys {
        Keys::of(&self.prefix, lane)
    }

    async fn run(&self, script: &Script, keys: &[&str], arguments: Vec<Vec<u8>>) -> Result<Value, Error> {
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        self.link.run(script, keys, &arguments).await
    }

    /// Arguments that begin with the time.
    fn timed(&self) -> Vec<Vec<u8>> {
        vec![self.time.argument().into_bytes()]
    }

    async fn put(&self, lane: &Lane, work: Vec<NewWork>) -> Result<Vec<Put>, Error> {
        check_batch(work.len())?;
        let keys = self.keys(lane);
        let mut arguments = self.timed();
        for new in work {
            let (how, millis) = due_of(new.due);
            arguments.extend([new.member.as_bytes().to_vec(), how.into(), text_of(millis), new.body]);
        }
        let keys = [keys.due.as_str(), &keys.work, &keys.dead, &keys.age, &keys.lane];
        let answer = self.run(&script::PUT, &keys, arguments).await?;
        let put = |number: i64| match number {
            1 => Ok(Put::Added),
            0 => Ok(Put::There),
            2 => Ok(Put::Exhausted),
            _ => Err(reply::unexpected(DOING)),
        };
        reply::numbers(DOING, answer)?.into_iter().map(put).collect()
    }

    async fn claim(&self, request: ClaimWork) -> Result<Vec<Claimed>, Error> {
        let keys = self.keys(&request.lane);
        let allowed = request.policy.attempts.map(i64::from).map(text_of).unwrap_or_default();
        let mut claimed: Vec<Claimed> = Vec::new();
        for _round in 0..SPENT_ROUNDS_LIMIT {
            let left = request.limit.min(PAGE_LIMIT).saturating_sub(count_of(&claimed));
            if left == 0 {
                break;
            }
            let mut arguments = self.timed();
            arguments.extend([text_of(i64::from(left)), text_of(request.lease.0), allowed.clone()]);
            let answer = self.run(&script::CLAIM_WORK, &keys.all(), arguments).await?;
            let mut parts = reply::list(DOING, answer)?.into_iter();
            let spent = parts.next().ok_or_else(|| reply::unexpected(DOING))?;
            let lease_until = parts.next().map(|one| reply::score(DOING, &one)).transpose()?.unwrap_or(START);
            claimed.extend(read_claims(&request.lane, lease_until, parts)?);
            // What was exhausted has left room for what is due behind it.
            let spent = reply::number(DOING, &spent)?;
            if spent == 0 {
                break;
            }
            tracing::error!(target: "onceward", event = "queue.exhausted", lane = request.lane.as_str(), members = spent);
        }
        Ok(claimed)
    }

    /// Settlements may be of several lanes; those of one go together.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        check_batch(settlements.len())?;
        let mut lanes: BTreeMap<Lane, Vec<usize>> = BTreeMap::new();
        for (place, one) in settlements.iter().enumerate() {
            lanes.entry(one.held().lane.clone()).or_default().push(place);
        }
        let mut answers = vec![Settled::LeaseLost; settlements.len()];
        for (lane, places) in lanes {
            let mut arguments = self.timed();
            for place in &places {
                let held = settlements[*place].held();
                let (how, value) = how_of(&settlements[*place]);
                arguments.extend([held.member.as_bytes().to_vec(), text_of(held.token.0), how.into(), value]);
            }
            let answer = self.run(&script::SETTLE_WORK, &self.keys(&lane).all(), arguments).await?;
            for (place, number) in places.into_iter().zip(reply::numbers(DOING, answer)?) {
                answers[place] = settled_of(&settlements[place], number)?;
            }
        }
        Ok(answers)
    }

    async fn remove(&self, lane: &Lane, members: Vec<Member>) -> Result<Vec<Removed>, Error> {
        check_batch(members.len())?;
        let keys = self.keys(lane);
        let keys = [keys.due.as_str(), &keys.work, &keys.age, &keys.lane];
        let members = members.iter().map(|member| member.as_bytes().to_vec()).collect();
        let answer = self.run(&script::REMOVE, &keys, members).await?;
        let removed = |number| if number == 1 { Removed::Removed } else { Removed::Absent };
        Ok(reply::numbers(DOING, answer)?.into_iter().map(removed).collect())
    }

    async fn reschedule(&self, lane: &Lane, member: &Member, due: Due) -> Result<Rescheduled, Error> {
        let keys = self.keys(lane);
        let (how, millis) = due_of(due);
        let mut arguments = self.timed();
        arguments.extend([member.as_bytes().to_vec(), how.into(), text_of(millis)]);
        let answer = self.run(&script::RESCHEDULE, &[&keys.due, &keys.work], arguments).await?;
        match reply::number(DOING, &answer)? {
            1 => Ok(Rescheduled::Moved),
            0 => Ok(Rescheduled::Absent),
            2 => Ok(Rescheduled::Leased),
            _ => Err(reply::unexpected(DOING)),
        }
    }

    async fn set_paused(&self, lane: &Lane, paused: bool) -> Result<(), Error> {
        let mut command = redis::cmd(if paused { "HSET" } else { "HDEL" });
        command.arg(self.keys(lane).lane).arg("paused");
        if paused {
            command.arg(1);
        }
        self.link.call(&command).await.map(drop)
    }

    /// One lane at a glance, and the time by which it is judged.
    async fn status(&self, lane: Lane) -> Result<(LaneStatus, Timestamp), Error> {
        let keys = self.keys(&lane);
        let keys = [keys.due.as_str(), &keys.work, &keys.age, &keys.lane];
        let answer = reply::list(DOING, self.run(&script::STATUS, &keys, self.timed()).await?)?;
        let [size, leased, paused, next_due, oldest, last_claim, now] = answer.as_slice() else {
            return Err(reply::unexpected(DOING));
        };
        let count =
            |value| reply::number(DOING, value).map(|number| u64::try_from(number).unwrap_or_default());
        let status = LaneStatus {
            size: count(size)?,
            leased: count(leased)?,
            next_due: time_or_none(next_due)?,
            oldest: time_or_none(oldest)?,
            paused: count(paused)? == 1,
            last_claim: time_or_none(last_claim)?,
            lane,
        };
        Ok((status, reply::score(DOING, now)?))
    }

    async fn next_due(&self, lane: Lane) -> Result<Option<Timestamp>, Error> {
        let (status, _) = self.status(lane).await?;
        Ok(status.next_due.filter(|_| !status.paused))
    }

    async fn list(
        &self,
        lane: &Lane,
        which: Which,
        limit: u32,
        after: Option<Member>,
    ) -> Result<Vec<Waiting>, Error> {
        let keys = self.keys(lane);
        let keys = match which {
            Which::Living => [keys.age.as_str(), &keys.due, &keys.work],
            Which::Dead => [keys.exhausted.as_str(), &keys.exhausted, &keys.dead],
        };
        let (mut found, mut after): (Vec<Waiting>, _) = (Vec::new(), after);
        loop {
            let left = limit.saturating_sub(count_of(&found)).min(PAGE_LIMIT);
            if left == 0 {
                return Ok(found);
            }
            let mut arguments = vec![text_of(i64::from(left))];
            arguments.extend(after.as_ref().map(|member| member.as_bytes().to_vec()));
            let answer = reply::list(DOING, self.run(&script::LIST, &keys, arguments).await?)?;
            let page = read_page(lane, answer)?;
            let is_last = page.len() < usize::try_from(left).unwrap_or(usize::MAX);
            after = page.last().map(|one| one.member.clone());
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn replay(&self, lane: &Lane, which: Vec<Exhaustion>) -> Result<Vec<Replayed>, Error> {
        check_batch(which.len())?;
        let keys = self.keys(lane);
        let keys = [keys.due.as_str(), &keys.work, &keys.dead, &keys.age, &keys.lane, &keys.exhausted];
        let mut arguments = self.timed();
        for one in which {
            arguments.extend([one.member.as_bytes().to_vec(), text_of(one.token.0)]);
        }
        let answer = self.run(&script::REPLAY, &keys, arguments).await?;
        let replayed = |number| if number == 1 { Replayed::Revived } else { Replayed::Absent };
        Ok(reply::numbers(DOING, answer)?.into_iter().map(replayed).collect())
    }

    async fn to_announce(&self, lane: &Lane, limit: u32) -> Result<Vec<Exhaustion>, Error> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("ZRANGE");
        command.arg(self.keys(lane).announce).arg(0).arg(limit.min(PAGE_LIMIT) - 1);
        let found = reply::all_bytes(DOING, reply::list(DOING, self.link.call(&command).await?)?)?;
        let read = |bytes: Vec<u8>| {
            let (token, member) = bytes.split_first_chunk::<8>().ok_or_else(|| reply::unexpected(DOING))?;
            let member = Member::from(reply::text(DOING, member)?);
            Ok(Exhaustion { member, token: Token(i64::from_be_bytes(*token)) })
        };
        found.into_iter().map(read).collect()
    }

    async fn announced(&self, lane: &Lane, which: Vec<Exhaustion>) -> Result<(), Error> {
        check_batch(which.len())?;
        if which.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("ZREM");
        command.arg(self.keys(lane).announce);
        for one in which {
            command.arg([one.token.0.to_be_bytes().as_slice(), one.member.as_bytes()].concat());
        }
        self.link.call(&command).await.map(drop)
    }
}

/// Which members a list shows.
#[derive(Clone, Copy)]
enum Which {
    Living,
    Dead,
}

fn count_of<T>(found: &[T]) -> u32 {
    u32::try_from(found.len()).unwrap_or(u32::MAX)
}

fn check_batch(count: usize) -> Result<(), Error> {
    if count <= QUEUE_BATCH_LIMIT {
        return Ok(());
    }
    Err(Error::new(Code::Invalid, format!("{count} members in one call, {QUEUE_BATCH_LIMIT} are allowed")))
}

impl DueQueue for RedisQueue {
    fn capabilities(&self) -> Capabilities {
        Capabilities { notices_at_once: false, settles_after_lease: true }
    }

    fn put(&self, lane: Lane, work: Vec<NewWork>) -> Answer<'_, Vec<Put>> {
        self.on_runtime(|inner| async move { inner.put(&lane, work).await })
    }

    fn claim(&self, request: ClaimWork) -> Answer<'_, Vec<Claimed>> {
        self.on_runtime(|inner| async move { inner.claim(request).await })
    }

    fn settle(&self, settlements: Vec<Settlement>) -> Answer<'_, Vec<Settled>> {
        self.on_runtime(|inner| async move { inner.settle(settlements).await })
    }

    fn remove(&self, lane: Lane, members: Vec<Member>) -> Answer<'_, Vec<Removed>> {
        self.on_runtime(|inner| async move { inner.remove(&lane, members).await })
    }

    fn reschedule(&self, lane: Lane, member: Member, due: Due) -> Answer<'_, Rescheduled> {
        self.on_runtime(|inner| async move { inner.reschedule(&lane, &member, due).await })
    }

    fn pause(&self, lane: Lane) -> Answer<'_, ()> {
        self.on_runtime(|inner| async move { inner.set_paused(&lane, true).await })
    }

    fn resume(&self, lane: Lane) -> Answer<'_, ()> {
        self.on_runtime(|inner| async move { inner.set_paused(&lane, false).await })
    }

    fn status(&self, lane: Lane) -> Answer<'_, LaneStatus> {
        self.on_runtime(|inner| async move { Ok(inner.status(lane).await?.0) })
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        self.on_runtime(|inner| async move { inner.next_due(lane).await })
    }

    fn list(&self, lane: Lane, limit: u32, after: Option<Member>) -> Answer<'_, Vec<Waiting>> {
        self.on_runtime(move |inner| async move { inner.list(&lane, Which::Living, limit, after).await })
    }

    fn exhausted(&self, lane: Lane, limit: u32, after: Option<Member>) -> Answer<'_, Vec<Waiting>> {
        self.on_runtime(move |inner| async move { inner.list(&lane, Which::Dead, limit, after).await })
    }

    fn replay(&self, lane: Lane, which: Vec<Exhaustion>) -> Answer<'_, Vec<Replayed>> {
        self.on_runtime(|inner| async move { inner.replay(&lane, which).await })
    }

    fn to_announce(&self, lane: Lane, limit: u32) -> Answer<'_, Vec<Exhaustion>> {
        self.on_runtime(move |inner| async move { inner.to_announce(&lane, limit).await })
    }

    fn announced(&self, lane: Lane, which: Vec<Exhaustion>) -> Answer<'_, ()> {
        self.on_runtime(|inner| async move { inner.announced(&lane, which).await })
    }
}
