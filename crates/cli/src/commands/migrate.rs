//! `onceward migrate`: brings a store's tables to the version of this program.
//!
//! Invariants: a repeat changes nothing; tables of a newer version are refused. A file is migrated by whoever opens it, with
//! a copy beside it; a server, which several nodes share, only by this command. Deliberately absent: a way back.

use std::path::PathBuf;

use serde::Serialize;

use crate::data_dir;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::settings::{Flags, Settings, StorePlace};
use crate::wiring;

/// The arguments of `migrate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The data folder [default: ./onceward-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A settings file (TOML)
    #[arg(long, value_name = "FILE", env = "ONCEWARD_CONFIG")]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    store: &'static str,
    /// The version before, where it is known.
    from: Option<u32>,
    /// The version after.
    to: Option<u32>,
    /// The copy of a file from before.
    copy: Option<PathBuf>,
}

/// Migrates, and says from which version to which.
///
/// # Errors
/// When the store cannot be had, or is of a newer version.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let flags = Flags { data: arguments.data.clone(), ..Flags::default() };
    let settings = Settings::load(arguments.config.as_deref(), &flags)?;
    let report = match settings.store_place()? {
        StorePlace::Server(url) => {
            let runtime = tokio::runtime::Runtime::new()
                .map_err(|cause| Failure::other("starting the runtime", cause))?;
            let migrated = runtime.block_on(onceward_postgres::migrate(&url))?;
            Report { store: "PostgreSQL", from: Some(migrated.from), to: Some(migrated.to), copy: None }
        }
        StorePlace::File(path) => {
            data_dir::make(&settings.data)?;
            let _lock = data_dir::lock(&path)?;
            let store = wiring::open_store(&path)?;
            let copy = store.backup().map(ToOwned::to_owned);
            store.close();
            Report { store: "SQLite", from: None, to: None, copy }
        }
    };
    match Format::of(arguments.json) {
        Format::Json => output::json(&report),
        Format::Text => output::data(|out| match (&report.from, &report.to, &report.copy) {
            (Some(from), Some(to), _) if from == to => writeln!(out, "{} is of version {to}", report.store),
            (Some(from), Some(to), _) => {
                writeln!(out, "{} was migrated from version {from} to {to}", report.store)
            }
            (_, _, Some(copy)) => {
                writeln!(out, "{} was migrated; its copy from before is {}", report.store, copy.display())
            }
            _ => writeln!(out, "{} is of this version", report.store),
        }),
    }
}
