//! A folder for the banks of one test, removed when the test ends.
#![allow(clippy::unwrap_used, dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::time::Timestamp;
use onceward_providers::sandbox::{Bank, BankOptions, Signer};
use onceward_testkit::clock::ManualClock;

/// 2026-11-11T00:00:00Z.
pub(crate) const NOON: Timestamp = Timestamp(1_794_355_200_000);

pub(crate) struct Folder {
    path: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onceward-bank-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self { path, clock: Arc::new(ManualClock::new(NOON)) }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn bank(&self, name: &str) -> std::io::Result<Bank> {
        Bank::open(&self.file(name), self.options())
    }

    pub(crate) fn options(&self) -> BankOptions {
        let signer = Signer::new(b"a secret of the tests");
        BankOptions { signer, clock: self.clock.clone(), timeout: Duration::from_millis(5) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.path));
    }
}
