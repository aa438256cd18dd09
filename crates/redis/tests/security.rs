//! Lines that are encrypted, and what is said of servers that nobody vouches for (SE-05).

mod real;

use onceward_domain::error::{Code, Error};
use onceward_redis::{Options, check, events_needed};
use onceward_testkit::services;
use real::{Servers, authorities};
use tokio::runtime::Runtime;

const ENCRYPTED: [Servers; 3] = [Servers::Encrypted, Servers::EncryptedSentinel, Servers::EncryptedCluster];

fn asked(options: Options) -> Result<(), Error> {
    let runtime = Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        // The second way looks for the primaries by itself.
        check(options.clone()).await?;
        events_needed(options).await.map(drop)
    })
}

#[test]
fn every_form_is_spoken_to_under_tls_and_a_server_of_strangers_is_refused() {
    let [authority, stranger] = authorities();
    for servers in ENCRYPTED {
        let options = Options::of(&servers.url()).expect("an address of Redis");
        let vouched = options.clone().with_authorities(&authority).expect("the driver takes it");
        asked(vouched).unwrap_or_else(|refused| panic!("{servers:?}: {refused:?}"));
        let doubted = options.clone().with_authorities(&stranger).expect("the driver takes it");
        for doubted in [options, doubted] {
            let refused = asked(doubted).expect_err("nobody vouches for it");
            assert_eq!(refused.code(), Code::Unavailable, "{servers:?}: {refused:?}");
            let text = refused.operator_text();
            assert!(text.contains("no authority") || text.contains("UnknownIssuer"), "{servers:?}: {text}");
        }
    }
}

#[test]
fn a_server_without_tls_is_refused_where_the_line_must_be_encrypted() {
    let plain = services::address("redis-tls", "ONCEWARD_TEST_REDIS_TLS_PLAIN_URL");
    asked(Options::of(&plain).expect("an address of Redis")).expect("it answers in plain");
    let encrypted = plain.replacen("redis://", "rediss://", 1);
    let refused = asked(Options::of(&encrypted).expect("an address of Redis")).expect_err("it knows no TLS");
    assert_eq!(refused.code(), Code::Unavailable);
    // It takes the handshake for the beginning of a command, and waits for the rest.
    assert!(refused.operator_text().contains("connecting to Redis, I/O error"), "{refused:?}");
}
