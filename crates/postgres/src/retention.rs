//! Listing records by age.
//!
//! Invariant: oldest first, by the index; whether one may go was not asked here. Read next: `apply/retention`.

use onceward_domain::error::Error;
use onceward_domain::id::NoticeId;
use onceward_domain::retention::{Aged, Record};
use tokio_postgres::Row;

use crate::link::Link;
use crate::pipeline::params;
use crate::queries;
use crate::rows::{get, kept, time};

/// Records of one kind behind a place, oldest first.
pub(crate) async fn aged(link: &Link, limit: u32, after: &Aged) -> Result<Vec<Aged>, Error> {
    let (at, limit) = (after.at.0, i64::from(limit));
    match &after.record {
        Record::Answer(key) => {
            let parameters = params![at, &**key, limit];
            let rows = link.rows("listing answers by age", queries::ANSWER_AGED, parameters).await?;
            each(&rows, |row| Ok(Record::Answer(kept(row, 1)?)))
        }
        Record::Callback(provider, event) => {
            let parameters = params![at, &**provider, &**event, limit];
            let rows = link.rows("listing callbacks by age", queries::CALLBACK_AGED, parameters).await?;
            each(&rows, |row| Ok(Record::Callback(kept(row, 1)?, kept(row, 2)?)))
        }
        Record::Notice(id) => {
            let parameters = params![at, id.0, limit];
            let rows = link.rows("listing notices by age", queries::NOTICE_AGED, parameters).await?;
            each(&rows, |row| Ok(Record::Notice(NoticeId(get(row, 1)?))))
        }
    }
}

fn each(rows: &[Row], record: impl Fn(&Row) -> Result<Record, Error>) -> Result<Vec<Aged>, Error> {
    rows.iter().map(|row| Ok(Aged { at: time(row, 0)?, record: record(row)? })).collect()
}
