//! Bringing a file to the tables of this version (EM-04).
//!
//! Invariants: each migration and its number are one transaction; before an existing file of an older version is
//! touched, a whole copy of it lies beside it; a file of a newer version, or of somebody else, is left alone.
//! Deliberately absent: a way back. The copy is it.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use onceward_domain::credit::EntryKind;
use onceward_domain::error::Error;
use onceward_domain::machine;
use onceward_domain::purchase::InboxResult;
use rusqlite::{Connection, TransactionBehavior};

use crate::failure::{defect, failed};
use crate::queries;

/// Marks our files: `ONCE` in ASCII.
const APPLICATION_ID: i64 = 0x4f4e_4345;

/// So many copies of one version may lie beside a file before a person should look why.
const BACKUPS_OF_ONE_VERSION: u32 = 100;

/// A step from one version of the tables to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    name: &'static str,
    sql: &'static str,
}

macro_rules! migrations {
    ($($name:literal,)*) => {
        &[$(Migration { name: $name, sql: include_str!(concat!("../migrations/", $name, ".sql")) },)*]
    };
}

/// Every migration; the position, from 1, is the version it leads to.
pub(crate) const MIGRATIONS: &[Migration] = migrations![
    "0001_tables",
    "0002_views",
    "0003_money",
    "0004_queue",
    "0005_group",
    "0006_expiry",
    "0007_credit",
    "0008_terms",
    "0009_retention",
];

/// Brings a file to the newest version, and says where the copy of the old one is, if there was an old one.
pub(crate) fn migrate(
    conn: &mut Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<Option<PathBuf>, Error> {
    let newest = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let version = version(conn)?;
    if version > newest {
        return Err(defect(format!(
            "{} has tables of version {version}, this program knows {newest}: start the newer program, or restore \
             the copy that it made beside the file before it changed it",
            path.display(),
        )));
    }
    refuse_foreign(conn, path, version)?;
    let backup = if 0 < version && version < newest { Some(copy_beside(conn, path, version)?) } else { None };
    for (number, migration) in (1_i64..).zip(migrations) {
        apply(conn, number, *migration)?;
    }
    Ok(backup)
}

/// Writes the names of the states, as this version knows them, for the views.
pub(crate) fn name_states(conn: &mut Connection) -> Result<(), Error> {
    let doing = failed("naming the states");
    let results = InboxResult::ALL.iter().map(|result| result.name()).collect();
    let kinds = EntryKind::ALL.iter().map(|kind| kind.name()).collect();
    let machines = machine::all().into_iter().map(|view| (view.name, view.states));
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&doing)?;
    for (name, states) in machines.chain([("inbox_result", results), ("credit_entry", kinds)]) {
        for (code, state) in (0_i64..).zip(states) {
            let mut statement = transaction.prepare_cached(queries::STATE_PUT).map_err(&doing)?;
            statement.execute((name, code, state)).map_err(&doing)?;
        }
    }
    transaction.commit().map_err(&doing)
}

/// Refuses a file whose tables are not of this version, and changes nothing.
pub(crate) fn require_newest(conn: &Connection, path: &Path) -> Result<(), Error> {
    let (found, newest) = (version(conn)?, i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX));
    refuse_foreign(conn, path, found)?;
    if found == newest {
        return Ok(());
    }
    let advice = if found < newest { "migrate first" } else { "start the newer program" };
    Err(defect(format!(
        "{} has tables of version {found}, this program needs {newest}: {advice}",
        path.display()
    )))
}

fn version(conn: &Connection) -> Result<i64, Error> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed("reading the version"))
}

fn refuse_foreign(conn: &Connection, path: &Path, version: i64) -> Result<(), Error> {
    let doing = failed("reading whose file it is");
    let mark: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(&doing)?;
    let tables: i64 = conn.query_row(queries::SCHEMA_COUNT, [], |row| row.get(0)).map_err(&doing)?;
    let is_empty = version == 0 && tables == 0;
    if is_empty || mark == APPLICATION_ID {
        return Ok(());
    }
    Err(defect(format!("{} is a database of another program; it is left alone", path.display())))
}

