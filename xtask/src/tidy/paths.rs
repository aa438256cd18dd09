//! No file names a folder of the machine it was written on.

use super::finding::{Finding, Rule};
use crate::workspace::SourceFile;

/// First folders of absolute paths that only exist on somebody's machine.
const PRIVATE_FOLDERS: [&str; 5] = ["home", "root", "Users", "work", "workspace"];

static PRIVATE_PATH: Rule = Rule {
    id: "private-path",
    reason: "It exists on one machine only, and tells strangers about it: use a path from the repository.",
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let path = private_path(line)?;
            Some(Finding {
                rule: &PRIVATE_PATH,
                path: file.path.clone(),
                line: index + 1,
                detail: format!("a path below `/{path}`"),
            })
        })
        .collect()
}

/// The private folder that an absolute path on this line begins with.
fn private_path(line: &str) -> Option<&'static str> {
    line.match_indices('/').find_map(|(at, _)| {
        let starts_a_path = line[..at].chars().next_back().is_none_or(may_precede_a_path);
        let rest = &line[at + 1..];
        let folder = PRIVATE_FOLDERS
            .into_iter()
            .find(|folder| rest.strip_prefix(folder).is_some_and(|after| after.starts_with('/')))?;
        starts_a_path.then_some(folder)
    })
}

/// Before the slash of a relative path or an address stands one of these: `src/home/`, `../home/`, `{id}/home/`.
fn may_precede_a_path(before: char) -> bool {
    !(before.is_alphanumeric() || "_-./})]*".contains(before))
}

#[cfg(test)]
mod tests {
    //! The bad samples are put together here, so that this file does not break its own rule.

    use super::*;

    fn lines_found(text: &str) -> Vec<usize> {
        let file = SourceFile { path: "README.md".to_owned(), text: text.to_owned() };
        check(&file).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_absolute_path_of_a_person_is_found() {
        for folder in PRIVATE_FOLDERS {
            for before in ["", " ", "\"", "=", "file:", "C:"] {
                let text = format!("first line\ncd {before}/{folder}/somebody/onceward");
                assert_eq!(lines_found(&text), [2], "{text}");
            }
        }
    }

    #[test]
    fn relative_paths_addresses_and_other_folders_pass() {
        for text in
            ["crates/home/src", "https://example.org/home/items", "/var/lib/onceward", "~/.cargo", "../root/"]
        {
            assert_eq!(lines_found(text), [0; 0], "{text}");
        }
    }
}
