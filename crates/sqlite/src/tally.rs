//! Sums over the whole store.
//!
//! Invariant: one snapshot. Which states belong to a sum is asked of the machines and bound as a mask with a bit for
//! each state, so that no statement names one. Deliberately absent: verdicts (the domain's audit judges).

use std::collections::{BTreeMap, HashMap};

use onceward_domain::catalogue::Sku;
use onceward_domain::credit::EntryKind;
use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::group::WALLET;
use onceward_domain::id::SkuKey;
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
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Params, params};

use crate::failure::{defect, failed};
use crate::load::{bucket, every, first, keyed_sku};
use crate::queries;
use crate::refs::Refs;
use crate::rows::{count, get, inbox_code, position, state};

const DOING: &str = "adding up the store";

/// Adds everything up. `bytes` is the size of the files.
pub(crate) fn tally(conn: &Connection, refs: &mut Refs, now: Timestamp, bytes: u64) -> Result<Tally, Error> {
    let mut groups = groups(conn)?;
    let over = pairs(conn, queries::TALLY_BUYERS_OVER_LIMIT, live_masks())?;
    let ledger = pairs(conn, queries::TALLY_LEDGER, [])?;
    let journal = journal(conn, refs)?;
    let mut skus = Vec::new();
    for (sku_ref, sku) in all_skus(conn)? {
        skus.push(SkuTally {
            bucket: bucket(conn, refs, &sku.key)?,
            groups: groups.remove(&sku_ref).unwrap_or_default(),
            buyers_over_limit: over.get(&sku_ref).map_or(0, |count| count.unsigned_abs()),
            journaled: journal.get(&sku.key).copied().unwrap_or(0),
            ledger_available: ledger.get(&sku_ref).copied().unwrap_or(0),
            sku,
        });
    }
    Ok(Tally {
        now,
        skus,
        rejections_without_task: one(conn, queries::TALLY_REJECTIONS_WITHOUT_TASK, [mask(needs_task)])?,
        tasks_without_rejection: one(conn, queries::TALLY_TASKS_WITHOUT_REJECTION, [mask(allows_task)])?,
        inbox_contradictions: inbox_contradictions(conn)?,
        cancels_without_release: cancels_without_release(conn, refs)?,
        money_contradictions: one(conn, queries::TALLY_MONEY_CONTRADICTIONS, money_states())?,
        group_orders: group_orders(conn, refs)?,
        credit: credit(conn, refs)?,
        cases: one(conn, queries::TALLY_CASES, [])?,
        quarantined: one(conn, queries::TALLY_QUARANTINED, [])?,
        bytes,
        about: about(conn)?.into(),
    })
}

fn group_orders(conn: &Connection, refs: &mut Refs) -> Result<GroupTally, Error> {
    let counts =
        first(conn, queries::TALLY_GROUP_COUNTS, [], DOING, |row| Ok((count(row, 0)?, count(row, 1)?)))?;
    let (groups, participants) = counts.ok_or_else(|| defect("a sum has no row"))?;
    let states = params![
        GroupCharge::None.code(),
        mask(GroupStatus::is_before_close),
        GroupStatus::Settled.code(),
        mask(GroupCharge::is_open)
    ];
    // A lane that was never written has no number; no member can be in it.
    let lane = refs.word_ref(conn, Lane::SETTLEMENT)?;
    let unscheduled = params![mask(GroupStatus::waits), lane];
    let wallets = params![WALLET, GroupCharge::Charged.code()];
    Ok(GroupTally {
        groups,
        participants,
        state_contradictions: one(conn, queries::TALLY_GROUP_CONTRADICTIONS, states)?,
        wallet_contradictions: one(conn, queries::TALLY_WALLET_CONTRADICTIONS, wallets)?,
        unscheduled: one(conn, queries::TALLY_GROUPS_UNSCHEDULED, unscheduled)?,
    })
}

/// Units of the reservations that only the gate's journal holds.
fn journal(conn: &Connection, refs: &mut Refs) -> Result<BTreeMap<SkuKey, i64>, Error> {
    let mut units: BTreeMap<SkuKey, i64> = BTreeMap::new();
    let lane = refs.word_ref(conn, Lane::JOURNAL)?;
    let entries = every(conn, queries::TALLY_JOURNAL, [lane], DOING, |row| get::<Vec<u8>>(row, 0))?;
    for body in entries {
        for one in journal::unpack(&body)? {
            let row = first(conn, queries::PURCHASE_SEQ_OF, [one.purchase.bytes()], DOING, |row| {
                get::<i64>(row, 0)
            })?;
            if row.is_none() {
                *units.entry(one.key).or_default() += i64::from(one.quantity);
            }
        }
    }
    Ok(units)
}

fn money_states() -> (u8, u8, u8) {
    (PaymentStatus::Succeeded.code(), RefundStatus::Succeeded.code(), RefundStatus::Failed.code())
}

