//! The front of the credit ledger: jobs are opened and heard of in batches, so that one busy account is loaded, decided on
//! and written once for hundreds of them.
//!
//! Invariants: each command is answered as if it had come alone; a command that breaks a constraint takes nothing else with
//! it. Read next: `front`, [`onceward_domain::decide::job`].

use onceward_domain::decide::job::{self, Command, Outcome};
use onceward_domain::error::{Class, Code, Error};

use crate::engine::Engine;
use crate::execute::execute;
use crate::front::{Answers, BATCHES_IN_FLIGHT, Batching, Front};

/// A handle to the front of the ledger.
#[derive(Clone)]
pub struct Ledger {
    front: Front<Command, Outcome>,
}

impl Ledger {
    /// Opens the front; its task ends when the last handle is gone.
    #[must_use]
    pub fn open(engine: Engine) -> Self {
        let limit = engine.settings().credit_batch;
        let decide = |engine, commands| -> Answers<Outcome> { Box::pin(decide(engine, commands)) };
        Self {
            front: Front::open(
                engine,
                Batching {
                    doing: "deciding on jobs",
                    limit,
                    in_flight: BATCHES_IN_FLIGHT,
                    part: None,
                    decide,
                },
            ),
        }
    }

    /// Opens a job, or hears of one.
    ///
    /// # Errors
    /// [`Code::Backlog`] when too many wait; [`Code::NotFound`], [`Code::Differs`], [`Code::InsufficientCredit`],
    /// [`Code::LeaseLost`] (the ledger has taken what was true); the store's.
    pub async fn ask(&self, command: Command) -> Result<Outcome, Error> {
        match self.front.ask(command).await? {
            Outcome::LeaseLost(job) => {
                Err(Error::new(Code::LeaseLost, format!("hearing of job {} from a former holder", job.id)))
            }
            heard @ (Outcome::Opened(_) | Outcome::Heard(_)) => Ok(heard),
        }
    }
}

async fn decide(engine: Engine, commands: Vec<Command>) -> Vec<Result<Outcome, Error>> {
    let policy = engine.settings().job_retry;
    let batch = commands.clone();
    let need = job::need_of_commands(&commands);
    let decided = execute(&engine, "jobs", need, move |facts| Ok(job::decide(facts, &policy, &batch))).await;
    match decided {
        Ok(outcomes) => outcomes,
        Err(error) if error.class() == Class::Manual && commands.len() > 1 => {
            // One of them meets a defect; halving finds it.
            let mut first = commands;
            let second = first.split_off(first.len() / 2);
            let mut outcomes = Box::pin(decide(engine.clone(), first)).await;
            outcomes.extend(Box::pin(decide(engine, second)).await);
            outcomes
        }
        Err(error) => {
            tracing::warn!(target: "onceward", event = "jobs.failed", error = ?error);
            commands.iter().map(|_| Err(Error::new(error.code(), error.operator_text()))).collect()
        }
    }
}
