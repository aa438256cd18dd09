//! A place of one test.
//!
//! Invariant: what a place has made it removes, also where the test fails. Read next: `servers.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward::Ports;
use onceward_domain::ports::clock::{Clock, Ids};
use onceward_sqlite::{OpenOptions, SqliteStore};

use crate::Mode;
#[cfg(feature = "real-services")]
use crate::servers::{Cluster, Schema};

/// Where one test's engine keeps what it knows.
pub struct Place {
    folder: Folder,
    kind: Kind,
}

enum Kind {
    Embedded,
    #[cfg(feature = "real-services")]
    Postgres(Schema),
    #[cfg(feature = "real-services")]
    Cluster(Schema, Box<Cluster>),
}

impl Place {
    /// A fresh place of this mode. Must be called inside a Tokio runtime, which the servers' adapters use from then on.
    ///
    /// # Panics
    /// Where a server that the mode needs is missing.
    pub async fn open(mode: Mode) -> Self {
        let kind = match mode {
            Mode::Embedded => Kind::Embedded,
            #[cfg(feature = "real-services")]
            Mode::Postgres => Kind::Postgres(Schema::make().await),
            #[cfg(feature = "real-services")]
            Mode::Cluster => Kind::Cluster(Schema::make().await, Box::new(Cluster::make().await)),
        };
        Self { folder: Folder::new(), kind }
    }

    /// The ports of an engine here; said twice, those of a second node. Time is this clock's.
    ///
    /// # Panics
    /// Where they cannot be opened.
    pub async fn ports(&self, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Ports {
        match &self.kind {
            Kind::Embedded => {
                let path = self.folder.path().join("onceward.db");
                let store = SqliteStore::open(OpenOptions::new(path, clock)).expect("the store opens");
                Ports::embedded(Arc::new(store), ids)
            }
            #[cfg(feature = "real-services")]
            Kind::Postgres(schema) => Ports::store_backed(schema.open(clock).await, ids),
            #[cfg(feature = "real-services")]
            Kind::Cluster(schema, cluster) => {
                let ports = Ports::store_backed(schema.open(clock.clone()).await, ids);
                cluster.lend(ports, clock)
            }
        }
    }

    /// How many messages were given to a broker and have had no end yet. A bus in the store says itself when something comes.
    #[must_use]
    pub fn on_its_way(&self) -> usize {
        match &self.kind {
            Kind::Embedded => 0,
            #[cfg(feature = "real-services")]
            Kind::Postgres(_) => 0,
            #[cfg(feature = "real-services")]
            Kind::Cluster(_, cluster) => cluster.on_its_way(),
        }
    }

    /// What a server's process finds in its environment, so that it lives here.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        match &self.kind {
            Kind::Embedded => Vec::new(),
            #[cfg(feature = "real-services")]
            Kind::Postgres(schema) => vec![("ONCEWARD_STORE_URL", schema.url().to_owned())],
            #[cfg(feature = "real-services")]
            Kind::Cluster(schema, cluster) => [("ONCEWARD_STORE_URL", schema.url().to_owned())]
                .into_iter()
                .chain(cluster.environment())
                .collect(),
        }
    }

    /// A folder that is gone with the place.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onceward-place-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
