//! doctor.

use crate::failure::Failure;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Result<(), Failure> {
    Ok(())
}
