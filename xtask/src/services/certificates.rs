//! Certificates for the services that speak TLS: an authority, what it says of the servers on loopback, and a stranger, who
//! vouches for none of them.
//!
//! Made anew before every start, in the service's folder, so that none ever runs out and no key lies in the repository.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::place::Place;
use crate::Failure;

/// By what the servers are called.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// The files of a service.
pub(super) struct Certificates {
    /// Who vouches for the servers.
    pub(super) authority: PathBuf,
    /// Who does not.
    pub(super) stranger: PathBuf,
    /// What the servers show.
    pub(super) certificate: PathBuf,
    /// Their key, which only the user that they run as may read.
    pub(super) key: PathBuf,
}

impl Certificates {
    /// Where they lie.
    pub(super) fn of(place: &Place) -> Self {
        let path = |name: &str| place.folder().join(name);
        Self {
            authority: path("authority.pem"),
            stranger: path("stranger.pem"),
            certificate: path("server.pem"),
            key: path("server.key"),
        }
    }

    /// Makes all of them.
    pub(super) fn make(place: &Place) -> Result<Self, Failure> {
        let files = Self::of(place);
        let (authority_key, stranger_key) = (KeyPair::generate()?, KeyPair::generate()?);
        let authority = authority("Onceward's test servers")?;
        fs::write(&files.authority, authority.self_signed(&authority_key)?.pem())?;
        fs::write(&files.stranger, self::authority("A stranger")?.self_signed(&stranger_key)?.pem())?;
        let key = KeyPair::generate()?;
        let server = CertificateParams::new(NAMES.map(str::to_owned))?;
        let server = server.signed_by(&key, &Issuer::new(authority, authority_key))?;
        fs::write(&files.certificate, server.pem())?;
        write_private(place, &files.key, &key.serialize_pem())?;
        Ok(files)
    }
}

fn authority(name: &str) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(params)
}

/// Writes a file that a server refuses where others can read it.
fn write_private(place: &Place, path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write as _;

    const ONLY_THE_OWNER: u32 = 0o600;
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).mode(ONLY_THE_OWNER).open(path)?;
    file.write_all(text.as_bytes())?;
    if let Some((uid, gid)) = place.owner() {
        chown(path, Some(uid), Some(gid))?;
    }
    Ok(())
}
