//! Every promise of the `DeadlineTrigger` port, over a real broker (EM-02, OT-10).

mod real;

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use onceward_rocketmq::RocketTrigger;
use onceward_testkit::conformance::deadline_served::{Served, run_all};
use onceward_testkit::ids::CountingIds;
use tokio::runtime::Runtime;

/// The machine's time, which is the broker's as well.
struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

#[expect(clippy::disallowed_methods, reason = "a real broker delays by the machine's time")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    Timestamp(i64::try_from(since.as_millis()).expect("it is earlier than the year 200,000,000"))
}

#[test]
fn em_02_ot_10_a_real_broker_keeps_every_promise_of_a_deadline_trigger() {
    let runtime = Runtime::new().unwrap();
    let grounds = Mutex::new(Vec::new());
    run_all(&|case| {
        let ground = real::Ground::new(case);
        let _inside = runtime.enter();
        let ids = Arc::new(CountingIds::new(case));
        let trigger = RocketTrigger::open(&ground.options, Arc::new(MachineClock), ids).unwrap();
        grounds.lock().unwrap().push(ground);
        Served { trigger: Arc::new(trigger), now }
    });
}
