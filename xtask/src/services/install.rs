//! Installs what is missing, where that can be done without asking: as root on a Debian.

use std::process::{Command, Stdio};

use crate::{Failure, say};

/// Installs Debian packages, or says what a person has to install.
pub(super) fn packages(names: &[&str]) -> Result<(), Failure> {
    let missing = || format!("install {} first", names.join(" "));
    if !rustix::process::geteuid().is_root() {
        return Err(missing().into());
    }
    say(&format!("services: installing {}", names.join(" ")));
    apt(&["update"]).map_err(|cause| format!("{}: {cause}", missing()))?;
    let install = ["install", "--yes", "--no-install-recommends"];
    apt(&[&install, names].concat()).map_err(|cause| format!("{}: {cause}", missing()))?;
    Ok(())
}

fn apt(arguments: &[&str]) -> Result<(), Failure> {
    let status = Command::new("apt-get")
        .arg("--quiet")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Packages start a server of their own in every run level but this one; nobody here wants it.
        .env("RUNLEVEL", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("apt-get {}: {status}", arguments.join(" ")).into()) }
}
