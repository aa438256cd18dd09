//! A broker under TLS: who is spoken to, and what is said of those who are not (SE-05).

use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::time::Timestamp;
use onceward_testkit::clock::ManualClock;
use onceward_testkit::ids::CountingIds;
use onceward_tls::Authorities;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use tonic::transport::{Identity, Server, ServerTlsConfig};

use super::tests::broker_of;
use crate::RocketBus;
use crate::options::Options;

/// An authority of its own.
struct Ca {
    params: CertificateParams,
    key: KeyPair,
}

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { params, key: KeyPair::generate().unwrap() }
    }

    fn authorities(&self, name: &str) -> Authorities {
        let path = std::env::temp_dir().join(format!("onceward-broker-{}-{name}.pem", std::process::id()));
        std::fs::write(&path, self.params.self_signed(&self.key).unwrap().pem()).unwrap();
        let authorities = Authorities::of_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        authorities
    }

    /// What a server shows that is called by this name.
    fn identity(self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new([name.to_owned()]).unwrap();
        let server = server.signed_by(&key, &Issuer::new(self.params, self.key)).unwrap();
        Identity::from_pem(server.pem(), key.serialize_pem())
    }
}

async fn check(url: &str, authorities: &Authorities) -> Result<(), Error> {
    let options = Options::parse(url).unwrap().with_authorities(authorities);
    let clock = Arc::new(ManualClock::new(Timestamp(1_767_225_600_000)));
    let bus = RocketBus::open(&options, clock, Arc::new(CountingIds::new("security"))).unwrap();
    let found = bus.check().await;
    bus.close().await;
    found.map(drop)
}

#[tokio::test]
async fn only_a_broker_that_is_vouched_for_under_its_name_is_spoken_to() {
    // They bear the same name, and have different keys.
    let (ca, stranger) = (Ca::new(), Ca::new());
    let (authority, stranger) = (ca.authorities("own"), stranger.authorities("stranger"));
    let broker = broker_of(&Arc::new(ManualClock::new(Timestamp(1_767_225_600_000))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let encrypted = ServerTlsConfig::new().identity(ca.identity("localhost"));
    broker.serve_by(Server::builder().tls_config(encrypted).unwrap(), listener);
    let (plain, _) = broker.serve().await;

    let (by_name, by_number) =
        (format!("rocketmqs://localhost:{port}"), format!("rocketmqs://127.0.0.1:{port}"));
    check(&by_name, &authority).await.unwrap();
    for (url, authorities, expected) in [
        (&by_name, &stranger, "no authority"),
        (&by_number, &authority, "another name"),
        (&format!("rocketmqs://{plain}"), &authority, "does not speak TLS"),
    ] {
        let refused = check(url, authorities).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.operator_text().contains(expected), "{url}: {refused:?}");
    }
    check(&format!("rocketmq://localhost:{port}"), &authority).await.unwrap_err();
}
