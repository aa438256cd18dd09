//! Servers that keep their settings to themselves, as managed ones do (OT-10).
//!
//! One service under TLS is set here, because everybody relies on the events of the plain one.

mod real;

use onceward_domain::error::Code;
use onceward_redis::{KeyspaceTrigger, Options, events_needed};
use onceward_testkit::ids::CountingIds;
use real::{Servers, authorities};

const SETTING: &str = "notify-keyspace-events";
/// A user who may do everything but this.
const LIMITED: &str = "limited";

/// The options of somebody at these servers.
fn options(servers: Servers, login: &str) -> Options {
    let [authority, _] = authorities();
    let url = servers.url().replacen("://", &format!("://{login}"), 1);
    let options = Options::of(&url).expect("an address of Redis").with_prefix("managed");
    options.with_authorities(&authority).expect("the driver takes it")
}

/// Says something to the one server of a form, as its operator.
async fn say(servers: Servers, words: &[&str]) {
    let url = servers.url().replacen("rediss+cluster://", "rediss://", 1);
    let [authority, _] = authorities();
    let root_cert = authority.pem().map(<[u8]>::to_vec);
    let certificates = redis::TlsCertificates { client_tls: None, root_cert };
    let client = redis::Client::build_with_tls(url, certificates).expect("an address of Redis");
    let mut line = client.get_multiplexed_async_connection().await.expect("it answers");
    let mut command = redis::cmd(words[0]);
    let () = command.arg(&words[1..]).query_async(&mut line).await.expect("an operator may");
}

#[tokio::test]
async fn ot_10_whoever_may_not_set_events_goes_by_what_is_heard() {
    for servers in [Servers::Encrypted, Servers::EncryptedCluster] {
        say(servers, &["CONFIG", "SET", SETTING, ""]).await;
        say(servers, &["ACL", "SETUSER", LIMITED, "on", ">word", "~*", "&*", "+@all", "-config"]).await;
        let options = options(servers, &format!("{LIMITED}:word@"));
        let trigger = || KeyspaceTrigger::open(options.clone(), &CountingIds::new("managed")).unwrap();

        let refused = trigger().prepare().await.expect_err("nobody is told of anything");
        assert_eq!(refused.code(), Code::Invalid);
        let text = refused.operator_text();
        assert!(text.contains("set notify-keyspace-events to Ex where it is managed"), "{text}");
        assert_eq!(events_needed(options.clone()).await.unwrap_err().code(), Code::Invalid);

        say(servers, &["CONFIG", "SET", SETTING, "Ex"]).await;
        trigger().prepare().await.unwrap_or_else(|refused| panic!("{servers:?}: {refused:?}"));
        assert_eq!(events_needed(options.clone()).await.unwrap(), None);

        // One that may read it and not set it is believed.
        say(servers, &["ACL", "SETUSER", LIMITED, "+config|get"]).await;
        trigger().prepare().await.unwrap();
        say(servers, &["CONFIG", "SET", SETTING, "E"]).await;
        let refused = trigger().prepare().await.expect_err("it lacks a flag");
        assert!(refused.code() == Code::Invalid && refused.operator_text().contains("to Ex "), "{refused:?}");
    }
}

#[tokio::test]
async fn ot_10_a_server_that_is_away_is_no_matter_of_settings() {
    let trigger =
        KeyspaceTrigger::open(Options::of("redis://127.0.0.1:1").unwrap(), &CountingIds::new("away"));
    let refused = trigger.unwrap().prepare().await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
}
