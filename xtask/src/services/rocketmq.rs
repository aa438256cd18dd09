//! Apache RocketMQ 5: a name server, and a broker with its gRPC proxy in one process (the proxy's local mode).
//!
//! It comes from Maven artifacts, because no Debian package has it; they are fetched once and kept in the service's
//! folder. Heaps are small: two processes of about 700 MB together. The topics and groups of the bus are in the store
//! before the first start, since the proxy makes none; tests make their own over the broker's port.
//!
//! Known and accepted: the ports of the gRPC proxy, the remoting proxy and the replication listen on all addresses of the
//! machine; the programs have no setting for it. The others are on loopback.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::deadline;
use serde_json::{Map, Value, json};

use super::certificates::Certificates;
use super::place::Place;
use super::{Exports, Service};
use crate::{Failure, say};

pub(super) const SERVICE: Service = Service {
    name: "rocketmq",
    packages: &["openjdk-17-jre-headless", "maven"],
    is_installed: || is_on_path("java") && is_on_path("mvn"),
    user: None,
    processes: &[NAME_SERVER, BROKER],
    ports: 5,
    prepare,
    command,
    is_ready,
    settle: |_| Ok(()),
    exports,
};

const NAME_SERVER: &str = "namesrv";
const BROKER: &str = "broker";
/// The newest version that the adapter was run against.
pub(super) const VERSION: &str = "5.3.3";
/// Which of the service's ports is whose.
const PORT_OF_NAMES: usize = 0;
const PORT_OF_BROKER: usize = 1;
const PORT_OF_REPLICATION: usize = 2;
const PORT_OF_PROXY: usize = 3;
const PORT_OF_REMOTING: usize = 4;
/// Queues of a topic. In an ordered one as many batches can be under way at once.
const QUEUES: u32 = 8;
/// Endings of the names of topics and groups: the bus's own, and those of `onceward bench`, which reads nobody else's messages.
const SUFFIXES: [&str; 2] = ["", "-bench"];
/// Deliveries after which the broker itself sets a message aside: beyond the engine's own limit of 16, which tells why.
const RETRIES_LIMIT: u32 = 32;
/// How long a port on this machine may take to accept.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn jars(place: &Place) -> PathBuf {
    place.folder().join("jars")
}

fn prepare(place: &Place) -> Result<(), Failure> {
    fetch(place)?;
    let conf = place.folder().join("conf");
    fs::create_dir_all(&conf)?;
    Certificates::make(place)?;
    fs::write(conf.join("namesrv.conf"), name_server_settings(place)?)?;
    fs::write(conf.join("broker.conf"), broker_settings(place)?)?;
    fs::write(conf.join("rmq-proxy.json"), proxy_settings(place)?.to_string())?;
    fs::write(conf.join("logback.xml"), LOGBACK)?;
    let config = place.folder().join("store/config");
    // Later the broker keeps these itself.
    if !config.join("topics.json").is_file() {
        fs::create_dir_all(&config)?;
        fs::write(config.join("subscriptionGroup.json"), groups().to_string())?;
        fs::write(config.join("topics.json"), topics().to_string())?;
    }
    Ok(())
}

/// Fetches the programs, once: a run that was cut off leaves no complete folder behind.
fn fetch(place: &Place) -> Result<(), Failure> {
    let (done, partial) = (jars(place), place.folder().join("jars.partial"));
    if done.join(format!("rocketmq-proxy-{VERSION}.jar")).is_file() {
        return Ok(());
    }
    say(&format!("services: fetching RocketMQ {VERSION}"));
    fs::write(place.folder().join("pom.xml"), pom())?;
    for folder in [&done, &partial] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    let output = Command::new("mvn")
        .args(["--batch-mode", "--no-transfer-progress", "dependency:copy-dependencies"])
        .arg("-DincludeScope=runtime")
        .arg(format!("-DoutputDirectory={}", partial.display()))
        .current_dir(place.folder())
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(
            format!("mvn could not fetch RocketMQ: {}", String::from_utf8_lossy(&output.stdout)).into()
        );
    }
    Ok(fs::rename(partial, done)?)
}

