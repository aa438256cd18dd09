//! Carrying decisions of the store out at the gate: projections and compensations (FS-12, FS-13).
//!
//! Invariants: each takes effect once, because the reservation's own state says whether it has; an id that a bucket does not
//! know is looked up in the store before anything is made of it: a direct order, or a reservation that Redis has lost, is
//! there; a stranger is not, and moves nothing; a bucket that does not answer fails what concerns it and nothing else, and nobody
//! waits for it longer than once. Read next: `release.rs`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::future::join_all;

use onceward_domain::error::Error;
use onceward_domain::event::{Event, Fact};
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::ports::admission::Projected;
use onceward_domain::purchase::{Line, Purchase};

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::record::record_of;
use crate::reply;
use crate::retire::Opened;
use crate::script;

/// Most moves of one script call: they hold up everybody else for less than a millisecond.
pub(crate) const MOVES_OF_ONE_CALL: usize = 256;
/// Most buckets that are asked at once.
pub(crate) const BUCKETS_AT_ONCE: usize = 64;
/// The scripts' answer for a bucket that was never opened, or is gone.
const CLOSED: i64 = -1;
const NOTHING: i64 = 0;
const APPLIED: i64 = 1;
const NOT_HERE: i64 = 2;
const DAMAGED: i64 = 3;

const DOING: &str = "a projection";

/// One move of one id in one bucket.
pub(crate) struct Step<'a> {
    pub(crate) id: PurchaseId,
    /// One of [`crate::moves::Moves`].
    pub(crate) moves: &'a [u8],
    /// What to keep of it where it is not there; empty where that is not known.
    pub(crate) record: Vec<u8>,
}

/// One line of one event, on its way to a bucket.
struct Part {
    event: usize,
    id: PurchaseId,
    kind: Kind,
    user: UserId,
}

#[derive(Clone, Copy)]
enum Kind {
    Created,
    Cancelled,
    Reinstated,
}

impl Kind {
    fn moves(self, sale: &Sale) -> &[u8] {
        match self {
            Self::Created => &sale.moves.created,
            Self::Cancelled => &sale.moves.cancelled,
            Self::Reinstated => &sale.moves.reinstated,
        }
    }
}

/// The purchase, buyer and lines that an event moves; none where it moves nothing.
fn moved(fact: &Fact) -> Option<(Kind, PurchaseId, &UserId, &[Line])> {
    match fact {
        Fact::OrderCreated { purchase, user, lines } => Some((Kind::Created, *purchase, user, lines)),
        Fact::OrderCancelled { purchase, user, lines } => Some((Kind::Cancelled, *purchase, user, lines)),
        Fact::OrderReinstated { purchase, user, lines } => Some((Kind::Reinstated, *purchase, user, lines)),
        Fact::ReservationRejected { .. }
        | Fact::OrderPaid { .. }
        | Fact::OrderRefunded { .. }
        | Fact::StockAdjusted { .. } => None,
    }
}

/// What becomes of each of several events.
type Answers = Vec<Result<Projected, Error>>;

/// Events that concern one bucket.
struct Place<'a> {
    sale: Arc<Sale>,
    number: usize,
    what: What<'a>,
}

enum What<'a> {
    /// Each with its number among the events, in their order: the units and the adjustment's number.
    Adjustments(Vec<(usize, i64, u32)>),
    Moves(Vec<&'a Part>),
}

impl Place<'_> {
    fn bucket(&self) -> &Bucket {
        &self.sale.buckets[self.number]
    }
}

/// Notes what became of a part of an event: one of which a part has failed has failed.
fn note(answers: &mut Answers, event: usize, outcome: Result<Projected, Error>) {
    match (&answers[event], &outcome) {
        (Err(_), _) | (Ok(Projected::TooEarly), Ok(_)) | (Ok(_), Ok(Projected::Nothing)) => {}
        (Ok(_), Ok(Projected::Applied | Projected::TooEarly) | Err(_)) => answers[event] = outcome,
    }
}

fn note_failure(answers: &mut Answers, events: &[usize], error: &Error) {
    for (event, failed) in events.iter().zip(error.for_each(events.len())) {
        note(answers, *event, failed);
    }
}

