//! A part of a real Redis that is nobody else's: a prefix of its own, whose keys are removed at the end.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onceward_domain::time::Timestamp;
use onceward_redis::Options;
use onceward_testkit::services;
use onceward_tls::Authorities;

/// Which servers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Servers {
    Single,
    Sentinel,
    Cluster,
    /// The three again, under TLS.
    Encrypted,
    EncryptedSentinel,
    EncryptedCluster,
}

/// The service under TLS, and who vouches for it and who does not.
const ENCRYPTED: &str = "redis-tls";
const AUTHORITY: &str = "ONCEWARD_TEST_REDIS_TLS_AUTHORITY";
const STRANGER: &str = "ONCEWARD_TEST_REDIS_TLS_STRANGER";

/// Who vouches for the servers under TLS, and who does not.
pub(crate) fn authorities() -> [Authorities; 2] {
    [AUTHORITY, STRANGER].map(|variable| {
        let path = services::address(ENCRYPTED, variable);
        Authorities::of_file(Path::new(&path)).expect("the service has made it")
    })
}

impl Servers {
    pub(crate) fn url(self) -> String {
        match self {
            Self::Single => services::address("redis", "ONCEWARD_TEST_REDIS_URL"),
            Self::Sentinel => services::address("redis-sentinel", "ONCEWARD_TEST_REDIS_SENTINEL_URL"),
            Self::Cluster => services::address("redis-cluster", "ONCEWARD_TEST_REDIS_CLUSTER_URL"),
            Self::Encrypted => services::address(ENCRYPTED, "ONCEWARD_TEST_REDIS_TLS_URL"),
            Self::EncryptedSentinel => services::address(ENCRYPTED, "ONCEWARD_TEST_REDIS_TLS_SENTINEL_URL"),
            Self::EncryptedCluster => services::address(ENCRYPTED, "ONCEWARD_TEST_REDIS_TLS_CLUSTER_URL"),
        }
    }
}

/// Process ids come again, times do not.
fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("test-{name}-{}-{}-{number}", now().0, std::process::id())
}

/// The machine's time, which is the servers' as well.
#[expect(
    clippy::disallowed_methods,
    reason = "servers go by the machine's time, and outlive many test processes"
)]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    Timestamp(i64::try_from(since.as_millis()).expect("it is earlier than the year 200,000,000"))
}

/// A prefix of its own.
pub(crate) struct Ground {
    servers: Servers,
    url: String,
    prefix: String,
}

impl Ground {
    pub(crate) fn new(name: &str) -> Self {
        Self::on(Servers::Single, name)
    }

    pub(crate) fn on(servers: Servers, name: &str) -> Self {
        Self { servers, url: servers.url(), prefix: unique(name) }
    }

    pub(crate) fn options(&self) -> Options {
        let options = Options::of(&self.url).expect("an address of Redis").with_prefix(&self.prefix);
        if !options.is_encrypted() {
            return options;
        }
        let [authority, _] = authorities();
        options.with_authorities(&authority).expect("the driver takes it")
    }
}

/// Keys and what they hold, as the server itself writes it down.
pub(crate) type Contents = Vec<(Vec<u8>, Vec<u8>)>;

