//! A real broker under TLS (SE-05). What is said of those that nobody vouches for: `fake/security.rs`.

use std::path::Path;
use std::sync::Arc;

use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use onceward_rocketmq::{Options, RocketBus};
use onceward_testkit::ids::CountingIds;
use onceward_testkit::services;
use onceward_tls::Authorities;
use tokio::runtime::Runtime;

/// Nothing here is judged by the time.
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

#[test]
fn a_real_proxy_is_spoken_to_under_tls_and_one_of_strangers_is_refused() {
    let options = Options::parse(&services::address("rocketmq", "ONCEWARD_TEST_BROKER_TLS_URL")).unwrap();
    let [authority, stranger] = ["ONCEWARD_TEST_BROKER_TLS_AUTHORITY", "ONCEWARD_TEST_BROKER_TLS_STRANGER"]
        .map(|variable| Authorities::of_file(Path::new(&services::address("rocketmq", variable))).unwrap());
    let runtime = Runtime::new().unwrap();
    let check = |authorities: &Authorities| {
        let options = options.clone().with_authorities(authorities);
        runtime.block_on(async {
            let bus =
                RocketBus::open(&options, Arc::new(NoClock), Arc::new(CountingIds::new("tls"))).unwrap();
            let found = bus.check().await;
            bus.close().await;
            found
        })
    };
    assert_eq!(check(&authority).unwrap().len(), 4, "every topic, and where its dead letters go");
    let refused = check(&stranger).unwrap_err();
    assert!(refused.operator_text().contains("no authority"), "{refused:?}");
}
