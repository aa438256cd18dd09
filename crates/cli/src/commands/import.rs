//! `onceward import`: puts a stream of `onceward export` from stdin into an empty store.
//!
//! Invariants: it is one transaction, so a kill in the middle of it leaves an empty store and a repeat finishes it; what is no
//! dump, is cut off, was changed, is of another version or of a store with another secret is refused, and nothing is changed. Where
//! everything is in and only the look at it failed, or where nobody knows whether it is in, that is what is said.
//! Read next: [`onceward::dump_file`].

use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use onceward::dump_file::{DumpReader, GatePlace};
use onceward_domain::audit;
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::ports::archive::Source;
use onceward_postgres::Tenure;
use serde::Serialize;

use crate::api_keys::hex;
use crate::data_dir;
use crate::failure::Failure;
use crate::moving::{Hold, Marked, Shown, name_of};
use crate::output::{self, Format};
use crate::secret;
use crate::settings::{Flags, Settings, StorePlace};
use crate::wiring;

/// Bytes of stdin that are read at once.
const READ_AT_ONCE: usize = 1 << 20;

/// The arguments of `import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The data folder, with the secret of the store that was exported
    /// [default: ./onceward-data]
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
    skus: usize,
    invariants_hold: bool,
    broken: Vec<String>,
}

/// Imports, and says whether the invariants hold.
///
/// # Errors
/// When the stream or the store is not as it must be: then nothing was changed. An outcome that is unknown says so, and that
/// everything is in where only the look at it failed.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let flags = Flags { data: arguments.data.clone(), ..Flags::default() };
    let settings = Settings::load(arguments.config.as_deref(), &flags)?;
    let runtime =
        tokio::runtime::Runtime::new().map_err(|cause| Failure::other("starting the runtime", cause))?;
    let report = runtime.block_on(import(&settings))?;
    match Format::of(arguments.json) {
        Format::Json => output::json(&report)?,
        Format::Text => output::data(|out| {
            writeln!(out, "everything is in {}: {} SKUs", report.store, report.skus)?;
            match report.broken.as_slice() {
                [] => writeln!(out, "every invariant holds"),
                broken => broken.iter().try_for_each(|one| writeln!(out, "does not hold: {one}")),
            }
        })?,
    }
    if report.invariants_hold { Ok(()) } else { Err(Failure::Reported) }
}

async fn import(settings: &Settings) -> Result<Report, Failure> {
    let reader = DumpReader::open(BufReader::with_capacity(READ_AT_ONCE, io::stdin()))?;
    let files = secret::Files::of(settings)?;
    let mark = files.mark_of_known()?;
    if reader.about().secret != hex(&mark) {
        return Err(files.foreign_dump());
    }
    if reader.about().gate == GatePlace::Redis && settings.redis()?.is_none() {
        return Err(Failure::Usage(
            "the gate of this store lay in Redis, and is made again there only: set redis_url".to_owned(),
        ));
    }
    let place = settings.store_place()?;
    let source = Shown::new(reader);
    if let StorePlace::File(_) = place {
        data_dir::make(&settings.data)?;
    }
    // Held until the look is over, so that what is looked at is what was put in.
    let hold = Hold::take(&place).await?;
    match &hold {
        Hold::File { path, .. } => restore_file(&hold, path, Box::new(source)).await,
        Hold::Server { .. } => restore(&hold, Box::new(Marked::new(source, mark))).await,
    }?;
    look(settings, &files, &hold, &place).await.map_err(|cause| unseen(name_of(&place), &cause))
}

async fn restore(hold: &Hold, source: Box<dyn Source>) -> Result<(), Failure> {
    hold.archive().restore(source).await.map_err(perhaps)
}

/// Judges what was put in, while nobody else could come to it.
async fn look(
    settings: &Settings,
    files: &secret::Files,
    hold: &Hold,
    place: &StorePlace,
) -> Result<Report, Failure> {
    let report = judge(settings, files, place).await?;
    hold.check().await?;
    Ok(report)
}

/// A restore that came to nothing; one whose end nobody knows says how to find out (DR-02).
fn perhaps(error: Error) -> Failure {
    match error.class() {
        Class::UnknownOutcome => Failure::Engine(Error::new(
            error.code(),
            format!(
                "{}. Either all of it is in, or nothing is: import again, and where the store is then said not to be empty, all of \
                 it is in",
                error.operator_text()
            ),
        )),
        Class::Rejected | Class::Conflict | Class::Retryable | Class::Manual => Failure::Engine(error),
    }
}

/// Everything is in: whatever kept us from looking at it, a repeat of the import would be wrong, so a person goes on.
fn unseen(store: &str, cause: &Failure) -> Failure {
    Failure::Engine(Error::new(
        Code::ConstraintViolated,
        format!(
            "everything is in {store}, but it could not be looked at afterwards: {cause}. Do not import again: mend that, start a node, \
             and see whether the invariants hold in its overview"
        ),
    ))
}

/// A file that is made for a restore which comes to nothing is taken away again.
async fn restore_file(hold: &Hold, path: &Path, source: Box<dyn Source>) -> Result<(), Failure> {
    let was_there = path.exists();
    data_dir::make_private(path)?;
    let restored = restore(hold, source).await;
    if restored.is_err() && !was_there {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        for file in [path.to_path_buf(), beside("-wal"), beside("-shm")] {
            // What cannot be taken away is an empty store, into which a repeat can import.
            drop(fs::remove_file(file));
        }
    }
    restored
}

/// Opens what was restored, as a node would, and looks at it.
async fn judge(settings: &Settings, files: &secret::Files, place: &StorePlace) -> Result<Report, Failure> {
    let (store, ports) = wiring::open_ports(settings, files, Tenure::Held).await?;
    let tally = ports.store.tally().await?;
    drop(ports);
    tokio::task::spawn_blocking(move || store.close())
        .await
        .map_err(|cause| Failure::other("closing the store", cause))?;
    let broken = audit::judge(&tally).into_iter().filter(|check| !check.holds);
    let broken: Vec<String> = broken.map(|check| format!("{}: {}", check.name, check.detail)).collect();
    Ok(Report { store: name_of(place), skus: tally.skus.len(), invariants_hold: broken.is_empty(), broken })
}

#[cfg(test)]
mod tests {
    //! What is said, and with which exit code, where an import did not simply come to nothing.

    use super::*;

    #[test]
    fn dr_02_an_import_says_whether_a_repeat_is_the_next_step() {
        let table = [
            (perhaps(Error::new(Code::Unavailable, "nobody is there")), 12, "nobody is there"),
            (perhaps(Error::new(Code::OutcomeUnknown, "no answer")), 13, "no answer. Either all of it is in"),
            (
                unseen("PostgreSQL", &Failure::Other("no session".to_owned())),
                14,
                "everything is in PostgreSQL",
            ),
            (unseen("SQLite", &perhaps(Error::new(Code::Unavailable, "locked"))), 14, "Do not import again"),
        ];
        for (failure, exit_code, said) in table {
            assert_eq!(failure.exit_code(), exit_code, "{failure}");
            assert!(failure.to_string().contains(said), "{failure}");
        }
    }
}
