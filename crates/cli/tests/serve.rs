//! Starting and stopping: who may have a data folder, which file is refused, what a first start makes.

mod house;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use house::{Folder, PATIENCE, RESERVE, Server, ask_with, buyer, finish, onceward, stderr};
use rusqlite::Connection;

#[test]
fn em_01_it_starts_without_configuration_and_drains_on_sigterm() {
    let folder = Folder::new("start");
    let mut command = onceward();
    command.current_dir(folder.path()).args(["serve", "--dev", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(&mut command).unwrap();
    assert_eq!(server.get("/livez").0, 200);
    assert_eq!(server.get("/readyz").0, 200);
    assert!(server.said.is_empty(), "one line is all it says: {:?}", server.said);
    let data = folder.path().join("onceward-data");
    assert!(server.terminate().success());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in ["secret", "secret.fingerprint", "onceward.db"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
    assert!(std::fs::metadata(data.join("secret")).unwrap().len() >= 32);
}

#[test]
fn two_servers_never_share_a_folder() {
    let folder = Folder::new("two");
    let first = Server::start(folder.path());
    let mut second = onceward();
    second.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let refused = finish(&mut second);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("in use by another onceward process"), "{}", stderr(&refused));
    assert_eq!(first.get("/readyz").0, 200, "the first one is not disturbed");
    first.kill();
    // A kill leaves no lock behind.
    assert!(Server::start(folder.path()).terminate().success());
}

#[test]
fn em_04_a_newer_schema_is_refused_and_left_alone() {
    let folder = Folder::new("newer");
    assert!(Server::start(folder.path()).terminate().success());
    let path = folder.path().join("onceward.db");
    let version = |connection: &Connection| -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let connection = Connection::open(&path).unwrap();
    let newer = version(&connection) + 1;
    connection.pragma_update(None, "user_version", newer).unwrap();
    drop(connection);

    let mut command = onceward();
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let refused = finish(&mut command);
    assert_eq!(refused.status.code(), Some(14));
    let text = stderr(&refused);
    assert!(text.contains(&format!("tables of version {newer}")) && text.contains("newer program"), "{text}");
    assert_eq!(version(&Connection::open(&path).unwrap()), newer);

    let mut doctor = onceward();
    doctor.args(["doctor", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    assert_eq!(finish(&mut doctor).status.code(), Some(1));
}

#[test]
fn se_01_without_dev_a_first_key_is_made_and_asked_for() {
    let folder = Folder::new("keys");
    let mut command = onceward();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    let server = Server::spawn(&mut command).unwrap();
    let path = folder.path().join("first-key");
    let key = std::fs::read_to_string(&path).unwrap();
    let key = key.trim();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let said = server.said.join("\n");
    assert!(said.contains("first-key") && !said.contains(key), "{said}");

    let ask = |headers: &str| ask_with(&server.address, "GET", "/v1/ops/overview", None, headers).unwrap().0;
    assert_eq!(ask(""), 401);
    assert_eq!(ask("authorization: Bearer wrong\r\n"), 401);
    assert_eq!(ask(&format!("authorization: Bearer {key}\r\n")), 200);
    assert_eq!(server.get("/livez").0, 200);
    assert!(server.terminate().success());
}

#[test]
fn fs_02_a_lost_or_replaced_secret_never_lets_a_known_request_take_effect_twice() {
    let folder = Folder::new("secret");
    let server = Server::start(folder.path());
    server.put_on_sale(5);
    let (status, first) = server.post(RESERVE, &buyer("u", "r"));
    assert_eq!(status, 202);
    // The log has the mode of its file while a server runs.
    for file in ["onceward.db-wal", "onceward.db-shm"] {
        let mode = std::fs::metadata(folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(server.terminate().success());

    let path = folder.path().join("secret");
    let elsewhere = folder.path().join("kept-elsewhere");
    let refusal = |subcommand: &[&str], file: Option<&Path>| {
        let mut command = onceward();
        command.args(subcommand).args(["--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
        command.envs(file.map(|file| ("ONCEWARD_SECRET_FILE", file)));
        let refused = finish(&mut command);
        let said = format!("{}{}", stderr(&refused), String::from_utf8_lossy(&refused.stdout));
        (refused.status.code(), said)
    };
    let refused = |file: Option<&Path>, expected: &str| {
        let named = file.unwrap_or(&path).display().to_string();
        for (subcommand, code) in [(["serve", "--dev"].as_slice(), 14), (&["doctor"], 1)] {
            let (exit, said) = refusal(subcommand, file);
            assert_eq!(exit, Some(code), "{said}");
            assert!(
                said.contains(expected) && said.contains(&named) && said.contains("old secret back"),
                "{said}"
            );
        }
    };
    std::fs::rename(&path, &elsewhere).unwrap();
    refused(None, "is gone");
    refused(Some(&folder.path().join("nowhere")), "is gone");
    assert!(!path.exists(), "no new one is made");
    std::fs::write(&path, [7; 32]).unwrap();
    refused(None, "is not the one");
    refused(Some(&path), "is not the one");
    assert!(refusal(&["doctor"], Some(&elsewhere)).1.contains("is the one that was used first"));

    std::fs::rename(&elsewhere, &path).unwrap();
    // A folder of a program that kept no fingerprint.
    std::fs::remove_file(folder.path().join("secret.fingerprint")).unwrap();
    let server = Server::start(folder.path());
    let (status, again) = server.post(RESERVE, &buyer("u", "r"));
    assert_eq!((status, &again["reservation_id"]), (200, &first["reservation_id"]));
    assert!(folder.path().join("secret.fingerprint").exists());
    assert!(server.terminate().success());
}

#[test]
fn doctor_reads_the_sandbox_banks_journal_and_leaves_it_alone() {
    let folder = Folder::new("journal");
    assert!(Server::start(folder.path()).terminate().success());
    let path = folder.path().join("sandbox-bank.jsonl");
    // The last line of the second was torn by a kill, which the next start mends; the third is damaged.
    for (content, exit) in [("[]\n", 0), ("[]\n[{\"anno", 0), ("[]\nnonsense\n[]\n", 1)] {
        std::fs::write(&path, content).unwrap();
        let mut doctor = onceward();
        doctor.args(["doctor", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
        let output = finish(&mut doctor);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{said}");
        assert!(said.contains("sandbox bank") && said.contains("sandbox-bank.jsonl"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        let mut left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        assert!(!left.any(|path| path.is_dir()), "the folder of the copy is gone");
    }
}

#[test]
fn fs_16_a_server_starts_without_its_broker_and_closes_admission_by_itself() {
    let folder = Folder::new("nobroker");
    let mut command = onceward();
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    // The port of discard, on which nobody listens.
    command.env("ONCEWARD_BROKER_URL", "rocketmq://127.0.0.1:9").env("ONCEWARD_BACKLOG_OUTAGE_MS", "1000");
    let server = Server::spawn(&mut command).unwrap();
    assert!(server.said.iter().any(|line| line.starts_with("the broker is not ready")), "{:?}", server.said);
    server.put_on_sale(5);
    assert_eq!(server.post(RESERVE, &buyer("u0", "r")).0, 202);
    let until = Instant::now() + PATIENCE;
    while server.get("/readyz").1["admission"]["reason"] != "outage" {
        assert!(Instant::now() < until, "admission does not close");
    }
    let (status, refused) = server.post(RESERVE, &buyer("u1", "r"));
    assert_eq!((status, refused["code"].as_str()), (503, Some("backlog")));
    assert_eq!(server.post(RESERVE, &buyer("u0", "r")).0, 200, "who was let in is known");
    assert!(server.terminate().success());
}
