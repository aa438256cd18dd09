//! What of a server's certificate counts.
//!
//! Invariant: whatever counts, the server shows that it has the key of the certificate that it hands out; only whose certificate
//! it is may be left open.

use std::sync::Arc;

use onceward_domain::error::Error;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
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

/// Leaves the name open, and without a chain everything but the key.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
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
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Refused> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
