//! What a reservation takes of the server's memory, beside the plain way (issue 5: at most 0.30 of it). In a test of its own,
//! because nobody else may write meanwhile. Speed is printed and not judged: the machine may be busy.

mod real;
#[path = "real/sale.rs"]
mod sale;

use std::sync::Arc;

use onceward_redis::compare::{Run, here, plain};
use real::Ground;
use sale::Sale;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_takes_at_most_three_tenths_of_the_plain_ways_memory() {
    const ROUNDS: usize = 3;
    let run = Run { buyers: 16_384, callers: 4, batch: 64 };
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    for _round in 0..ROUNDS {
        let ground = Ground::new("compare");
        let options = ground.options();
        let sale = Sale::of(i64::try_from(run.buyers).unwrap(), 1, 1).await;
        let theirs = plain(&options, &sale.key, run).await.unwrap();
        let ours = here(&options, Arc::new(sale.gate(options.clone())), &sale.key, run).await.unwrap();
        println!("plain {theirs:?}, here {ours:?}, of {} reservations", run.buyers);
        times.push(theirs.time.as_secs_f64() / ours.time.as_secs_f64());
        bytes.push(ours.bytes as f64 / theirs.bytes as f64);
    }
    times.sort_by(f64::total_cmp);
    bytes.sort_by(f64::total_cmp);
    println!("times as fast: {times:.2?}; of the bytes: {bytes:.3?}");
    assert!(bytes[ROUNDS / 2] <= 0.30, "{bytes:?}");
}
