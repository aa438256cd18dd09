//! State machines as tables: the only place where a state may change (design.md §2).
//!
//! Invariants: each machine is one `const` array of rows; `(from, event)` is unique; a state with no row out
//! of it is terminal. Everything else — SQL guards, CHECK lists, diagrams, tests, audit labels — derives from
//! the array. Deliberately absent: code that sets a state without asking [`Machine::next`].
//! Read next: [`reservation`], then its decision in [`crate::decide`].

pub mod admission;
pub mod compensation;
pub mod group;
pub mod group_charge;
pub mod job;
pub mod notice;
pub mod order;
pub mod outbox;
pub mod payment;
pub mod refund;
pub mod reservation;
pub mod transport;

/// One allowed move.
#[derive(Debug, Clone, Copy)]
pub struct Row<S: 'static, E: 'static, F: 'static = ()> {
    /// Audit label: stored with the transition, shown on timelines and metrics.
    pub label: &'static str,
    /// State before.
    pub from: S,
    /// What happened.
    pub on: E,
    /// State after.
    pub to: S,
    /// Condition that the decision has checked.
    pub when: &'static str,
    /// Effect on stock or counters, per unit.
    pub effect: F,
    /// Event or message that goes out, or "".
    pub message: &'static str,
}

/// A state that belongs to a table.
pub trait Machine: Copy + Eq + std::fmt::Debug + 'static {
    /// What can happen to it.
    type Event: Copy + Eq + std::fmt::Debug + 'static;
    /// What a move does per unit; `()` where it moves nothing.
    type Effect: Copy + std::fmt::Debug + Effect + 'static;
    /// The machine's name, in lower case.
    const NAME: &'static str;
    /// One sentence about it.
    const DOC: &'static str;
    /// Every state. The position is the code that stores keep: append only, never reorder.
    const STATES: &'static [Self];
    /// Every allowed move.
    const ROWS: &'static [Row<Self, Self::Event, Self::Effect>];

    /// The state's name, as in requirements.md.
    fn name(self) -> &'static str;

    /// The event's name.
    fn event_name(event: Self::Event) -> String {
        format!("{event:?}")
    }

    /// The row for an event, or none where the table does not allow it.
    fn next(self, event: Self::Event) -> Option<&'static Row<Self, Self::Event, Self::Effect>> {
        Self::ROWS.iter().find(|row| row.from == self && row.on == event)
    }

    /// Whether nothing can happen any more.
    fn is_terminal(self) -> bool {
        Self::ROWS.iter().all(|row| row.from != self)
    }

    /// The small number under which stores keep the state.
    fn code(self) -> u8 {
        let position = Self::STATES.iter().position(|state| *state == self).expect("every state is listed");
        u8::try_from(position).expect("fewer than 256 states")
    }

    /// The state behind a stored number.
    fn from_code(code: u8) -> Option<Self> {
        Self::STATES.get(usize::from(code)).copied()
    }

    /// The state behind a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::STATES.iter().copied().find(|state| state.name() == name)
    }
}

/// An effect that can describe itself in the generated tables.
pub trait Effect {
    /// For people, e.g. `available −1, occupied +1`.
    fn describe(&self) -> String;
}

impl Effect for () {
    fn describe(&self) -> String {
        String::new()
    }
}

/// One row, made of text, for documents.
#[derive(Debug, Clone)]
pub struct RowView {
    /// Audit label.
    pub label: &'static str,
    /// State before.
    pub from: &'static str,
    /// Event.
    pub event: String,
    /// State after.
    pub to: &'static str,
    /// Condition.
    pub when: &'static str,
    /// Effect per unit.
    pub effect: String,
    /// Message that goes out.
    pub message: &'static str,
}

/// One machine, made of text, for documents and for the stores' name tables.
#[derive(Debug, Clone)]
pub struct MachineView {
    /// Name in lower case.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// States; the position is the stored code.
    pub states: Vec<&'static str>,
    /// Moves.
    pub rows: Vec<RowView>,
}

/// The text form of one machine.
#[must_use]
pub fn view<M: Machine>() -> MachineView {
    let rows = M::ROWS
        .iter()
        .map(|row| RowView {
            label: row.label,
            from: row.from.name(),
            event: M::event_name(row.on),
            to: row.to.name(),
            when: row.when,
            effect: row.effect.describe(),
            message: row.message,
        })
        .collect();
    MachineView {
        name: M::NAME,
        doc: M::DOC,
        states: M::STATES.iter().map(|state| state.name()).collect(),
        rows,
    }
}

/// Every machine of the house.
#[must_use]
pub fn all() -> Vec<MachineView> {
    vec![
        view::<reservation::Reservation>(),
        view::<transport::Transport>(),
        view::<admission::Admission>(),
        view::<order::Order>(),
        view::<payment::Payment>(),
        view::<refund::Refund>(),
        view::<compensation::Compensation>(),
        view::<job::Job>(),
        view::<outbox::Outbox>(),
        view::<notice::Notice>(),
        view::<group::Group>(),
        view::<group_charge::GroupCharge>(),
    ]
}

/// Declares a state enum with its names in one place.
macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $state:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $state,)* }

        impl $name {
            const LIST: &'static [Self] = &[$(Self::$state,)*];

            const fn text(self) -> &'static str {
                match self { $(Self::$state => $text,)* }
            }
        }
    };
}
pub(crate) use states;

/// Declares the rows of a machine, one line each.
macro_rules! rows {
    ($($label:literal: $from:ident - $on:ident -> $to:ident, when $when:literal, effect $effect:expr, message $message:literal;)*) => {
        &[$($crate::machine::Row {
            label: $label, from: Self::$from, on: Self::Event::$on, to: Self::$to,
            when: $when, effect: $effect, message: $message,
        },)*]
    };
}
pub(crate) use rows;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn walk<M: Machine>() {
        for from in M::STATES {
            for row in M::ROWS.iter().filter(|row| row.from == *from) {
                let found = from.next(row.on).expect("a row is found by its own key");
                assert_eq!(found.label, row.label, "{}: two rows for one (from, event)", M::NAME);
            }
            let leaves = M::ROWS.iter().any(|row| row.from == *from);
            assert_eq!(from.is_terminal(), !leaves);
            assert_eq!(M::from_code(from.code()), Some(*from));
            assert_eq!(M::from_name(from.name()), Some(*from));
        }
        let labels: BTreeSet<&str> = M::ROWS.iter().map(|row| row.label).collect();
        assert_eq!(labels.len(), M::ROWS.len(), "{}: labels are unique", M::NAME);
        assert_eq!(M::from_code(u8::MAX), None);
    }

    #[test]
    fn fs_04_every_cell_of_every_machine_is_walked() {
        walk::<reservation::Reservation>();
        walk::<transport::Transport>();
        walk::<admission::Admission>();
        walk::<order::Order>();
        walk::<payment::Payment>();
        walk::<refund::Refund>();
        walk::<compensation::Compensation>();
        walk::<job::Job>();
        walk::<outbox::Outbox>();
        walk::<group::Group>();
        walk::<group_charge::GroupCharge>();
    }
}
