//! `onceward export` and `import`: a shop moves in the middle of everything, and what is no dump is refused.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod half_way;
mod house;

use std::fs;
use std::path::Path;
use std::process::Output;

use half_way::{begin, beside, export, finish_all, import, import_command, went_well};
use house::{Folder, Server, finish, onceward, stderr};
use serde_json::Value;

const DUMP: &str = "dump.jsonl";

#[test]
fn em_02_a_shop_moves_into_another_file_in_the_middle_of_everything() {
    let first = Folder::new("moving-from");
    let half_way = begin(first.path());
    let file = first.path().join(DUMP);
    let exported = export(first.path(), &[], &file);
    went_well(&exported);
    assert!(stderr(&exported).contains("the secret"), "{}", stderr(&exported));

    let second = beside("moving-to", first.path());
    let imported = import(second.path(), &[], &file);
    went_well(&imported);
    assert!(String::from_utf8_lossy(&imported.stdout).contains("every invariant holds"));
    let again = second.path().join("again.jsonl");
    went_well(&export(second.path(), &[], &again));
    assert!(fs::read(&again).unwrap() == fs::read(&file).unwrap(), "a dump of it is the same, byte for byte");

    let server = Server::start(second.path());
    finish_all(&server, &half_way);
    assert!(server.terminate().success());
}

/// An exported store with something in it.
fn exported(name: &str) -> (Folder, Vec<u8>) {
    let folder = Folder::new(name);
    let server = Server::start(folder.path());
    server.put_on_sale(3);
    assert!(server.terminate().success());
    let file = folder.path().join(DUMP);
    went_well(&export(folder.path(), &[], &file));
    let dump = fs::read(&file).unwrap();
    (folder, dump)
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".lock")).collect();
    names.sort();
    names
}

fn refused(output: &Output, exit: i32, reason: &str) {
    let said = stderr(output);
    assert!(said.contains(reason), "{reason}: {said}");
    assert_eq!(output.status.code(), Some(exit), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_no_whole_dump_is_refused_and_nothing_is_there_afterwards() {
    let (first, dump) = exported("moving-wrong");
    let text = String::from_utf8(dump).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let secret = text.split("\"secret\":\"").nth(1).unwrap()[..64].to_owned();
    let schema = text.split("\"schema\":\"").nth(1).unwrap()[..16].to_owned();
    let without = |index: usize| {
        let rest =
            lines.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, line)| format!("{line}\n"));
        rest.collect::<String>()
    };
    let row = |row: &str| format!("{}\n{row}\n", lines[0]);
    let huge = format!("{}\n[\"word\",1,\"{}\"]\n", lines[0], "x".repeat(40 << 20));
    let table: [(&str, String, i32, &str); 14] = [
        ("empty", String::new(), 10, "it is empty"),
        ("not ours", "PK\u{3}\u{4}\n".to_owned(), 10, "this is no dump"),
        ("nothing but NUL", "\0".repeat(4096) + "\n", 10, "this is no dump"),
        ("cut off in a line", text[..text.len() / 2].to_owned(), 10, "cut off"),
        ("cut off behind a line", without(lines.len() - 1), 10, "cut off"),
        ("a row less", without(lines.len() - 2), 10, "not what was written"),
        ("edited", text.replacen("\"Sale\"", "\"Bale\"", 1), 10, "not what was written"),
        ("more behind it", text.clone() + "{}\n", 10, "follows after the end"),
        ("a later format", text.replacen("\"format\":1", "\"format\":2", 1), 10, "knows format 1"),
        ("another schema", text.replacen(&schema, "0123456789abcdef", 1), 10, "another version"),
        ("another secret", text.replacen(&secret, &"0".repeat(64), 1), 14, "is not the one of the store"),
        ("a huge line", huge, 10, "longer than any"),
        ("NUL in a text", row("[\"word\",1,\"a\\u0000b\"]"), 10, "line 2 of the dump does not fit"),
        ("another table", row("[\"state\",1]"), 10, "not known"),
    ];
    let second = beside("moving-nothing", first.path());
    let before = files(second.path());
    for (what, content, exit, reason) in table {
        let file = first.path().join("wrong.jsonl");
        fs::write(&file, content).unwrap();
        refused(&import(second.path(), &[], &file), exit, reason);
        assert_eq!(files(second.path()), before, "{what}: nothing is left behind");
    }
    went_well(&import(second.path(), &[], &first.path().join(DUMP)));
}

#[test]
fn a_store_that_holds_something_or_is_in_use_is_neither_written_nor_read() {
    let (first, dump) = exported("moving-full");
    let file = first.path().join(DUMP);
    refused(&import(first.path(), &[], &file), 10, "the store is not empty");
    went_well(&export(first.path(), &[], &first.path().join("after.jsonl")));
    assert!(fs::read(first.path().join("after.jsonl")).unwrap() == dump, "it is as it was");

    let server = Server::start(first.path());
    let busy = export(first.path(), &[], &first.path().join("busy.jsonl"));
    assert!(!busy.status.success() && stderr(&busy).contains("in use by another"), "{}", stderr(&busy));
    refused(&import(first.path(), &[], &file), 1, "in use by another");
    assert!(server.terminate().success());

    let nowhere = Folder::new("moving-nowhere");
    refused(&export(nowhere.path(), &[], &nowhere.path().join(DUMP)), 2, "there is no store");
    refused(&import(nowhere.path(), &[], &file), 14, "there is no secret");
    assert!(!nowhere.path().join("onceward.db").exists());
    fs::remove_file(first.path().join("secret")).unwrap();
    refused(&export(first.path(), &[], &first.path().join("gone.jsonl")), 14, "is gone");
}

#[test]
fn a_kill_in_the_middle_leaves_nothing_and_a_repeat_finishes() {
    use std::io::Write as _;
    use std::process::Stdio;

    let (first, dump) = exported("moving-killed");
    let second = beside("moving-repeated", first.path());
    let mut command = onceward();
    command.args(["import", "--data"]).arg(second.path());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // All but the end: it has everything and still must not commit.
    pipe.write_all(&dump[..dump.len() - 10]).unwrap();
    pipe.flush().unwrap();
    house::comes_true("it has begun", || second.path().join("onceward.db").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    drop(pipe);
    let file = first.path().join(DUMP);
    let repeated = finish(import_command(second.path(), &file).arg("--json"));
    went_well(&repeated);
    let report: Value = serde_json::from_slice(&repeated.stdout).unwrap();
    assert_eq!((&report["store"], &report["invariants_hold"]), (&"SQLite".into(), &true.into()), "{report}");
    let again = second.path().join("again.jsonl");
    went_well(&export(second.path(), &[], &again));
    assert!(fs::read(again).unwrap() == dump);
}
