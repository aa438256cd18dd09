//! `ops/compose.yaml` and what lies beside it say the same as the services here. Docker is not asked: nobody needs it for this.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{postgres, redis, rocketmq};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

#[test]
fn the_compose_file_starts_servers_of_the_same_versions_and_settings() {
    let compose = text("compose.yaml");
    let quoted: Vec<String> = redis::SETTINGS.iter().map(|setting| format!("\"{setting}\"")).collect();
    for expected in [
        format!("\"redis-server\", {}]", quoted.join(", ")),
        format!("image: postgres:{}-", postgres::OLDEST),
        format!("max_connections={}", postgres::CONNECTIONS),
        format!("image: apache/rocketmq:{}\n", rocketmq::VERSION),
    ] {
        assert!(compose.contains(&expected), "ops/compose.yaml lacks {expected}");
    }
    assert_eq!(compose.matches("apache/rocketmq:").count(), 3);
    assert_eq!(
        compose.matches(&format!("apache/rocketmq:{}\n", rocketmq::VERSION)).count(),
        3,
        "one version of all"
    );
}

#[test]
fn its_broker_has_the_same_settings() {
    let conf = text("rocketmq/broker.conf");
    let lines: Vec<&str> = conf.lines().collect();
    for (name, value) in rocketmq::BROKER_SETTINGS {
        assert!(
            lines.contains(&&*format!("{name}={value}")),
            "ops/rocketmq/broker.conf lacks {name}={value}"
        );
    }
    let proxy: Value = serde_json::from_str(&text("rocketmq/rmq-proxy.json")).expect("it is JSON");
    let url = format!("rocketmq://rocketmq:{}\n", proxy["grpcServerPort"]);
    assert!(text("compose.yaml").contains(&url), "the node asks the proxy where it listens");
}

#[test]
fn its_broker_has_the_same_topics_and_groups() {
    for (name, expected) in [("topics", rocketmq::topics()), ("subscriptionGroup", rocketmq::groups())] {
        let path = folder().join(format!("rocketmq/{name}.json"));
        if std::env::var_os("ONCEWARD_BLESS").is_some() {
            let text = serde_json::to_string_pretty(&expected).expect("it is JSON");
            fs::write(&path, text + "\n").expect("it can be written");
        }
        let kept: Value = serde_json::from_str(&text(&format!("rocketmq/{name}.json"))).expect("it is JSON");
        assert_eq!(kept, expected, "run this test with ONCEWARD_BLESS=1");
    }
}
