//! Loading what a decision names: a [`Need`] becomes [`Facts`].
//!
//! Invariants: everything is asked in one round trip, locks first, then the time, then the rows; a second trip is made only
//! for the lines of direct orders and for SKUs nobody has seen yet. What is asked for and not there is simply absent; the
//! purchases of a buyer come oldest first. A look without locks is one snapshot. Read next: `locks`, `rows`, `apply`.

use std::collections::HashMap;
use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku, Stock};
use onceward_domain::changes::{Answered, CompensationTask};
use onceward_domain::due::{Lane, Member};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ActivityId, SkuId, SkuKey};
use onceward_domain::time::{Millis, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::link::Link;
use crate::locks::{self, numbers};
use crate::open::{Shared, time_of};
use crate::pipeline::{Questions, params};
use crate::rows::{
    self, digest, get, kept, kept_if, listed, number, purchase_id, state, text, time, uuid_of,
};
use crate::{credit, due, group, job, money, notice, purchases, queries};

/// How rows are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For a decision: under locks, each statement seeing what was committed before it.
    Locked,
    /// For a look: one snapshot.
    Snapshot,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Self::Locked => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Self::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }
}

/// What rows were asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Now,
    Activities,
    Skus,
    Buckets,
    Purchases,
    Buyers,
    Compensations,
    Answers,
    Payments,
    Refunds,
    Callbacks,
    Notices,
    Due,
    Groups,
    Participants,
    Accounts,
    Charges,
    Jobs,
}

/// A need with the numbers that its statements are asked by.
pub(crate) struct Wanted<'a> {
    pub(crate) need: &'a Need,
    pub(crate) skus: HashMap<SkuKey, i32>,
    /// The members of due work in lanes that were ever used.
    pub(crate) due: Vec<(i32, &'a (Lane, Member))>,
}

/// Loads everything that a need names, in a transaction that it begins. The caller ends it, whatever came of this.
pub(crate) async fn load(shared: &Shared, link: &Link, need: &Need, mode: Mode) -> Result<Facts, Error> {
    let wanted = want(shared, link, need).await?;
    let mut questions = Questions::new(link, "loading what a decision needs");
    questions.begin(mode.begin());
    link.set_in_transaction(true);
    if mode == Mode::Locked {
        locks::lock(&mut questions, &wanted).await?;
    }
    questions.ask(Kind::Now, queries::SERVER_NOW, params![]).await?;
    ask_catalogue(&mut questions, &wanted).await?;
    purchases::ask(&mut questions, &wanted).await?;
    ask_tasks(&mut questions, need).await?;
    money::ask(&mut questions, need).await?;
    notice::ask(&mut questions, need).await?;
    due::ask(&mut questions, &wanted).await?;
    group::ask(&mut questions, need).await?;
    credit::ask(&mut questions, need).await?;
    job::ask(&mut questions, need).await?;
    let answers = questions.answers().await?;
    let mut facts = Facts::empty(Timestamp(0));
    let mut found = purchases::Found::default();
    for (kind, rows) in answers {
        sort(kind, rows, (&wanted, &mut facts, &mut found))?;
    }
    if let Some(given) = shared.time.given() {
        facts.now = given;
    }
    keep_asked(need, &mut facts);
    purchases::resolve(shared, link, (found, need), &mut facts).await?;
    credit::complete(link, &mut facts).await?;
    Ok(facts)
}

async fn want<'a>(shared: &Shared, link: &Link, need: &'a Need) -> Result<Wanted<'a>, Error> {
    let keys = need.skus.iter().chain(&need.buckets).chain(need.buyers.iter().map(|(key, _)| key));
    let skus = shared.refs.sku_refs(link, keys).await?;
    let lanes = need.due.iter().map(|(lane, _)| lane.as_str());
    let lanes = shared.refs.words(link, lanes).await?;
    let due = need.due.iter().filter_map(|key| Some((*lanes.get(key.0.as_str())?, key))).collect();
    Ok(Wanted { need, skus, due })
}

