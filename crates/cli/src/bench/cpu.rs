//! What a process has used of the processor.
//!
//! Invariant: the figure is the kernel's, user and system time of all threads, also of those that ended; where the kernel
//! does not tell (no `/proc`), it is absent. Deliberately absent: children of the process.

use std::fs;
use std::time::Duration;

/// Ticks of a second in `/proc`: `USER_HZ`, which Linux has fixed at 100 for programs.
const TICKS_PER_SECOND: u64 = 100;
/// Fields of `/proc/<pid>/stat` behind the name in brackets: state is the first, user and system time are these.
const USER_FIELD: usize = 11;
const SYSTEM_FIELD: usize = 12;

/// The processor time of this process so far, in steps of 10 ms.
pub(crate) fn used_by(process: u32) -> Option<Duration> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Duration> {
    // The name may hold blanks and brackets, so what counts begins behind the last bracket.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let ticks = ticks(USER_FIELD)? + ticks(SYSTEM_FIELD)?;
    Some(Duration::from_millis(ticks * (1_000 / TICKS_PER_SECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_behind_a_name_with_brackets() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 4 0 1 2 3";
        assert_eq!(parse(stat), Some(Duration::from_secs(3)));
        assert_eq!(parse("7 (a) S 1 2"), None);
        assert!(used_by(std::process::id()).is_some());
    }
}