impl Ground {
    pub(crate) fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(self.url.as_str()).expect("it was opened before");
        client.get_connection().expect("it was reached before")
    }

    fn keys(&self, connection: &mut redis::Connection) -> Vec<Vec<u8>> {
        let mut command = redis::cmd("SCAN");
        command.cursor_arg(0).arg("MATCH").arg(format!("{}:*", self.prefix)).arg("COUNT").arg(10_000);
        let keys = command.iter(connection).expect("keys are listed");
        keys.map(|key| key.expect("keys are listed")).collect()
    }

    /// What is there now.
    pub(crate) fn contents(&self) -> Contents {
        let mut connection = self.connection();
        let dump = |key: Vec<u8>, connection: &mut redis::Connection| {
            let held = redis::cmd("DUMP").arg(&key).query(connection).expect("a key is there");
            (key, held)
        };
        self.keys(&mut connection).into_iter().map(|key| dump(key, &mut connection)).collect()
    }

    /// A key under its prefix.
    pub(crate) fn key_of(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    /// As after the loss of one server of a cluster.
    pub(crate) fn lose_the_list_of_buckets(&self) {
        let mut command = redis::cmd("DEL");
        let lost: i64 =
            command.arg(self.key_of("buckets")).query(&mut self.connection()).expect("a key is removed");
        assert_eq!(lost, 1, "there is such a list");
    }

    /// As after the loss of the server of one bucket.
    pub(crate) fn lose_bucket(&self, slot: &str) {
        let mut connection = self.connection();
        for key in self.keys(&mut connection) {
            if String::from_utf8_lossy(&key).contains(slot) {
                let _: () = redis::cmd("UNLINK").arg(key).query(&mut connection).expect("a key is removed");
            }
        }
    }

    /// Has one server of a cluster that owns slots answer nobody for so long.
    pub(crate) fn pause_a_server(&self, length: Duration) {
        let servers = self.url.rsplit('/').next().expect("an address names servers").split(',');
        let is_paused = servers.into_iter().any(|server| {
            let client = redis::Client::open(format!("redis://{server}")).expect("an address of a server");
            let mut connection = client.get_connection().expect("it is there");
            let role: Vec<redis::Value> = redis::cmd("ROLE").query(&mut connection).expect("it says so");
            let is_primary = role.first() == Some(&redis::Value::BulkString(b"master".to_vec()));
            if is_primary {
                let mut command = redis::cmd("CLIENT");
                command.arg("PAUSE").arg(u64::try_from(length.as_millis()).expect("it is short")).arg("ALL");
                let _: () = command.query(&mut connection).expect("it takes it");
            }
            is_primary
        });
        assert!(is_paused, "a cluster has a primary");
    }

    /// Puts something else where keys of one bucket are: whoever asks for them meets an error.
    pub(crate) fn spoil(&self, ends: &[&str], slot: &str) {
        let mut connection = self.connection();
        for key in self.keys(&mut connection) {
            let name = String::from_utf8_lossy(&key);
            if name.contains(slot) && ends.iter().any(|end| name.ends_with(end)) {
                let _: () =
                    redis::cmd("SET").arg(&key).arg("nonsense").query(&mut connection).expect("a key is set");
            }
        }
    }

    /// What is kept of one reservation cannot be read any more.
    pub(crate) fn damage(&self, reservation: &[u8]) {
        let mut connection = self.connection();
        for key in self.keys(&mut connection).into_iter().filter(|key| key.ends_with(b":reservation")) {
            let mut command = redis::cmd("HSET");
            let added: i64 = command
                .arg(key)
                .arg(reservation)
                .arg("1")
                .query(&mut connection)
                .expect("a field is written");
            assert_eq!(added, 0, "it was there");
        }
    }

    /// As after a flush.
    pub(crate) fn lose_everything(&self) {
        let mut connection = self.connection();
        for key in self.keys(&mut connection) {
            let _: () = redis::cmd("UNLINK").arg(key).query(&mut connection).expect("a key is removed");
        }
    }

    /// As after the promotion of a copy that had only this: the server's history is another one then.
    pub(crate) fn fall_back(&self, contents: &Contents) {
        self.lose_everything();
        let mut connection = self.connection();
        for (key, held) in contents {
            let mut command = redis::cmd("RESTORE");
            let _: () = command.arg(key).arg(0).arg(held).query(&mut connection).expect("a key is restored");
            if key.ends_with(b":counter") {
                let mut command = redis::cmd("HSET");
                command.arg(key).arg("history").arg("another");
                let _: () = command.query(&mut connection).expect("a field is written");
            }
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        match self.servers {
            Servers::Single => self.lose_everything(),
            // They begin anew and empty with every start.
            Servers::Sentinel | Servers::Cluster => {}
            Servers::Encrypted | Servers::EncryptedSentinel | Servers::EncryptedCluster => {}
        }
    }
}
