//! The sandbox bank keeps what every provider promises.
#![allow(clippy::unwrap_used, reason = "tests")]

mod folder;

use std::sync::Arc;

use onceward_providers::sandbox::SandboxProvider;
use onceward_testkit::conformance::provider::{Stage, run_all};

use folder::Folder;

#[test]
fn the_sandbox_bank_keeps_what_every_provider_promises() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let _timers = runtime.enter();
    let folder = Folder::new("conformance");
    let number = std::cell::Cell::new(0);
    run_all(&|| {
        number.set(number.get() + 1);
        let bank = folder.bank(&format!("{}.jsonl", number.get())).unwrap();
        Stage { provider: Arc::new(SandboxProvider::new(bank.clone())), bank: Arc::new(bank) }
    });
}
