//! The secret that ids are derived with, and the mark by which another one in its place is noticed.
//!
//! Invariants: a store and its secret stay together. With another secret every request that was answered before would
//! be a new one and take effect a second time, so nothing starts where the secret is gone or is not the one that was
//! used first. The mark is a digest under a label of its own, so it tells nothing about the secret. Deliberately
//! absent: a way to take a new secret into an old store. Read next: [`crate::wiring`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use onceward_domain::derive::KeyRing;
use onceward_domain::error::{Code, Error};
use sha2::{Digest as _, Sha256};

use crate::api_keys::hex;
use crate::data_dir;
use crate::failure::Failure;
use crate::settings::Settings;

/// The mark's file inside the data folder.
const FINGERPRINT_FILE: &str = "secret.fingerprint";
/// Keeps this digest apart from every other use of the secret.
const LABEL: &[u8] = b"onceward secret fingerprint 1\n";
/// Bytes of the digest that are kept: enough to tell secrets apart.
const FINGERPRINT_BYTES: usize = 16;
/// Version of the one secret that this build keeps; a second one would carry the next number.
const KEY_VERSION: u8 = 1;

/// The files that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    store: PathBuf,
    secret: PathBuf,
    fingerprint: PathBuf,
}

/// How the secret stands to the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is neither a secret nor anything that would need an old one.
    ToBeMade,
    /// It is there, and nobody wrote down yet which one it is: a first start was cut off, or an older program made it.
    Unmarked(Vec<u8>),
    /// It is the one that was used first.
    Known(Vec<u8>),
}

impl Files {
    /// The files of these settings.
    ///
    /// # Errors
    /// For a store that this build has no adapter for.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        Ok(Self {
            store: settings.store_path()?,
            secret: settings.secret_path(),
            fingerprint: settings.data.join(FINGERPRINT_FILE),
        })
    }

    /// The file with the secret.
    pub(crate) fn secret(&self) -> &Path {
        &self.secret
    }

    /// Looks, and changes nothing.
    ///
    /// # Errors
    /// A manual case where the secret is gone or another one; otherwise when a file cannot be read.
    pub(crate) fn standing(&self) -> Result<Standing, Failure> {
        let secret = self.read(&self.secret, "reading the secret")?;
        let mark = self.read(&self.fingerprint, "reading the secret's fingerprint")?;
        match (secret, mark) {
            (None, None) if !self.store.exists() => Ok(Standing::ToBeMade),
            (None, None) => Err(self.gone(&self.store)),
            (None, Some(_)) => Err(self.gone(&self.fingerprint)),
            (Some(secret), None) => Ok(Standing::Unmarked(secret)),
            (Some(secret), Some(mark)) if mark.trim_ascii() == fingerprint(&secret).as_bytes() => {
                Ok(Standing::Known(secret))
            }
            (Some(_), Some(_)) => Err(self.another()),
        }
    }

    /// The keys of the secret, which is made where everything is new.
    ///
    /// # Errors
    /// As [`Self::standing`], and when a file cannot be written or the secret is too short to be one.
    pub(crate) fn key_ring(&self) -> Result<KeyRing, Failure> {
        let secret = match self.standing()? {
            Standing::ToBeMade => data_dir::secret(&self.secret)?,
            Standing::Unmarked(secret) | Standing::Known(secret) => secret,
        };
        KeyRing::new(&[(KEY_VERSION, secret)]).map_err(|cause| {
            Failure::Other(format!("using the secret in {}: {cause}", self.secret.display()))
        })
    }

    /// Marks the secret where it is used for the first time. Only one that can be used is marked, and that a store has not refused, or
    /// the mark would keep out the right one later.
    ///
    /// # Errors
    /// As [`Self::standing`], and when the file cannot be written.
    pub(crate) fn keep_mark(&self) -> Result<(), Failure> {
        match self.standing()? {
            Standing::Unmarked(secret) => {
                data_dir::write_private(&self.fingerprint, format!("{}\n", fingerprint(&secret)).as_bytes())
            }
            Standing::ToBeMade | Standing::Known(_) => Ok(()),
        }
    }

    /// The mark of the secret that is there, for a store that several nodes share: each of them has the secret in a file of its
    /// own.
    ///
    /// # Errors
    /// When the secret cannot be read.
    pub(crate) fn mark(&self) -> Result<[u8; 32], Failure> {
        let secret = data_dir::read_bounded(&self.secret);
        let secret = secret.map_err(|cause| Failure::file("reading the secret", &self.secret, &cause))?;
        Ok(digest(&secret))
    }

    /// The mark of a secret that must be there already and be the right one; nothing is made or written.
    ///
    /// # Errors
    /// As [`Self::standing`], and where there is none yet.
    pub(crate) fn mark_of_known(&self) -> Result<[u8; 32], Failure> {
        match self.standing()? {
            Standing::Known(secret) | Standing::Unmarked(secret) => Ok(digest(&secret)),
            Standing::ToBeMade => Err(manual(format!(
                "there is no secret at {}: a store is nothing without the secret that its ids are derived with. Copy it there first",
                self.secret.display()
            ))),
        }
    }

    /// What to say where a dump was made with another secret.
    pub(crate) fn foreign_dump(&self) -> Failure {
        manual(format!(
            "the secret in {} is not the one of the store that was exported: with it, requests that were answered before would \
             take effect a second time. Put the secret of that store there first",
            self.secret.display(),
        ))
    }

    /// What to say to a node whose secret is not the one that the shared store was begun with.
    pub(crate) fn foreign(&self) -> Failure {
        manual(format!(
            "the secret in {} is not the one that the database was begun with: with it, requests that were answered by other \
             nodes would take effect a second time. Give every node the same secret, with ONCEWARD_SECRET_FILE",
            self.secret.display(),
        ))
    }

    fn read(&self, path: &Path, doing: &str) -> Result<Option<Vec<u8>>, Failure> {
        match data_dir::read_bounded(path) {
            Ok(content) => Ok(Some(content)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Failure::file(doing, path, &cause)),
        }
    }

    fn gone(&self, witness: &Path) -> Failure {
        manual(format!(
            "the secret {} is gone, but {} is there: with a new secret, requests that were answered before would \
             take effect a second time. Put the old secret back; only where the store is to begin anew, move the \
             store and {} away",
            self.secret.display(),
            witness.display(),
            self.fingerprint.display(),
        ))
    }

    fn another(&self) -> Failure {
        manual(format!(
            "the secret in {} is not the one that {} was begun with (its fingerprint is in {}): with it, requests \
             that were answered before would take effect a second time. Put the old secret back",
            self.secret.display(),
            self.store.display(),
            self.fingerprint.display(),
        ))
    }
}