fn apply(conn: &mut Connection, number: i64, migration: Migration) -> Result<(), Error> {
    let doing = format!("migrating to {}", migration.name);
    let transaction =
        conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed(&doing))?;
    // Another process may have migrated while this one waited for the lock.
    if version(&transaction)? >= number {
        return Ok(());
    }
    transaction.execute_batch(migration.sql).map_err(failed(&doing))?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed(&doing))?;
    transaction.pragma_update(None, "user_version", number).map_err(failed(&doing))?;
    transaction.commit().map_err(failed(&doing))
}

fn copy_beside(conn: &Connection, path: &Path, version: i64) -> Result<PathBuf, Error> {
    let doing = format!("copying {} before it is migrated", path.display());
    let free =
        (1..=BACKUPS_OF_ONE_VERSION).map(|number| beside(path, version, number)).find(|copy| !copy.exists());
    let copy =
        free.ok_or_else(|| defect(format!("{doing}: there are {BACKUPS_OF_ONE_VERSION} copies already")))?;
    let target = copy.to_str().ok_or_else(|| defect(format!("{doing}: the path is not UTF-8")))?;
    conn.execute("VACUUM INTO ?1", [target]).map_err(failed(&doing))?;
    let synced = File::open(&copy).and_then(|file| file.sync_all());
    synced.map_err(|cause| defect(format!("{doing}: {cause}")).because(cause))?;
    Ok(copy)
}

fn beside(path: &Path, version: i64, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".v{version}-{number}.backup"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    //! A file from nothing, a file with a version behind and one with a version ahead, and somebody else's file.

    use super::*;
    use onceward_domain::error::Code;

    const EXTRA: Migration = Migration { name: "9999_extra", sql: "CREATE TABLE extra (value TEXT) STRICT;" };
    const BROKEN: Migration = Migration {
        name: "9999_broken",
        sql: "CREATE TABLE half (value TEXT) STRICT; CREATE TABLE half (x);",
    };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("onceward-migrate-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn tables(conn: &Connection) -> i64 {
        conn.query_row(queries::SCHEMA_COUNT, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn em_04_an_older_file_is_copied_and_migrated_a_newer_one_refused() {
        let path = folder("versions").join("store.db");
        let longer: Vec<Migration> = MIGRATIONS.iter().copied().chain([EXTRA]).collect();
        let newest = i64::try_from(MIGRATIONS.len()).unwrap();

        let mut conn = Connection::open(&path).unwrap();
        assert_eq!(migrate(&mut conn, &path, MIGRATIONS).unwrap(), None, "a new file needs no copy");
        assert_eq!(migrate(&mut conn, &path, MIGRATIONS).unwrap(), None, "twice is as good as once");
        let before = tables(&conn);

        let copy = migrate(&mut conn, &path, &longer).unwrap().unwrap();
        assert_eq!((version(&conn).unwrap(), tables(&conn)), (newest + 1, before + 1));
        let kept = Connection::open(&copy).unwrap();
        assert_eq!((version(&kept).unwrap(), tables(&kept)), (newest, before));

        let refused = migrate(&mut conn, &path, MIGRATIONS).unwrap_err();
        assert_eq!(refused.code(), Code::ConstraintViolated);
        assert!(refused.operator_text().contains("start the newer program"), "{refused}");
        assert_eq!(tables(&conn), before + 1, "a refused file is left alone");
    }

    #[test]
    fn a_migration_is_whole_or_not_at_all() {
        let path = folder("broken").join("store.db");
        let mut conn = Connection::open(&path).unwrap();
        migrate(&mut conn, &path, MIGRATIONS).unwrap();
        let (before, was) = (tables(&conn), version(&conn).unwrap());
        let longer: Vec<Migration> = MIGRATIONS.iter().copied().chain([BROKEN]).collect();
        for copies in 1..=2 {
            migrate(&mut conn, &path, &longer).unwrap_err();
            assert_eq!((tables(&conn), version(&conn).unwrap()), (before, was));
            assert!(beside(&path, was, copies).exists(), "every try has its copy");
        }
    }

    #[test]
    fn somebody_elses_file_is_left_alone() {
        let path = folder("foreign").join("store.db");
        let mut conn = Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE theirs (value TEXT);").unwrap();
        let refused = migrate(&mut conn, &path, MIGRATIONS).unwrap_err();
        assert!(refused.operator_text().contains("another program"), "{refused}");
        assert_eq!(tables(&conn), 1);
    }
}