/// What is to be fetched: the three programs, with the versions of everything else that the release names.
fn pom() -> String {
    let group = "<groupId>org.apache.rocketmq</groupId>";
    let programs: String = ["namesrv", "proxy", "tools"]
        .map(|name| format!("<dependency>{group}<artifactId>rocketmq-{name}</artifactId></dependency>"))
        .concat();
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>onceward</groupId><artifactId>services-rocketmq</artifactId><version>1</version>\
         <packaging>pom</packaging><dependencyManagement><dependencies><dependency>{group}\
         <artifactId>rocketmq-all</artifactId><version>{VERSION}</version><type>pom</type><scope>import</scope>\
         </dependency></dependencies></dependencyManagement><dependencies>{programs}</dependencies></project>"
    )
}

fn name_server_settings(place: &Place) -> Result<String, Failure> {
    Ok(format!("listenPort={}\nbindAddress=127.0.0.1\n", place.port(PORT_OF_NAMES)?))
}

/// What every broker of ours is started with, wherever it runs; `ops/rocketmq/broker.conf` says the same.
pub(super) const BROKER_SETTINGS: [(&str, &str); 14] = [
    ("brokerClusterName", "DefaultCluster"),
    ("brokerName", "onceward"),
    ("brokerId", "0"),
    ("brokerRole", "ASYNC_MASTER"),
    ("flushDiskType", "ASYNC_FLUSH"),
    ("autoCreateTopicEnable", "false"),
    ("autoCreateSubscriptionGroup", "false"),
    ("recallMessageEnable", "true"),
    // The defaults reserve gigabytes.
    ("mappedFileSizeCommitLog", "134217728"),
    ("mappedFileSizeConsumeQueue", "600000"),
    ("mappedFileSizeTimerLog", "16777216"),
    ("maxHashSlotNum", "500000"),
    ("maxIndexNum", "2000000"),
    // A disk that is fuller than 75 % would make it refuse messages, or delete those that nobody has read.
    ("diskMaxUsedSpaceRatio", "95"),
];

fn broker_settings(place: &Place) -> Result<String, Failure> {
    let store = place.folder().join("store");
    let of_place = [
        ("brokerIP1", "127.0.0.1".to_owned()),
        ("bindAddress", "127.0.0.1".to_owned()),
        ("listenPort", place.port(PORT_OF_BROKER)?.to_string()),
        ("haListenPort", place.port(PORT_OF_REPLICATION)?.to_string()),
        ("storePathRootDir", store.display().to_string()),
        ("storePathCommitLog", store.join("commitlog").display().to_string()),
    ];
    let of_all = BROKER_SETTINGS.map(|(name, value)| (name, value.to_owned()));
    Ok(of_all.into_iter().chain(of_place).map(|(name, value)| format!("{name}={value}\n")).collect())
}

fn proxy_settings(place: &Place) -> Result<Value, Failure> {
    let certificates = Certificates::of(place);
    Ok(json!({
        "rocketMQClusterName": "DefaultCluster",
        "grpcServerPort": place.port(PORT_OF_PROXY)?,
        "remotingListenPort": place.port(PORT_OF_REMOTING)?,
        "localServeAddr": "127.0.0.1",
        // Its port takes plain and encrypted lines; without these it would make a certificate that nobody can judge.
        "tlsTestModeEnable": false,
        "tlsCertPath": certificates.certificate,
        "tlsKeyPath": certificates.key,
        // Nobody is served by a long good-bye on a machine of one.
        "grpcShutdownTimeSeconds": 1,
    }))
}

/// Warnings go to the process's own log; the programs' own settings write dozens of files.
const LOGBACK: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %t %c - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"#;

pub(super) fn topics() -> Value {
    let mut table = Map::new();
    for suffix in SUFFIXES {
        for topic in Topic::ALL {
            let kind = if topic == Topic::Events { "FIFO" } else { "NORMAL" };
            put_topic(&mut table, format!("{}{suffix}", topic.name()), kind, QUEUES);
            put_topic(&mut table, format!("%DLQ%{}{suffix}", topic.group()), "NORMAL", 1);
        }
        put_topic(&mut table, format!("{}{suffix}", deadline::TOPIC), "DELAY", QUEUES);
    }
    json!({ "dataVersion": first_version(), "topicConfigTable": table })
}

fn put_topic(table: &mut Map<String, Value>, name: String, kind: &str, queues: u32) {
    let about = json!({
        "topicName": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6, "topicSysFlag": 0,
        "topicFilterType": "SINGLE_TAG", "order": kind == "FIFO", "attributes": { "message.type": kind },
    });
    table.insert(name, about);
}

