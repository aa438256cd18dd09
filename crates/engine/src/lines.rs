//! The lines of a front: one for each part that commands go to.
//!
//! Invariants: a line has so many batches on their way at once and no more, and what comes meanwhile waits in it, in its order; all
//! lines together are bounded, and the longer one is, the more room it leaves: whatever hangs, a part that answers finds a place.
//! Deliberately absent: waiting. Read next: [`crate::front`].

use std::collections::{HashMap, VecDeque};

use onceward_domain::error::Error;
use onceward_domain::ports::admission::Part;
use tokio::sync::oneshot;

use crate::front::QUEUE_LIMIT;

/// Most commands that wait in all lines. A line may be as long as what it leaves free, so that one alone has room for half of it.
const WAITING_LIMIT: usize = 2 * QUEUE_LIMIT;
/// Batches of all lines that may be on their way at once. From half of it on, no line has more than one: what hangs holds as few as it
/// can, and leaves the rest to those that answer.
pub(crate) const FLIGHTS_LIMIT: usize = 1_024;
/// Lines that are kept while nobody stands in them, with the room that they have: a part that was busy will be so again.
const IDLE_LIMIT: usize = 64;

/// Who is told the answer.
pub(crate) type Caller<A> = oneshot::Sender<Result<A, Error>>;

/// A command, and who waits for its answer.
pub(crate) struct Waiting<C, A> {
    pub(crate) command: C,
    pub(crate) answer: Caller<A>,
}

/// What leaves together.
pub(crate) struct Batch<C, A> {
    pub(crate) part: Part,
    pub(crate) commands: Vec<C>,
    pub(crate) callers: Vec<Caller<A>>,
}

struct Line<C, A> {
    waiting: VecDeque<Waiting<C, A>>,
    flights: usize,
    /// Whether it is among those that may have a batch.
    is_ready: bool,
}

/// All of them.
pub(crate) struct Lines<C, A> {
    lines: HashMap<Part, Line<C, A>>,
    /// Those in which somebody waits and that may have a batch, the first first.
    ready: VecDeque<Part>,
    waiting: usize,
    flights: usize,
    /// Most batches of one line on their way at once.
    in_flight: usize,
}

impl<C, A> Lines<C, A> {
    pub(crate) fn new(in_flight: usize) -> Self {
        Self { lines: HashMap::new(), ready: VecDeque::new(), waiting: 0, flights: 0, in_flight }
    }

    /// Batches on their way.
    pub(crate) fn flights(&self) -> usize {
        self.flights
    }

    /// How many batches of one line may be on their way now.
    fn allowed(&self) -> usize {
        if self.flights < FLIGHTS_LIMIT / 2 { self.in_flight } else { 1 }
    }

    /// Whether a batch may leave.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Puts a command into the line of its part, or gives it back where that is full.
    pub(crate) fn push(&mut self, part: Part, one: Waiting<C, A>) -> Result<(), Waiting<C, A>> {
        let allowed = self.allowed();
        let length = self.lines.get(&part).map_or(0, |line| line.waiting.len());
        if length >= WAITING_LIMIT - self.waiting {
            return Err(one);
        }
        let line = self.lines.entry(part).or_insert_with(|| Line {
            waiting: VecDeque::new(),
            flights: 0,
            is_ready: false,
        });
        line.waiting.push_back(one);
        self.waiting += 1;
        if !line.is_ready && line.flights < allowed {
            line.is_ready = true;
            self.ready.push_back(part);
        }
        Ok(())
    }

