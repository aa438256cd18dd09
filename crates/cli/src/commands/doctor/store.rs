//! The store's file as it is, and a store that is made on the same disk to see whether it can be.
//!
//! Invariant: the file is opened to be read only, so an old one is not migrated and a foreign one is left alone.

use std::path::Path;

use onceward_domain::ports::store::Store as _;
use rusqlite::{Connection, OpenFlags};

use super::{Finding, Verdict};
use crate::data_dir;
use crate::failure::Failure;
use crate::temp_dir::Folder;
use crate::wiring;

/// Whether a server has the store open.
pub(crate) fn is_in_use(path: &Path) -> bool {
    let has_lock_file = data_dir::beside(path, "lock").exists();
    has_lock_file && data_dir::lock(path).is_err()
}

/// The file as it is.
pub(crate) fn of_file(path: &Path, is_in_use: bool) -> Finding {
    if !path.exists() {
        let detail = format!("{} will be made at the first start", path.display());
        return Finding::new("store", Verdict::Good, detail);
    }
    let user = if is_in_use { ", in use by a server" } else { "" };
    match version_of(path) {
        Ok((version, mode)) => {
            let verdict = if mode == "wal" { Verdict::Good } else { Verdict::Broken };
            let detail =
                format!("{}: tables of version {version}, journal mode {mode}{user}", path.display());
            Finding::new("store", verdict, detail)
        }
        Err(cause) => Finding::new("store", Verdict::Broken, format!("{}: {cause}", path.display())),
    }
}

/// Version of the tables and journal mode.
fn version_of(path: &Path) -> rusqlite::Result<(i64, String)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok((version, mode))
}

/// Makes a store on the same disk: whether it opens, with which settings, and whether the file there is of this version.
pub(crate) fn tried_out(place: &Path, path: &Path) -> Vec<Finding> {
    match try_out(place) {
        Err(cause) => vec![Finding::new("new store", Verdict::Broken, cause.to_string())],
        Ok((known, about)) => {
            let mut findings = vec![Finding::new("store settings", Verdict::Good, about)];
            if let Ok((found, _)) = version_of(path) {
                findings.push(schema(found, known));
            }
            findings
        }
    }
}

/// EM-04: an older file is migrated at the next start, with a copy beside it; a newer one is refused.
fn schema(found: i64, known: i64) -> Finding {
    let (verdict, detail) = match found.cmp(&known) {
        std::cmp::Ordering::Equal => (Verdict::Good, format!("version {found}, as this program has it")),
        std::cmp::Ordering::Less => {
            (Verdict::Warning, format!("version {found}; the next start copies it and migrates to {known}"))
        }
        std::cmp::Ordering::Greater => {
            (Verdict::Broken, format!("version {found}; this program knows {known}: start the newer program"))
        }
    };
    Finding::new("schema", verdict, detail)
}

fn try_out(place: &Path) -> Result<(i64, String), Failure> {
    let folder = Folder::inside(place)?;
    let path = folder.path().join("trial.db");
    let store = wiring::open_store(&path)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|cause| Failure::other("starting the runtime", cause))?;
    let tally = runtime.block_on(store.tally())?;
    store.close();
    let (version, _) = version_of(&path).map_err(|cause| Failure::other("reading the new store", cause))?;
    Ok((version, tally.about.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn em_04_versions_are_judged() {
        assert_eq!(schema(2, 2).verdict, Verdict::Good);
        assert_eq!(schema(1, 2).verdict, Verdict::Warning);
        assert_eq!(schema(3, 2).verdict, Verdict::Broken);
    }
}
