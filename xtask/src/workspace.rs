//! Where the repository is, and which files belong to it.
//!
//! The list of files comes from git (tracked files and new ones that are not ignored), so that build output
//! and local data are never judged. Paths are relative to the root and always use `/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// A text file of the repository.
pub(crate) struct SourceFile {
    /// Path from the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A file that a tool wrote; its length and style are the tool's affair.
    pub(crate) fn is_generated(&self) -> bool {
        self.path.contains("/generated/")
            || self.text.lines().next().is_some_and(|line| line.contains("@generated"))
    }
}

/// The root of the repository: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Every text file of the repository. A file that is not UTF-8 is left out: no rule speaks about it.
pub(crate) fn source_files(root: &Path) -> Result<Vec<SourceFile>, Failure> {
    let mut files = Vec::new();
    for path in listed_paths(root)? {
        let full = root.join(&path);
        // A tracked file may be deleted in the work tree, and git lists links and submodules as well.
        if !full.is_file() {
            continue;
        }
        let bytes = fs::read(&full).map_err(|cause| format!("could not read {path}: {cause}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile { path, text });
        }
    }
    Ok(files)
}

fn listed_paths(root: &Path) -> Result<Vec<String>, Failure> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .map_err(|cause| format!("could not run git to list the files: {cause}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut paths: Vec<String> = String::from_utf8(output.stdout)?
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}
