//! Every interleaving of pay, callback, cancel, confirm and refund, with one duplicate and one crash, lost answer or overslept
//! lease in any place; and that the exploration notices what is broken on purpose.

use onceward_testkit::interleave::{Explored, Faults, Line, Opening, Scene, explore};

/// Plays a scene with each of these faults; together they have at least so many states, and meet these cases.
fn all_of(opening: Opening, faults: &[Faults], least: u64, cases: &[&str]) {
    let found: Vec<Explored> = faults.iter().map(|faults| holds(&Scene::of(opening, *faults))).collect();
    let states: u64 = found.iter().map(|one| one.states).sum();
    assert!(states >= least, "only {states} states");
    for case in cases {
        assert!(
            found.iter().any(|one| one.sometimes.contains_key(case)),
            "{case} never came about: {found:?}"
        );
    }
}

fn holds(scene: &Scene) -> Explored {
    let found = explore(scene);
    eprintln!("{scene:?}: {} states, {} steps, {} rests", found.states, found.steps, found.rests);
    if let Some((violation, path)) = &found.violation {
        panic!("{violation}\nafter {path:#?}");
    }
    found
}

#[test]
fn ot_03_ot_07_every_interleaving_of_a_payment_and_a_cancel() {
    let cases =
        ["paid", "paid_while_cancelling", "cancelled_unpaid", "given_back", "callback_lost", "after_a_crash"];
    all_of(Opening::Cancel, &[Faults::LostAnswer, Faults::Crash], 1_000, &cases);
}

#[test]
fn ot_04_ot_07_every_interleaving_of_a_payment_and_an_expiry() {
    let cases = ["paid", "paid_while_cancelling", "cancelled_unpaid", "callback_lost", "after_a_lost_answer"];
    all_of(Opening::Expiry, &[Faults::LostAnswer, Faults::Crash], 1_000, &cases);
}

#[test]
fn ot_09_every_interleaving_of_two_refunds_and_one_that_comes_back() {
    let cases = ["paid", "refunded_in_part", "after_a_crash", "after_a_lost_answer"];
    all_of(Opening::Refund, &[Faults::LostAnswer, Faults::Crash], 1_000, &cases);
}

#[test]
fn lq_02_every_interleaving_with_a_worker_that_sleeps_through_its_lease() {
    all_of(Opening::Cancel, &[Faults::Pause], 500, &["paid", "given_back"]);
}

/// Whether the exploration of a broken house finds something.
fn is_noticed(scene: &Scene) -> bool {
    explore(scene).violation.is_some()
}

#[test]
fn dr_02_canary_silence_that_is_taken_for_closed_is_noticed() {
    let scene = Scene::of(Opening::Cancel, Faults::LostAnswer);
    assert!(is_noticed(&Scene { line: Line::TakesSilenceForClosed, ..scene }), "the exploration is blind");
}

#[test]
fn ot_09_canary_a_refund_under_a_new_id_each_time_is_noticed() {
    let scene = Scene::of(Opening::Refund, Faults::LostAnswer);
    assert!(is_noticed(&Scene { line: Line::RenamesRefunds, ..scene }), "the exploration is blind");
}
