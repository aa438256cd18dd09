//! Certificate authorities: the system's, or those of a file.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use onceward_domain::error::{Code, Error};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

/// Most bytes of a file of authorities: all that any system trusts are a quarter of it.
const FILE_LIMIT: u64 = 1 << 20;

/// Who may vouch for a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorities(Source);

#[derive(Clone, PartialEq, Eq)]
enum Source {
    System,
    File { path: PathBuf, pem: Vec<u8> },
}

impl Authorities {
    /// Those that this machine trusts, or whom `SSL_CERT_FILE` names.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// Those of a PEM file, one certificate or several. It is read once, now.
    ///
    /// # Errors
    /// [`Code::Invalid`] where it cannot be read, or holds no certificate of an authority.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let doing = || format!("reading the certificate authorities in {}", path.display());
        let mut pem = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FILE_LIMIT).read_to_end(&mut pem));
        read.map_err(|cause| Error::new(Code::Invalid, format!("{}: {cause}", doing())).because(cause))?;
        certificates(&pem)
            .map_err(|why| Error::new(Code::Invalid, format!("{}: {why}", doing())))
            .map(|_| Self(Source::File { path: path.to_owned(), pem }))
    }

    /// The file's text; none for the system's.
    #[must_use]
    pub fn pem(&self) -> Option<&[u8]> {
        match &self.0 {
            Source::System => None,
            Source::File { pem, .. } => Some(pem),
        }
    }

    /// Whether they are the system's, whom anybody with a name in the world can have a certificate of.
    #[must_use]
    pub fn are_the_systems(&self) -> bool {
        self.0 == Source::System
    }

    /// Their certificates.
    ///
    /// # Errors
    /// [`Code::Invalid`] where the system trusts nobody.
    pub fn roots(&self) -> Result<RootCertStore, Error> {
        let roots = match &self.0 {
            Source::System => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                roots
            }
            Source::File { pem, .. } => certificates(pem).expect("they were read before"),
        };
        if roots.is_empty() {
            let text = "this machine trusts no certificate authority: install some, or name a file of them";
            return Err(Error::new(Code::Invalid, text));
        }
        Ok(roots)
    }
}

impl fmt::Display for Authorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::System => out.write_str("the system's authorities"),
            Source::File { path, .. } => write!(out, "the authorities in {}", path.display()),
        }
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

fn certificates(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|cause| format!("it is no PEM: {cause}"))?;
        roots.add(certificate).map_err(|cause| format!("a certificate in it cannot be used: {cause}"))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_vouches_for_nobody_is_refused_where_it_is_named() {
        let path = std::env::temp_dir().join(format!("onceward-authorities-{}", std::process::id()));
        let torn = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (content, expected) in
            [("", "no certificate"), ("hello", "no certificate"), (torn, "cannot be used")]
        {
            std::fs::write(&path, content).unwrap();
            let refused = Authorities::of_file(&path).unwrap_err();
            assert_eq!(refused.code(), Code::Invalid);
            let text = refused.operator_text();
            assert!(text.contains(expected) && text.contains("onceward-authorities"), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Authorities::of_file(&path).unwrap_err().operator_text().contains("No such file"));
    }
}