fn sort(
    kind: Kind,
    rows: Vec<Row>,
    (wanted, facts, found): (&Wanted<'_>, &mut Facts, &mut purchases::Found),
) -> Result<(), Error> {
    match kind {
        Kind::Now => facts.now = time_of(rows.first())?,
        Kind::Activities => each(&rows, |row| {
            let activity = activity(row)?;
            facts.activities.insert(activity.id.clone(), activity);
            Ok(())
        })?,
        Kind::Skus => skus(&rows, wanted, facts)?,
        Kind::Buckets => buckets(&rows, wanted, facts)?,
        Kind::Purchases => found.by_id = rows,
        Kind::Buyers => found.of_buyers.extend(rows),
        Kind::Compensations => each(&rows, |row| {
            let task = compensation(row)?;
            facts.compensations.insert(task.purchase, task);
            Ok(())
        })?,
        Kind::Answers => each(&rows, |row| {
            let answer = answer(row)?;
            facts.answers.insert(Arc::clone(&answer.key), answer);
            Ok(())
        })?,
        Kind::Payments => money::payments(&rows, facts)?,
        Kind::Refunds => money::refunds(&rows, facts)?,
        Kind::Callbacks => money::callbacks(&rows, facts)?,
        Kind::Notices => notice::sort(&rows, facts)?,
        Kind::Due => due::sort(&rows, wanted, facts)?,
        Kind::Groups => group::groups(&rows, facts)?,
        Kind::Participants => group::participants(&rows, facts)?,
        Kind::Accounts => credit::accounts(&rows, facts)?,
        Kind::Charges => credit::charges(&rows, facts)?,
        Kind::Jobs => job::sort(&rows, facts)?,
    }
    Ok(())
}

/// Reads every row.
pub(crate) fn each(rows: &[Row], read: impl FnMut(&Row) -> Result<(), Error>) -> Result<(), Error> {
    rows.iter().try_for_each(read)
}

async fn ask_catalogue<'a>(questions: &mut Questions<'a, Kind>, wanted: &Wanted<'a>) -> Result<(), Error> {
    let Wanted { need, skus, .. } = wanted;
    let mut activities: Vec<&str> = need.activities.iter().map(ActivityId::as_str).collect();
    activities.extend(need.skus.iter().map(|key| key.activity.as_str()));
    activities.sort_unstable();
    activities.dedup();
    if !activities.is_empty() {
        questions.ask(Kind::Activities, queries::ACTIVITY_BY_IDS, params![activities]).await?;
    }
    let sku_refs = numbers(skus, need.skus.iter());
    if !sku_refs.is_empty() {
        questions.ask(Kind::Skus, queries::SKU_BY_REFS, params![sku_refs]).await?;
    }
    let bucket_refs = numbers(skus, need.buckets.iter());
    if !bucket_refs.is_empty() {
        questions.ask(Kind::Buckets, queries::BUCKET_BY_REFS, params![bucket_refs]).await?;
    }
    Ok(())
}

async fn ask_tasks<'a>(questions: &mut Questions<'a, Kind>, need: &'a Need) -> Result<(), Error> {
    if !need.compensations.is_empty() {
        let ids: Vec<Uuid> = need.compensations.iter().copied().map(uuid_of).collect();
        questions.ask(Kind::Compensations, queries::COMPENSATION_BY_PURCHASES, params![ids]).await?;
    }
    if !need.answers.is_empty() {
        let keys: Vec<&str> = need.answers.iter().map(|key| &**key).collect();
        questions.ask(Kind::Answers, queries::ANSWER_BY_KEYS, params![keys]).await?;
    }
    Ok(())
}

/// An activity that came with a SKU which is not there was not asked for.
fn keep_asked(need: &Need, facts: &mut Facts) {
    let Facts { activities, skus, .. } = facts;
    activities.retain(|id, _| need.activities.contains(id) || skus.keys().any(|key| key.activity == *id));
}

