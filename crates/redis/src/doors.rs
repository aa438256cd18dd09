//! Letting buyers in: one door for each bucket, at which everybody who waits goes through in one script call (design.md §10).
//!
//! Invariants: commands are answered as if they had come one by one, in the order in which they came to the door; a call is
//! bounded, and so is what waits; while the bucket is being rebuilt nobody is let in there, and nobody waits longer to hear so than
//! the rebuild had patience for when it began; what one bucket cannot answer is answered to those at its door alone.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onceward_domain::error::{Class, Code, Error};
use onceward_domain::id::SkuKey;
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::purchase::Route;
use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::names::{BucketId, home_of};
use crate::rebuild::PATIENCE;
use crate::record::{state_of, tail_of};
use crate::reply;
use crate::retire::Opened;
use crate::script;

/// Most requests of one script call: more hardly makes each cheaper, and everybody else waits for the whole call.
const REQUESTS_OF_ONE_CALL: usize = 128;
/// Most groups that wait at one door; beyond it callers are told to come back.
const GROUPS_LIMIT: usize = 4_096;
/// Most groups that are taken at once.
const GROUPS_OF_ONE_ROUND: usize = 256;
/// How long a sale that was past is taken to be past.
const RETIRED_AGE: Duration = Duration::from_secs(60);
/// How long a new limit may take to be heard of.
const LIMIT_AGE: Duration = Duration::from_secs(1);

/// The script's answers for a bucket that lets nobody in.
const NEVER_OPENED: i64 = -1;
const OTHER_HISTORY: i64 = -2;

const DOING: &str = "a reservation";

type Answers = Result<Vec<ReserveAnswer>, Error>;
/// Those of one door: what happened to one says nothing about another.
type Each = Vec<Result<ReserveAnswer, Error>>;

/// All answers, or one error for all. Where somebody was heard, or may have been, nothing may be called "not happened".
fn whole(answers: Each) -> Answers {
    let is_any_heard = answers.iter().any(|answer| answer.is_ok() || is_silence(answer));
    answers.into_iter().collect::<Answers>().map_err(|error| {
        if is_any_heard && error.class() == Class::Retryable {
            return Error::new(Code::OutcomeUnknown, "reserving: a part of it has happened").because(error);
        }
        error
    })
}

/// Commands of one caller for one bucket.
struct Group {
    commands: Vec<Reserve>,
    answer: oneshot::Sender<Each>,
}

/// Commands for one bucket of a sale, each with its place among all that came together.
type Part = (Arc<Sale>, u16, Vec<(usize, Reserve)>);

/// All doors of a node.
pub(crate) struct Doors {
    core: Arc<Core>,
    runtime: Handle,
    open: Mutex<HashMap<BucketId, mpsc::Sender<Group>>>,
}

impl Doors {
    pub(crate) fn new(core: Arc<Core>, runtime: Handle) -> Self {
        Self { core, runtime, open: Mutex::default() }
    }

    pub(crate) async fn reserve(&self, commands: Vec<Reserve>) -> Answers {
        whole(self.reserve_each(commands).await?)
    }

    pub(crate) async fn reserve_each(&self, commands: Vec<Reserve>) -> Result<Each, Error> {
        let mut answers: Vec<Option<Result<ReserveAnswer, Error>>> = commands.iter().map(|_| None).collect();
        let mut waiting = Vec::new();
        for (sale, number, group) in self.by_bucket(commands, &mut answers).await? {
            let (places, commands): (Vec<usize>, Vec<Reserve>) = group.into_iter().unzip();
            let (answer, heard) = oneshot::channel();
            if self.door(&sale, number).try_send(Group { commands, answer }).is_ok() {
                waiting.push((places, heard));
            } else {
                let full = || Error::new(Code::Backlog, format!("reserving of {}", sale.key));
                places.into_iter().for_each(|place| answers[place] = Some(Err(full())));
            }
        }
        for (places, heard) in waiting {
            let lost = || Error::new(Code::OutcomeUnknown, "waiting at a door that was closed");
            let heard = heard.await.unwrap_or_else(|_| places.iter().map(|_| Err(lost())).collect());
            for (place, answer) in places.into_iter().zip(heard) {
                answers[place] = Some(answer);
            }
        }
        Ok(answers.into_iter().map(|one| one.expect("every command has a place")).collect())
    }

