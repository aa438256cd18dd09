//! Reading jobs.

use onceward_domain::credit::Credits;
use onceward_domain::due::Token;
use onceward_domain::error::Error;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Row};

use crate::failure::defect;
use crate::load::first;
use crate::queries;
use crate::rows::{get, state};

/// A job, where it was opened.
pub(crate) fn by_id(conn: &Connection, id: &JobId) -> Result<Option<Job>, Error> {
    first(conn, queries::JOB_BY_ID, [id.as_str()], "loading a job", |row| job(id, row))
}

fn job(id: &JobId, row: &Row<'_>) -> Result<Job, Error> {
    let account: String = get(row, 0)?;
    let cost: i64 = get(row, 1)?;
    let cost = Credits::new(cost).map_err(|cause| defect(format!("job {id} costs {cost}")).because(cause))?;
    Ok(Job {
        id: id.clone(),
        account: AccountId::trusted(&account),
        cost,
        max_attempts: get(row, 2)?,
        payload: get(row, 3)?,
        status: state(get(row, 4)?)?,
        attempts: get(row, 5)?,
        not_before: get::<Option<i64>>(row, 6)?.map(Timestamp),
        token: get::<Option<i64>>(row, 7)?.map(Token),
        worker: get(row, 8)?,
        last_error: get(row, 9)?,
        is_refunded: get(row, 10)?,
        is_reclaimed: get(row, 11)?,
        created_at: Timestamp(get(row, 12)?),
        updated_at: Timestamp(get(row, 13)?),
        revision: get(row, 14)?,
    })
}
