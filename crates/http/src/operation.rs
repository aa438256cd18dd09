//! Running the engine's operations on behalf of a request.
//!
//! Invariant: a client that hangs up, and a request that runs out of time, cancel nothing: the operation runs in a
//! task of its own and the request only waits for it. Reads that the store answers at once need no task, and the
//! gate has one already.

use std::future::Future;

use onceward_domain::error::{Code, Error};
use tracing::{Instrument, error};

use crate::edge::panic_text;
use crate::problem::{self, Problem};

/// Runs an operation to its end, whoever still waits for it.
///
/// # Errors
/// The operation's own; a panic is a defect, and a runtime that stops leaves the outcome unknown.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::spawn(work.in_current_span()).await {
        Ok(result) => result.map_err(Problem::from),
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => {
                error!(panic = panic_text(&*panic), "an operation panicked");
                Err(Problem::of(&problem::BUG))
            }
            Err(_cancelled) => Err(Problem::code(Code::OutcomeUnknown)),
        },
    }
}
