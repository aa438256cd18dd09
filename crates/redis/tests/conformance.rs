//! Every promise of the gate and of the due-work queue, over a real Redis (EM-02).

mod real;

use std::sync::{Arc, Mutex};

use onceward_domain::due::Lane;
use onceward_domain::notice::{Notice, work_exhausted};
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::due_queue::DueQueue;
use onceward_domain::retention::WINDOW;
use onceward_redis::{KeyspaceTrigger, RedisAdmission, RedisQueue, RedisTrigger, Time};
use onceward_testkit::block_on::block_on;
use onceward_testkit::conformance::admission::loss::{self, Lossy};
use onceward_testkit::conformance::deadline_served::{self, Served};
use onceward_testkit::conformance::due_queue::UnderTest;
use onceward_testkit::conformance::{admission, deadline, due_queue};
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::ModelStore;
use real::{Ground, Servers};
use tokio::runtime::Runtime;

#[test]
fn em_02_a_gate_over_redis_keeps_every_promise() {
    keeps_every_promise_of_a_gate(Servers::Single);
}

#[test]
fn em_02_a_gate_over_sentinel_keeps_every_promise() {
    keeps_every_promise_of_a_gate(Servers::Sentinel);
}

#[test]
fn em_02_a_gate_over_a_cluster_keeps_every_promise() {
    keeps_every_promise_of_a_gate(Servers::Cluster);
}

#[test]
fn em_02_a_gate_over_encrypted_lines_keeps_every_promise() {
    keeps_every_promise_of_a_gate(Servers::Encrypted);
}

#[test]
fn em_02_a_gate_over_sentinel_and_encrypted_lines_keeps_every_promise() {
    keeps_every_promise_of_a_gate(Servers::EncryptedSentinel);
}

#[test]
fn em_02_a_gate_over_a_cluster_and_encrypted_lines_keeps_every_promise() {
    keeps_every_promise_of_a_gate(Servers::EncryptedCluster);
}

fn keeps_every_promise_of_a_gate(servers: Servers) {
    let runtime = Runtime::new().expect("a runtime starts");
    let grounds = Mutex::new(Vec::new());
    admission::run_all(&|clock| {
        let ground = Ground::on(servers, "gate");
        let options = ground.options().with_time(Time::Handed(clock.clone())).with_retention(Some(WINDOW));
        grounds.lock().expect("nobody panics with it").push(ground);
        let store = Arc::new(ModelStore::new(clock));
        let _inside = runtime.enter();
        let ids = Arc::new(CountingIds::new("gate"));
        (store.clone(), Arc::new(RedisAdmission::open(options, store, ids).expect("inside of a runtime")))
    });
}

#[test]
fn fs_18_a_gate_over_redis_survives_the_loss_of_what_it_knows() {
    let runtime = Runtime::new().expect("a runtime starts");
    loss::run_all(&|clock| {
        let ground = Arc::new(Ground::new("loss"));
        let options = ground.options().with_time(Time::Handed(clock.clone()));
        let store = Arc::new(ModelStore::new(clock));
        let _inside = runtime.enter();
        let gate = RedisAdmission::open(options, store.clone(), Arc::new(CountingIds::new("gate"))).unwrap();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (for_loss, for_keeping, to_keep) = (ground.clone(), ground.clone(), kept.clone());
        Lossy {
            store,
            gate: Arc::new(gate),
            lose_everything: Box::new(move || for_loss.lose_everything()),
            keep: Box::new(move || *to_keep.lock().expect("nobody panics with it") = for_keeping.contents()),
            fall_back: Box::new(move || ground.fall_back(&kept.lock().expect("nobody panics with it"))),
        }
    });
}

#[test]
fn em_02_a_queue_over_redis_keeps_every_promise() {
    keeps_every_promise_of_a_queue(Servers::Single);
}

#[test]
fn em_02_a_queue_over_sentinel_keeps_every_promise() {
    keeps_every_promise_of_a_queue(Servers::Sentinel);
}

#[test]
fn em_02_a_queue_over_a_cluster_keeps_every_promise() {
    keeps_every_promise_of_a_queue(Servers::Cluster);
}

fn keeps_every_promise_of_a_queue(servers: Servers) {
    let runtime = Runtime::new().expect("a runtime starts");
    let grounds = Mutex::new(Vec::new());
    due_queue::run_all(&|clock| {
        let ground = Ground::on(servers, "queue");
        let options = ground.options().with_time(Time::Handed(clock.clone()));
        grounds.lock().expect("nobody panics with it").push(ground);
        let _inside = runtime.enter();
        let queue = Arc::new(RedisQueue::open(options).expect("inside of a runtime"));
        let carried = carry(queue.clone(), clock);
        UnderTest { queue, notices: Box::new(carried) }
    });
}

#[test]
fn ot_10_a_trigger_over_redis_keeps_every_promise() {
    let runtime = Runtime::new().expect("a runtime starts");
    let grounds = Mutex::new(Vec::new());
    deadline::run_all(&|clock| {
        let ground = Ground::on(Servers::Single, "trigger");
        let options = ground.options().with_time(Time::Handed(clock.clone()));
        grounds.lock().expect("nobody panics with it").push(ground);
        let _inside = runtime.enter();
        let trigger = RedisTrigger::new(RedisQueue::open(options).expect("inside of a runtime"));
        (Arc::new(ModelStore::new(clock)), Arc::new(trigger))
    });
}

#[test]
fn ot_10_keys_that_run_out_keep_every_promise_over_redis() {
    keeps_every_promise_of_a_served_trigger(Servers::Single);
}

#[test]
fn ot_10_keys_that_run_out_keep_every_promise_over_sentinel() {
    keeps_every_promise_of_a_served_trigger(Servers::Sentinel);
}

#[test]
fn ot_10_keys_that_run_out_keep_every_promise_over_a_cluster() {
    keeps_every_promise_of_a_served_trigger(Servers::Cluster);
}

fn keeps_every_promise_of_a_served_trigger(servers: Servers) {
    let runtime = Runtime::new().expect("a runtime starts");
    let grounds = Mutex::new(Vec::new());
    deadline_served::run_all(&|case| {
        let ground = Ground::on(servers, "keyspace");
        let _inside = runtime.enter();
        let trigger = KeyspaceTrigger::open(ground.options(), &CountingIds::new(case));
        grounds.lock().expect("nobody panics with it").push(ground);
        let trigger = trigger.expect("inside of a runtime");
        block_on(trigger.prepare()).expect("the server may be set");
        Served { trigger: Arc::new(trigger), now: real::now }
    });
}

/// What a worker does that makes notices of exhaustions: it writes them, then says so.
fn carry(queue: Arc<RedisQueue>, clock: Arc<dyn Clock>) -> impl Fn() -> Vec<Notice> {
    let written: Mutex<Vec<Notice>> = Mutex::new(Vec::new());
    move || {
        let lane = Lane::new("work");
        loop {
            let found = block_on(queue.to_announce(lane.clone(), 100)).expect("the queue answers");
            if found.is_empty() {
                return written.lock().expect("nobody panics with it").clone();
            }
            let mut written = written.lock().expect("nobody panics with it");
            for one in &found {
                let notice = work_exhausted(&lane, &one.member, one.token, clock.now());
                if written.iter().all(|known| known.id != notice.id) {
                    written.push(notice);
                }
            }
            block_on(queue.announced(lane.clone(), found)).expect("the queue answers");
        }
    }
}
