//! Why a handshake failed, in words that say what to do.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::{CertificateError, Error as Refused};

/// Deepest chain of causes that is looked through: drivers nest three or four.
const DEPTH_LIMIT: usize = 16;

/// Why a handshake failed, where that is among the causes of this error.
#[must_use]
pub fn refusal(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    for _ in 0..DEPTH_LIMIT {
        let cause = next?;
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return Some(format!("{} ({refused})", meaning(refused)));
        }
        next = wrapped(cause).or_else(|| cause.source());
    }
    None
}

/// What an error wraps, where it names as its source only the source of that.
fn wrapped<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return error.get_ref().map(|wrapped| wrapped as _);
    }
    let shared = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>()?;
    Some(&**shared)
}

fn meaning(refused: &Refused) -> &'static str {
    use CertificateError as Bad;

    let Refused::InvalidCertificate(bad) = refused else {
        return if matches!(refused, Refused::InvalidMessage(_)) {
            "the server does not speak TLS there"
        } else {
            "the TLS handshake failed"
        };
    };
    // A stranger may bear the name of somebody who is trusted: then it is the signature that gives it away.
    if matches!(bad, Bad::UnknownIssuer | Bad::BadSignature) {
        "no authority that is trusted here vouches for the server: name the file of its authorities"
    } else if matches!(bad, Bad::NotValidForName | Bad::NotValidForNameContext { .. }) {
        "the server's certificate is for another name than the one in the URL"
    } else if matches!(bad, Bad::Expired | Bad::ExpiredContext { .. }) {
        "the server's certificate has run out"
    } else {
        "the server's certificate is not good"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_however_deep_it_lies() {
        let refused = || Refused::InvalidCertificate(CertificateError::UnknownIssuer);
        let nested = io::Error::other(io::Error::other(refused()));
        let shared: Arc<dyn StdError + Send + Sync> = Arc::new(io::Error::other(refused()));
        for error in [&refused() as &(dyn StdError + 'static), &nested, &shared] {
            let text = refusal(error).unwrap();
            assert!(text.starts_with("no authority") && text.contains("UnknownIssuer"), "{text}");
        }
        assert_eq!(refusal(&io::Error::from(io::ErrorKind::NotFound)), None);
    }
}