    /// Parts commands by their buckets, keeping their order; what is not on sale is answered at once.
    async fn by_bucket(
        &self,
        commands: Vec<Reserve>,
        answers: &mut [Option<Result<ReserveAnswer, Error>>],
    ) -> Result<Vec<Part>, Error> {
        let mut sales: HashMap<SkuKey, Option<Arc<Sale>>> = HashMap::new();
        let mut groups: Vec<Part> = Vec::new();
        let mut places: HashMap<BucketId, usize> = HashMap::new();
        for (place, command) in commands.into_iter().enumerate() {
            let sale = match sales.get(&command.key) {
                Some(known) => known.clone(),
                None => {
                    let found = self.core.sale(&command.key).await?;
                    sales.insert(command.key.clone(), found.clone());
                    found
                }
            };
            let Some(sale) = sale else {
                answers[place] = Some(Ok(ReserveAnswer::Unknown));
                continue;
            };
            let count = u16::try_from(sale.buckets.len()).expect("a SKU has few buckets");
            let number = home_of(&command.user, count);
            let id = BucketId { key: sale.key.clone(), number };
            let at = *places.entry(id).or_insert_with(|| {
                groups.push((sale, number, Vec::new()));
                groups.len() - 1
            });
            groups[at].2.push((place, command));
        }
        Ok(groups)
    }

    fn door(&self, sale: &Arc<Sale>, number: u16) -> mpsc::Sender<Group> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let id = sale.buckets[usize::from(number)].id.clone();
        let door = open.entry(id).or_insert_with(|| {
            let (door, groups) = mpsc::channel(GROUPS_LIMIT);
            let keeper = Keeper::new(Arc::clone(&self.core), Arc::clone(sale), number);
            drop(self.runtime.spawn(keeper.keep(groups)));
            door
        });
        door.clone()
    }
}

/// Who stands at one door. Ends when the last handle of the gate is gone.
struct Keeper {
    core: Arc<Core>,
    sale: Arc<Sale>,
    number: u16,
    /// With the time until which it is waited for: whoever comes later hears at once that it goes on.
    rebuild: Option<(Instant, JoinHandle<Result<Opened, Error>>)>,
    /// When the sale was last seen to be past: the store answers then, and is asked again whether it is, because its clock may have been
    /// wrong.
    retired: Option<Instant>,
    /// The last time that the limit was told, which nobody waits for: a store that is slow must not keep the door shut.
    told: Option<JoinHandle<()>>,
    told_at: Instant,
}

impl Keeper {
    fn new(core: Arc<Core>, sale: Arc<Sale>, number: u16) -> Self {
        Self { core, sale, number, rebuild: None, retired: None, told: None, told_at: Instant::now() }
    }

    fn bucket(&self) -> &Bucket {
        &self.sale.buckets[usize::from(self.number)]
    }

    async fn keep(mut self, mut groups: mpsc::Receiver<Group>) {
        let mut waiting = Vec::with_capacity(GROUPS_OF_ONE_ROUND);
        while groups.recv_many(&mut waiting, GROUPS_OF_ONE_ROUND).await > 0 {
            self.tell();
            let commands: Vec<&Reserve> = waiting.iter().flat_map(|group| &group.commands).collect();
            let mut answers = Vec::with_capacity(commands.len());
            let mut is_silent = false;
            for part in commands.chunks(REQUESTS_OF_ONE_CALL) {
                let heard = if is_silent { self.unasked(part.len()) } else { self.let_in(part).await };
                is_silent |= heard.iter().all(is_silence);
                answers.extend(heard);
            }
            let mut answers = answers.into_iter();
            for group in waiting.drain(..) {
                let count = group.commands.len();
                // Whoever hung up asks again under the same id.
                drop(group.answer.send(answers.by_ref().take(count).collect()));
            }
        }
    }

    /// What those hear who stood behind somebody whom the server did not answer: they were not asked for, and need not wait as long.
    fn unasked(&self, count: usize) -> Each {
        let text = format!("reserving of {}: the gate has just not answered", self.sale.key);
        Error::new(Code::Unavailable, text).for_each(count)
    }

