//! Reading due work (design.md §6). Claims are in `claim`, what their holders do with them in `apply/due`.

use onceward_domain::due::{DueEntry, Token};
use onceward_domain::error::Error;
use onceward_domain::facts::Facts;
use tokio_postgres::Row;

use crate::failure::defect;
use crate::load::{Kind, Wanted, each};
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{get, number, time};

/// Names, before the server, the locks that a claim shares and a pause has alone; the second half is the lane's number.
pub(crate) const LANE_LOCK: i32 = 0x4c41_4e45;

/// Asks for the members that a need names.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, wanted: &Wanted<'a>) -> Result<(), Error> {
    if wanted.due.is_empty() {
        return Ok(());
    }
    let lanes: Vec<i32> = wanted.due.iter().map(|(lane, _)| *lane).collect();
    let members: Vec<&str> = wanted.due.iter().map(|(_, key)| &*key.1).collect();
    questions.ask(Kind::Due, queries::DUE_ENTRIES, params![lanes, members]).await
}

/// Notes members.
pub(crate) fn sort(rows: &[Row], wanted: &Wanted<'_>, facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let asked: i64 = get(row, 0)?;
        let key = usize::try_from(asked - 1).ok().and_then(|index| wanted.due.get(index));
        let (_, key) = key.ok_or_else(|| defect(format!("member {asked} was not asked for")))?;
        let entry = DueEntry {
            due_at: time(row, 1)?,
            created_at: time(row, 2)?,
            attempts: number(row, 3)?,
            token: Token(get(row, 4)?),
            is_held: get(row, 5)?,
            body: get(row, 6)?,
        };
        facts.due.insert((*key).clone(), entry);
        Ok(())
    })
}
