//! Where a service lives: its folder under the target folder, its ports, and the user that owns both.
//!
//! Invariants: a port was free when it was chosen, is on loopback, and stays the same until the service is started anew;
//! the folder can be reached by the user that the service runs as.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

use super::Service;
use crate::{Failure, workspace};

/// The folder, ports and user of one service.
pub(super) struct Place {
    folder: PathBuf,
    owner: Option<(u32, u32)>,
}

impl Place {
    pub(super) fn of(home: &Path, service: &Service) -> Result<Self, Failure> {
        let folder = home.join(service.name);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, owner: None })
    }

    /// The same place, given to the user that the service runs as. Only root must give it away.
    pub(super) fn owned_by(&self, user: Option<&str>) -> Result<Self, Failure> {
        let mut owner = None;
        if let Some(user) = user.filter(|_| rustix::process::geteuid().is_root()) {
            let found = account(user).or_else(|| account("nobody"));
            let (uid, gid) = found.ok_or_else(|| format!("there is neither a user {user} nor nobody"))?;
            chown(&self.folder, Some(uid), Some(gid))?;
            owner = Some((uid, gid));
        }
        Ok(Self { folder: self.folder.clone(), owner })
    }

    #[cfg(test)]
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder, owner: None }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Numbers of the user and the group that the processes run as, where that is not us.
    pub(super) fn owner(&self) -> Option<(u32, u32)> {
        self.owner
    }

    /// Chooses free ports and keeps them.
    pub(super) fn choose_ports(&self, count: usize) -> Result<(), Failure> {
        // All are held before the first is let go, so that they differ.
        let held =
            (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<Vec<_>, _>>()?;
        let mut text = String::new();
        for listener in &held {
            text.push_str(&format!("{}\n", listener.local_addr()?.port()));
        }
        Ok(fs::write(self.folder.join("ports"), text)?)
    }

    /// The ports that were chosen at the last start.
    pub(super) fn port(&self, index: usize) -> Result<u16, Failure> {
        let text = fs::read_to_string(self.folder.join("ports"))?;
        let line = text.lines().nth(index).ok_or_else(|| format!("there is no port number {index}"))?;
        Ok(line.parse()?)
    }
}

/// The folder of all services.
pub(super) fn home() -> Result<PathBuf, Failure> {
    let manifest = workspace::root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    let target = metadata.target_directory.into_std_path_buf();
    fs::create_dir_all(&target)?;
    let target = target.canonicalize()?;
    if !rustix::process::geteuid().is_root() || is_open_to_all(&target)? {
        return Ok(target.join("services"));
    }
    // Root's own folders are closed to the user that the server must run as.
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    Ok(std::env::temp_dir().join(format!("onceward-services-{:016x}", hasher.finish())))
}

/// Whether anybody may walk through every folder on the way.
fn is_open_to_all(path: &Path) -> Result<bool, Failure> {
    const OTHERS_MAY_WALK: u32 = 0o001;
    for folder in path.ancestors() {
        if fs::metadata(folder)?.permissions().mode() & OTHERS_MAY_WALK == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The numbers of a user and its group.
fn account(user: &str) -> Option<(u32, u32)> {
    let list = fs::read_to_string("/etc/passwd").ok()?;
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(user);
        let (uid, gid) = (fields.nth(1)?, fields.next()?);
        is_it.then_some((uid.parse().ok()?, gid.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    //! What is chosen is kept, and is free.

    use super::*;

    #[test]
    fn ports_differ_and_are_kept() -> Result<(), Failure> {
        let folder = std::env::temp_dir().join(format!("onceward-xtask-ports-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let place = Place::in_folder(folder);
        place.choose_ports(3)?;
        let ports = [place.port(0)?, place.port(1)?, place.port(2)?];
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2], "{ports:?}");
        assert!(place.port(3).is_err());
        Ok(fs::remove_dir_all(&place.folder)?)
    }
}
