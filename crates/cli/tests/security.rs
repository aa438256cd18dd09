//! `onceward serve` over servers that take only encrypted lines, by one file of authorities for all of them (SE-05).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::path::{Path, PathBuf};

use house::cluster::{assert_sold, node, open_sale, order_of, start};
use house::{Folder, Server, buyer, finish, onceward, stderr};
use onceward_testkit::services;
use onceward_tls::{Authorities, Judgement};
use serde_json::Value;
use tokio_postgres_rustls::MakeRustlsConnect;

const STOCK: usize = 3;

/// The services, and the variables with the files of who vouches for them.
const AUTHORITIES: [(&str, &str); 3] = [
    ("postgres-tls", "ONCEWARD_TEST_POSTGRES_TLS_AUTHORITY"),
    ("redis-tls", "ONCEWARD_TEST_REDIS_TLS_AUTHORITY"),
    ("rocketmq", "ONCEWARD_TEST_BROKER_TLS_AUTHORITY"),
];

/// One file of all who vouch for the servers.
fn authorities(folder: &Folder) -> PathBuf {
    let read = |(service, variable)| std::fs::read_to_string(services::address(service, variable)).unwrap();
    let path = folder.path().join("authorities.pem");
    std::fs::write(&path, AUTHORITIES.map(read).concat()).unwrap();
    path
}

/// A schema of this test, begun anew.
fn schema(url: &str, authorities: &Path) -> String {
    let judged = Judgement::Named.config(&Authorities::of_file(authorities).unwrap()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, connection) =
            tokio_postgres::connect(url, MakeRustlsConnect::new(judged)).await.unwrap();
        tokio::spawn(connection);
        let anew = "DROP SCHEMA IF EXISTS cli_security CASCADE; CREATE SCHEMA cli_security";
        client.batch_execute(anew).await.unwrap();
    });
    format!("{url}?options=-csearch_path%3Dcli_security&sslmode=verify-full")
}

/// What the doctor finds, by name.
fn finding<'a>(report: &'a Value, name: &str) -> &'a str {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {report}"))["detail"].as_str().unwrap()
}

#[test]
fn em_02_a_node_sells_over_encrypted_lines_and_trusts_no_stranger() {
    let folder = Folder::new("security");
    let ca_file = authorities(&folder);
    let store = schema(&services::address("postgres-tls", "ONCEWARD_TEST_POSTGRES_TLS_URL"), &ca_file);
    let redis = services::address("redis-tls", "ONCEWARD_TEST_REDIS_TLS_URL");
    let broker = services::address("rocketmq", "ONCEWARD_TEST_BROKER_TLS_URL");
    let urls = [
        ("ONCEWARD_STORE_URL", &*store),
        ("ONCEWARD_REDIS_URL", &redis),
        ("ONCEWARD_BROKER_URL", &broker),
        ("ONCEWARD_CA_FILE", ca_file.to_str().unwrap()),
    ];
    let server = start(&mut node(&folder, folder.path(), &urls, "zset"));
    let sku = open_sale(&server, &format!("security-{}", std::process::id()), STOCK);
    let (status, answer) = server.post(&format!("{sku}/reservations"), &buyer("ann", "r"));
    assert_eq!(status, 202, "{answer}");
    order_of(&server, answer["reservation_id"].as_str().unwrap());
    assert_sold(&server, &sku, STOCK, 1);
    assert!(server.terminate().success());

    let mut doctor = onceward();
    doctor.args(["doctor", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let report = finish(doctor.envs(urls));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let store_line = finding(&report, "store line");
    assert!(
        store_line.starts_with("encrypted (TLSv1.") && store_line.ends_with("was judged"),
        "{store_line}"
    );
    for name in ["admission line", "broker line"] {
        assert!(finding(&report, name).starts_with("encrypted, and"), "{report}");
    }
    assert!(finding(&report, "authorities").contains("authorities.pem"));
    assert!(finding(&report, "broker").contains("answers"), "{report}");

    let stranger = services::address("postgres-tls", "ONCEWARD_TEST_POSTGRES_TLS_STRANGER");
    let urls = [urls[0], urls[1], urls[2], ("ONCEWARD_CA_FILE", &stranger)];
    let refused = Server::spawn(&mut node(&folder, folder.path(), &urls, "zset"));
    let said = refused.err().expect("a server of strangers is not spoken to").join("\n");
    assert!(said.contains("no authority that is trusted here"), "{said}");
    let mut doctor = onceward();
    doctor.args(["doctor", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let report = finish(doctor.envs(urls));
    assert_eq!(report.status.code(), Some(1), "{}", stderr(&report));
    let found = String::from_utf8(report.stdout).unwrap();
    assert_eq!(found.matches("no authority that is trusted here").count(), 3, "{found}");
}
