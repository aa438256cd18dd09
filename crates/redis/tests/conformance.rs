//! Every promise of the gate and of the due-work queue, over a real Redis (EM-02).

mod real;

use std::sync::{Arc, Mutex};

use onceward_redis::{RedisAdmission, Time};
use onceward_testkit::conformance::admission;
use onceward_testkit::model::ModelStore;
use tokio::runtime::Runtime;

#[test]
fn em_02_a_gate_over_redis_keeps_every_promise() {
    let runtime = Runtime::new().unwrap();
    let grounds = Mutex::new(Vec::new());
    admission::run_all(&|clock| {
        let ground = real::Ground::new("gate");
        let options = ground.options().with_time(Time::Handed(clock.clone()));
        grounds.lock().unwrap().push(ground);
        let store = Arc::new(ModelStore::new(clock));
        let _inside = runtime.enter();
        let gate = RedisAdmission::open(options, store.clone()).unwrap();
        (store, Arc::new(gate))
    });
}