    /// Has the bucket told of a new limit, and the workers of the bucket. What cannot be read or said now is a second later.
    fn tell(&mut self) {
        let is_telling = self.told.as_ref().is_some_and(|telling| !telling.is_finished());
        if self.retired.is_some() || is_telling || self.told_at.elapsed() < LIMIT_AGE {
            return;
        }
        self.told_at = Instant::now();
        let (core, sale, number) = (Arc::clone(&self.core), Arc::clone(&self.sale), usize::from(self.number));
        self.told = Some(tokio::spawn(async move {
            let bucket = &sale.buckets[number];
            if let Err(error) = core.register(bucket).await {
                tracing::debug!(target: "onceward", event = "admission.unregistered", error = ?error);
            }
            if let Err(error) = core.tell_limit(bucket).await {
                tracing::debug!(target: "onceward", event = "admission.limit_unread", error = ?error);
            }
        }));
    }

    /// Lets in whom there is something for, also where it has to be brought from other buckets first.
    async fn let_in(&mut self, commands: &[&Reserve]) -> Each {
        let mut answers = self.let_in_here(commands).await;
        for _bucket in 1..self.sale.buckets.len() {
            let is_refused = |place: &usize| matches!(answers[*place], Ok(ReserveAnswer::SoldOut));
            let refused: Vec<usize> = (0..answers.len()).filter(is_refused).collect();
            let wanted: i64 = refused.iter().map(|place| i64::from(commands[*place].quantity)).sum();
            if refused.is_empty() {
                break;
            }
            let again: Vec<&Reserve> = refused.iter().map(|place| commands[*place]).collect();
            let heard = match self.core.borrow(&self.sale, self.bucket(), wanted).await {
                Ok(true) => self.let_in_here(&again).await,
                Ok(false) => break,
                // Nobody knows whether there is something elsewhere: it would be a lie that all is sold.
                Err(error) => self.failed(&error, "looking into other buckets").for_each(again.len()),
            };
            for (place, answer) in refused.into_iter().zip(heard) {
                answers[place] = answer;
            }
        }
        answers
    }

    /// What a buyer hears of a failure before anything was done for them.
    fn failed(&self, error: &Error, doing: &str) -> Error {
        let text = format!("reserving of {}, {doing}: {}", self.sale.key, error.operator_text());
        Error::new(Code::Unavailable, text)
    }

    async fn let_in_here(&mut self, commands: &[&Reserve]) -> Each {
        match self.ask(commands).await {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) => {
                // That nobody answers there, or that it could not be opened, was said when it began.
                let bucket = self.bucket();
                if !self.core.link.is_silent(&bucket.keys.counter) && bucket.left_alone().is_none() {
                    tracing::warn!(target: "onceward", event = "admission.failed", ?error);
                }
                error.for_each(commands.len())
            }
        }
    }

    /// One script call, before which the bucket is opened where it is closed.
    async fn ask(&mut self, commands: &[&Reserve]) -> Answers {
        if let Some(seen) = self.retired {
            if seen.elapsed() < RETIRED_AGE || self.core.past(&self.sale).await?.is_some() {
                return self.core.recall(commands).await;
            }
            self.retired = None;
        }
        if self.rebuild.is_none()
            && let Some(answers) = self.call(commands).await?
        {
            return Ok(answers);
        }
        if self.open_anew().await? == Opened::Retired {
            self.retired = Some(Instant::now());
            return self.core.recall(commands).await;
        }
        let closed =
            || Error::new(Code::Unavailable, format!("reserving of {}: the gate is closed", self.sale.key));
        self.call(commands).await?.ok_or_else(closed)
    }

    /// Waits for the rebuild, but not for long.
    async fn open_anew(&mut self) -> Result<Opened, Error> {
        let (core, sale, number) = (&self.core, &self.sale, self.number);
        let (until, rebuild) = self.rebuild.get_or_insert_with(|| {
            let (core, sale) = (Arc::clone(core), Arc::clone(sale));
            let opening = async move { core.open(&sale, &sale.buckets[usize::from(number)]).await };
            (Instant::now() + PATIENCE, tokio::spawn(opening))
        });
        match timeout_at(*until, rebuild).await {
            Err(_) => {
                Err(Error::new(Code::Unavailable, format!("reserving of {}: the gate is rebuilt", sale.key)))
            }
            Ok(ended) => {
                self.rebuild = None;
                ended.map_err(|cause| Error::new(Code::Unavailable, "rebuilding a gate").because(cause))?
            }
        }
    }

    /// One script call; none where the bucket is closed.
    async fn call(&self, commands: &[&Reserve]) -> Result<Option<Vec<ReserveAnswer>>, Error> {
        let bucket = self.bucket();
        let (time, count) = (self.core.time.argument(), commands.len().to_string());
        let epoch = bucket.epoch.load(Ordering::Acquire).to_string();
        let quantities: Vec<String> = commands.iter().map(|one| one.quantity.to_string()).collect();
        let tails: Vec<Vec<u8>> =
            commands.iter().map(|one| tail_of(one.quantity, Route::Flash, &one.user, &one.request)).collect();
        let mut arguments: Vec<&[u8]> = Vec::with_capacity(4 * commands.len() + 3);
        arguments.extend([time.as_bytes(), epoch.as_bytes(), count.as_bytes()]);
        arguments.extend(commands.iter().map(|one| one.purchase.bytes().as_slice()));
        arguments.extend(commands.iter().map(|one| one.user.as_str().as_bytes()));
        arguments.extend(quantities.iter().map(String::as_bytes));
        arguments.extend(tails.iter().map(Vec::as_slice));
        let places: Vec<String> = (1..=commands.len()).map(|place| place.to_string()).collect();
        for (place, command) in places.iter().zip(commands) {
            for older in &command.older {
                arguments.extend([place.as_bytes(), older.bytes().as_slice()]);
            }
        }
        let answer = self.core.link.run(&script::RESERVE, &bucket.keys.reserving(), &arguments).await?;
        if reply::is_number(&answer, NEVER_OPENED) || reply::is_number(&answer, OTHER_HISTORY) {
            return Ok(None);
        }
        let answers = reply::list(DOING, answer)?;
        if answers.len() != commands.len() {
            return Err(reply::unexpected(DOING));
        }
        answers.iter().zip(commands).map(|(one, command)| read(one, command)).collect::<Answers>().map(Some)
    }
}