pub(super) fn groups() -> Value {
    let mut table = Map::new();
    for suffix in SUFFIXES {
        for topic in Topic::ALL {
            put_group(&mut table, format!("{}{suffix}", topic.group()), topic == Topic::Events);
        }
        put_group(&mut table, format!("{}{suffix}", deadline::GROUP), false);
    }
    json!({ "dataVersion": first_version(), "subscriptionGroupTable": table, "forbiddenTable": {} })
}

fn put_group(table: &mut Map<String, Value>, name: String, is_orderly: bool) {
    let about = json!({
        "groupName": name, "consumeEnable": true, "consumeMessageOrderly": is_orderly,
        "retryQueueNums": 1, "retryMaxTimes": RETRIES_LIMIT,
    });
    table.insert(name, about);
}

fn first_version() -> Value {
    json!({ "counter": 1, "stateVersion": 0, "timestamp": 0 })
}

fn command(place: &Place, process: &str) -> Result<Command, Failure> {
    let folder = place.folder();
    let names = format!("127.0.0.1:{}", place.port(PORT_OF_NAMES)?);
    let class_path = format!("{}/*", jars(place).display());
    let mut java = Command::new("java");
    java.env("ROCKETMQ_HOME", folder)
        .env("RMQ_PROXY_HOME", folder)
        .env("NAMESRV_ADDR", &names)
        .arg(format!("-Duser.home={}", folder.display()))
        .arg(format!("-Drmq.logback.configurationFile={}", folder.join("conf/logback.xml").display()))
        .args(["-XX:+UseSerialGC", "-XX:-OmitStackTraceInFastThrow"])
        // Memory that it locks and unlocks by hand, which newer JVMs keep from it.
        .arg("--add-exports=java.base/sun.nio.ch=ALL-UNNAMED")
        .arg("--add-opens=java.base/java.nio=ALL-UNNAMED");
    let path = |name: &str| -> PathBuf { Path::new(folder).join("conf").join(name) };
    if process == NAME_SERVER {
        java.args([
            "-Xms64m",
            "-Xmx128m",
            "-cp",
            &class_path,
            "org.apache.rocketmq.namesrv.NamesrvStartup",
            "-c",
        ])
        .arg(path("namesrv.conf"));
    } else {
        java.args(["-Xms256m", "-Xmx768m", "-XX:MaxDirectMemorySize=512m"])
            .arg("-Drocketmq.broker.diskSpaceWarningLevelRatio=0.98")
            .args(["-cp", &class_path, "org.apache.rocketmq.proxy.ProxyStartup", "-pm", "local", "-bc"])
            .arg(path("broker.conf"))
            .arg("-pc")
            .arg(path("rmq-proxy.json"))
            .args(["-n", &names]);
    }
    Ok(java)
}

/// Everything of it accepts. The proxy is the last to.
fn is_ready(place: &Place) -> Result<bool, Failure> {
    for index in [PORT_OF_NAMES, PORT_OF_BROKER, PORT_OF_PROXY] {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, place.port(index)?));
        if TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let url = format!("rocketmq://127.0.0.1:{}", place.port(PORT_OF_PROXY)?);
    let broker = format!("127.0.0.1:{}", place.port(PORT_OF_BROKER)?);
    let encrypted = format!("rocketmqs://127.0.0.1:{}", place.port(PORT_OF_PROXY)?);
    let certificates = Certificates::of(place);
    // Two names, so that a test never sends to a broker that somebody works with.
    Ok(vec![
        ("ONCEWARD_TEST_BROKER_TLS_URL", encrypted),
        ("ONCEWARD_TEST_BROKER_TLS_AUTHORITY", certificates.authority.display().to_string()),
        ("ONCEWARD_TEST_BROKER_TLS_STRANGER", certificates.stranger.display().to_string()),
        ("ONCEWARD_BROKER_URL", url.clone()),
        ("ONCEWARD_TEST_BROKER_URL", url),
        ("ONCEWARD_TEST_BROKER_ADMIN", broker),
    ])
}

#[cfg(test)]
mod tests {
    //! What the broker is given fits what the bus expects.

    use super::*;

    #[test]
    fn the_ordered_topic_has_an_ordered_group() {
        for topic in Topic::ALL {
            let is_ordered =
                topics()["topicConfigTable"][topic.name()]["attributes"]["message.type"] == "FIFO";
            let group = &groups()["subscriptionGroupTable"][topic.group()];
            assert_eq!(group["consumeMessageOrderly"], is_ordered);
            assert_eq!(is_ordered, topic == Topic::Events);
        }
    }
}
