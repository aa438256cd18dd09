//! Lines that are encrypted, servers that are judged, and what is said where either cannot be (SE-05).

mod real;

use std::sync::Arc;

use onceward_domain::error::Code;
use onceward_postgres::{OpenOptions, PostgresStore, migrate};
use onceward_testkit::conformance::store;
use real::Ground;

#[test]
fn em_02_the_cluster_store_keeps_every_promise_over_an_encrypted_line() {
    let ground = Ground::encrypted("encrypted");
    store::run_all(&|clock| Arc::new(ground.store(clock)));
}

#[test]
fn the_line_is_what_the_url_asks_for_and_the_store_says_so() {
    let ground = Ground::encrypted("line");
    let url = ground.migrated();
    let [authority, _] = Ground::authorities();
    let by = format!("sslrootcert={authority}");
    // Under this name nobody vouches for it.
    let elsewhere = |url: String| url.replace("127.0.0.1", "db.example").replace('?', "?hostaddr=127.0.0.1&");
    for (url, is_judged) in [
        (url.clone(), true),
        (ground.asking(&url, &format!("sslmode=require&{by}")), true),
        (elsewhere(ground.asking(&url, &format!("sslmode=verify-ca&{by}"))), true),
        (elsewhere(ground.asking(&url, "sslmode=prefer")), false),
        (ground.asking(&url, ""), false),
    ] {
        let store = ground.open(&url, None);
        let security = ground.runtime.block_on(store.security()).unwrap();
        assert!(security.encryption.is_some_and(|version| version.starts_with("TLSv1.")));
        assert_eq!(security.is_judged, is_judged);
        store.close();
    }
    let plain = Ground::new("plain_line");
    let store = plain.open(&plain.migrated(), None);
    let security = plain.runtime.block_on(store.security()).unwrap();
    assert!(security.encryption.is_none() && security.about().starts_with("not encrypted"), "{security:?}");
}

#[test]
fn a_server_that_is_not_what_the_url_asks_for_is_refused_with_the_reason() {
    let ground = Ground::encrypted("refused");
    let url = ground.migrated();
    let [authority, stranger] = Ground::authorities();
    let elsewhere = url.replace("127.0.0.1", "db.example").replace('?', "?hostaddr=127.0.0.1&");
    let unencrypted = Ground::new("unencrypted");
    let plain = unencrypted.empty();
    for (url, expected) in [
        (ground.asking(&url, &format!("sslmode=require&sslrootcert={stranger}")), "no authority"),
        (ground.asking(&url, &format!("sslmode=verify-ca&sslrootcert={stranger}")), "no authority"),
        (ground.asking(&url, "sslmode=verify-full"), "no authority"),
        (elsewhere, "another name"),
        (ground.asking(&url, "sslmode=disable"), "no encryption"),
        (format!("{plain}&sslmode=require"), "does not support TLS"),
        (format!("{plain}&sslmode=verify-full&sslrootcert={authority}"), "does not support TLS"),
    ] {
        let password = url.split([':', '@']).nth(2).unwrap();
        for refused in [
            ground.runtime.block_on(PostgresStore::open(OpenOptions::new(&url))).unwrap_err(),
            ground.runtime.block_on(migrate(&url)).unwrap_err(),
        ] {
            assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
            let text = format!("{refused:?}");
            assert!(refused.operator_text().contains(expected), "{expected}: {text}");
            assert!(!text.contains(password), "SE-05");
        }
    }
}
