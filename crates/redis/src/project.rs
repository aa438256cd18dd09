//! Carrying decisions of the store out at the gate: projections and compensations (FS-12, FS-13).
//!
//! Invariants: each takes effect once, because the reservation's own state says whether it has; an id that a bucket does not
//! know is looked up in the store before anything is made of it: a direct order, or a reservation that Redis has lost, is
//! there; a stranger is not, and moves nothing.

use std::collections::{BTreeMap, HashMap};

use onceward_domain::error::Error;
use onceward_domain::event::{Event, Fact};
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::ports::admission::{Compensate, CompensateCode, Projected};
use onceward_domain::purchase::{Line, Purchase, Route};

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::moves::{code_of, codes};
use crate::record::record_of;
use crate::reply;
use crate::retire::Opened;
use crate::script;
use crate::standing::Stand;

/// Most moves of one script call: they hold up everybody else for less than a millisecond.
const MOVES_OF_ONE_CALL: usize = 256;
/// The scripts' answer for a bucket that was never opened, or is gone.
const CLOSED: i64 = -1;
/// The same of a compensation, where -1 is taken.
const CLOSED_FOR_RELEASE: i64 = -9;
const NOTHING: i64 = 0;
const APPLIED: i64 = 1;
const NOT_HERE: i64 = 2;

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

impl Core {
    /// Projects events; one answer each, in order.
    pub(crate) async fn project(&self, events: &[Event]) -> Result<Vec<Projected>, Error> {
        let mut answers = vec![Projected::Nothing; events.len()];
        let mut parts: BTreeMap<&SkuKey, Vec<Part>> = BTreeMap::new();
        for (event, one) in events.iter().enumerate() {
            if let Fact::StockAdjusted { key, delta, number } = &one.fact {
                answers[event] = self.project_adjustment(key, *delta, *number).await?;
            }
            let Some((kind, id, user, lines)) = moved(&one.fact) else { continue };
            for line in lines {
                let part = Part { event, id, kind, user: user.clone() };
                parts.entry(&line.key).or_default().push(part);
            }
        }
        for (key, parts) in parts {
            match self.sale(key).await? {
                Some(sale) => self.project_onto(&sale, &parts, &mut answers).await?,
                // A reservation of a SKU that the store does not have never was; its order cannot be either.
                None => parts.iter().for_each(|part| answers[part.event] = Projected::TooEarly),
            }
        }
        Ok(answers)
    }

    async fn project_onto(
        &self,
        sale: &Sale,
        parts: &[Part],
        answers: &mut [Projected],
    ) -> Result<(), Error> {
        for bucket in &sale.buckets {
            let here: Vec<&Part> =
                parts.iter().filter(|part| sale.home(&part.user).id == bucket.id).collect();
            if here.is_empty() {
                continue;
            }
            let unknown =
                |part: &&Part| Step { id: part.id, moves: part.kind.moves(sale), record: Vec::new() };
            let codes = self.step_opened(sale, bucket, &here.iter().map(unknown).collect::<Vec<_>>()).await?;
            let (strangers, known): (Vec<_>, Vec<_>) =
                here.iter().zip(codes).partition(|(_, code)| *code == NOT_HERE);
            for (part, _) in known.iter().filter(|(_, code)| *code == APPLIED) {
                answers[part.event] = Projected::Applied;
            }
            let strangers: Vec<&Part> = strangers.into_iter().map(|(part, _)| *part).collect();
            self.project_strangers(sale, bucket, &strangers, answers).await?;
        }
        Ok(())
    }

