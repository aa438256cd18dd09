//! The writer: one thread that carries out works, all that wait in one commit (design.md §8).
//!
//! Invariants: an answer is sent only after the COMMIT that holds its work; a work that fails takes nothing else with
//! it; a panic in a decision is that work's error, and the thread lives on; a work that was taken runs to its end,
//! whether or not somebody still waits for it.
//!
//! A group first runs without savepoints, which cost a copy of every page a work touches. Only where a write fails,
//! which a single writer sees when a lease was lost, is the whole group rolled back and run once more, each work in
//! its own savepoint. Decisions may run more than once, so that is allowed.
//!
//! Deliberately absent: a timer. While one group is synced, the next one gathers. Read next: `load`, `apply`, `due`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::store::Work;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::apply::apply;
use crate::clock::StoreClock;
use crate::due;
use crate::failure::{commit_failed, copy_of, failed};
use crate::load::load;
use crate::readers::panicked;
use crate::refs::Refs;

/// So many works may wait; whoever has one more waits for a place.
const WAITING_WORKS: usize = 1024;

/// So many works are taken into one commit, so that the first of them does not wait for ever.
const WORKS_OF_ONE_COMMIT: usize = 256;

/// What the writer is asked to do.
enum Job {
    /// Load, decide, apply. In a box: a need is large, and queues move their members.
    Work(Box<Work>, Answering<()>),
    /// Claim due members.
    Claim(ClaimRequest, Answering<Vec<Claimed>>),
}

type Answering<T> = oneshot::Sender<Result<T, Error>>;

/// What came of a job, kept until the commit.
enum Outcome {
    Work(Result<(), Error>),
    Claim(Result<Vec<Claimed>, Error>),
}

/// Why a job did not run to its end.
enum Failure {
    /// Nothing was written.
    Clean(Error),
    /// Something may have been written and must be rolled back.
    Dirty(Error),
}

/// The thread and its queue.
pub(crate) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    closing: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(conn: Connection, clock: StoreClock) -> Result<Self, Error> {
        let (queue, mut jobs) = mpsc::channel(WAITING_WORKS);
        let closing = Arc::new(AtomicBool::new(false));
        let asked_to_close = Arc::clone(&closing);
        let mut desk = Desk { conn, refs: Refs::default(), clock };
        let run = move || {
            let mut group = Vec::with_capacity(WORKS_OF_ONE_COMMIT);
            while jobs.blocking_recv_many(&mut group, WORKS_OF_ONE_COMMIT) > 0 {
                desk.carry_out(&mut group);
                if asked_to_close.load(Ordering::Acquire) {
                    // Who waits for a place in a full queue is refused, or the thread would wait for them.
                    jobs.close();
                }
            }
        };
        let started = thread::Builder::new().name("sqlite-writer".to_owned()).spawn(run);
        let thread = started.map_err(|cause| {
            Error::new(Code::Unavailable, format!("starting the writer: {cause}")).because(cause)
        })?;
        Ok(Self { queue: Mutex::new(Some(queue)), closing, thread: Mutex::new(Some(thread)) })
    }

    /// Carries out a work, durably.
    pub(crate) async fn transact(&self, work: Work) -> Result<(), Error> {
        let name = work.name;
        let (answer, answered) = oneshot::channel();
        self.send(Job::Work(Box::new(work), answer)).await?;
        answered.await.map_err(|_| unanswered(name))?
    }

    /// Claims due members, durably.
    pub(crate) async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, Error> {
        let (answer, answered) = oneshot::channel();
        self.send(Job::Claim(request, answer)).await?;
        answered.await.map_err(|_| unanswered("claim"))?
    }

    async fn send(&self, job: Job) -> Result<(), Error> {
        let closed = || Error::new(Code::Unavailable, "the store is closed");
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        queue.ok_or_else(closed)?.send(job).await.map_err(|_| closed())
    }

    /// Carries out what waits, then ends the thread.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread that ended by a panic has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn unanswered(name: &str) -> Error {
    Error::new(Code::OutcomeUnknown, format!("{name}: the writer ended before it answered"))
}

/// The connection that writes, with what it remembers.
struct Desk {
    conn: Connection,
    refs: Refs,
    clock: StoreClock,
}

impl Desk {
    /// Runs a group in one commit and answers every job of it.
    fn carry_out(&mut self, group: &mut Vec<Job>) {
        let outcomes = match self.run_plain(group) {
            Ok(Some(outcomes)) => Ok(outcomes),
            Ok(None) => self.run_apart(group),
            Err(error) => Err(error),
        };
        let committed = outcomes.and_then(|outcomes| self.commit().map(|()| outcomes));
        match committed {
            Ok(outcomes) => {
                for (job, outcome) in group.drain(..).zip(outcomes) {
                    answer(job, outcome);
                }
            }
            Err(error) => {
                self.roll_back();
                for job in group.drain(..) {
                    refuse(job, copy_of(&error));
                }
            }
        }
    }

