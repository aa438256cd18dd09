//! `onceward export`: everything of a store as a stream on stdout, for `onceward import`.
//!
//! Invariants: nothing is changed; the store is held from the look at what lies outside of it until the dump is written, and
//! without its last line a dump is none; what lies outside of the store is at rest, or the export is refused. The secret is never
//! in it, only its mark. Read next: [`crate::moving`], [`onceward::dump_file`].

use std::io::{self, BufWriter, IsTerminal as _};
use std::path::PathBuf;

use onceward::dump_file::{About, Counts, DumpWriter, GatePlace};
use onceward_domain::audit::{gate_elsewhere_has_heard, gate_is_at_rest};
use onceward_domain::error::{Code, Error};
use onceward_postgres::Tenure;
use serde::Serialize;

use crate::api_keys::hex;
use crate::failure::Failure;
use crate::moving::{Hold, Shown, name_of};
use crate::output::{self, Format};
use crate::secret;
use crate::settings::{Flags, Settings, StorePlace};
use crate::wiring::{self, Opened, Sandbox};

/// The arguments of `export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The data folder [default: ./onceward-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A settings file (TOML)
    #[arg(long, value_name = "FILE", env = "ONCEWARD_CONFIG")]
    config: Option<PathBuf>,
    /// Say what was done as one JSON object, on stderr
    #[arg(long)]
    json: bool,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report<'a> {
    store: &'static str,
    total: u64,
    #[serde(flatten)]
    counts: &'a Counts,
}

/// Exports, and says what it came to.
///
/// # Errors
/// When the store is in use, cannot be had, is of another version, or something outside of it is not at rest.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let flags = Flags { data: arguments.data.clone(), ..Flags::default() };
    let settings = Settings::load(arguments.config.as_deref(), &flags)?;
    if io::stdout().is_terminal() {
        return Err(Failure::Usage("the export goes to standard output: onceward export > FILE".to_owned()));
    }
    let runtime =
        tokio::runtime::Runtime::new().map_err(|cause| Failure::other("starting the runtime", cause))?;
    let place = settings.store_place()?;
    let counts = runtime.block_on(export(&settings, &place))?;
    let report = Report { store: name_of(&place), total: counts.total(), counts: &counts };
    match Format::of(arguments.json) {
        Format::Json => {
            let text = serde_json::to_string(&report).map_err(|cause| Failure::other("telling it", cause))?;
            output::note(&text);
        }
        Format::Text => {
            output::note(&format!("exported {} rows from {}; not in it:", report.total, report.store));
            output::note(&format!("  the secret, {}: it must go along", settings.secret_path().display()));
            output::note("  API keys and the sandbox bank, which are files beside it");
        }
    }
    Ok(())
}

async fn export(settings: &Settings, place: &StorePlace) -> Result<Counts, Failure> {
    if let StorePlace::File(path) = place
        && !path.exists()
    {
        return Err(Failure::Usage(format!("there is no store at {}", path.display())));
    }
    let files = secret::Files::of(settings)?;
    let mark = files.mark_of_known()?;
    let has_redis = settings.redis()?.is_some();
    // Dropped last.
    let hold = Hold::take(place).await?;
    let opened = open(settings, place).await?;
    if let Some(opened) = &opened {
        require_rest(opened, has_redis).await?;
    }
    let about = About {
        secret: hex(&mark),
        gate: if has_redis { GatePlace::Redis } else { GatePlace::Store },
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let writer = DumpWriter::begin(BufWriter::new(io::stdout()), about)?;
    hold.archive().dump(Box::new(Shown::new(writer.clone()))).await?;
    let counts = writer.end()?;
    if let Some(opened) = opened {
        tokio::task::spawn_blocking(move || opened.close())
            .await
            .map_err(|cause| Failure::other("closing the store", cause))?;
    }
    Ok(counts)
}

/// What looks at the rest; none where all of it is in the file.
async fn open(settings: &Settings, place: &StorePlace) -> Result<Option<Opened>, Failure> {
    let has_others_outside = settings.redis()?.is_some() || settings.broker()?.is_some();
    if matches!(place, StorePlace::File(_)) && !has_others_outside {
        return Ok(None);
    }
    wiring::open_under(settings, Sandbox::Absent, Tenure::Held).await.map(Some)
}

/// What only Redis or a broker knows is not in the store: it must have come there first.
async fn require_rest(opened: &Opened, has_redis: bool) -> Result<(), Failure> {
    let engine = &opened.engine;
    let has_broker = opened.broker.is_some();
    if !has_redis && !has_broker {
        return Ok(());
    }
    let tally = engine.store().tally().await?;
    if !has_redis {
        return if gate_is_at_rest(&tally) { Ok(()) } else { Err(on_their_way()) };
    }
    let unsent = engine.admission().unsent(0).await?;
    let (mut open, mut has_heard) = (0, true);
    for one in &tally.skus {
        if let Some(gate) = engine.admission().counters(one.sku.key.clone()).await? {
            open += gate.open_reserved;
            has_heard &= gate_elsewhere_has_heard(one, &gate);
        }
    }
    if unsent.reservations > 0 || open > 0 {
        return Err(not_now(format!("{open} units are reserved in Redis and have no order yet")));
    }
    // Without a broker events are in the store, and go along.
    if has_broker && !has_heard { Err(on_their_way()) } else { Ok(()) }
}

fn on_their_way() -> Failure {
    not_now("reservations or events are still on their way through the broker".to_owned())
}

fn not_now(what: String) -> Failure {
    let advice = "let the nodes finish while nobody is let in, then stop them and export again";
    Failure::Engine(Error::new(Code::Unavailable, format!("{what}: {advice}")))
}
