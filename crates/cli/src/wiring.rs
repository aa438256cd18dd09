//! Puts an engine together from its adapters: the only place that picks them.
//!
//! Invariants: the lock is taken before the store is opened and given back after it is closed; the secret is there
//! before the first id is derived. Deliberately absent: anything that runs; starting roles is the caller's.

use std::path::Path;
use std::sync::Arc;

use onceward::{Engine, Ports, Settings as EngineSettings};
use onceward_domain::derive::KeyRing;
use onceward_domain::ports::clock::Clock;
use onceward_sqlite::{OpenOptions, SqliteStore};

use crate::data_dir::{self, Lock};
use crate::failure::Failure;
use crate::output;
use crate::settings::Settings;
use crate::time::{SystemClock, SystemIds};

/// Version of the one secret that this build keeps; a second one would carry the next number.
const KEY_VERSION: u8 = 1;

/// An engine over an open store. Fields are dropped in this order: the lock last.
pub(crate) struct Opened {
    /// The engine; nothing of it runs yet.
    pub(crate) engine: Engine,
    /// The store, for closing it.
    pub(crate) store: Arc<SqliteStore>,
    _lock: Lock,
}

/// Opens the store of these settings for this process alone.
///
/// # Errors
/// When the folder, the secret or the store cannot be had.
pub(crate) fn open(settings: &Settings) -> Result<Opened, Failure> {
    data_dir::make(&settings.data)?;
    let path = settings.store_path()?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        data_dir::make(folder)?;
    }
    let lock = data_dir::lock(&path)?;
    let keys = key_ring(&settings.secret_path())?;
    let store = open_store(&path)?;
    if let Some(copy) = store.backup() {
        output::note(&format!("the store was migrated; its copy from before is {}", copy.display()));
    }
    let engine_settings = EngineSettings { lease: settings.lease(), ..EngineSettings::default() };
    Ok(Opened { engine: engine(&store, keys, engine_settings), store, _lock: lock })
}

/// Opens a store's file.
///
/// # Errors
/// When it cannot be opened, or is not a store of this version.
pub(crate) fn open_store(path: &Path) -> Result<Arc<SqliteStore>, Failure> {
    Ok(Arc::new(SqliteStore::open(OpenOptions::new(path, clock()))?))
}

/// An engine whose gate and transport live in the store.
pub(crate) fn engine(store: &Arc<SqliteStore>, keys: KeyRing, settings: EngineSettings) -> Engine {
    let ports = Ports::store_backed(Arc::clone(store) as _, Arc::new(SystemIds));
    Engine::new(ports, keys, settings)
}

/// The machine's clock, as the port.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

fn key_ring(path: &Path) -> Result<KeyRing, Failure> {
    let secret = data_dir::secret(path)?;
    KeyRing::new(&[(KEY_VERSION, secret)])
        .map_err(|cause| Failure::Other(format!("using the secret in {}: {cause}", path.display())))
}
