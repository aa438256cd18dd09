//! A shop moves from its file to PostgreSQL in the middle of everything, and back (EM-02, EM-05).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod half_way;
mod house;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use half_way::{HalfWay, begin, beside, export, finish_all, import, import_command, went_well};
use house::{Folder, Server, cluster, comes_true, finish, onceward, stderr};
use onceward_testkit::services;

/// A schema that nobody else has, in a database that other tests use.
fn database(name: &str) -> String {
    cluster::database("postgres", "ONCEWARD_TEST_POSTGRES_URL", name)
}

/// The lines of a dump, whose order within a table is each store's own.
fn lines(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('[')).map(ToOwned::to_owned);
    // The mark of the secret is what a shared store has more.
    rows.filter(|line| !line.contains("\\u0001secret")).collect()
}

fn start(folder: &Folder, urls: &[(&str, &str)]) -> Result<Server, Vec<String>> {
    let mut command = onceward();
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    command.env("ONCEWARD_LEASE_MS", "500").envs(urls.iter().copied());
    Server::spawn(&mut command)
}

/// A shop half way in a file, and its dump.
fn half_way(name: &str) -> (Folder, HalfWay, std::path::PathBuf) {
    let folder = Folder::new(name);
    let half_way = begin(folder.path());
    let file = folder.path().join("dump.jsonl");
    went_well(&export(folder.path(), &[], &file));
    (folder, half_way, file)
}

#[test]
fn em_05_a_shop_moves_to_postgres_in_the_middle_of_everything() {
    let (first, half_way, file) = half_way("cluster-from");
    let url = database("cli_moving_to");
    let urls = [("ONCEWARD_STORE_URL", url.as_str())];
    let stranger = Folder::new("cluster-stranger");
    fs::write(stranger.path().join("secret"), [3; 32]).unwrap();
    let refused = import(stranger.path(), &urls, &file);
    assert_eq!(refused.status.code(), Some(14), "{}", stderr(&refused));

    let second = beside("cluster-to", first.path());
    let imported = import(second.path(), &urls, &file);
    went_well(&imported);
    let said = String::from_utf8_lossy(&imported.stdout).into_owned();
    assert!(said.contains("everything is in PostgreSQL") && said.contains("every invariant holds"), "{said}");
    let again = import(second.path(), &urls, &file);
    assert_eq!(again.status.code(), Some(10), "{}", stderr(&again));
    assert!(stderr(&again).contains("not empty"));
    assert!(
        start(&stranger, &urls).is_err(),
        "a node with another secret is kept out from the first start on"
    );

    let redis = services::address("redis", "ONCEWARD_TEST_REDIS_URL");
    let with_redis = [urls[0], ("ONCEWARD_REDIS_URL", redis.as_str())];
    let said =
        start(&second, &with_redis).err().expect("the store's gate still holds reservations").join("\n");
    assert!(said.contains("still holds open reservations"), "{said}");

    let server = start(&second, &urls).unwrap();
    finish_all(&server, &half_way);
    let busy = export(second.path(), &urls, &second.path().join("busy.jsonl"));
    assert_eq!(busy.status.code(), Some(12), "{}", stderr(&busy));
    assert!(stderr(&busy).contains("stop every node first"), "{}", stderr(&busy));
    assert!(server.terminate().success());
}

#[test]
fn em_05_a_shop_that_moved_to_postgres_and_back_is_the_same() {
    let (first, half_way, file) = half_way("cluster-there");
    let url = database("cli_moving_back");
    let urls = [("ONCEWARD_STORE_URL", url.as_str())];
    let second = beside("cluster-there-2", first.path());
    let mut command = import_command(second.path(), &file);
    went_well(&finish(command.envs(urls.iter().copied())));
    let back = second.path().join("back.jsonl");
    went_well(&export(second.path(), &urls, &back));
    // Only what an embedded gate keeps in its journal has become rows.
    let (before, after) = (lines(&file), lines(&back));
    let moved: BTreeSet<&str> = before.symmetric_difference(&after).map(|line| table_of(line)).collect();
    assert_eq!(
        moved,
        BTreeSet::from(["due", "purchase", "word"]),
        "{:#?}",
        before.symmetric_difference(&after)
    );

    let third = beside("cluster-back", first.path());
    went_well(&import(third.path(), &[], &back));
    let server = start(&third, &[]).unwrap();
    finish_all(&server, &half_way);
    assert!(server.terminate().success());
}

#[test]
fn em_02_an_import_that_lost_its_hold_changes_nothing_and_a_repeat_finishes() {
    const HOLDERS: &str = "FROM pg_locks AS l JOIN pg_namespace AS n
        ON l.objid = (n.oid::BIGINT - 2147483648)::INTEGER::OID AND n.nspname = current_schema()
        WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.mode = 'ExclusiveLock' AND l.granted";
    let (first, _, file) = half_way("cluster-severed");
    let url = database("cli_moving_severed");
    let urls = [("ONCEWARD_STORE_URL", url.as_str())];
    let second = beside("cluster-severed-2", first.path());
    let dump = fs::read(&file).unwrap();
    let (most, end) = dump.split_at(dump.len() - 10);
    let mut command = onceward();
    command.args(["import", "--data"]).arg(second.path()).envs(urls);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(most).unwrap();
    pipe.flush().unwrap();
    comes_true("it holds the schema", || cluster::count(&url, &format!("SELECT count(*) {HOLDERS}")) == 1);
    cluster::on_server(&url, &format!("SELECT pg_terminate_backend(l.pid, 30000) {HOLDERS}"));
    pipe.write_all(end).unwrap();
    drop(pipe);
    comes_true("it ends", || child.try_wait().unwrap().is_some());
    let lost = child.wait_with_output().unwrap();
    assert_eq!(lost.status.code(), Some(12), "{}", stderr(&lost));
    assert!(stderr(&lost).contains("whether the schema is still held"), "{}", stderr(&lost));
    assert!(lost.stdout.is_empty());
    assert_eq!(cluster::count(&url, "SELECT count(*) FROM word"), 0, "nothing was changed");
    went_well(&import(second.path(), &urls, &file));
}

fn table_of(line: &str) -> &str {
    line.split('"').nth(1).unwrap()
}
