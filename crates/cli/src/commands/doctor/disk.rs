//! The disk: how much is free, and how long it takes until it has really written something.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Finding, Verdict};
use crate::failure::Failure;
use crate::temp_dir::Folder;

const MIB: u64 = 1024 * 1024;
/// Below this the log of one busy minute does not fit.
const FREE_NEEDED: u64 = 256 * MIB;
/// Below this somebody should look before the next sale.
const FREE_WANTED: u64 = 2048 * MIB;
/// How often the disk is asked to write for sure.
const SYNCS: usize = 50;
/// A page of the store.
const PAGE: [u8; 4096] = [1; 4096];
/// Faster than this is no disk that waits for its medium, but a cache that says it did.
const SUSPICIOUS: Duration = Duration::from_micros(15);
/// Slower than this, and a buyer who is alone waits visibly for every answer.
const SLOW: Duration = Duration::from_millis(20);

/// Room on the disk.
pub(crate) fn free_space(place: &Path) -> Finding {
    match rustix::fs::statvfs(place) {
        Err(cause) => Finding::new("free space", Verdict::Warning, format!("{}: {cause}", place.display())),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let verdict = match free {
                _ if free < FREE_NEEDED => Verdict::Broken,
                _ if free < FREE_WANTED => Verdict::Warning,
                _ => Verdict::Good,
            };
            Finding::new("free space", verdict, format!("{} MiB in {}", free / MIB, place.display()))
        }
    }
}

/// Time of a durable write: the floor of every answer that promises something.
pub(crate) fn sync_time(place: &Path) -> Finding {
    match measure(place) {
        Err(cause) => Finding::new("durable write", Verdict::Broken, cause.to_string()),
        Ok(mut times) => {
            times.sort_unstable();
            let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
            let (verdict, advice) = match median {
                _ if median < SUSPICIOUS => {
                    (Verdict::Warning, ": too fast to be true; does this disk really write?")
                }
                _ if median > SLOW => (Verdict::Warning, ": slow"),
                _ => (Verdict::Good, ""),
            };
            let detail = format!("{} us, longest {} us{advice}", median.as_micros(), longest.as_micros());
            Finding::new("durable write", verdict, detail)
        }
    }
}

fn measure(place: &Path) -> Result<Vec<Duration>, Failure> {
    let folder = Folder::inside(place)?;
    let path = folder.path().join("sync");
    let fault = |cause: std::io::Error| Failure::file("writing", &path, &cause);
    let mut file = File::create(&path).map_err(fault)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let started = Instant::now();
        file.write_all(&PAGE).and_then(|()| file.sync_data()).map_err(fault)?;
        times.push(started.elapsed());
    }
    Ok(times)
}
