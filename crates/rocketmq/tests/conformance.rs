//! Every promise of the `Bus` port, over a real broker (EM-02).

mod real;

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use onceward_domain::ports::clock::Clock;
use onceward_domain::time::Timestamp;
use onceward_rocketmq::RocketBus;
use onceward_testkit::conformance::bus::{self, Served};
use onceward_testkit::ids::CountingIds;
use tokio::runtime::Runtime;

/// The machine's time, which is the broker's as well.
struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

#[expect(clippy::disallowed_methods, reason = "a real broker stamps messages with the machine's time")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    Timestamp(i64::try_from(since.as_millis()).expect("it is earlier than the year 200,000,000"))
}

#[test]
fn em_02_a_real_broker_keeps_every_promise() {
    let runtime = Runtime::new().unwrap();
    let grounds = Mutex::new(Vec::new());
    bus::run_all_served(&|case| {
        let ground = real::Ground::new(case);
        let _inside = runtime.enter();
        let bus = RocketBus::open(&ground.options, Arc::new(MachineClock), Arc::new(CountingIds::new(case)))
            .unwrap();
        grounds.lock().unwrap().push(ground);
        Served { bus: Arc::new(bus), now }
    });
}
