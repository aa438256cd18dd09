//! The admission machine's table in the form in which scripts take it, so that a rule stands in one place.
//!
//! A move is five characters for each state, in the order of the machine's list: the state that follows, or `-`; then, per
//! unit, `a` for −1, `b` for 0 and `c` for +1: available, open_reserved, committed, and the units that count under the
//! buyer's limit.

use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::{Admission, AdmissionEvent};
use onceward_domain::ports::admission::CompensateCode;

use crate::record::digit_of;

/// Added to a code, so that it is a character.
const CODE_BASE: i16 = 100;

/// The moves under one activity's rules.
#[derive(Debug)]
pub(crate) struct Moves {
    pub(crate) created: Vec<u8>,
    pub(crate) cancelled: Vec<u8>,
    pub(crate) reinstated: Vec<u8>,
    pub(crate) compensated: Vec<u8>,
}

impl Moves {
    pub(crate) fn under(cancelled_frees_limit: bool) -> Self {
        let of = |event| moves(event, cancelled_frees_limit);
        Self {
            created: of(AdmissionEvent::ProjectCreated),
            cancelled: of(AdmissionEvent::ProjectCancelled),
            reinstated: of(AdmissionEvent::ProjectReinstated),
            compensated: of(AdmissionEvent::Compensate),
        }
    }
}

fn moves(event: AdmissionEvent, frees: bool) -> Vec<u8> {
    let letter = |effect: i8| u8::try_from(i16::from(b'b') + i16::from(effect)).expect("it is -1, 0 or 1");
    let places = |state: Admission| i8::from(state.holds_a_place(frees));
    let of_state = |state: &Admission| match state.next(event) {
        None => [b'-', b'b', b'b', b'b', b'b'],
        Some(row) => [
            digit_of(row.to),
            letter(row.effect.available),
            letter(row.effect.open_reserved),
            letter(row.effect.committed),
            letter(places(row.to) - places(*state)),
        ],
    };
    Admission::STATES.iter().flat_map(of_state).collect()
}

/// For each state, what a compensation answers where none is marked yet.
pub(crate) fn codes() -> Vec<u8> {
    let letter = |state: &Admission| CODE_BASE + i16::from(CompensateCode::unmarked(*state).code());
    Admission::STATES.iter().map(|state| u8::try_from(letter(state)).expect("codes are small")).collect()
}

/// The answer of a number that the script gives.
pub(crate) fn code_of(number: i64) -> Option<CompensateCode> {
    CompensateCode::ALL.into_iter().find(|code| i64::from(code.code()) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fs_13_the_table_is_the_machines() {
        let (freeing, keeping) = (Moves::under(true), Moves::under(false));
        // Absent, reserved, order created, compensated, cancelled, reinstated.
        assert_eq!(freeing.created, b"2abcc2bacb-bbbb-bbbb-bbbb-bbbb");
        assert_eq!(freeing.cancelled, b"4bbbb4caba4cbaa-bbbb-bbbb-bbbb");
        assert_eq!(keeping.cancelled, b"4bbbc4cabb4cbab-bbbb-bbbb-bbbb");
        assert_eq!(freeing.compensated, b"-bbbb3caba-bbbb-bbbb-bbbb-bbbb");
        assert_eq!(freeing.reinstated.len(), keeping.reinstated.len());
    }

    #[test]
    fn fs_12_every_code_goes_there_and_back() {
        for (state, letter) in Admission::STATES.iter().zip(codes()) {
            let number = i64::from(letter) - i64::from(CODE_BASE);
            assert_eq!(code_of(number), Some(CompensateCode::unmarked(*state)));
        }
        assert_eq!(code_of(7), None);
    }
}
