//! A fixed-size histogram of durations in microseconds.
//!
//! Purpose: percentiles of millions of latencies without keeping them.
//!
//! Invariants: a value below `2 * STEPS` is kept exactly; above that it shares a bucket with values at most
//! 1/32 larger, and a percentile answers with the middle of that bucket, so it is at most 1/64 off. The
//! histogram never grows and never loses a count.
//!
//! Deliberately absent: means and deviations, which say little about latencies with a long tail.

use std::time::Duration;

/// Buckets per doubling: 32 keeps the error at 1.6 % and the whole histogram at 7 KiB.
const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 5;

/// The largest value with a bucket of its own kind, about 71 minutes; anything longer is counted there.
const VALUE_MAX: u64 = u32::MAX as u64;
const BUCKETS: usize = bucket_of(VALUE_MAX) + 1;

/// Counts of durations, in log-linear buckets.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
}

impl Histogram {
    /// An empty histogram.
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), total: 0 }
    }

    /// Counts one duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(VALUE_MAX).min(VALUE_MAX);
        self.counts[bucket_of(micros)] += 1;
        self.total += 1;
    }

    /// Adds all that `other` has counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// How many durations were counted.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The duration in microseconds below or at which `percent` of a hundred lie (nearest rank), or `None` when
    /// nothing was counted. A `percent` above 100 counts as 100.
    pub(crate) fn percentile_us(&self, percent: u64) -> Option<u64> {
        let rank = (self.total * percent.min(100)).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(middle_of(bucket as u64))
    }
}

/// The bucket of a value: itself while small, then `STEPS` buckets for each doubling.
const fn bucket_of(value: u64) -> usize {
    let doublings = (u64::BITS - (value | STEPS).leading_zeros() - 1 - STEP_BITS) as u64;
    (doublings * STEPS + (value >> doublings)) as usize
}

/// The value in the middle of a bucket; the inverse of [`bucket_of`] up to the bucket's width.
const fn middle_of(bucket: u64) -> u64 {
    let doublings = (bucket / STEPS).saturating_sub(1);
    let lowest = (bucket - doublings * STEPS) << doublings;
    lowest + ((1 << doublings) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tiny generator with a fixed seed, so that a failure shows again.
    fn noise(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    #[test]
    fn percentiles_stay_within_a_64th_of_the_exact_ones() {
        for round in 1..=200_u64 {
            let mut seed = round.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let count = 1 + noise(&mut seed) % 3_000;
            let shift = noise(&mut seed) % 31;
            let mut exact: Vec<u64> =
                (0..count).map(|_| (noise(&mut seed) & u64::from(u32::MAX)) >> shift).collect();
            let (mut left, mut right) = (Histogram::new(), Histogram::new());
            for (index, value) in exact.iter().enumerate() {
                let half = if index % 2 == 0 { &mut left } else { &mut right };
                half.record(Duration::from_micros(*value));
            }
            left.merge(&right);
            exact.sort_unstable();

            assert_eq!(left.total(), count);
            for percent in [1, 25, 50, 90, 99, 100] {
                let rank = (count * percent).div_ceil(100).max(1);
                let expected = exact[rank as usize - 1];
                let found = left.percentile_us(percent).unwrap();
                assert!(
                    found.abs_diff(expected) <= expected / 64 + 1,
                    "round {round}: p{percent} of {count} is {expected}, found {found}"
                );
                assert!(expected >= 2 * STEPS || found == expected, "small values are exact");
            }
        }
    }

    #[test]
    fn buckets_are_contiguous_and_the_ends_are_kept() {
        let mut last = 0;
        for value in 0..100_000 {
            let bucket = bucket_of(value);
            assert!(bucket == last || bucket == last + 1, "value {value} skips a bucket");
            assert_eq!(bucket_of(middle_of(bucket as u64)), bucket);
            last = bucket;
        }
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile_us(50), None);
        histogram.record(Duration::MAX);
        assert!(histogram.percentile_us(100).unwrap() > VALUE_MAX / 64 * 63);
    }
}
