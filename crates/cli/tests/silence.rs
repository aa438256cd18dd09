//! Commands whose store takes the connection and says nothing: each ends by itself, and says so.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::net::TcpListener;

use house::{Folder, finish, onceward, stderr};

#[test]
fn dr_02_a_silent_store_ends_every_command_with_the_reason() {
    let folder = Folder::new("silence");
    // The machine takes connections for it; nobody ever looks at them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("postgres://me:hunter2@{address}/shop?connect_timeout=1");
    for (arguments, exit_code) in [
        (&["doctor", "--listen", "127.0.0.1:0"][..], 1),
        (&["serve", "--listen", "127.0.0.1:0"], 12),
        (&["migrate"], 12),
        (&["export"], 12),
    ] {
        // An export needs a secret, which the command before it has made.
        let mut command = onceward();
        command.args(arguments).arg("--data").arg(folder.path()).env("ONCEWARD_STORE_URL", &url);
        let output = finish(&mut command);
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert_eq!(output.status.code(), Some(exit_code), "{arguments:?}: {said}");
        assert!(said.contains("gave no answer within 1 s"), "{arguments:?}: {said}");
        assert!(!said.contains("hunter2"), "SE-05, {arguments:?}: {said}");
    }
}
