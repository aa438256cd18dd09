//! Sums over the whole store.
//!
//! Invariant: one snapshot. Which states belong to a sum is asked of the machines and bound as a mask with a bit for
//! each state, so that no statement names one. Deliberately absent: verdicts (the domain's audit judges), and remembering sums
//! while nobody writes, which the embedded store does: other processes may write here.

use std::collections::{BTreeMap, HashMap};

use onceward_domain::credit::EntryKind;
use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::group::WALLET;
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::journal;
use onceward_domain::machine::Machine;
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::machine::group_charge::GroupCharge;
use onceward_domain::machine::job::Job as JobStatus;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::machine::reservation::Reservation as ReservationStatus;
use onceward_domain::purchase::InboxResult;
use onceward_domain::tally::{CreditTally, Group, GroupTally, SkuTally, Tally};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::failure::defect;
use crate::link::Link;
use crate::load::{bucket_of, by_ref, keyed_sku};
use crate::open::Shared;
use crate::pipeline::{Params, params};
use crate::queries;
use crate::rows::{code, get, number, position, purchase_id, state, state_if, uuid_of};
use crate::settings;

const DOING: &str = "adding up the store";

/// Adds everything up, in one snapshot.
pub(crate) async fn tally(shared: &Shared, link: &Link) -> Result<Tally, Error> {
    link.set_in_transaction(true);
    link.batch(DOING, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let sums = sums(shared, link).await?;
    link.batch(DOING, "COMMIT").await?;
    link.set_in_transaction(false);
    Ok(sums)
}

async fn sums(shared: &Shared, link: &Link) -> Result<Tally, Error> {
    let now = shared.time.now(link).await?;
    let skus = skus(link).await?;
    let counts = one(link, queries::TALLY_COUNTS, params![]).await?;
    Ok(Tally {
        now,
        skus,
        rejections_without_task: sum(link, queries::TALLY_REJECTIONS_WITHOUT_TASK, params![mask(needs_task)])
            .await?,
        tasks_without_rejection: sum(
            link,
            queries::TALLY_TASKS_WITHOUT_REJECTION,
            params![mask(allows_task)],
        )
        .await?,
        inbox_contradictions: inbox_contradictions(link).await?,
        cancels_without_release: cancels_without_release(link).await?,
        money_contradictions: sum(link, queries::TALLY_MONEY_CONTRADICTIONS, money_states()).await?,
        group_orders: group_orders(link, &counts).await?,
        credit: credit(link, &counts).await?,
        cases: number(&counts, 0)?,
        quarantined: number(&counts, 1)?,
        bytes: sum(link, queries::SERVER_SIZE, params![]).await?,
        about: settings::read(link).await?.about().into(),
    })
}

async fn one(link: &Link, sql: &'static str, params: Params<'_>) -> Result<Row, Error> {
    link.first(DOING, sql, params).await?.ok_or_else(|| defect("a sum has no row"))
}

async fn sum(link: &Link, sql: &'static str, params: Params<'_>) -> Result<u64, Error> {
    number(&one(link, sql, params).await?, 0)
}

/// Sums of one number by another.
async fn pairs(link: &Link, sql: &'static str, params: Params<'_>) -> Result<HashMap<i32, i64>, Error> {
    let rows = link.rows(DOING, sql, params).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
}

async fn skus(link: &Link) -> Result<Vec<SkuTally>, Error> {
    let mut groups = groups(link).await?;
    let over = pairs(link, queries::TALLY_BUYERS_OVER_LIMIT, live_masks()).await?;
    let ledger = pairs(link, queries::TALLY_LEDGER, params![]).await?;
    let journal = journal(link).await?;
    let bucket_rows = link.rows(DOING, queries::TALLY_BUCKETS, params![]).await?;
    let buckets = by_ref(&bucket_rows)?;
    let mut skus = Vec::new();
    for row in link.rows(DOING, queries::SKU_ALL, params![]).await? {
        let sku_ref: i32 = get(&row, 0)?;
        let sku = keyed_sku(&row)?;
        let key = &sku.key;
        skus.push(SkuTally {
            bucket: buckets.get(&sku_ref).map(|row| bucket_of(row, key.clone())).transpose()?,
            groups: groups.remove(&sku_ref).unwrap_or_default(),
            buyers_over_limit: over.get(&sku_ref).map_or(0, |count| count.unsigned_abs()),
            journaled: journal.get(key).copied().unwrap_or(0),
            ledger_available: ledger.get(&sku_ref).copied().unwrap_or(0),
            sku,
        });
    }
    Ok(skus)
}

async fn groups(link: &Link) -> Result<HashMap<i32, Vec<Group>>, Error> {
    let mut groups: HashMap<i32, Vec<Group>> = HashMap::new();
    for row in link.rows(DOING, queries::TALLY_GROUPS, params![]).await? {
        groups.entry(get(&row, 0)?).or_default().push(Group {
            admission: state(&row, 1)?,
            reservation: state_if(&row, 2)?,
            order: state_if(&row, 3)?,
            purchases: number(&row, 4)?,
            units: get(&row, 5)?,
        });
    }
    Ok(groups)
}

/// Units of the reservations that only the gate's journal holds.
async fn journal(link: &Link) -> Result<BTreeMap<SkuKey, i64>, Error> {
    let mut open = Vec::new();
    for row in link.rows(DOING, queries::TALLY_JOURNAL, params![Lane::JOURNAL]).await? {
        open.extend(journal::unpack(get(&row, 0)?)?);
    }
    let mut units: BTreeMap<SkuKey, i64> = BTreeMap::new();
    if open.is_empty() {
        return Ok(units);
    }
    let ids: Vec<Uuid> = open.iter().map(|one| uuid_of(one.purchase)).collect();
    let rows = link.rows(DOING, queries::PURCHASE_KNOWN, params![ids]).await?;
    let known = rows.iter().map(|row| purchase_id(row, 0));
    let known = known.collect::<Result<std::collections::HashSet<PurchaseId>, Error>>()?;
    for one in open.into_iter().filter(|one| !known.contains(&one.purchase)) {
        *units.entry(one.key).or_default() += i64::from(one.quantity);
    }
    Ok(units)
}

async fn group_orders(link: &Link, counts: &Row) -> Result<GroupTally, Error> {
    let states = params![
        code(GroupCharge::None),
        mask(GroupStatus::is_before_close),
        code(GroupStatus::Settled),
        mask(GroupCharge::is_open),
    ];
    let wallets = params![WALLET, code(GroupCharge::Charged)];
    let unscheduled = params![mask(GroupStatus::waits), Lane::SETTLEMENT];
    Ok(GroupTally {
        groups: number(counts, 2)?,
        participants: number(counts, 3)?,
        state_contradictions: sum(link, queries::TALLY_GROUP_CONTRADICTIONS, states).await?,
        wallet_contradictions: sum(link, queries::TALLY_WALLET_CONTRADICTIONS, wallets).await?,
        unscheduled: sum(link, queries::TALLY_GROUPS_UNSCHEDULED, unscheduled).await?,
    })
}

async fn credit(link: &Link, counts: &Row) -> Result<CreditTally, Error> {
    let lane = Lane::new(Lane::JOB_RETRY);
    let kind = |kind| position(&EntryKind::ALL, kind);
    let marks = params![
        kind(EntryKind::Charge),
        kind(EntryKind::Refund),
        kind(EntryKind::Reclaim),
        code(JobStatus::Delivered),
    ];
    let nowhere = params![
        code(JobStatus::WaitingRetry),
        lane.as_str().to_owned(),
        code(JobStatus::DeadLetter),
        lane.dead_letters().as_str().to_owned(),
    ];
    Ok(CreditTally {
        accounts: number(counts, 4)?,
        entries: number(counts, 5)?,
        balance_contradictions: sum(link, queries::TALLY_BALANCE_CONTRADICTIONS, params![]).await?,
        job_contradictions: sum(link, queries::TALLY_JOB_CONTRADICTIONS, marks).await?,
        jobs_nowhere: sum(link, queries::TALLY_JOBS_NOWHERE, nowhere).await?,
    })
}

async fn inbox_contradictions(link: &Link) -> Result<u64, Error> {
    let allows_late = mask(|status: ReservationStatus| {
        status.refuses_late_messages() || status == ReservationStatus::ManualReview
    });
    let parameters = params![
        position(&InboxResult::ALL, InboxResult::OrderCreated),
        position(&InboxResult::ALL, InboxResult::OrderRejected),
        mask(allows_task),
        allows_late,
    ];
    sum(link, queries::TALLY_INBOX_CONTRADICTIONS, parameters).await
}

async fn cancels_without_release(link: &Link) -> Result<u64, Error> {
    let row = OrderStatus::ROWS.iter().find(|row| row.to == OrderStatus::Cancelled);
    let label = row.map(|row| row.label).ok_or_else(|| defect("no move of the order cancels it"))?;
    let parameters = params![code(OrderStatus::Cancelled), label];
    sum(link, queries::TALLY_CANCELS_WITHOUT_RELEASE, parameters).await
}

fn money_states() -> Params<'static> {
    params![code(PaymentStatus::Succeeded), code(RefundStatus::Succeeded), code(RefundStatus::Failed)]
}

/// A bit for each state that the question is true of.
fn mask<M: Machine>(belongs: impl Fn(M) -> bool) -> i32 {
    M::STATES.iter().filter(|state| belongs(**state)).fold(0, |mask, state| mask | 1 << state.code())
}

fn live_masks() -> Params<'static> {
    params![
        mask(|status: OrderStatus| status.holds_a_place(true)),
        mask(|status: OrderStatus| status.holds_a_place(false)),
    ]
}

fn needs_task(status: ReservationStatus) -> bool {
    matches!(status, ReservationStatus::OrderRejected | ReservationStatus::Compensating)
}

fn allows_task(status: ReservationStatus) -> bool {
    needs_task(status) || matches!(status, ReservationStatus::Compensated | ReservationStatus::ManualReview)
}
