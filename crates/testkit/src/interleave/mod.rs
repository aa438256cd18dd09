//! Every interleaving of a payment, its callback, a cancel, the bank's confirmations and refunds: not some, all.
//!
//! **Purpose.** The simulator looks at many runs by chance; this looks at all runs of one order. The real operations and
//! workers run over the model store and the test bank; every call to the bank and every commit is a point at which another
//! one may go first, a process may die, or an answer may get lost. Each run has one duplicate, and one crash, lost answer or
//! slept-through lease, in any place.
//!
//! **How.** A future cannot be copied, so a state is reached by playing its choices again, from the last moment at which nobody
//! was under way, and is known by a digest of what can still matter: rows, the bank's books, what each process has learnt, and which faults are left. A state
//! whose digest was met before is not gone on from. What differs in names only — tokens, revisions, numbers of rows — is left
//! out of the digest, or almost nothing would ever be met twice.
//!
//! **Invariants.** Rules are not repeated here: decisions, operations and workers are the shipped ones, and what must hold is
//! asked of [`crate::treasury`], as the simulator does. A run is bounded; one that is longer panics.
//!
//! **Deliberately absent.** A checker from a library: its states are values that can be copied, so it could only check a copy
//! of our rules, or be a hash set around this replay.
//!
//! **Read next.** [`explore`], then `stage.rs` for what may happen next.

use std::collections::{BTreeMap, HashSet};

use stage::{Choice, Moment, Stage, Start};

mod actor;
mod digest;
mod ports;
mod stage;

pub use ports::Line;

/// Longest run; the longest that was seen is a third of it.
const CHOICES_LIMIT: usize = 400;
/// Most states of a scene; the largest that is played has a quarter of it.
const STATES_LIMIT: u64 = 2_000_000;

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scene {
    /// Where it begins.
    pub opening: Opening,
    /// Processes that may die.
    pub crashes: u8,
    /// Answers of the bank that may get lost.
    pub losses: u8,
    /// Times that a process may sleep through its lease.
    pub pauses: u8,
    /// Times that the bank's callback may be delivered again.
    pub duplicates: u8,
    /// How the line to the bank behaves.
    pub line: Line,
}

/// Where a scene begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// An attempt is open; the buyer may pay, also by force, and may cancel.
    Cancel,
    /// The same, but time is up and nobody asks to cancel; late money brings the order back.
    Expiry,
    /// It is paid; 60 of 100 are asked back twice, and the bank may take a refund back.
    Refund,
}

/// What may go wrong, once, in any place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Nothing.
    None,
    /// A process dies.
    Crash,
    /// An answer of the bank gets lost.
    LostAnswer,
    /// A process sleeps through its lease.
    Pause,
}

impl Scene {
    /// A scene with one duplicate and these faults, and a bank whose answer to a close means nothing.
    #[must_use]
    pub fn of(opening: Opening, faults: Faults) -> Self {
        let (crashes, losses, pauses) = match faults {
            Faults::None => (0, 0, 0),
            Faults::Crash => (1, 0, 0),
            Faults::LostAnswer => (0, 1, 0),
            Faults::Pause => (0, 0, 1),
        };
        let line = Line::ClosesOnPaper;
        Self { opening, crashes, losses, pauses, duplicates: 1, line }
    }
}

/// What an exploration found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explored {
    /// States that were met.
    pub states: u64,
    /// Steps from one state to another.
    pub steps: u64,
    /// States in which everything had come to rest.
    pub rests: u64,
    /// What came about, and in how many states.
    pub sometimes: BTreeMap<&'static str, u64>,
    /// What does not hold, and the choices that led there.
    pub violation: Option<(String, Vec<String>)>,
}

/// Plays every interleaving of a scene; ends at the first violation.
///
/// # Panics
/// Where a run does not end, or an operation of the engine panics.
#[must_use]
pub fn explore(scene: &Scene) -> Explored {
    let start = Start::new(scene);
    let mut explored = Explored::default();
    let mut met: HashSet<u64> = HashSet::new();
    let mut path: Vec<Branch> = Vec::new();
    loop {
        let mut stage = reach(&start, &path);
        go_on(&mut stage, &mut path, &mut met, &mut explored);
        if explored.violation.is_some() || !to_the_next(&mut path) {
            return explored;
        }
    }
}

/// Choices at one state, and which of them is being played.
struct Branch {
    choices: Vec<Choice>,
    taken: usize,
    /// The state itself, where nobody was under way.
    moment: Option<Moment>,
}

impl Branch {
    fn choice(&self) -> Choice {
        self.choices[self.taken]
    }
}

/// The state at the end of a path.
fn reach<'a>(start: &'a Start, path: &[Branch]) -> Stage<'a> {
    let known = path.iter().rposition(|branch| branch.moment.is_some());
    let moment = known.and_then(|place| path[place].moment.as_ref());
    let mut stage = Stage::at(start, moment.unwrap_or(start.moment()));
    for branch in &path[known.unwrap_or(0)..] {
        stage.play(branch.choice());
    }
    stage
}

/// Goes on with the first choice of each new state until a known one is met, or nothing is left to choose.
fn go_on(stage: &mut Stage<'_>, path: &mut Vec<Branch>, met: &mut HashSet<u64>, explored: &mut Explored) {
    loop {
        assert!(path.len() < CHOICES_LIMIT, "a run does not end: {:?}", names(path));
        explored.steps += 1;
        if !met.insert(stage.digest()) {
            return;
        }
        explored.states += 1;
        assert!(explored.states < STATES_LIMIT, "a scene does not end: {explored:?}");
        stage.count(&mut explored.sometimes);
        if let Some(violation) = stage.violation() {
            explored.violation = Some((violation, names(path)));
            return;
        }
        explored.rests += u64::from(stage.is_at_rest());
        let choices = stage.choices();
        let Some(first) = choices.first().copied() else { return };
        path.push(Branch { choices, taken: 0, moment: stage.moment() });
        stage.play(first);
    }
}

/// The next choice that was not played yet, at the deepest state that has one.
fn to_the_next(path: &mut Vec<Branch>) -> bool {
    while let Some(last) = path.last_mut() {
        last.taken += 1;
        if last.taken < last.choices.len() {
            return true;
        }
        path.pop();
    }
    false
}

fn names(path: &[Branch]) -> Vec<String> {
    path.iter().map(|branch| format!("{:?}", branch.choice())).collect()
}