fn credit(conn: &Connection, refs: &mut Refs) -> Result<CreditTally, Error> {
    let counts =
        first(conn, queries::TALLY_CREDIT_COUNTS, [], DOING, |row| Ok((count(row, 0)?, count(row, 1)?)))?;
    let (accounts, entries) = counts.ok_or_else(|| defect("a sum has no row"))?;
    let balance_contradictions = one(conn, queries::TALLY_BALANCE_CONTRADICTIONS, [])?;
    Ok(CreditTally {
        accounts,
        entries,
        balance_contradictions,
        job_contradictions: one(conn, queries::TALLY_JOB_CONTRADICTIONS, job_marks())?,
        jobs_nowhere: jobs_nowhere(conn, refs)?,
    })
}

fn job_marks() -> (u8, u8, u8, u8) {
    let code = |kind| position(&EntryKind::ALL, kind);
    let delivered = JobStatus::Delivered.code();
    (code(EntryKind::Charge), code(EntryKind::Refund), code(EntryKind::Reclaim), delivered)
}

fn jobs_nowhere(conn: &Connection, refs: &mut Refs) -> Result<u64, Error> {
    let lane = Lane::new(Lane::JOB_RETRY);
    let parameters = params![
        JobStatus::WaitingRetry.code(),
        refs.word_ref(conn, lane.as_str())?,
        JobStatus::DeadLetter.code(),
        refs.word_ref(conn, lane.dead_letters().as_str())?,
    ];
    one(conn, queries::TALLY_JOBS_NOWHERE, parameters)
}

fn all_skus(conn: &Connection) -> Result<Vec<(i64, Sku)>, Error> {
    every(conn, queries::SKU_ALL, [], DOING, keyed_sku)
}

fn groups(conn: &Connection) -> Result<HashMap<i64, Vec<Group>>, Error> {
    let rows = every(conn, queries::TALLY_GROUPS, [], DOING, |row| {
        let reservation: Option<u8> = get(row, 2)?;
        let order: Option<u8> = get(row, 3)?;
        let group = Group {
            admission: state(get(row, 1)?)?,
            reservation: reservation.map(state).transpose()?,
            order: order.map(state).transpose()?,
            purchases: count(row, 4)?,
            units: get(row, 5)?,
        };
        Ok((get::<i64>(row, 0)?, group))
    })?;
    let mut groups: HashMap<i64, Vec<Group>> = HashMap::new();
    for (sku_ref, group) in rows {
        groups.entry(sku_ref).or_default().push(group);
    }
    Ok(groups)
}

fn pairs(conn: &Connection, sql: &str, parameters: impl Params) -> Result<HashMap<i64, i64>, Error> {
    let rows = every(conn, sql, parameters, DOING, |row| Ok((get(row, 0)?, get(row, 1)?)))?;
    Ok(rows.into_iter().collect())
}

fn one(conn: &Connection, sql: &str, parameters: impl Params) -> Result<u64, Error> {
    let found = first(conn, sql, parameters, DOING, |row| count(row, 0))?;
    found.ok_or_else(|| defect("a sum has no row"))
}

/// A bit for each state that the question is true of.
fn mask<M: Machine>(belongs: impl Fn(M) -> bool) -> i64 {
    M::STATES.iter().filter(|state| belongs(**state)).fold(0, |mask, state| mask | 1 << state.code())
}

fn live_masks() -> (i64, i64) {
    let live_where_freed = mask(|status: OrderStatus| status.holds_a_place(true));
    let live_where_kept = mask(|status: OrderStatus| status.holds_a_place(false));
    (live_where_freed, live_where_kept)
}

fn needs_task(status: ReservationStatus) -> bool {
    matches!(status, ReservationStatus::OrderRejected | ReservationStatus::Compensating)
}

fn allows_task(status: ReservationStatus) -> bool {
    needs_task(status) || matches!(status, ReservationStatus::Compensated | ReservationStatus::ManualReview)
}

fn inbox_contradictions(conn: &Connection) -> Result<u64, Error> {
    let allows_late = mask(|status: ReservationStatus| {
        status.refuses_late_messages() || status == ReservationStatus::ManualReview
    });
    let parameters = params![
        inbox_code(InboxResult::OrderCreated),
        inbox_code(InboxResult::OrderRejected),
        mask(allows_task),
        allows_late
    ];
    one(conn, queries::TALLY_INBOX_CONTRADICTIONS, parameters)
}

fn cancels_without_release(conn: &Connection, refs: &mut Refs) -> Result<u64, Error> {
    let row = OrderStatus::ROWS.iter().find(|row| row.to == OrderStatus::Cancelled);
    let label = row.map(|row| row.label).ok_or_else(|| defect("no move of the order cancels it"))?;
    // A label that was never written has no number; no entry can carry it.
    let release = refs.word_ref(conn, label)?;
    one(conn, queries::TALLY_CANCELS_WITHOUT_RELEASE, params![OrderStatus::Cancelled.code(), release])
}

fn about(conn: &Connection) -> Result<String, Error> {
    let number = |name: &str| -> Result<i64, Error> {
        conn.pragma_query_value(None, name, |row| row.get(0)).map_err(failed(DOING))
    };
    Ok(format!(
        "SQLite {}, schema {}, page size {}, WAL, synchronous=FULL",
        rusqlite::version(),
        number("user_version")?,
        number("page_size")?,
    ))
}
