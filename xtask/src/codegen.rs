//! `cargo xtask codegen`: writes `docs/generated/` from the code, and proves with `--check` that it is fresh.
//!
//! A table in the documentation that is written by hand is wrong from the first change on. So the documents
//! that repeat the code are made from it, and `main` refuses a change that leaves them behind.
//!
//! Deliberately absent: generated Rust, with one exception. Code that derives from a table derives at run time or by
//! macro; but the broker's protocol is written in a language of its own, and whoever builds the program should not
//! have to build a compiler for it first.
//!
//! Read next: `codegen/machines.rs`, `codegen/protocol.rs`.

mod machines;
mod protocol;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::{Failure, say, workspace};

const FOLDER: &str = "docs/generated";
const REFRESH: &str = "cargo xtask codegen";

/// Every file of the folder.
const NAMES: [&str; 3] = ["README.md", "machines.md", "openapi.json"];

const README: &str = "\
# Generated files

Nothing here is written by hand, and an edit is lost at the next run. `cargo xtask codegen` writes every file
of this folder, this one included, from the code; `cargo xtask codegen --check` fails when one is stale.

| file | made from |
|---|---|
| `machines.md` | the tables of the state machines, `onceward_domain::machine` |
| `openapi.json` | the routes of the API; it is what `onceward openapi` prints and the server serves |
";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Write nothing, and fail if a file is stale
    #[arg(long)]
    check: bool,
    /// Ask this program for its API, which was built before, instead of building it
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// A file as it should be.
struct Output {
    name: &'static str,
    text: String,
}

/// Writes the files, or compares them with what is there.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let root = workspace::root();
    let folder = root.join(FOLDER);
    // First, because the program that is asked for the API's document below is built with it.
    let mut stale = protocol(&root, arguments.check)?;
    let outputs = outputs(arguments.program.as_deref())?;
    if arguments.check {
        stale.extend(stale_files(&folder, &outputs)?);
        if stale.is_empty() {
            say(&format!("codegen: {} files are fresh", outputs.len() + 1));
            return Ok(());
        }
        return Err(stale.join("\n").into());
    }
    write(&folder, &outputs)
}

/// Writes the module of the broker's protocol, or gives a message where it is stale.
fn protocol(root: &Path, is_check: bool) -> Result<Vec<String>, Failure> {
    let text = protocol::module(root)?;
    let (path, name) = (root.join(protocol::MODULE), protocol::MODULE);
    if is_check {
        let is_fresh = fs::read_to_string(path).is_ok_and(|found| found == text);
        return Ok(if is_fresh {
            Vec::new()
        } else {
            vec![format!("{name} is stale; refresh it with `{REFRESH}`")]
        });
    }
    fs::write(path, text).map_err(|cause| format!("could not write {name}: {cause}"))?;
    say(&format!("codegen: wrote {name}"));
    Ok(Vec::new())
}

fn outputs(program: Option<&Path>) -> Result<Vec<Output>, Failure> {
    let machines = machines::document(&onceward_domain::machine::all());
    Ok(vec![
        Output { name: NAMES[0], text: README.to_owned() },
        Output { name: NAMES[1], text: machines },
        Output { name: NAMES[2], text: openapi(program)? },
    ])
}

/// Asks the program itself, so that the file is what it prints; the tools need not link the API for that.
fn openapi(program: Option<&Path>) -> Result<String, Failure> {
    let mut command = match program {
        Some(built) => Command::new(workspace::root().join(built)),
        None => {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["run", "--quiet", "--package", "onceward-cli", "--"]);
            cargo
        }
    };
    let printed = command.current_dir(workspace::root()).arg("openapi").stderr(Stdio::inherit()).output()?;
    if !printed.status.success() {
        return Err("`onceward openapi` failed".into());
    }
    Ok(String::from_utf8(printed.stdout)?)
}

fn write(folder: &Path, outputs: &[Output]) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    for output in outputs {
        let path = folder.join(output.name);
        fs::write(&path, &output.text)
            .map_err(|cause| format!("could not write {FOLDER}/{}: {cause}", output.name))?;
        say(&format!("codegen: wrote {FOLDER}/{}", output.name));
    }
    Ok(())
}

/// One message for each file that differs, is missing, or is made by nothing any more.
fn stale_files(folder: &Path, outputs: &[Output]) -> Result<Vec<String>, Failure> {
    let mut messages = Vec::new();
    for output in outputs {
        let name = output.name;
        match fs::read_to_string(folder.join(name)) {
            Ok(text) if text == output.text => {}
            Ok(_) => messages.push(format!("{FOLDER}/{name} is stale; refresh it with `{REFRESH}`")),
            Err(cause) => messages.push(format!("{FOLDER}/{name}: {cause}; make it with `{REFRESH}`")),
        }
    }
    // A folder that is not there yet was reported above, file by file.
    let entries = folder.is_dir().then(|| fs::read_dir(folder)).transpose()?;
    for entry in entries.into_iter().flatten() {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if outputs.iter().all(|output| output.name != name) {
            messages.push(format!("{FOLDER}/{name} is made by nothing in `{REFRESH}`; delete it"));
        }
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    //! What `--check` says of a folder that is fresh, stale, incomplete or littered.

    use std::path::PathBuf;

    use super::*;

    fn outputs() -> [Output; 2] {
        [Output { name: "a.md", text: "new a".to_owned() }, Output { name: "b.md", text: "new b".to_owned() }]
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("onceward-codegen-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_was_just_written_is_fresh() -> Result<(), Failure> {
        let folder = folder("fresh");
        write(&folder, &outputs())?;
        assert_eq!(stale_files(&folder, &outputs())?, [""; 0]);
        Ok(fs::remove_dir_all(folder)?)
    }

    #[test]
    fn stale_missing_and_surplus_files_are_named_with_the_command() -> Result<(), Failure> {
        let folder = folder("stale");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("a.md"), "old a")?;
        fs::write(folder.join("c.md"), "left over")?;
        let messages = stale_files(&folder, &outputs())?;
        assert_eq!(messages.len(), 3, "{messages:?}");
        for (message, name) in messages.iter().zip(["a.md", "b.md", "c.md"]) {
            assert!(message.contains(&format!("docs/generated/{name}")), "{message}");
            assert!(message.contains("cargo xtask codegen"), "{message}");
        }
        Ok(fs::remove_dir_all(folder)?)
    }

    #[test]
    fn every_output_but_none_other_is_in_the_readme() {
        for name in NAMES.iter().filter(|name| **name != "README.md") {
            assert!(README.contains(&format!("| `{name}` |")), "{name}");
        }
        assert_eq!(README.matches("| `").count(), NAMES.len() - 1);
    }
}
