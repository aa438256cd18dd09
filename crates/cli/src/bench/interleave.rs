//! Rounds that alternate between a baseline and the thing measured.
//!
//! Purpose: a machine is not equally fast all day. Two long runs, one after the other, compare two moments;
//! short rounds A B A B … compare two programs.
//!
//! Invariants: both sides run equally often, never at once, the baseline first. The ratio is of the medians, so
//! that one disturbed round does not move it. The first error ends the whole: a ratio of unequal rounds is none.
//!
//! Deliberately absent: warm-up (a side that needs it does it itself) and statistics beyond the median; all
//! figures are kept for those who want more.

use std::num::NonZeroU32;

/// The figures of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interleaved {
    /// The baseline's figure of each round.
    pub(crate) baseline: Vec<f64>,
    /// The other side's figure of each round.
    pub(crate) measured: Vec<f64>,
    /// Median of `baseline`.
    pub(crate) baseline_median: f64,
    /// Median of `measured`.
    pub(crate) measured_median: f64,
    /// `measured_median / baseline_median`; `None` when the baseline did nothing.
    pub(crate) ratio: Option<f64>,
}

/// Runs both sides alternately, `rounds` times each; each call returns that round's figure.
///
/// # Errors
/// The first error of either side.
pub(crate) async fn interleave<A, B, E>(
    rounds: NonZeroU32,
    mut run_baseline: A,
    mut run_measured: B,
) -> Result<Interleaved, E>
where
    A: AsyncFnMut() -> Result<f64, E>,
    B: AsyncFnMut() -> Result<f64, E>,
{
    let (mut baseline, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..rounds.get() {
        baseline.push(run_baseline().await?);
        measured.push(run_measured().await?);
    }
    Ok(Interleaved::of(baseline, measured))
}

impl Interleaved {
    /// The comparison of the figures of rounds that have been run.
    pub(crate) fn of(baseline: Vec<f64>, measured: Vec<f64>) -> Self {
        let (baseline_median, measured_median) = (median(&baseline), median(&measured));
        let ratio = (baseline_median > 0.0).then(|| measured_median / baseline_median);
        Self { baseline, measured, baseline_median, measured_median, ratio }
    }
}

/// The middle figure, or the mean of the two middle ones; 0 of none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[tokio::test]
    async fn rounds_alternate_and_the_ratio_is_of_the_medians() {
        let order = RefCell::new(String::new());
        let (mut slow, mut fast) = ([100.0, 1.0, 110.0].into_iter(), [50.0, 55.0, 9_000.0].into_iter());
        let result = interleave(
            NonZeroU32::new(3).unwrap(),
            async || {
                order.borrow_mut().push('A');
                slow.next().ok_or("no figure left")
            },
            async || {
                order.borrow_mut().push('B');
                fast.next().ok_or("no figure left")
            },
        )
        .await
        .unwrap();
        assert_eq!(order.into_inner(), "ABABAB");
        assert_eq!(result.baseline, [100.0, 1.0, 110.0]);
        assert_eq!((result.baseline_median, result.measured_median), (100.0, 55.0));
        assert_eq!(result.ratio, Some(0.55));
    }

    #[tokio::test]
    async fn an_error_ends_it_and_nothing_has_no_ratio() {
        let rounds = NonZeroU32::new(2).unwrap();
        let failed = interleave(rounds, async || Ok(1.0), async || Err("broken")).await;
        assert_eq!(failed, Err("broken"));
        let idle = interleave(rounds, async || Ok::<_, ()>(0.0), async || Ok(1.0)).await.unwrap();
        assert_eq!(idle.ratio, None);
    }

    #[test]
    fn medians() {
        for (figures, expected) in
            [(&[][..], 0.0), (&[7.0], 7.0), (&[9.0, 1.0], 5.0), (&[3.0, 9.0, 1.0], 3.0)]
        {
            assert_eq!(median(figures), expected);
        }
    }
}
