//! Reading jobs.

use onceward_domain::credit::Credits;
use onceward_domain::due::Token;
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;
use tokio_postgres::Row;

use crate::failure::defect;
use crate::load::{Kind, each};
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{get, kept_if, number, state, text, time, time_if};

/// Asks for the jobs that a need names.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, need: &'a Need) -> Result<(), Error> {
    if need.jobs.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = need.jobs.iter().map(|id| id.as_str()).collect();
    questions.ask(Kind::Jobs, queries::JOB_BY_IDS, params![ids]).await
}

/// Notes jobs.
pub(crate) fn sort(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let job = job(row)?;
        facts.jobs.insert(job.id.clone(), job);
        Ok(())
    })
}

fn job(row: &Row) -> Result<Job, Error> {
    let id = JobId::trusted(text(row, 0)?);
    let cost: i64 = get(row, 2)?;
    let cost = Credits::new(cost).map_err(|cause| defect(format!("job {id} costs {cost}")).because(cause))?;
    Ok(Job {
        id,
        account: AccountId::trusted(text(row, 1)?),
        cost,
        max_attempts: number(row, 3)?,
        payload: kept_if(row, 4)?,
        status: state(row, 5)?,
        attempts: number(row, 6)?,
        not_before: time_if(row, 7)?,
        token: get::<Option<i64>>(row, 8)?.map(Token),
        worker: kept_if(row, 9)?,
        last_error: kept_if(row, 10)?,
        is_refunded: get(row, 11)?,
        is_reclaimed: get(row, 12)?,
        created_at: time(row, 13)?,
        updated_at: time(row, 14)?,
        revision: get(row, 15)?,
    })
}
