//! The command line: settings and their order, exit codes, and output that programs read.

mod house;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use house::{Folder, Server, comes_true, finish, onceward, stderr};
use serde_json::Value;

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let folder = Folder::new("settings");
    let in_folder = |name: &str| folder.path().join(name);
    std::fs::write(
        in_folder("onceward.toml"),
        format!("data = {:?}\nlisten = \"127.0.0.1:0\"\n", in_folder("of-file").display().to_string()),
    )
    .unwrap();
    let cases = [(false, false, "of-file"), (true, false, "of-environment"), (true, true, "of-flag")];
    for (environment, flag, expected) in cases {
        let mut command = onceward();
        command.args(["serve", "--dev", "--config"]).arg(in_folder("onceward.toml"));
        if environment {
            command.env("ONCEWARD_DATA", in_folder("of-environment"));
        }
        if flag {
            command.arg("--data").arg(in_folder("of-flag"));
        }
        assert!(!in_folder(expected).exists());
        let server = Server::spawn(&mut command).unwrap();
        assert!(in_folder(expected).join("onceward.db").exists(), "{expected}");
        assert!(server.terminate().success());
    }
}

#[test]
fn a_server_that_is_told_to_stop_twice_ends_at_once() {
    let folder = Folder::new("twice");
    let server = Server::spawn(
        onceward().args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path()),
    );
    let mut server = server.unwrap();
    // A request whose body never comes keeps it from ending.
    let mut line = TcpStream::connect(&server.address).unwrap();
    let head =
        "PUT /v1/activities/a HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 9\r\n";
    line.write_all(format!("{head}expect: 100-continue\r\n\r\n").as_bytes()).unwrap();
    let mut wish = [0; 12];
    line.read_exact(&mut wish).unwrap();
    assert_eq!(&wish, b"HTTP/1.1 100");
    server.tell_to_stop();
    comes_true("it takes no new requests", || TcpStream::connect(&server.address).is_err());
    // What is said at once after the first word is the same word.
    comes_true("it ends before what is in hand", || {
        server.tell_to_stop();
        server.has_ended()
    });
    assert_eq!(server.ended().code(), Some(1));
}

#[test]
fn a_server_whose_port_is_taken_says_so() {
    let folder = Folder::new("taken");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output =
        finish(onceward().args(["serve", "--dev", "--listen", &address, "--data"]).arg(folder.path()));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("listening on {address}")), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_is_a_usage_error_with_its_reason() {
    type Case = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);
    let cases: [Case; 12] = [
        (&["serve", "--dev", "--listen", "0.0.0.0:0"], &[], "loopback only"),
        (&["serve", "--role", "boss"], &[], "`boss` is not one of"),
        (&["serve", "--config", "absent.toml"], &[], "no settings file"),
        (&["serve"], &[("ONCEWARD_STORE_URL", "mysql://u:hunter2@db/x")], "asks for `mysql`"),
        (&["serve"], &[("ONCEWARD_REDIS_URL", "memcached://hunter2@r")], "not of a form that is known"),
        (&["serve"], &[("ONCEWARD_BROKER_URL", "kafka://u:hunter2@b:1")], "asks for `kafka`"),
        (&["demo", "--orders", "0"], &[], "--orders"),
        (&["bench", "redis.reserve"], &[], "give its address in ONCEWARD_REDIS_URL"),
        (
            &["bench", "postgres"],
            &[("ONCEWARD_STORE_URL", "sqlite:hunter2")],
            "address in ONCEWARD_STORE_URL",
        ),
        (&["bench", "cluster"], &[], "address in ONCEWARD_STORE_URL"),
        (&["bench", "redis.queue.compared"], &[], "npm install"),
        (&["nonsense"], &[], "nonsense"),
    ];
    for (arguments, environment, reason) in cases {
        let mut command = onceward();
        command.args(arguments).envs(environment.iter().copied());
        let output = finish(&mut command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(reason) && !text.contains("hunter2"), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "data alone goes to stdout");
    }
}

fn json_of(arguments: &[&str]) -> Value {
    let output = finish(onceward().args(arguments));
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|cause| panic!("{arguments:?}: {cause}"))
}

#[test]
fn json_is_one_value_on_stdout() {
    let folder = Folder::new("json");
    let data = folder.path().to_str().unwrap();
    let doctor = json_of(&["doctor", "--json", "--listen", "127.0.0.1:0", "--data", data]);
    assert_eq!(doctor["healthy"], true, "{doctor}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "doctor leaves nothing behind");
    let document = json_of(&["openapi"]);
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
}

#[test]
fn pr_03_a_seed_is_a_run() {
    let torture = |arguments: &[&str]| json_of(&[&["torture", "--json"], arguments].concat());
    let (one, other) = (torture(&["--seed", "7"]), torture(&["--seed", "7"]));
    assert_eq!((&one["violations"], &one["seeds"]), (&Value::from(0), &Value::from(1)));
    for field in ["trace_hash", "steps", "simulated_ms", "sometimes"] {
        assert_eq!(one[field], other[field], "{field}");
    }
    assert!(one["wall_ms"].is_u64());
    let many = torture(&["--seeds", "8"]);
    assert_eq!(many["seeds"], 8);
    assert_eq!(many["trace_hash"], one["trace_hash"], "seeds are counted from 0");
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = finish(onceward().args(["completions", shell]));
        assert!(
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains("torture"),
            "{shell}"
        );
    }
}

#[test]
fn a_small_demonstration_survives_ten_kills() {
    let report = json_of(&["demo", "--crash", "--orders", "30", "--seed", "5", "--json"]);
    assert_eq!(report["holds"], true, "{report:#}");
    assert!(report["kills"].as_u64().is_some_and(|kills| kills >= 10), "{report:#}");
    assert_eq!(report["winners"], 30);
    assert_eq!(
        (&report["jobs"], &report["jobs_refunded"], &report["jobs_reclaimed"]),
        (&Value::from(12), &Value::from(9), &Value::from(6))
    );
    assert!(report["shares_charged"].as_u64().is_some_and(|count| count > 0), "{report:#}");
    assert_eq!(report["lost_answers"], report["recovered_answers"]);
    assert!(report["refused"]["sold_out"].as_u64().is_some_and(|count| count > 0));
}

#[test]
fn the_table_of_a_demonstration_fits_eighty_columns() {
    let output = finish(onceward().args(["demo", "--orders", "5", "--seed", "1"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("invariants hold."), "{table}");
}