    /// Takes up to so many commands of the first line that may have a batch.
    pub(crate) fn take(&mut self, limit: usize) -> Option<Batch<C, A>> {
        if self.flights >= FLIGHTS_LIMIT {
            return None;
        }
        let allowed = self.allowed();
        let (part, line) = loop {
            let part = self.ready.pop_front()?;
            let line = self.lines.get_mut(&part).expect("a line that is ready is there");
            if line.flights < allowed {
                break (part, line);
            }
            // It was ready when there were fewer: it is again when one of its own is back.
            line.is_ready = false;
        };
        let count = line.waiting.len().min(limit);
        let (commands, callers) = line.waiting.drain(..count).map(|one| (one.command, one.answer)).unzip();
        self.waiting -= count;
        self.flights += 1;
        line.flights += 1;
        line.is_ready = !line.waiting.is_empty() && line.flights < allowed;
        if line.is_ready {
            self.ready.push_back(part);
        }
        Some(Batch { part, commands, callers })
    }

    /// A batch of this line is back.
    pub(crate) fn land(&mut self, part: Part) {
        let line = self.lines.get_mut(&part).expect("a line with a batch on its way is there");
        self.flights -= 1;
        line.flights -= 1;
        if !line.waiting.is_empty() && !line.is_ready {
            line.is_ready = true;
            self.ready.push_back(part);
        }
        if line.waiting.is_empty() && line.flights == 0 && self.lines.len() > IDLE_LIMIT {
            self.lines.remove(&part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lines: &mut Lines<u64, ()>, part: u64, command: u64) -> bool {
        let (answer, _) = oneshot::channel();
        lines.push(Part(part), Waiting { command, answer }).is_ok()
    }

    fn take(lines: &mut Lines<u64, ()>) -> Option<(u64, Vec<u64>)> {
        lines.take(3).map(|batch| (batch.part.0, batch.commands))
    }

    #[test]
    fn a_line_keeps_its_order_and_has_no_more_batches_than_it_may() {
        let mut lines = Lines::new(2);
        for command in 0..10 {
            assert!(push(&mut lines, command % 2, command));
        }
        let taken: Vec<_> = std::iter::from_fn(|| take(&mut lines)).collect();
        let expected = [(0, vec![0, 2, 4]), (1, vec![1, 3, 5]), (0, vec![6, 8]), (1, vec![7, 9])];
        assert_eq!(taken, expected);
        assert!(push(&mut lines, 0, 10) && push(&mut lines, 2, 11));
        assert_eq!(take(&mut lines), Some((2, vec![11])), "the others have as many as they may");
        assert!(!lines.is_ready());
        lines.land(Part(0));
        assert_eq!((take(&mut lines), lines.flights()), (Some((0, vec![10])), 5));
    }

    #[test]
    fn fs_19_many_lines_that_do_not_move_leave_batches_to_the_others() {
        let mut lines = Lines::new(2);
        let hung = u64::try_from(FLIGHTS_LIMIT * 3 / 4).unwrap();
        for command in 0..6 {
            assert!((0..hung).all(|part| push(&mut lines, part, command)));
        }
        let mut taken = Vec::new();
        while let Some((part, _)) = take(&mut lines) {
            taken.push(part);
        }
        assert_eq!(taken, (0..hung).collect::<Vec<_>>(), "one of each");
        assert!(push(&mut lines, hung, 0));
        assert_eq!(take(&mut lines), Some((hung, vec![0])));
        lines.land(Part(0));
        assert_eq!(take(&mut lines), Some((0, vec![3, 4, 5])), "it goes on as soon as it moves");
    }

    #[test]
    fn fs_19_a_line_that_does_not_move_leaves_room_for_the_others() {
        let mut lines = Lines::new(1);
        let mut fill = |part| {
            let mut count = 0;
            while push(&mut lines, part, 0) {
                count += 1;
            }
            count
        };
        assert_eq!((fill(0), fill(1), fill(2)), (QUEUE_LIMIT, QUEUE_LIMIT / 2, QUEUE_LIMIT / 4));
        assert!((3..10_000).all(|part| fill(part) <= QUEUE_LIMIT / 8));
        assert!(lines.lines.len() < 20, "a line that was full from the start is not kept");
    }
}
