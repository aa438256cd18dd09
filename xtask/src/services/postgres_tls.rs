//! PostgreSQL that takes only encrypted lines, as a managed one does, under a certificate of an authority of its own.
//!
//! Everything else is as in `postgres.rs`. Its URL asks for nothing, so that each test says itself how it wants the line.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::certificates::Certificates;
use super::place::Place;
use super::postgres::{
    DATABASE, ROLE, is_installed, is_open, make_data_folder, make_database, password, server,
};
use super::{Exports, Service};
use crate::Failure;

pub(super) const SERVICE: Service = Service {
    name: "postgres-tls",
    packages: &["postgresql"],
    is_installed,
    user: Some("postgres"),
    processes: &["postgres-tls"],
    ports: 1,
    prepare,
    command,
    is_ready: |place| Ok(is_open(&data(place))),
    settle: |place| make_database(&format!("{}?sslmode=require", url(place, "postgres")?)),
    exports,
};

fn data(place: &Place) -> PathBuf {
    place.folder().join("data")
}

fn access(place: &Place) -> PathBuf {
    place.folder().join("access.conf")
}

/// It begins anew with every start: nobody keeps anything in it.
fn prepare(place: &Place) -> Result<(), Failure> {
    Certificates::make(place)?;
    make_data_folder(place, &data(place))?;
    Ok(fs::write(access(place), "hostssl all all 127.0.0.1/32 scram-sha-256\n")?)
}

fn command(place: &Place, _process: &str) -> Result<Command, Failure> {
    let certificates = Certificates::of(place);
    let mut command = server(&data(place), place.port(0)?)?;
    for (setting, path) in [
        ("hba_file", access(place)),
        ("ssl_cert_file", certificates.certificate),
        ("ssl_key_file", certificates.key),
    ] {
        command.args(["-c", &format!("{setting}={}", path.display())]);
    }
    command.args(["-c", "ssl=on"]);
    Ok(command)
}

fn url(place: &Place, database: &str) -> Result<String, Failure> {
    Ok(format!("postgres://{ROLE}:{}@127.0.0.1:{}/{database}", password(place)?, place.port(0)?))
}

fn exports(place: &Place) -> Result<Exports, Failure> {
    let certificates = Certificates::of(place);
    Ok(vec![
        ("ONCEWARD_TEST_POSTGRES_TLS_URL", url(place, DATABASE)?),
        ("ONCEWARD_TEST_POSTGRES_TLS_AUTHORITY", certificates.authority.display().to_string()),
        ("ONCEWARD_TEST_POSTGRES_TLS_STRANGER", certificates.stranger.display().to_string()),
    ])
}