impl Core {
    /// Projects events; an answer for each, in order.
    pub(crate) async fn project(self: &Arc<Self>, events: &[Event]) -> Answers {
        let mut answers: Answers = events.iter().map(|_| Ok(Projected::Nothing)).collect();
        let mut adjustments: BTreeMap<&SkuKey, Vec<(usize, i64, u32)>> = BTreeMap::new();
        let mut parts: BTreeMap<&SkuKey, Vec<Part>> = BTreeMap::new();
        for (event, one) in events.iter().enumerate() {
            if let Fact::StockAdjusted { key, delta, number } = &one.fact {
                adjustments.entry(key).or_default().push((event, *delta, *number));
            }
            let Some((kind, id, user, lines)) = moved(&one.fact) else { continue };
            for line in lines {
                let part = Part { event, id, kind, user: user.clone() };
                parts.entry(&line.key).or_default().push(part);
            }
        }
        let mut places = Vec::new();
        for (key, adjustments) in adjustments {
            let concerned: Vec<usize> = adjustments.iter().map(|(event, ..)| *event).collect();
            if let Some(sale) = self.sale_of(key, &concerned, &mut answers).await {
                places.push(Place { sale, number: 0, what: What::Adjustments(adjustments) });
            }
        }
        for (key, parts) in &parts {
            let concerned: Vec<usize> = parts.iter().map(|part| part.event).collect();
            let Some(sale) = self.sale_of(key, &concerned, &mut answers).await else { continue };
            let mut by_bucket: BTreeMap<usize, Vec<&Part>> = BTreeMap::new();
            for part in parts {
                by_bucket.entry(sale.home_number(&part.user)).or_default().push(part);
            }
            let place = |(number, parts)| Place { sale: Arc::clone(&sale), number, what: What::Moves(parts) };
            places.extend(by_bucket.into_iter().map(place));
        }
        for some in places.chunks(BUCKETS_AT_ONCE) {
            for heard in join_all(some.iter().map(|place| self.project_at(place))).await {
                heard.into_iter().for_each(|(event, outcome)| note(&mut answers, event, outcome));
            }
        }
        answers
    }

    /// The sale that these events concern; they have their answer where there is none.
    async fn sale_of(&self, key: &SkuKey, events: &[usize], answers: &mut Answers) -> Option<Arc<Sale>> {
        match self.sale(key).await {
            Ok(Some(sale)) => return Some(sale),
            // A reservation of a SKU that the store does not have never was; its order cannot be either.
            Ok(None) => events.iter().for_each(|event| note(answers, *event, Ok(Projected::TooEarly))),
            Err(error) => note_failure(answers, events, &error),
        }
        None
    }

    async fn project_at(self: &Arc<Self>, place: &Place<'_>) -> Vec<(usize, Result<Projected, Error>)> {
        let (concerned, heard): (Vec<usize>, _) = match &place.what {
            What::Adjustments(all) => {
                (all.iter().map(|(event, ..)| *event).collect(), self.adjust_at(place, all).await)
            }
            What::Moves(parts) => {
                (parts.iter().map(|part| part.event).collect(), self.move_at(place, parts).await)
            }
        };
        let heard = heard.unwrap_or_else(|error| error.for_each(concerned.len()));
        concerned.into_iter().zip(heard).collect()
    }

    async fn adjust_at(
        self: &Arc<Self>,
        place: &Place<'_>,
        adjustments: &[(usize, i64, u32)],
    ) -> Result<Answers, Error> {
        let mut outcomes = Vec::with_capacity(adjustments.len());
        for (_, delta, number) in adjustments {
            outcomes.push(Ok(self.project_adjustment(place, *delta, *number).await?));
        }
        Ok(outcomes)
    }

    async fn move_at(self: &Arc<Self>, place: &Place<'_>, parts: &[&Part]) -> Result<Answers, Error> {
        let unknown =
            |part: &&Part| Step { id: part.id, moves: part.kind.moves(&place.sale), record: Vec::new() };
        let mut codes = self.step_opened(place, &parts.iter().map(unknown).collect::<Vec<_>>()).await?;
        self.move_strangers(place, parts, &mut codes).await?;
        let outcome = |code| match code {
            APPLIED => Ok(Projected::Applied),
            DAMAGED => Err(reply::damaged(DOING)),
            _ => Ok(Projected::Nothing),
        };
        Ok(codes.into_iter().map(outcome).collect())
    }

