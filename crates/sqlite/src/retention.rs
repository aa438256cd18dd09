//! Listing records by age, and forgetting them.
//!
//! Invariant: what goes is as it was seen, or the whole set is refused; whether it may go was decided before.

use onceward_domain::error::Error;
use onceward_domain::id::NoticeId;
use onceward_domain::retention::{Aged, Record};
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::failure::{failed, guard_lost};
use crate::load::every;
use crate::queries;
use crate::rows::get;

/// Records of one kind behind a place, oldest first.
pub(crate) fn aged(conn: &Connection, limit: u32, after: &Aged) -> Result<Vec<Aged>, Error> {
    let at = after.at.0;
    match &after.record {
        Record::Answer(key) => {
            every(conn, queries::ANSWER_AGED, params![at, key, limit], "listing answers by age", |row| {
                Ok(Aged { at: Timestamp(get(row, 0)?), record: Record::Answer(get(row, 1)?) })
            })
        }
        Record::Callback(provider, event) => {
            let parameters = params![at, provider, event, limit];
            every(conn, queries::CALLBACK_AGED, parameters, "listing callbacks by age", |row| {
                let record = Record::Callback(get(row, 1)?, get(row, 2)?);
                Ok(Aged { at: Timestamp(get(row, 0)?), record })
            })
        }
        Record::Notice(id) => {
            let parameters = params![at, id.0.as_bytes(), limit];
            every(conn, queries::NOTICE_AGED, parameters, "listing notices by age", |row| {
                let record = Record::Notice(NoticeId(Uuid::from_bytes(get(row, 1)?)));
                Ok(Aged { at: Timestamp(get(row, 0)?), record })
            })
        }
    }
}

/// Takes records out.
pub(crate) fn forget(conn: &Connection, records: &[Aged]) -> Result<(), Error> {
    let doing = failed("forgetting a record");
    for Aged { at, record } in records {
        let gone = match record {
            Record::Answer(key) => conn
                .prepare_cached(queries::ANSWER_FORGET)
                .and_then(|mut statement| statement.execute(params![key, at.0])),
            Record::Callback(provider, event) => conn
                .prepare_cached(queries::CALLBACK_FORGET)
                .and_then(|mut statement| statement.execute(params![provider, event, at.0])),
            Record::Notice(id) => conn
                .prepare_cached(queries::NOTICE_FORGET)
                .and_then(|mut statement| statement.execute(params![id.0.as_bytes(), at.0])),
        };
        if gone.map_err(&doing)? != 1 {
            return Err(guard_lost(format!(
                "{record:?} was to be forgotten as of {}, it is not there",
                at.0
            )));
        }
    }
    Ok(())
}
