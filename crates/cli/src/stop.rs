//! When a server is to stop: the first word drains it, a second one ends it at once.
//!
//! Invariants: signals are caught from before the server is ready; two words are all that there are, and what comes at once after the
//! first is the same word, because a terminal and a process manager may both say it. That standard input has ended is a first word only,
//! for the same reason. A server that is ended at once leaves what is in hand to the next
//! start, as a kill does.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::output;

/// Words after which nothing is left to be said.
const WORDS_LIMIT: u32 = 2;
/// What comes so soon after the first word is still the first.
const SAME_WORD: Duration = Duration::from_secs(1);

/// What was said so far.
#[derive(Clone)]
pub(crate) struct Stop {
    said: watch::Receiver<u32>,
}

impl Stop {
    /// Listens from now on, on the present tokio runtime.
    ///
    /// # Errors
    /// Where signals cannot be caught.
    pub(crate) fn listen(until_stdin_ends: bool) -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|cause| Failure::other("catching signals", cause));
        let signals = [catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?];
        let (words, said) = watch::channel(0);
        tokio::spawn(hear(signals, until_stdin_ends, words));
        Ok(Self { said })
    }

    /// Waits for the first word.
    pub(crate) async fn first(mut self) {
        self.said_often(1).await;
    }

    /// Waits for the second word.
    pub(crate) async fn second(mut self) {
        self.said_often(WORDS_LIMIT).await;
    }

    async fn said_often(&mut self, times: u32) {
        // Whoever counts goes away with the last word, or with the runtime.
        drop(self.said.wait_for(|said| *said >= times).await);
    }
}

async fn hear(
    [mut terminate, mut interrupt]: [Signal; 2],
    until_stdin_ends: bool,
    words: watch::Sender<u32>,
) {
    let stdin = async {
        if until_stdin_ends {
            let reading = || std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            drop(tokio::task::spawn_blocking(reading).await);
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::pin!(stdin);
    let mut first: Option<Instant> = None;
    while *words.borrow() < WORDS_LIMIT {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = &mut stdin, if first.is_none() => {}
        }
        if first.is_none_or(|first| first.elapsed() > SAME_WORD) {
            first.get_or_insert_with(Instant::now);
            words.send_modify(|times| *times += 1);
            if *words.borrow() < WORDS_LIMIT {
                output::note("stopping: what is in hand is ended first; once more, and it ends at once");
            }
        }
    }
}
