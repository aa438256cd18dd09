//! The sandbox bank's journal: whether the whole of it can be read.
//!
//! Invariant: opening a journal mends its last line, so a copy is opened, in a folder of its own on the same disk.

use std::fs;
use std::path::Path;

use super::{Finding, Verdict};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::temp_dir::Folder;
use crate::wiring;

const NAME: &str = "sandbox bank";
const MIB: u64 = 1024 * 1024;
/// A longer journal is not copied: a look must neither fill the disk nor take minutes.
const COPY_LIMIT: u64 = 64 * MIB;

/// The journal as it is, where there is one.
pub(crate) fn journal(settings: &Settings, place: &Path) -> Option<Finding> {
    let path = wiring::bank_path(settings);
    if !path.exists() {
        return None;
    }
    Some(match try_out(settings, &path, place) {
        Ok(Some(bytes)) => {
            Finding::new(NAME, Verdict::Good, format!("{}: {bytes} bytes, all readable", path.display()))
        }
        Ok(None) => {
            let limit = COPY_LIMIT / MIB;
            let detail = format!("{} has more than {limit} MiB and was not looked into", path.display());
            Finding::new(NAME, Verdict::Good, detail)
        }
        Err(cause) => {
            Finding::new(NAME, Verdict::Broken, format!("{} (tried on a copy): {cause}", path.display()))
        }
    })
}

/// Opens a copy, and answers how long it was.
fn try_out(settings: &Settings, path: &Path, place: &Path) -> Result<Option<u64>, Failure> {
    let fault = |cause: std::io::Error| Failure::file("reading", path, &cause);
    if fs::metadata(path).map_err(fault)?.len() > COPY_LIMIT {
        return Ok(None);
    }
    let folder = Folder::inside(place)?;
    let copy = folder.path().join("journal");
    let bytes = fs::copy(path, &copy).map_err(fault)?;
    // Nobody is called, so any secret will do to sign with.
    drop(wiring::bank_at(&copy, &[0; 32], settings)?);
    Ok(Some(bytes))
}
