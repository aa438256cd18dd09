//! Every promise of the `Store` port, over files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward_domain::ports::store::Store;
use onceward_sqlite::{OpenOptions, SqliteArchive, SqliteStore};
use onceward_testkit::conformance::archive::{self, Place};
use onceward_testkit::conformance::store;

#[test]
fn em_02_the_embedded_store_moves_whole() {
    let folder = Folder::new("archive");
    let number = AtomicU32::new(0);
    archive::run_all(&|clock| {
        let path = folder.path.join(format!("{}.db", number.fetch_add(1, Ordering::Relaxed)));
        let archive = Arc::new(SqliteArchive::new(&path));
        let open = move || {
            let store = SqliteStore::open(OpenOptions::new(&path, clock.clone())).unwrap();
            Arc::new(store) as Arc<dyn Store>
        };
        Place { archive, open: Box::new(open) }
    });
}

#[test]
fn em_02_the_embedded_store_keeps_every_promise() {
    let folder = Folder::new("store");
    let number = AtomicU32::new(0);
    store::run_all(&|clock| {
        let path = folder.path.join(format!("{}.db", number.fetch_add(1, Ordering::Relaxed)));
        Arc::new(SqliteStore::open(OpenOptions::new(path, clock)).unwrap())
    });
}

struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onceward-conformance-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self { path }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