    /// What a bucket does not know, the store may.
    async fn project_strangers(
        &self,
        sale: &Sale,
        bucket: &Bucket,
        strangers: &[&Part],
        answers: &mut [Projected],
    ) -> Result<(), Error> {
        let rows = self.purchases(strangers.iter().map(|part| part.id).collect()).await?;
        let mut found: Vec<(&Part, Step<'_>)> = Vec::with_capacity(strangers.len());
        for part in strangers {
            if let Some((row, line)) = line_of(&rows, part.id, &sale.key) {
                let step = Step { id: part.id, moves: part.kind.moves(sale), record: record_of(row, line) };
                found.push((part, step));
            }
        }
        let (parts, steps): (Vec<&Part>, Vec<Step<'_>>) = found.into_iter().unzip();
        let codes = self.step_opened(sale, bucket, &steps).await?;
        for (part, _) in parts.iter().zip(codes).filter(|(_, code)| *code == APPLIED) {
            answers[part.event] = Projected::Applied;
        }
        Ok(())
    }

    /// The same as [`Self::step`], onto a bucket that is opened first where it is not there.
    async fn step_opened(&self, sale: &Sale, bucket: &Bucket, steps: &[Step<'_>]) -> Result<Vec<i64>, Error> {
        if let Some(codes) = self.step(bucket, steps).await? {
            return Ok(codes);
        }
        if self.open(sale, bucket).await? == Opened::Retired {
            return Ok(vec![NOTHING; steps.len()]);
        }
        self.step(bucket, steps).await?.ok_or_else(|| reply::unexpected(DOING))
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

    async fn project_adjustment(&self, key: &SkuKey, delta: i64, number: u32) -> Result<Projected, Error> {
        let Some(sale) = self.sale(key).await? else { return Ok(Projected::TooEarly) };
        let bucket = &sale.buckets[0];
        let before = i64::from(number) - 1;
        let mut code = self.adjust(bucket, delta, i64::from(number), before).await?;
        if code == CLOSED {
            if self.open(&sale, bucket).await? == Opened::Retired {
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

    /// Carries compensations out; one answer each, in order.
    pub(crate) async fn compensate(&self, commands: &[Compensate]) -> Result<Vec<CompensateCode>, Error> {
        let mut answers = vec![CompensateCode::Missing; commands.len()];
        let mut by_key: BTreeMap<&SkuKey, Vec<usize>> = BTreeMap::new();
        for (at, command) in commands.iter().enumerate() {
            by_key.entry(&command.key).or_default().push(at);
        }
        for (key, mut left) in by_key {
            let Some(sale) = self.sale(key).await? else { continue };
            for bucket in &sale.buckets {
                // Whose bucket it is, the command does not say: one that does not know it changes nothing.
                let asked: Vec<&Compensate> = left.iter().map(|at| &commands[*at]).collect();
                let codes = self.compensate_opened(&sale, bucket, &asked).await?;
                for (at, code) in left.iter().zip(&codes) {
                    answers[*at] = *code;
                }
                left.retain(|at| answers[*at] == CompensateCode::Missing);
            }
            self.judge_missing(&sale, commands, &left, &mut answers).await?;
        }
        Ok(answers)
    }

    async fn compensate_opened(
        &self,
        sale: &Sale,
        bucket: &Bucket,
        commands: &[&Compensate],
    ) -> Result<Vec<CompensateCode>, Error> {
        if let Some(codes) = self.compensate_in(sale, bucket, commands).await? {
            return Ok(codes);
        }
        if self.open(sale, bucket).await? == Opened::Retired {
            return Ok(vec![CompensateCode::Missing; commands.len()]);
        }
        self.compensate_in(sale, bucket, commands).await?.ok_or_else(|| reply::unexpected(DOING))
    }

    /// Gives units of one bucket back; an answer each, in order. None where the bucket is not there.
    pub(crate) async fn compensate_in(
        &self,
        sale: &Sale,
        bucket: &Bucket,
        commands: &[&Compensate],
    ) -> Result<Option<Vec<CompensateCode>>, Error> {
        let states = codes();
        let mut answers = Vec::with_capacity(commands.len());
        for part in commands.chunks(MOVES_OF_ONE_CALL) {
            let count = part.len().to_string();
            let usual: Vec<_> = part.iter().map(|one| one.purchase.compensation()).collect();
            let mut arguments: Vec<&[u8]> = vec![count.as_bytes(), &states, &sale.moves.compensated];
            for (one, usual) in part.iter().zip(&usual) {
                arguments.extend([
                    one.purchase.bytes().as_slice(),
                    one.compensation.0.as_bytes(),
                    usual.0.as_bytes(),
                ]);
            }
            let keys = &bucket.keys;
            let keys = [keys.counter.as_str(), &keys.reservation, &keys.user, &keys.comp];
            let answer = self.link.run(&script::COMPENSATE, &keys, &arguments).await?;
            if reply::is_number(&answer, CLOSED_FOR_RELEASE) {
                return Ok(None);
            }
            for number in reply::numbers(DOING, answer)? {
                answers.push(code_of(number).ok_or_else(|| reply::unexpected(DOING))?);
            }
        }
        Ok(Some(answers))
    }

    /// What no bucket knows. Where the reservation is older than the bucket's last opening, Redis has lost it, and the bucket
    /// was opened without its units: they are free already, and nothing is added. Where the sale is past, the bucket has gone with all
    /// its units. Anything else is for a person.
    async fn judge_missing(
        &self,
        sale: &Sale,
        commands: &[Compensate],
        missing: &[usize],
        answers: &mut [CompensateCode],
    ) -> Result<(), Error> {
        let rows = self.purchases(missing.iter().map(|at| commands[*at].purchase).collect()).await?;
        for at in missing {
            let Some(row) = rows.get(&commands[*at].purchase).filter(|row| row.route == Route::Flash) else {
                continue;
            };
            if row.lines[0].key != sale.key {
                answers[*at] = CompensateCode::IdMismatch;
                continue;
            }
            if self.opened_after(sale, row).await? {
                answers[*at] = CompensateCode::AlreadyApplied;
            }
        }
        Ok(())
    }
}

impl Core {
    /// Whether the buyer's bucket was last opened after this reservation, or has gone since. One that has lost writes and was not opened since
    /// is opened first: its last opening is one that the reservation may well be younger than.
    async fn opened_after(&self, sale: &Sale, row: &Purchase) -> Result<bool, Error> {
        let bucket = sale.home(&row.user);
        let is_older = |stand: Option<Stand>| stand.is_some_and(|stand| row.reserved_at.0 < stand.since);
        match self.stand(bucket).await? {
            Some(stand) if stand.is_open => Ok(is_older(Some(stand))),
            Some(_) | None => match self.open(sale, bucket).await? {
                Opened::Retired => Ok(true),
                Opened::Open => Ok(is_older(self.stand(bucket).await?)),
            },
        }
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
