//! What a run has written to disk.
//!
//! Purpose: bytes per order beside orders per second; a fast way that writes twice as much is not twice as good.
//!
//! Invariants: figures are the kernel's or the file system's, never estimates. Where the kernel does not tell
//! (no `/proc`), the figure is absent.
//!
//! Deliberately absent: other processes. The kernel counts for this process as a whole, so nothing else may
//! write in it while a run is measured.

use std::fs;
use std::io;
use std::path::Path;

/// This process's counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteCounters {
    /// Bytes this process caused to be sent to the storage layer, in whole pages (`write_bytes`).
    pub(crate) storage_bytes: u64,
    /// Bytes handed to `write` and its kin, to whatever kind of file (`wchar`).
    pub(crate) call_bytes: u64,
}

impl WriteCounters {
    /// Reads them now; `None` where the kernel does not tell.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/io").ok()?)
    }

    /// What has been added since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            storage_bytes: self.storage_bytes.saturating_sub(earlier.storage_bytes),
            call_bytes: self.call_bytes.saturating_sub(earlier.call_bytes),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse().ok()
        };
        Some(Self { storage_bytes: field("write_bytes")?, call_bytes: field("wchar")? })
    }
}

/// The sizes of the files in a folder, added up; folders inside it are not looked into.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let metadata = entry?.metadata()?;
        if metadata.is_file() {
            total += metadata.len();
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name() {
        let text =
            "rchar: 1\nwchar: 20\nsyscr: 3\nread_bytes: 4\nwrite_bytes: 8192\ncancelled_write_bytes: 6\n";
        let counters = WriteCounters::parse(text).unwrap();
        assert_eq!(counters, WriteCounters { storage_bytes: 8192, call_bytes: 20 });
        let later = WriteCounters { storage_bytes: 9000, call_bytes: 10 };
        assert_eq!(later.since(counters), WriteCounters { storage_bytes: 808, call_bytes: 0 });
        assert_eq!(WriteCounters::parse("rchar: 1\n"), None);
    }
}
