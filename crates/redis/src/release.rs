//! Giving units back at the gate, where the store has decided so (FS-12).
//!
//! Invariants: a compensation takes effect once, because the reservation's own state and its mark say whether it has; nothing is added
//! for a reservation that no bucket knows; a bucket that does not answer fails what concerns it, and nothing else.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::future::join_all;
use onceward_domain::error::Error;
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::ports::admission::{Compensate, CompensateCode};
use onceward_domain::purchase::{Purchase, Route};

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::moves::{code_of, codes};
use crate::project::{BUCKETS_AT_ONCE, MOVES_OF_ONE_CALL};
use crate::reply;
use crate::retire::Opened;
use crate::script;
use crate::standing::Stand;

/// The script's answer for a bucket that was never opened, or is gone: of a compensation, -1 is taken.
const CLOSED: i64 = -9;
const DAMAGED: i64 = -8;

const DOING: &str = "a compensation";

/// What becomes of each of several compensations.
type Answers = Vec<Result<CompensateCode, Error>>;

/// Compensations of one SKU, by their numbers among all, that are asked of the same buckets.
struct Place {
    sale: Arc<Sale>,
    /// The buyers' bucket; without it, where the store does not know whose they are, all of them.
    home: Option<usize>,
    which: Vec<usize>,
}

impl Core {
    /// Carries compensations out; an answer for each, in order.
    pub(crate) async fn compensate(self: &Arc<Self>, commands: &[Compensate]) -> Result<Answers, Error> {
        let rows = self.purchases(commands.iter().map(|command| command.purchase).collect()).await?;
        let mut answers: Answers = commands.iter().map(|_| Ok(CompensateCode::Missing)).collect();
        let mut by_key: BTreeMap<&SkuKey, Vec<usize>> = BTreeMap::new();
        for (at, command) in commands.iter().enumerate() {
            by_key.entry(&command.key).or_default().push(at);
        }
        let mut places = Vec::new();
        for (key, which) in by_key {
            match self.sale(key).await {
                Ok(Some(sale)) => places.extend(parted(&sale, which, commands, &rows)),
                Ok(None) => {}
                Err(error) => {
                    for (at, failed) in which.iter().zip(error.for_each(which.len())) {
                        answers[*at] = failed;
                    }
                }
            }
        }
        for some in places.chunks(BUCKETS_AT_ONCE) {
            let heard = join_all(some.iter().map(|place| self.compensate_at(place, commands, &rows))).await;
            for (place, heard) in some.iter().zip(heard) {
                place.which.iter().zip(heard).for_each(|(at, answer)| answers[*at] = answer);
            }
        }
        Ok(answers)
    }

    async fn compensate_at(
        self: &Arc<Self>,
        place: &Place,
        commands: &[Compensate],
        rows: &HashMap<PurchaseId, Purchase>,
    ) -> Answers {
        let mut answers: Answers = place.which.iter().map(|_| Ok(CompensateCode::Missing)).collect();
        let mut left: Vec<usize> = (0..place.which.len()).collect();
        let mut failed: Option<Error> = None;
        let buckets = place.home.map_or(0..place.sale.buckets.len(), |home| home..home + 1);
        for number in buckets {
            let asked: Vec<&Compensate> = left.iter().map(|at| &commands[place.which[*at]]).collect();
            // One that does not know it changes nothing.
            match self.compensate_opened(&place.sale, number, &asked).await {
                Ok(heard) => left.iter().zip(heard).for_each(|(at, answer)| answers[*at] = answer),
                Err(error) => failed = Some(error),
            }
            left.retain(|at| matches!(answers[*at], Ok(CompensateCode::Missing)));
        }
        for at in left {
            answers[at] = match &failed {
                // It may be where nobody answers.
                Some(error) => error.for_each(1).remove(0),
                None => self.judge_missing(&place.sale, rows.get(&commands[place.which[at]].purchase)).await,
            };
        }
        answers
    }

