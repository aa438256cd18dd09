//! A notifier that posts a signed webhook, in the manner of Standard Webhooks (LQ-05, SE-02).
//!
//! Invariants: `webhook-id` is the notice's id, the same for every sending, so that the receiver drops a repeat; only a 2xx
//! answer means that it arrived; an answer that did not come is unknown, never a failure; redirects are not followed, and
//! each connection goes to an address that [`super::target`] allows, which is looked up and checked anew each time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_domain::notice::Notice;
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::notifier::Notifier;
use onceward_tls::{Authorities, Judgement};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::encode;
use super::target::Target;
use crate::post::Post;
use crate::signature::Signer;

/// What a webhook is sent with.
#[derive(Clone)]
pub struct WebhookOptions {
    /// Where to.
    pub target: Target,
    /// Signs each notice.
    pub signer: Signer,
    /// Whose time the signature carries.
    pub clock: Arc<dyn Clock>,
    /// How long one sending may take, the name's look-up counted; well within a lease.
    pub timeout: Duration,
}

/// Posts notices.
#[derive(Clone)]
pub struct WebhookNotifier {
    options: WebhookOptions,
    /// For a target that is `https`.
    tls: Option<TlsConnector>,
}

impl WebhookNotifier {
    /// A notifier that trusts the certificates that this machine trusts.
    ///
    /// # Errors
    /// [`Code::Invalid`] where the target is `https` and this machine trusts nobody.
    pub fn new(options: WebhookOptions) -> Result<Self, Error> {
        let tls = match options.target.is_secure {
            true => Some(TlsConnector::from(Arc::new(Judgement::Named.config(&Authorities::system())?))),
            false => None,
        };
        Ok(Self { options, tls })
    }

    async fn send(&self, notice: &Notice) -> Result<(), Error> {
        let away = |cause: io::Error| {
            Error::new(Code::Unavailable, format!("reaching {:?}: {cause}", self.options.target))
                .because(cause)
        };
        let stream = self.connect().await.map_err(away)?;
        let body = encode(notice);
        let id = notice.id.to_string();
        let headers = self.options.signer.headers(&id, self.options.clock.now(), &body);
        let target = &self.options.target;
        let post = Post { host: &target.authority, path: &target.path, headers: &headers, body: &body };
        let sent = if let Some(tls) = &self.tls {
            let name = ServerName::try_from(target.host.clone());
            let name = name.map_err(|cause| away(io::Error::new(io::ErrorKind::InvalidInput, cause)))?;
            let secured = tls.connect(name, stream).await.map_err(away)?;
            post.exchange(secured).await
        } else {
            post.exchange(stream).await
        };
        match sent {
            Ok(status) if (200..300).contains(&status) => Ok(()),
            Ok(status) => Err(Error::new(Code::Unavailable, format!("{target:?} answered {status}"))),
            Err(cause) => Err(self.silent(&cause.to_string())),
        }
    }

    /// A connection to the first address that may be spoken to and answers.
    async fn connect(&self) -> io::Result<TcpStream> {
        let target = &self.options.target;
        let mut last =
            io::Error::new(io::ErrorKind::PermissionDenied, "it leads to no address that is allowed");
        for address in lookup_host((target.host.as_str(), target.port)).await? {
            if !target.allows(SocketAddr::ip(&address)) {
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(cause) => last = cause,
            }
        }
        Err(last)
    }

    fn silent(&self, why: &str) -> Error {
        Error::new(Code::OutcomeUnknown, format!("no answer from {:?}: {why}", self.options.target))
    }
}

impl Notifier for WebhookNotifier {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn notify(&self, notice: Notice) -> Answer<'_, ()> {
        Box::pin(async move {
            let sent = timeout(self.options.timeout, self.send(&notice)).await;
            sent.unwrap_or_else(|_| Err(self.silent("it took too long")))
        })
    }
}
