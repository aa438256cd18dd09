//! The page of state machines: for each a diagram, its states with their stored codes, and its rows.
//!
//! It shows the tables and adds nothing of its own: a state that the page calls final is one that no row
//! leaves, and a state that it calls first is one that no row enters.

use std::fmt::Write;

use onceward_domain::machine::{MachineView, RowView};

const HEAD: &str = "\
<!-- Generated from onceward_domain::machine by `cargo xtask codegen`. Do not edit: change the table. -->

# State machines

This page is generated from the tables in `crates/domain/src/machine/`, which are the only way to a new state.
A move that is not in a table does not exist. The label is stored with the move and shown on timelines and in
metrics; the code is how a store keeps the state.
";

/// The whole page.
pub(super) fn document(machines: &[MachineView]) -> String {
    let mut page = String::from(HEAD);
    page.push('\n');
    for machine in machines {
        let _ = writeln!(page, "- [{0}](#{1})", machine.name, anchor(machine.name));
    }
    for machine in machines {
        section(&mut page, machine);
    }
    page
}

// Writing to a `String` cannot fail, so the results of `writeln!` are dropped below.

fn section(page: &mut String, machine: &MachineView) {
    let _ = writeln!(page, "\n## {}\n\n{}\n", machine.name, machine.doc);
    diagram(page, machine);
    states(page, machine);
    rows(page, machine);
}

fn diagram(page: &mut String, machine: &MachineView) {
    page.push_str("```mermaid\nstateDiagram-v2\n");
    for state in machine.states.iter().filter(|state| is_first(machine, state)) {
        let _ = writeln!(page, "    [*] --> {state}");
    }
    for row in &machine.rows {
        let _ = writeln!(page, "    {} --> {}: {}", row.from, row.to, row.label);
    }
    for state in machine.states.iter().filter(|state| is_final(machine, state)) {
        let _ = writeln!(page, "    {state} --> [*]");
    }
    page.push_str("```\n");
}

fn states(page: &mut String, machine: &MachineView) {
    page.push_str("\n| code | state | |\n|---|---|---|\n");
    for (code, state) in machine.states.iter().enumerate() {
        let note = if is_final(machine, state) {
            "final"
        } else if is_first(machine, state) {
            "first"
        } else {
            ""
        };
        let _ = writeln!(page, "| {code} | `{state}` | {note} |");
    }
}

fn rows(page: &mut String, machine: &MachineView) {
    page.push_str(
        "\n| label | from | event | to | when | effect | message |\n|---|---|---|---|---|---|---|\n",
    );
    for RowView { label, from, event, to, when, effect, message } in &machine.rows {
        let (when, effect) = (cell(when), cell(effect));
        let message = if message.is_empty() { String::new() } else { format!("`{message}`") };
        let _ =
            writeln!(page, "| `{label}` | `{from}` | `{event}` | `{to}` | {when} | {effect} | {message} |");
    }
}

fn is_first(machine: &MachineView, state: &str) -> bool {
    machine.rows.iter().all(|row| row.to != state || row.from == state)
}

fn is_final(machine: &MachineView, state: &str) -> bool {
    machine.rows.iter().all(|row| row.from != state)
}

/// Prose in a table cell. A name with underscores would else turn into italics, and a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('_', "\\_")
}

/// How a heading is linked to: in small letters, with dashes.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    //! A small machine, read back line by line; then the real ones.

    use super::*;

    fn door() -> MachineView {
        let row = |label, from, event: &str, to| RowView {
            label,
            from,
            event: event.to_owned(),
            to,
            when: "the door_lock is open | broken",
            effect: String::new(),
            message: "MOVED",
        };
        let states = vec!["NEW", "OPEN", "GONE"];
        let rows = vec![row("opened", "NEW", "Open", "OPEN"), row("removed", "OPEN", "Remove", "GONE")];
        MachineView { name: "front door", doc: "A door.", states, rows }
    }

    #[test]
    fn every_row_is_in_the_diagram_and_in_the_table() {
        let page = document(&[door()]);
        for line in [
            "- [front door](#front-door)",
            "## front door",
            "    [*] --> NEW",
            "    NEW --> OPEN: opened",
            "    OPEN --> GONE: removed",
            "    GONE --> [*]",
            "| 0 | `NEW` | first |",
            "| 1 | `OPEN` |  |",
            "| 2 | `GONE` | final |",
            "| `opened` | `NEW` | `Open` | `OPEN` | the door\\_lock is open \\| broken |  | `MOVED` |",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn the_page_says_that_it_is_generated() {
        assert!(document(&[]).lines().next().is_some_and(|line| line.contains("Do not edit")));
    }

    #[test]
    fn names_of_real_states_and_labels_need_no_escape_in_a_diagram() {
        let is_plain = |name: &str| name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
        for machine in onceward_domain::machine::all() {
            assert!(machine.states.iter().all(|state| is_plain(state)), "{}", machine.name);
            assert!(machine.rows.iter().all(|row| is_plain(row.label)), "{}", machine.name);
        }
    }
}
