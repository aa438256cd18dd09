//! Puts an engine together from its adapters: the only place that picks them.
//!
//! Invariants: the lock is taken before the store is opened and given back after it is closed; the secret is there
//! and is the right one before the first id is derived, and it is on disk before there is a store that needs it.
//! Deliberately absent: anything that runs; starting roles is the caller's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceward::{Engine, Ports, Settings as EngineSettings};
use onceward_domain::derive::KeyRing;
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::provider::Provider;
use onceward_providers::sandbox::{Bank, BankOptions, SandboxProvider, Signer};
use onceward_sqlite::{OpenOptions, SqliteStore};

use crate::data_dir::{self, Lock};
use crate::failure::Failure;
use crate::output;
use crate::secret;
use crate::settings::Settings;
use crate::time::{SystemClock, SystemIds};

/// The sandbox bank's journal inside the data folder.
const BANK_FILE: &str = "sandbox-bank.jsonl";
/// The secret that the sandbox bank signs its callbacks with.
const BANK_SECRET_FILE: &str = "sandbox-secret";

/// Whether the built-in bank is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// Payments may go to it, and `/sandbox` plays it.
    Enabled,
    /// There is no such provider.
    Absent,
}

/// An engine over an open store. Fields are dropped in this order: the lock last.
pub(crate) struct Opened {
    /// The engine; nothing of it runs yet.
    pub(crate) engine: Engine,
    /// The store, for closing it.
    pub(crate) store: Arc<SqliteStore>,
    /// The sandbox bank, where it is enabled.
    pub(crate) bank: Option<Bank>,
    _lock: Lock,
}

/// Opens the store of these settings for this process alone.
///
/// # Errors
/// When the folder, the secret or the store cannot be had.
pub(crate) fn open(settings: &Settings, sandbox: Sandbox) -> Result<Opened, Failure> {
    data_dir::make(&settings.data)?;
    let path = settings.store_path()?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        data_dir::make(folder)?;
    }
    let lock = data_dir::lock(&path)?;
    let keys = secret::Files::of(settings)?.key_ring()?;
    let store = open_store(&path)?;
    if let Some(copy) = store.backup() {
        output::note(&format!("the store was migrated; its copy from before is {}", copy.display()));
    }
    let engine_settings = EngineSettings {
        lease: settings.lease(),
        provider_lease: settings.provider_lease(),
        ..EngineSettings::default()
    };
    let bank = match sandbox {
        Sandbox::Enabled => Some(open_bank(settings)?),
        Sandbox::Absent => None,
    };
    let providers = bank.iter().map(|bank| Arc::new(SandboxProvider::new(bank.clone())) as _).collect();
    let engine = engine(&store, keys, engine_settings, providers);
    Ok(Opened { engine, store, bank, _lock: lock })
}

/// Opens a store's file.
///
/// # Errors
/// When it cannot be opened, or is not a store of this version.
pub(crate) fn open_store(path: &Path) -> Result<Arc<SqliteStore>, Failure> {
    // SQLite would make it readable for everybody; its log takes the mode of the file.
    data_dir::make_private(path)?;
    Ok(Arc::new(SqliteStore::open(OpenOptions::new(path, clock()))?))
}

/// The bank keeps its own truth beside the store, under the store's lock, so that one process has both.
fn open_bank(settings: &Settings) -> Result<Bank, Failure> {
    let secret = data_dir::secret(&settings.data.join(BANK_SECRET_FILE))?;
    bank_at(&bank_path(settings), &secret, settings)
}

/// The sandbox bank's journal.
pub(crate) fn bank_path(settings: &Settings) -> PathBuf {
    settings.data.join(BANK_FILE)
}

/// A bank over this journal, which is mended where a kill has torn its last line.
///
/// # Errors
/// When the journal cannot be had or is damaged.
pub(crate) fn bank_at(path: &Path, secret: &[u8], settings: &Settings) -> Result<Bank, Failure> {
    let options =
        BankOptions { signer: Signer::new(secret), clock: clock(), timeout: settings.provider_timeout() };
    Bank::open(path, options).map_err(|cause| Failure::file("opening the sandbox bank", path, &cause))
}

/// An engine whose gate and transport live in the store.
fn engine(
    store: &Arc<SqliteStore>,
    keys: KeyRing,
    settings: EngineSettings,
    providers: Vec<Arc<dyn Provider>>,
) -> Engine {
    let ports = Ports::store_backed(Arc::clone(store) as _, Arc::new(SystemIds));
    Engine::new(ports.with_providers(providers), keys, settings)
}

/// The machine's clock, as the port.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}
