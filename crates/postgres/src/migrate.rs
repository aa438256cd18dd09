//! Bringing a database to the tables of this version (EM-04).
//!
//! Invariants: one process migrates at a time; each migration and its number are one transaction; tables of a newer version,
//! or of somebody else, are left alone. Deliberately absent: a way back, and a copy before: a database has backups of its own.

use onceward_domain::credit::EntryKind;
use onceward_domain::error::Error;
use onceward_domain::machine;
use onceward_domain::purchase::InboxResult;

use crate::address::Address;
use crate::commit::COMMIT;
use crate::failure::defect;
use crate::link::Link;
use crate::pipeline::params;
use crate::pool::{Purpose, configured};
use crate::queries;
use crate::rows::get;

/// The lock that a process holds while it migrates: `ONCEWARD` in ASCII.
const LOCK: i64 = 0x4f4e_4345_5741_5244;

/// A step from one version of the tables to the next.
#[derive(Debug, Clone, Copy)]
struct Migration {
    name: &'static str,
    sql: &'static str,
}

macro_rules! migrations {
    ($($name:literal,)*) => {
        &[$(Migration { name: $name, sql: include_str!(concat!("../migrations/", $name, ".sql")) },)*]
    };
}

/// Every migration; the position, from 1, is the version it leads to.
const MIGRATIONS: &[Migration] = migrations![
    "0001_tables",
    "0002_views",
    "0003_money",
    "0004_queue",
    "0005_group",
    "0006_credit",
    "0007_retention",
];

/// From which version to which the tables were brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 where there were no tables.
    pub from: u32,
    /// The version after, which is this program's.
    pub to: u32,
}

/// Brings the tables to the newest version. May be said by several processes at once, and any number of times. Must be
/// called inside a Tokio runtime.
///
/// # Errors
/// `Unavailable` where the server cannot be reached or another process migrates for longer than the lock's patience;
/// `ConstraintViolated` where the tables are of a newer version, or of another program.
pub async fn migrate(url: &str) -> Result<Migrated, Error> {
    let link = Link::open(&configured(&Address::parse(url)?, Purpose::Sums)).await?;
    // The session's end gives the lock free, whatever happens.
    link.rows("waiting for another migration", queries::MIGRATION_LOCK, params![LOCK]).await?;
    let from = version(&link).await?;
    refuse_newer(from)?;
    link.batch("making the list of migrations", queries::MIGRATION_MAKE).await?;
    for (number, migration) in (1_i32..).zip(MIGRATIONS).filter(|(number, _)| *number > from) {
        apply(&link, number, *migration).await?;
    }
    name_states(&link).await?;
    let wide = |version: i32| u32::try_from(version).unwrap_or_default();
    Ok(Migrated { from: wide(from), to: wide(newest()) })
}

/// Makes the tables where the database has none; where it has some it leaves them alone, because bringing those to another
/// version is a step that people choose. Answers what was made.
///
/// # Errors
/// As [`migrate`].
pub async fn begin(url: &str) -> Result<Option<Migrated>, Error> {
    let link = Link::open(&configured(&Address::parse(url)?, Purpose::Sums)).await?;
    match version(&link).await? {
        0 => migrate(url).await.map(Some),
        _ => Ok(None),
    }
}

/// Whether there are no tables yet; nothing is made.
///
/// # Errors
/// Where nobody answers, the URL is none, or the tables are of another program.
pub async fn is_new(url: &str) -> Result<bool, Error> {
    let link = Link::open(&configured(&Address::parse(url)?, Purpose::Sums)).await?;
    Ok(version(&link).await? == 0)
}

/// Refuses tables that are not of this version.
pub(crate) async fn require_newest(link: &Link) -> Result<(), Error> {
    let found = version(link).await?;
    refuse_newer(found)?;
    if found < newest() {
        return Err(defect(format!(
            "the database has tables of version {found}, this program needs {}: migrate first",
            newest()
        )));
    }
    Ok(())
}

fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

fn refuse_newer(found: i32) -> Result<(), Error> {
    if found > newest() {
        return Err(defect(format!(
            "the database has tables of version {found}, this program knows {}: start the newer program",
            newest()
        )));
    }
    Ok(())
}

/// The version of the tables, 0 where the schema is empty.
async fn version(link: &Link) -> Result<i32, Error> {
    let doing = "reading the version of the tables";
    let row = link.first(doing, queries::MIGRATION_IS_THERE, params![]).await?;
    let row = row.ok_or_else(|| defect("the server does not know its schema"))?;
    let (is_ours, is_used): (bool, bool) = (get(&row, 0)?, get(&row, 1)?);
    if !is_ours {
        if is_used {
            return Err(defect("the schema holds tables of another program; it is left alone"));
        }
        return Ok(0);
    }
    let row = link.first(doing, queries::MIGRATION_VERSION, params![]).await?;
    row.map_or(Ok(0), |row| get(&row, 0))
}

async fn apply(link: &Link, number: i32, migration: Migration) -> Result<(), Error> {
    let doing = format!("migrating to {}", migration.name);
    link.batch(&doing, "BEGIN").await?;
    link.batch(&doing, migration.sql).await?;
    link.rows(&doing, queries::MIGRATION_NOTE, params![number, migration.name]).await?;
    link.batch(&doing, COMMIT).await
}

/// Writes the names of the states, as this version knows them, for the views.
async fn name_states(link: &Link) -> Result<(), Error> {
    let results = InboxResult::ALL.iter().map(|result| result.name()).collect();
    let kinds = EntryKind::ALL.iter().map(|kind| kind.name()).collect();
    let machines = machine::all().into_iter().map(|view| (view.name, view.states));
    let (mut names, mut codes, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for (name, of_machine) in machines.chain([("inbox_result", results), ("credit_entry", kinds)]) {
        for (code, state) in (0_i16..).zip(of_machine) {
            names.push(name);
            codes.push(code);
            states.push(state);
        }
    }
    link.rows("naming the states", queries::STATE_PUT, params![names, codes, states]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    //! The lists in the checks of the tables are those of the machines.

    use onceward_domain::due::Lane;
    use onceward_domain::machine::{Machine, order};
    use onceward_testkit::codes::checks_allow_exactly_the_codes;

    use super::*;

    fn all() -> String {
        MIGRATIONS.iter().map(|migration| migration.sql).collect()
    }

    #[test]
    fn every_file_is_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> =
            files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        assert_eq!(names, MIGRATIONS.iter().map(|migration| migration.name).collect::<Vec<_>>());
    }

    #[test]
    fn checks_allow_exactly_the_codes_of_the_machines() {
        checks_allow_exactly_the_codes(&all());
    }

    #[test]
    fn ot_10_the_index_of_what_may_expire_names_the_states_of_the_machine() {
        let states =
            order::Order::STATES.iter().filter(|state| state.next(order::OrderEvent::Expire).is_some());
        let codes: Vec<String> = states.map(|state| state.code().to_string()).collect();
        let rule = format!("CASE WHEN order_status IN ({}) THEN cancel_due_at END", codes.join(", "));
        assert!(all().contains(&rule), "the schema lacks {rule}");
        assert!(all().contains(&format!("w.text = '{}'", Lane::OUTBOX)));
    }
}
