//! Reading and writing notices.
//!
//! Invariants: a notice is added once, a repeat is ignored; a changed one names the revision it was decided on.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{NoticeId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::notice::{Notice, NoticeKind, Recipient};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use crate::apply::revision_lost;
use crate::failure::{defect, failed};
use crate::load::{every, first};
use crate::queries;
use crate::rows::{get, state};

/// Loads the notices that a need names.
pub(crate) fn load(conn: &Connection, need: &Need, facts: &mut Facts) -> Result<(), Error> {
    for id in &need.notices {
        let found = first(conn, queries::NOTICE_BY_ID, [id.0.as_bytes()], "loading a notice", notice)?;
        facts.notices.extend(found.map(|one| (one.id, one)));
    }
    Ok(())
}

fn notice(row: &Row<'_>) -> Result<Notice, Error> {
    let name: String = get(row, 1)?;
    let kind = NoticeKind::ALL.into_iter().find(|kind| kind.name() == name);
    let user: Option<String> = get(row, 3)?;
    Ok(Notice {
        id: NoticeId(Uuid::from_bytes(get(row, 0)?)),
        kind: kind.ok_or_else(|| defect(format!("a notice says {name}, which nothing here means")))?,
        subject: get(row, 2)?,
        recipient: user.map_or(Recipient::Administrators, |user| Recipient::User(UserId::trusted(&user))),
        detail: get(row, 4)?,
        status: state(get(row, 5)?)?,
        created_at: Timestamp(get(row, 6)?),
        updated_at: Timestamp(get(row, 7)?),
        revision: get(row, 8)?,
    })
}

/// Notices with their handles, newest first.
pub(crate) fn list(conn: &Connection, page: PageRequest) -> Result<Vec<(i64, Notice)>, Error> {
    let parameters = params![page.before.unwrap_or(i64::MAX), page.limit];
    every(conn, queries::NOTICE_LIST, parameters, "listing notices", |row| Ok((get(row, 9)?, notice(row)?)))
}

/// Writes new and changed notices.
pub(crate) fn write(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let doing = failed("writing a notice");
    for notice in &changes.new_notices {
        let user: Option<Arc<str>> = match &notice.recipient {
            Recipient::Administrators => None,
            Recipient::User(user) => Some(Arc::from(user.as_str())),
        };
        let mut statement = conn.prepare_cached(queries::NOTICE_INSERT).map_err(&doing)?;
        let parameters = params![
            notice.id.0.as_bytes(),
            notice.kind.name(),
            notice.subject,
            user,
            notice.detail,
            notice.status.code(),
            notice.created_at.0,
            notice.updated_at.0,
            notice.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    for notice in &changes.notices {
        let key = notice.id.0.as_bytes();
        let mut statement = conn.prepare_cached(queries::NOTICE_MOVE).map_err(&doing)?;
        let parameters = params![notice.status.code(), notice.updated_at.0, key, notice.revision];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there = first(conn, queries::NOTICE_PEEK, [key], "looking at a notice", |row| get(row, 0))?;
            return Err(revision_lost("notice", &notice.id, notice.revision, there));
        }
    }
    Ok(())
}