    /// Runs a group without savepoints. None where one failed after it had begun to write: all is rolled back.
    fn run_plain(&mut self, group: &[Job]) -> Result<Option<Vec<Outcome>>, Error> {
        self.begin()?;
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            match self.run(job) {
                Ok(outcome) => outcomes.push(outcome),
                Err(Failure::Clean(error)) => {
                    self.still_open(&error)?;
                    outcomes.push(failure_of(job, error));
                }
                Err(Failure::Dirty(error)) if group.len() == 1 => {
                    self.roll_back();
                    self.begin()?;
                    outcomes.push(failure_of(job, error));
                }
                Err(Failure::Dirty(_)) => {
                    self.roll_back();
                    return Ok(None);
                }
            }
        }
        Ok(Some(outcomes))
    }

    /// Runs a group with a savepoint for each job, so that one that fails is rolled back alone.
    fn run_apart(&mut self, group: &[Job]) -> Result<Vec<Outcome>, Error> {
        self.begin()?;
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            self.batch("SAVEPOINT work")?;
            let outcome = match self.run(job) {
                Ok(outcome) => outcome,
                Err(Failure::Clean(error) | Failure::Dirty(error)) => {
                    self.still_open(&error)?;
                    self.batch("ROLLBACK TO work")?;
                    self.refs.forget();
                    failure_of(job, error)
                }
            };
            self.batch("RELEASE work")?;
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn run(&mut self, job: &Job) -> Result<Outcome, Failure> {
        let caught = catch_unwind(AssertUnwindSafe(|| match job {
            Job::Work(work, _) => self.run_work(work).map(|()| Outcome::Work(Ok(()))),
            Job::Claim(request, _) => {
                let now = self.clock.now();
                let claimed = due::claim(&self.conn, &mut self.refs, request, now);
                claimed.map(|claimed| Outcome::Claim(Ok(claimed))).map_err(Failure::Dirty)
            }
        }));
        caught.unwrap_or_else(|panic| Err(Failure::Dirty(panicked("the store", panic.as_ref()))))
    }

    fn run_work(&mut self, work: &Work) -> Result<(), Failure> {
        let now = self.clock.now();
        let mut facts = load(&self.conn, &mut self.refs, &work.need, now).map_err(Failure::Clean)?;
        let decided = catch_unwind(AssertUnwindSafe(|| (work.decide)(&mut facts)));
        let changes = decided
            .unwrap_or_else(|panic| Err(panicked(&format!("the decision of {}", work.name), panic.as_ref())))
            .map_err(Failure::Clean)?;
        apply(&self.conn, &mut self.refs, &changes, now).map_err(|error| {
            tracing::debug!(work = work.name, %error, "a work was refused by the store");
            Failure::Dirty(error)
        })
    }

    fn begin(&self) -> Result<(), Error> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn batch(&self, sql: &str) -> Result<(), Error> {
        let doing = failed(sql);
        let mut statement = self.conn.prepare_cached(sql).map_err(&doing)?;
        statement.execute([]).map(|_| ()).map_err(&doing)
    }

    /// Some failures (a full disk, a lost one) roll everything back by themselves: then the whole group is lost.
    fn still_open(&self, error: &Error) -> Result<(), Error> {
        if self.conn.is_autocommit() { Err(copy_of(error)) } else { Ok(()) }
    }

    fn commit(&self) -> Result<(), Error> {
        let committed = self.conn.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        committed.map(|_| ()).map_err(commit_failed)
    }

    fn roll_back(&mut self) {
        self.refs.forget();
        if self.conn.is_autocommit() {
            return;
        }
        if let Err(error) = self.batch("ROLLBACK") {
            // The next BEGIN will say so too, and refuse its group.
            tracing::error!(%error, "a rollback failed");
        }
    }
}

fn failure_of(job: &Job, error: Error) -> Outcome {
    match job {
        Job::Work(..) => Outcome::Work(Err(error)),
        Job::Claim(..) => Outcome::Claim(Err(error)),
    }
}

/// Whoever asked may have gone away; the work is done all the same.
fn answer(job: Job, outcome: Outcome) {
    match (job, outcome) {
        (Job::Work(_, answer), Outcome::Work(result)) => drop(answer.send(result)),
        (Job::Claim(_, answer), Outcome::Claim(result)) => drop(answer.send(result)),
        (Job::Work(_, answer), Outcome::Claim(_)) => drop(answer.send(Err(unanswered("work")))),
        (Job::Claim(_, answer), Outcome::Work(_)) => drop(answer.send(Err(unanswered("claim")))),
    }
}

fn refuse(job: Job, error: Error) {
    let outcome = failure_of(&job, error);
    answer(job, outcome);
}
