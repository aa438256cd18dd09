//! The ports: everything the engine needs from outside, as traits over batches.
//!
//! Invariants: an answer that was lost is an error of class `UnknownOutcome`, never a guess; every method may be
//! repeated with the same ids. Each port has one conformance suite that every adapter passes. Deliberately
//! absent: an async runtime — answers are plain boxed futures, so that a simulator can drive them step by step.

use std::future::Future;
use std::pin::Pin;

use crate::error::Error;

pub mod admission;
pub mod archive;
pub mod bus;
pub mod clock;
pub mod deadline;
pub mod due_queue;
pub mod notifier;
pub mod provider;
pub mod sandbox;
pub mod store;

/// A future answer of a port.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
