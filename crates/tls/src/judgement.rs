//! What of a server's certificate counts.
//!
//! Invariant: whatever counts, the server shows that it has the key of the certificate that it hands out; only whose certificate
//! it is may be left open. Where anybody will do, so will a certificate that cannot be read, such as one of the first version of
//! certificates, which other programs take: there is no key in it to show, and nobody is known by it anyway.

use std::sync::Arc;

use onceward_domain::error::Error;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as Refused, SignatureScheme,
};

use crate::authorities::Authorities;

/// How a server is judged by its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Not at all: nobody reads along, but somebody may stand in between.
    Anybody,
    /// An authority vouches for it, under whichever name. It is worth something where the authority vouches for nobody else.
    AnyName,
    /// An authority vouches for it under the name by which it was called.
    Named,
}

impl Judgement {
    /// What a handshake is made with.
    ///
    /// # Errors
    /// [`Code::Invalid`](onceward_domain::error::Code::Invalid) where authorities are needed and there are none.
    pub fn config(self, authorities: &Authorities) -> Result<ClientConfig, Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for both versions");
        let chain = match self {
            Self::Named => {
                return Ok(builder.with_root_certificates(authorities.roots()?).with_no_client_auth());
            }
            Self::AnyName => {
                let roots = Arc::new(authorities.roots()?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
                Some(verifier.build().expect("there are roots, and no lists of what was called back"))
            }
            Self::Anybody => None,
        };
        let verifier = Arc::new(Lenient { provider, chain });
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }
}

/// Leaves the name open, and without a chain everything but the key, where there is one to read.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl Lenient {
    /// Whether this certificate will do although it has no key that could be read.
    fn takes_unread(&self, cert: &CertificateDer<'_>) -> bool {
        self.chain.is_none() && ParsedCertificate::try_from(cert).is_err()
    }
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Refused> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last, so all else was found to be good.
            Err(Refused::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Refused> {
        if self.takes_unread(cert) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Refused> {
        if self.takes_unread(cert) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    //! Handshakes with servers whose certificates are as they are found. The keys are numbers anybody can guess.

    use std::io;

    use tokio_rustls::rustls::crypto::ring::sign::any_eddsa_type;
    use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
    use tokio_rustls::rustls::sign::{CertifiedKey, SigningKey};
    use tokio_rustls::rustls::version::{TLS12, TLS13};
    use tokio_rustls::rustls::{
        ClientConnection, Connection, ServerConfig, ServerConnection, SupportedProtocolVersion,
    };

    use super::*;

    /// More messages go to and fro in no handshake.
    const ROUNDS: usize = 8;

    /// What stands before the 32 bytes of an Ed25519 key in its file.
    const KEY: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    /// The name of that kind of key.
    const KIND: [u8; 7] = [0x30, 5, 6, 3, 0x2b, 0x65, 0x70];

    fn key(number: u8) -> Arc<dyn SigningKey> {
        let file = [&KEY[..], &[number; 32]].concat();
        any_eddsa_type(&PrivatePkcs8KeyDer::from(file)).unwrap()
    }

    /// One value of a certificate: its kind, its length in the shortest way, its content.
    fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = u8::try_from(content.len()).unwrap();
        let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
        [head, content].concat()
    }

    /// A certificate of this key that nobody signed; without a version it is one of the first.
    fn certificate(key: &dyn SigningKey, version: &[u8]) -> Vec<u8> {
        let day = value(0x17, &[b"250101000000Z"]);
        let nobody = value(0x30, &[]);
        let public = key.public_key().unwrap();
        let days = value(0x30, &[&day, &day]);
        let body = value(0x30, &[version, &[2, 1, 1], &KIND, &nobody, &days, &nobody, &public]);
        value(0x30, &[&body, &KIND, &value(3, &[&[0; 65]])])
    }

    #[derive(Debug)]
    struct Always(Arc<CertifiedKey>);

    impl ResolvesServerCert for Always {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    fn carry(from: &mut Connection, to: &mut Connection) -> Result<(), Refused> {
        let mut bytes = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let read: io::Result<usize> = to.read_tls(&mut rest);
            read.unwrap();
            to.process_new_packets()?;
        }
        Ok(())
    }

    /// Shakes hands with a server that has this certificate and this key; what the client says to it.
    fn shake(
        judgement: Judgement,
        certificate: &[u8],
        key: &Arc<dyn SigningKey>,
        version: &'static SupportedProtocolVersion,
    ) -> Result<(), Refused> {
        let client = judgement.config(&Authorities::system()).expect("this machine trusts somebody");
        let chain = vec![CertificateDer::from(certificate.to_vec())];
        let known = Arc::new(CertifiedKey::new(chain, Arc::clone(key)));
        let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(known)));
        let name = ServerName::try_from("db.example").unwrap();
        let mut client = Connection::from(ClientConnection::new(Arc::new(client), name).unwrap());
        let mut server = Connection::from(ServerConnection::new(Arc::new(server)).unwrap());
        for _ in 0..ROUNDS {
            if !client.is_handshaking() && !server.is_handshaking() {
                return Ok(());
            }
            carry(&mut client, &mut server).unwrap();
            carry(&mut server, &mut client)?;
        }
        panic!("the handshake does not end");
    }

    #[test]
    fn se_05_where_anybody_will_do_so_will_a_certificate_that_cannot_be_read() {
        let (own, other) = (key(1), key(2));
        let third = value(0xa0, &[&[2, 1, 2]]);
        for version in [&TLS12, &TLS13] {
            let readable = certificate(&*own, &third);
            ParsedCertificate::try_from(&CertificateDer::from(readable.clone())).unwrap();
            assert_eq!(shake(Judgement::Anybody, &readable, &own, version), Ok(()));
            let stolen = shake(Judgement::Anybody, &readable, &other, version);
            let no_key = Refused::InvalidCertificate(CertificateError::BadSignature);
            assert_eq!(stolen, Err(no_key), "who hands out a certificate has its key");
            for unreadable in [certificate(&*own, &[]), b"no certificate".to_vec()] {
                assert_eq!(shake(Judgement::Anybody, &unreadable, &own, version), Ok(()));
                for judged in [Judgement::Named, Judgement::AnyName] {
                    let refused = shake(judged, &unreadable, &own, version).unwrap_err();
                    assert!(matches!(refused, Refused::InvalidCertificate(_)), "{judged:?}: {refused}");
                }
            }
        }
    }
}
