//! Readers: a few threads, each with a read-only connection, that answer questions from snapshots.
//!
//! Invariants: a question is answered from one snapshot, which has everything that was answered before the question
//! was asked; the queue has a limit, and whoever asks waits for a place in it; a panic takes one question, not the
//! thread. Deliberately absent: locks. Readers and the writer do not wait for each other.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use onceward_domain::error::{Code, Error};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::failure::{defect, failed};
use crate::refs::Refs;
use crate::remembered::Remembered;

/// So many questions may wait. A reader answers thousands a second, so a full queue is a wait of a moment.
const WAITING_QUESTIONS: usize = 1024;

/// A read-only connection and what it remembers.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) conn: Connection,
    pub(crate) refs: Refs,
    pub(crate) remembered: Remembered,
}

type Question = Box<dyn FnOnce(&mut Reader) + Send>;

/// The threads and their queue.
pub(crate) struct Readers {
    queue: Mutex<Option<mpsc::Sender<Question>>>,
    closing: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Readers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Readers").finish_non_exhaustive()
    }
}

impl Readers {
    /// Starts one thread for each connection.
    pub(crate) fn start(connections: Vec<Connection>) -> Result<Self, Error> {
        let (queue, questions) = mpsc::channel::<Question>(WAITING_QUESTIONS);
        let questions = Arc::new(Mutex::new(questions));
        let closing = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::with_capacity(connections.len());
        for (number, conn) in connections.into_iter().enumerate() {
            let questions = Arc::clone(&questions);
            let asked_to_close = Arc::clone(&closing);
            let mut reader = Reader { conn, refs: Refs::default(), remembered: Remembered::default() };
            let answer_all = move || {
                while let Some(question) = next(&questions) {
                    question(&mut reader);
                    if asked_to_close.load(Ordering::Acquire) {
                        // Who waits for a place in a full queue is refused, or the threads would wait for them.
                        questions.lock().unwrap_or_else(PoisonError::into_inner).close();
                    }
                }
            };
            let started = thread::Builder::new().name(format!("sqlite-reader-{number}")).spawn(answer_all);
            threads.push(started.map_err(|cause| {
                Error::new(Code::Unavailable, format!("starting a reader: {cause}")).because(cause)
            })?);
        }
        Ok(Self { queue: Mutex::new(Some(queue)), closing, threads: Mutex::new(threads) })
    }

    /// Asks a question in one snapshot.
    pub(crate) async fn ask<T, F>(&self, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Reader) -> Result<T, Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let boxed: Question = Box::new(move |reader| {
            // Whoever asked may have gone away: then nobody needs the answer.
            let _ = answer.send(in_snapshot(reader, question));
        });
        let closed = || Error::new(Code::Unavailable, "the store is closed");
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        queue.ok_or_else(closed)?.send(boxed).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Answers what waits, then ends the threads.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that ended by a panic has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn next(questions: &Mutex<mpsc::Receiver<Question>>) -> Option<Question> {
    questions.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}

fn in_snapshot<T>(
    reader: &mut Reader,
    question: impl FnOnce(&mut Reader) -> Result<T, Error>,
) -> Result<T, Error> {
    reader.conn.execute_batch("BEGIN DEFERRED").map_err(failed("beginning to read"))?;
    let answer = catch_unwind(AssertUnwindSafe(|| question(reader)));
    let ended = reader.conn.execute_batch("ROLLBACK").map_err(failed("ending to read"));
    let answer = answer.unwrap_or_else(|panic| Err(panicked("a reader", panic.as_ref())));
    answer.and_then(|answer| ended.map(|()| answer))
}

/// A panic as an error, with its message for the operator.
pub(crate) fn panicked(what: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    defect(format!("{what} panicked: {text}"))
}