    async fn compensate_opened(
        self: &Arc<Self>,
        sale: &Arc<Sale>,
        number: usize,
        commands: &[&Compensate],
    ) -> Result<Answers, Error> {
        let bucket = &sale.buckets[number];
        if let Some(answers) = self.compensate_in(sale, bucket, commands).await? {
            return Ok(answers);
        }
        if self.open_soon(sale, number).await? == Opened::Retired {
            return Ok(commands.iter().map(|_| Ok(CompensateCode::Missing)).collect());
        }
        self.compensate_in(sale, bucket, commands).await?.ok_or_else(|| reply::unexpected(DOING))
    }

    /// The same as [`Self::compensate_in`] for whoever goes on without those that cannot be read.
    pub(crate) async fn compensate_readable(
        &self,
        sale: &Sale,
        bucket: &Bucket,
        commands: &[&Compensate],
    ) -> Result<(), Error> {
        let answers = self.compensate_in(sale, bucket, commands).await?.unwrap_or_default();
        let damaged = commands.iter().zip(answers).filter(|(_, answer)| answer.is_err());
        damaged.for_each(|(one, _)| bucket.note_damage(one.purchase));
        Ok(())
    }

    /// Gives units of one bucket back; an answer each, in order. None where the bucket is not there.
    pub(crate) async fn compensate_in(
        &self,
        sale: &Sale,
        bucket: &Bucket,
        commands: &[&Compensate],
    ) -> Result<Option<Answers>, Error> {
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
            if reply::is_number(&answer, CLOSED) {
                return Ok(None);
            }
            for number in reply::numbers(DOING, answer)? {
                answers.push(match number {
                    DAMAGED => Err(reply::damaged(DOING)),
                    _ => Ok(code_of(number).ok_or_else(|| reply::unexpected(DOING))?),
                });
            }
        }
        Ok(Some(answers))
    }

    /// What no bucket knows. Where the reservation is older than the bucket's last opening, Redis has lost it, and the bucket
    /// was opened without its units: they are free already, and nothing is added. Where the sale is past, the bucket has gone with all
    /// its units. Anything else is for a person.
    async fn judge_missing(
        self: &Arc<Self>,
        sale: &Arc<Sale>,
        row: Option<&Purchase>,
    ) -> Result<CompensateCode, Error> {
        let Some(row) = row.filter(|row| row.route == Route::Flash) else {
            return Ok(CompensateCode::Missing);
        };
        if row.lines[0].key != sale.key {
            return Ok(CompensateCode::IdMismatch);
        }
        let is_lost = self.opened_after(sale, row).await?;
        Ok(if is_lost { CompensateCode::AlreadyApplied } else { CompensateCode::Missing })
    }

    /// Whether the buyer's bucket was last opened after this reservation, or has gone since. One that has lost writes and was not opened since
    /// is opened first: its last opening is one that the reservation may well be younger than.
    async fn opened_after(self: &Arc<Self>, sale: &Arc<Sale>, row: &Purchase) -> Result<bool, Error> {
        let number = sale.home_number(&row.user);
        let bucket = &sale.buckets[number];
        let is_older = |stand: Option<Stand>| stand.is_some_and(|stand| row.reserved_at.0 < stand.since);
        match self.stand(bucket).await? {
            Some(stand) if stand.is_open => Ok(is_older(Some(stand))),
            Some(_) | None => match self.open_soon(sale, number).await? {
                Opened::Retired => Ok(true),
                Opened::Open => Ok(is_older(self.stand(bucket).await?)),
            },
        }
    }
}

/// Parts compensations of a sale by their buyers' buckets.
fn parted(
    sale: &Arc<Sale>,
    which: Vec<usize>,
    commands: &[Compensate],
    rows: &HashMap<PurchaseId, Purchase>,
) -> impl Iterator<Item = Place> {
    let mut by_home: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for at in which {
        let row = rows.get(&commands[at].purchase);
        let own = row.filter(|row| row.route == Route::Flash && row.lines[0].key == sale.key);
        by_home.entry(own.map(|row| sale.home_number(&row.user))).or_default().push(at);
    }
    let sale = Arc::clone(sale);
    by_home.into_iter().map(move |(home, which)| Place { sale: Arc::clone(&sale), home, which })
}
