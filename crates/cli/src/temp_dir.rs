//! A folder of its own for one run.
//!
//! Invariant: it is removed when the run ends, however it ends, unless somebody asked to keep it.

use std::path::{Path, PathBuf};

use crate::data_dir;
use crate::failure::Failure;

/// A temporary folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    /// A new folder, for this user alone, whose name nobody can guess.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::inside(&std::env::temp_dir())
    }

    /// The same inside a folder of the caller's choice.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn inside(parent: &Path) -> Result<Self, Failure> {
        let name = format!("onceward-{:016x}", u64::from_le_bytes(data_dir::random()?));
        let path = parent.join(name);
        data_dir::make(&path)?;
        Ok(Self { path, is_kept: false })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it when the run ends.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed lies in the temporary folder, where somebody else will.
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}
