//! A rush: while the gate lets in so many buyers that answering them and making their orders want the same processors, the
//! answers go first, because a buyer waits for them and nobody waits for a worker (design.md §10).
//!
//! Invariants: without a rush nothing waits here; in a rush one downstream worker works at a time, in turn, and rests a
//! few times as long as it worked, but never longer than a bound or than the rush, so orders go on being made throughout; what waits
//! meanwhile goes as larger batches. How much may wait at all is not decided here: admission itself closes when too much
//! does (FS-17). Deliberately absent: rules. A slower worker is always a correct one.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::workers::Worker;

/// From so many winners a second on it is a rush. Far above what a database server takes from one node, and a third of what
/// one gate answers on two cores while orders are made beside it.
const WINNERS_PER_SECOND: u128 = 8_000;

/// A rest is so many times as long as the step before it.
const REST_PER_STEP: u32 = 4;

/// No rest is longer: a slow disk must not make orders wait for seconds.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// So often whoever rests looks whether the rush goes on.
const GLANCE: Duration = Duration::from_millis(5);

/// What the gate and the workers of one process know of each other.
#[derive(Debug, Default)]
pub(crate) struct Rush {
    winners: AtomicU64,
    turn: Mutex<()>,
}

impl Rush {
    /// The gate has let in some more.
    pub(crate) fn let_in(&self, winners: u64) {
        self.winners.fetch_add(winners, Ordering::Relaxed);
    }
}

/// How fast one worker goes.
pub(crate) struct Pace {
    yields: bool,
    winners: u64,
    since: Instant,
}

impl Pace {
    pub(crate) fn of(worker: Worker) -> Self {
        let yields = matches!(worker, Worker::Sender | Worker::Consumer | Worker::Relay | Worker::Projector);
        Self { yields, winners: 0, since: Instant::now() }
    }

    /// Takes a step: at once, or in a rush when it is this worker's turn, with a rest behind it that ends with the rush, and
    /// at once when the workers are stopped.
    pub(crate) async fn step<T>(
        &mut self,
        rush: &Rush,
        stopped: &mut watch::Receiver<bool>,
        step: impl Future<Output = T>,
    ) -> T {
        if !self.is_rush(rush) {
            return step.await;
        }
        let _turn = rush.turn.lock().await;
        let began = Instant::now();
        let done = step.await;
        let glances = rest_after(began.elapsed()).as_micros() / GLANCE.as_micros();
        for _ in 0..=glances {
            if !self.is_rush(rush) || timeout(GLANCE, stopped.changed()).await.is_ok() {
                break;
            }
        }
        done
    }

    /// Whether the winners since this was last asked came fast enough to be a rush.
    fn is_rush(&mut self, rush: &Rush) -> bool {
        if !self.yields {
            return false;
        }
        let winners = rush.winners.load(Ordering::Relaxed);
        let came = u128::from(winners - self.winners);
        let took = self.since.elapsed();
        self.winners = winners;
        self.since = Instant::now();
        is_rush(came, took)
    }
}

fn is_rush(came: u128, took: Duration) -> bool {
    came * 1_000_000 > WINNERS_PER_SECOND * took.as_micros()
}

fn rest_after(step: Duration) -> Duration {
    (step * REST_PER_STEP).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_winners_in_a_short_time_are_a_rush() {
        let rows = [
            (0, 0, false),
            (0, 1_000, false),
            (8, 1_000, false),
            (9, 1_000, true),
            (8_000, 1_000_000, false),
            (8_001, 1_000_000, true),
            (1, 0, true),
        ];
        for (came, micros, expected) in rows {
            assert_eq!(is_rush(came, Duration::from_micros(micros)), expected, "{came} in {micros} us");
        }
    }

    #[test]
    fn a_rest_is_in_proportion_and_bounded() {
        assert_eq!(rest_after(Duration::from_millis(3)), Duration::from_millis(12));
        assert_eq!(rest_after(Duration::from_secs(3)), LONGEST_REST);
    }

    #[tokio::test]
    async fn in_a_rush_one_works_at_a_time_and_a_drain_cuts_the_rest_short() {
        let rush = Rush::default();
        let (stop, mut stopped) = watch::channel(false);
        let mut pace = Pace::of(Worker::Consumer);
        rush.let_in(1_000_000_000);
        let step = async {
            assert!(rush.turn.try_lock().is_err(), "nobody else has the turn");
            stop.send_replace(true);
            7
        };
        assert_eq!(pace.step(&rush, &mut stopped, step).await, 7);
        assert!(rush.turn.try_lock().is_ok());
    }

    #[tokio::test]
    async fn who_does_not_compete_with_the_gate_never_waits() {
        let rush = Rush::default();
        let (_stop, mut stopped) = watch::channel(false);
        let others_turn = rush.turn.lock().await;
        rush.let_in(1_000_000_000);
        assert_eq!(Pace::of(Worker::Refunder).step(&rush, &mut stopped, async { 7 }).await, 7);
        drop(others_turn);
    }
}