/// A failure that a person has to act on.
fn manual(text: String) -> Failure {
    Failure::Engine(Error::new(Code::ConstraintViolated, text))
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(LABEL).chain_update(secret).finalize().into()
}

fn fingerprint(secret: &[u8]) -> String {
    hex(&digest(secret)[..FINGERPRINT_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn files(name: &str) -> (PathBuf, Files) {
        let folder = std::env::temp_dir().join(format!("onceward-secret-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        data_dir::make(&folder).unwrap();
        let files = Files {
            store: folder.join("onceward.db"),
            secret: folder.join("secret"),
            fingerprint: folder.join(FINGERPRINT_FILE),
        };
        (folder, files)
    }

    #[test]
    fn se_05_the_mark_is_private_and_tells_nothing() {
        let (folder, files) = files("mark");
        assert_eq!(files.standing().unwrap(), Standing::ToBeMade);
        files.key_ring().unwrap();
        assert!(!files.fingerprint.exists(), "a store may refuse it yet");
        files.keep_mark().unwrap();
        let secret = fs::read(&files.secret).unwrap();
        let mark = fs::read_to_string(&files.fingerprint).unwrap();
        assert_eq!(fs::metadata(&files.fingerprint).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(mark.trim().len(), 2 * FINGERPRINT_BYTES);
        assert!(!hex(&Sha256::digest(&secret)).contains(mark.trim()), "the label keeps it apart");
        assert_eq!(files.standing().unwrap(), Standing::Known(secret));
        files.key_ring().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_secret_that_is_gone_or_another_stops_the_start() {
        let (folder, files) = files("another");
        files.key_ring().unwrap();
        files.keep_mark().unwrap();
        let right = fs::read(&files.secret).unwrap();
        let refused = |files: &Files, expected: &str| {
            let refused = files.key_ring().unwrap_err();
            assert_eq!(refused.exit_code(), 14);
            let text = refused.to_string();
            let secret = files.secret.display().to_string();
            assert!(text.contains(expected) && text.contains(&secret) && text.contains("back"), "{text}");
        };
        fs::write(&files.secret, [1; 32]).unwrap();
        refused(&files, "is not the one");
        fs::remove_file(&files.secret).unwrap();
        refused(&files, "is gone");
        fs::remove_file(&files.fingerprint).unwrap();
        fs::write(&files.store, "").unwrap();
        refused(&files, "is gone");
        assert!(!files.secret.exists() && !files.fingerprint.exists(), "a refusal leaves nothing behind");

        fs::write(&files.secret, "short").unwrap();
        assert!(files.key_ring().is_err());
        assert!(!files.fingerprint.exists(), "what cannot be used is not marked");
        fs::write(&files.secret, &right).unwrap();
        assert_eq!(files.standing().unwrap(), Standing::Unmarked(right.clone()), "from an older program");
        files.keep_mark().unwrap();
        assert_eq!(files.standing().unwrap(), Standing::Known(right));
        fs::remove_dir_all(&folder).unwrap();
    }
}
