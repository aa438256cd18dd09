//! Reading notices.

use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{NoticeId, UserId};
use onceward_domain::notice::{Notice, NoticeKind, Recipient};
use onceward_domain::ports::store::PageRequest;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::failure::defect;
use crate::link::Link;
use crate::load::{Kind, each};
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{get, kept, state, text, time};

/// Asks for the notices that a need names.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, need: &'a Need) -> Result<(), Error> {
    if need.notices.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = need.notices.iter().map(|id| id.0).collect();
    questions.ask(Kind::Notices, queries::NOTICE_BY_IDS, params![ids]).await
}

/// Notes notices.
pub(crate) fn sort(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let notice = notice(row)?;
        facts.notices.insert(notice.id, notice);
        Ok(())
    })
}

fn notice(row: &Row) -> Result<Notice, Error> {
    let name = text(row, 1)?;
    let kind = NoticeKind::ALL.into_iter().find(|kind| kind.name() == name);
    let user: Option<&str> = get(row, 3)?;
    Ok(Notice {
        id: NoticeId(get(row, 0)?),
        kind: kind.ok_or_else(|| defect(format!("a notice says {name}, which nothing here means")))?,
        subject: kept(row, 2)?,
        recipient: user.map_or(Recipient::Administrators, |user| Recipient::User(UserId::trusted(user))),
        detail: kept(row, 4)?,
        status: state(row, 5)?,
        created_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        revision: get(row, 8)?,
    })
}

/// Notices with their handles, newest first.
pub(crate) async fn list(link: &Link, page: PageRequest) -> Result<Vec<(i64, Notice)>, Error> {
    let parameters = params![page.before.unwrap_or(i64::MAX), i64::from(page.limit)];
    let rows = link.rows("listing notices", queries::NOTICE_LIST, parameters).await?;
    rows.iter().map(|row| Ok((get(row, 9)?, notice(row)?))).collect()
}