fn activity(row: &Row) -> Result<Activity, Error> {
    Ok(Activity {
        id: ActivityId::trusted(text(row, 0)?),
        name: kept(row, 1)?,
        starts_at: time(row, 2)?,
        ends_at: time(row, 3)?,
        payment_window: Millis(get(row, 4)?),
        cancel_grace: Millis(get(row, 5)?),
        reservation_deadline: Millis(get(row, 6)?),
        confirm_after_cancel: Millis(get(row, 7)?),
        late_payment: listed(&LatePayment::ALL, get(row, 8)?, "late payment rule")?,
        cancelled_frees_limit: get(row, 9)?,
    })
}

fn skus(rows: &[Row], wanted: &Wanted<'_>, facts: &mut Facts) -> Result<(), Error> {
    let by_ref = by_ref(rows)?;
    for key in &wanted.need.skus {
        if let Some(row) = wanted.skus.get(key).and_then(|sku_ref| by_ref.get(sku_ref)) {
            facts.skus.insert(key.clone(), sku_of(row, key.clone())?);
        }
    }
    Ok(())
}

fn buckets(rows: &[Row], wanted: &Wanted<'_>, facts: &mut Facts) -> Result<(), Error> {
    let by_ref = by_ref(rows)?;
    for key in &wanted.need.buckets {
        if let Some(row) = wanted.skus.get(key).and_then(|sku_ref| by_ref.get(sku_ref)) {
            facts.buckets.insert(key.clone(), bucket_of(row, key.clone())?);
        }
    }
    Ok(())
}

/// Rows by the number in their first column.
pub(crate) fn by_ref(rows: &[Row]) -> Result<HashMap<i32, &Row>, Error> {
    rows.iter().map(|row| Ok((get(row, 0)?, row))).collect()
}

/// A SKU from a whole row.
pub(crate) fn keyed_sku(row: &Row) -> Result<Sku, Error> {
    let key = SkuKey { activity: ActivityId::trusted(text(row, 13)?), sku: SkuId::trusted(text(row, 14)?) };
    sku_of(row, key)
}

/// A SKU from its columns, which follow its number.
fn sku_of(row: &Row, key: SkuKey) -> Result<Sku, Error> {
    let buckets: i32 = get(row, 5)?;
    Ok(Sku {
        key,
        price: rows::money(get(row, 1)?, get(row, 2)?)?,
        per_user_limit: number(row, 3)?,
        limit_since: Timestamp(get(row, 4)?),
        buckets: u16::try_from(buckets)
            .map_err(|cause| crate::failure::defect(format!("a SKU has {buckets} buckets")).because(cause))?,
        opening: get(row, 6)?,
        stock: Stock {
            initial: get(row, 7)?,
            available: get(row, 8)?,
            occupied: get(row, 9)?,
            sold: get(row, 10)?,
        },
        adjustments: number(row, 11)?,
        revision: get(row, 12)?,
    })
}

/// A bucket from its columns, which follow its number.
pub(crate) fn bucket_of(row: &Row, key: SkuKey) -> Result<Bucket, Error> {
    Ok(Bucket {
        key,
        initial: get(row, 1)?,
        available: get(row, 2)?,
        open_reserved: get(row, 3)?,
        committed: get(row, 4)?,
        adjustments: number(row, 5)?,
        revision: get(row, 6)?,
    })
}

fn compensation(row: &Row) -> Result<CompensationTask, Error> {
    Ok(CompensationTask {
        purchase: purchase_id(row, 0)?,
        status: state(row, 1)?,
        attempts: number(row, 2)?,
        last_result: kept_if(row, 3)?,
        created_at: time(row, 4)?,
        updated_at: time(row, 5)?,
        revision: get(row, 6)?,
    })
}

fn answer(row: &Row) -> Result<Answered, Error> {
    let status: i32 = get(row, 2)?;
    Ok(Answered {
        key: kept(row, 0)?,
        fingerprint: digest(row, 1)?,
        status: u16::try_from(status).map_err(|cause| {
            crate::failure::defect(format!("an answer has status {status}")).because(cause)
        })?,
        body: get(row, 3)?,
        at: time(row, 4)?,
        lasting: get(row, 5)?,
    })
}
