//! The data folder: who may have it, and the files with secrets in it.
//!
//! Invariants: one process at a time, by a lock that the kernel drops with the process, so a kill leaves nothing to
//! clean up; a file with a secret is readable by its owner alone, is complete on disk before it is used, and is never
//! overwritten. Deliberately absent: a lock over the network file system's guarantees.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rand::TryRng as _;
use rand::rngs::SysRng;

use crate::failure::Failure;

/// Bytes of a new secret.
pub(crate) const SECRET_BYTES: usize = 32;
/// Most bytes of a secret file that are read: more is some other file.
const SECRET_FILE_MAX: u64 = 4096;

/// Makes the folder, for the owner alone, where it is not there.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make(folder: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|cause| Failure::file("making the data folder", folder, &cause))
}

/// Exclusive use of a store's file, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "holding the file open is holding the lock")] File);

/// Takes the store's file for this process.
///
/// # Errors
/// When another process has it.
pub(crate) fn lock(store: &Path) -> Result<Lock, Failure> {
    let path = beside(store, "lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|cause| Failure::file("opening the lock", &path, &cause))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(Failure::Other(format!(
            "{} is in use by another onceward process: stop it, or give this one a folder of its own with --data",
            store.display()
        ))),
        Err(TryLockError::Error(cause)) => Err(Failure::file("locking", &path, &cause)),
    }
}

/// A file beside the store: the store's name with an ending.
pub(crate) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Reads a secret, or makes one where the file is not there. The flag says whether it was made.
///
/// # Errors
/// When the file cannot be read or made, or holds too little to be a secret.
pub(crate) fn secret(path: &Path) -> Result<Vec<u8>, Failure> {
    match read_bounded(path) {
        Ok(secret) => Ok(secret),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let fresh = random::<SECRET_BYTES>()?;
            write_private(path, &fresh)?;
            Ok(fresh.to_vec())
        }
        Err(cause) => Err(Failure::file("reading the secret", path, &cause)),
    }
}

/// Reads a small file, and refuses to read a large one.
pub(crate) fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let size = fs::metadata(path)?.len();
    if size > SECRET_FILE_MAX {
        return Err(std::io::Error::other(format!("it has {size} bytes, which is no secret")));
    }
    fs::read(path)
}

/// Writes a file that only its owner may read and that must not be there yet. It appears whole or not at all: a crash
/// half way must not leave a short secret behind.
///
/// # Errors
/// When it is there already or cannot be written.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let fault = |cause: std::io::Error| Failure::file("writing", path, &cause);
    let draft = beside(path, "new");
    // A start that was cut off left its draft, perhaps linked to a file in use: it is unlinked, never written into.
    match fs::remove_file(&draft) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(fault(cause)),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft).map_err(fault)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(fault)?;
    drop(file);
    // A link, unlike a rename, never replaces what is there.
    fs::hard_link(&draft, path).map_err(fault)?;
    fs::remove_file(&draft).map_err(fault)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fault)
}

/// Makes an empty file that only its owner may read, where none is there: who fills it later keeps its mode.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_private(path: &Path) -> Result<(), Failure> {
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(Failure::file("making", path, &cause)),
    }
}

/// Bytes from the operating system's generator.
///
/// # Errors
/// When it has none to give.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).map_err(|cause| Failure::other("asking for random bytes", cause))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("onceward-data-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        make(&path).unwrap();
        path
    }

    #[test]
    fn a_secret_is_made_once_and_private() {
        let folder = folder("secret");
        let path = folder.join("secret");
        let first = secret(&path).unwrap();
        assert_eq!((first.len(), secret(&path).unwrap()), (SECRET_BYTES, first.clone()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::hard_link(&path, beside(&path, "new")).unwrap();
        assert!(write_private(&path, b"another").is_err(), "what is there is never replaced");
        assert_eq!(secret(&path).unwrap(), first, "also where a start was cut off");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_store_is_one_process_s_at_a_time() {
        let folder = folder("lock");
        let store = folder.join("onceward.db");
        let held = lock(&store).unwrap();
        let refused = lock(&store).unwrap_err().to_string();
        assert!(refused.contains("in use by another onceward process"), "{refused}");
        drop(held);
        assert!(lock(&store).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }
}