/// Whether nobody knows what became of it.
fn is_silence(answer: &Result<ReserveAnswer, Error>) -> bool {
    answer.as_ref().is_err_and(|error| error.class() == Class::UnknownOutcome)
}

/// What the script says of one request.
fn read(answer: &Value, command: &Reserve) -> Result<ReserveAnswer, Error> {
    let unexpected = || reply::unexpected(DOING);
    if let Value::Int(code) = answer {
        return match code {
            1 => Ok(ReserveAnswer::Queued { reservation: command.purchase.reservation() }),
            -1 => Ok(ReserveAnswer::RequestConflict),
            -2 => Ok(ReserveAnswer::NotOpen),
            -3 => Ok(ReserveAnswer::LimitReached { live: None }),
            -4 => Ok(ReserveAnswer::SoldOut),
            _ => Err(unexpected()),
        };
    }
    let Value::BulkString(bytes) = answer else { return Err(unexpected()) };
    match bytes.as_slice() {
        [b'L', id @ ..] => {
            Ok(ReserveAnswer::LimitReached { live: Some(reply::id(DOING, id)?.reservation()) })
        }
        [b'R', digit, id @ ..] => {
            let state = state_of(*digit).ok_or_else(unexpected)?;
            let reservation = reply::id(DOING, id)?.reservation();
            Ok(ReserveAnswer::Repeat { reservation, status: state.reservation_status() })
        }
        _ => Err(unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dr_02_what_happened_in_part_is_an_unknown_outcome() {
        let failed = |code| Err(Error::new(code, "a part"));
        let heard = || Ok(ReserveAnswer::SoldOut);
        let class = |parts| whole(parts).unwrap_err().class();
        assert_eq!(whole(vec![heard(), heard()]).unwrap().len(), 2);
        assert_eq!(class(vec![failed(Code::Unavailable), failed(Code::Backlog)]), Class::Retryable);
        assert_eq!(class(vec![heard(), failed(Code::Unavailable)]), Class::UnknownOutcome);
        assert_eq!(class(vec![heard(), failed(Code::ConstraintViolated)]), Class::Manual);
        assert_eq!(
            class(vec![failed(Code::Unavailable), failed(Code::OutcomeUnknown)]),
            Class::UnknownOutcome
        );
    }
}