    /// What a bucket does not know, the store may.
    async fn move_strangers(
        self: &Arc<Self>,
        place: &Place<'_>,
        parts: &[&Part],
        codes: &mut [i64],
    ) -> Result<(), Error> {
        let strangers: Vec<usize> = (0..parts.len()).filter(|at| codes[*at] == NOT_HERE).collect();
        let rows = self.purchases(strangers.iter().map(|at| parts[*at].id).collect()).await?;
        let mut found: Vec<(usize, Step<'_>)> = Vec::with_capacity(strangers.len());
        for at in strangers {
            let part = parts[at];
            if let Some((row, line)) = line_of(&rows, part.id, &place.sale.key) {
                let moves = part.kind.moves(&place.sale);
                found.push((at, Step { id: part.id, moves, record: record_of(row, line) }));
            }
        }
        let (known, steps): (Vec<usize>, Vec<Step<'_>>) = found.into_iter().unzip();
        for (at, code) in known.into_iter().zip(self.step_opened(place, &steps).await?) {
            codes[at] = code;
        }
        Ok(())
    }

    /// The same as [`Self::step`], onto a bucket that is opened first where it is not there.
    async fn step_opened(self: &Arc<Self>, place: &Place<'_>, steps: &[Step<'_>]) -> Result<Vec<i64>, Error> {
        if let Some(codes) = self.step(place.bucket(), steps).await? {
            return Ok(codes);
        }
        if self.open_soon(&place.sale, place.number).await? == Opened::Retired {
            return Ok(vec![NOTHING; steps.len()]);
        }
        self.step(place.bucket(), steps).await?.ok_or_else(|| reply::unexpected(DOING))
    }

    /// The same as [`Self::step`] for whoever goes on without those that cannot be read.
    pub(crate) async fn step_readable(&self, bucket: &Bucket, steps: &[Step<'_>]) -> Result<(), Error> {
        let codes = self.step(bucket, steps).await?.unwrap_or_default();
        let is_damaged = |(_, code): &(&Step<'_>, i64)| *code == DAMAGED;
        steps.iter().zip(codes).filter(is_damaged).for_each(|(step, _)| bucket.note_damage(step.id));
        Ok(())
    }

    /// Moves ids of one bucket; a number each, in order. None where the bucket is not there.
    pub(crate) async fn step(&self, bucket: &Bucket, steps: &[Step<'_>]) -> Result<Option<Vec<i64>>, Error> {
        let mut codes = Vec::with_capacity(steps.len());
        for part in steps.chunks(MOVES_OF_ONE_CALL) {
            let count = part.len().to_string();
            let mut arguments: Vec<&[u8]> = vec![count.as_bytes()];
            for step in part {
                arguments.extend([step.id.bytes().as_slice(), step.moves, &step.record]);
            }
            let keys = [bucket.keys.counter.as_str(), &bucket.keys.reservation, &bucket.keys.user];
            let answer = self.link.run(&script::PROJECT, &keys, &arguments).await?;
            if reply::is_number(&answer, CLOSED) {
                return Ok(None);
            }
            codes.extend(reply::numbers(DOING, answer)?);
        }
        Ok(Some(codes))
    }

    async fn project_adjustment(
        self: &Arc<Self>,
        place: &Place<'_>,
        delta: i64,
        number: u32,
    ) -> Result<Projected, Error> {
        let (bucket, before) = (place.bucket(), i64::from(number) - 1);
        let mut code = self.adjust(bucket, delta, i64::from(number), before).await?;
        if code == CLOSED {
            if self.open_soon(&place.sale, place.number).await? == Opened::Retired {
                return Ok(Projected::Nothing);
            }
            code = self.adjust(bucket, delta, i64::from(number), before).await?;
        }
        match code {
            APPLIED => Ok(Projected::Applied),
            NOTHING => Ok(Projected::Nothing),
            2 => Ok(Projected::TooEarly),
            _ => Err(reply::unexpected(DOING)),
        }
    }

    pub(crate) async fn adjust(&self, bucket: &Bucket, delta: i64, to: i64, from: i64) -> Result<i64, Error> {
        let arguments = [delta.to_string(), to.to_string(), from.to_string()];
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        let answer = self.link.run(&script::ADJUST, &[&bucket.keys.counter], &arguments).await?;
        reply::number(DOING, &answer)
    }
}

fn line_of<'a>(
    rows: &'a HashMap<PurchaseId, Purchase>,
    id: PurchaseId,
    key: &SkuKey,
) -> Option<(&'a Purchase, &'a Line)> {
    let row = rows.get(&id)?;
    Some((row, row.lines.iter().find(|line| line.key == *key)?))
}
