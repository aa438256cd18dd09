//! A part of a real Redis that is nobody else's: a prefix of its own, whose keys are removed at the end.

use std::sync::atomic::{AtomicU32, Ordering};

use onceward_redis::Options;
use onceward_testkit::services;

/// A prefix of its own.
pub(crate) struct Ground {
    url: String,
    prefix: String,
}

impl Ground {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let url = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { url, prefix: format!("test-{}-{name}-{number}", std::process::id()) }
    }

    pub(crate) fn options(&self) -> Options {
        Options::of(&self.url).expect("an address of Redis").with_prefix(&self.prefix)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let client = redis::Client::open(self.url.as_str()).expect("it was opened before");
        let mut connection = client.get_connection().expect("it was reached before");
        let mut keys: redis::Iter<'_, String> = redis::cmd("SCAN")
            .cursor_arg(0)
            .arg("MATCH")
            .arg(format!("{}:*", self.prefix))
            .arg("COUNT")
            .arg(10_000)
            .clone()
            .iter(&mut connection)
            .expect("keys are listed");
        let found: Vec<String> = keys.by_ref().filter_map(Result::ok).collect();
        drop(keys);
        for key in found {
            let _: () = redis::cmd("UNLINK").arg(key).query(&mut connection).expect("a key is removed");
        }
    }
}
