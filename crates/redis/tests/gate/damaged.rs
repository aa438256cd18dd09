//! What cannot be read, because it was damaged or comes from a later version: it concerns itself (FS-13, FS-18, LQ-05).

use std::sync::Arc;

use onceward_domain::due::Lane;
use onceward_domain::error::{Class, Error};
use onceward_domain::ports::admission::{Admission, Reserve, SendSettlement};
use onceward_domain::ports::due_queue::{ClaimWork, Due, DueQueue, Exhaustion, NewWork, Replayed};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::{Millis, Timestamp};
use onceward_redis::{RedisQueue, Time};
use onceward_testkit::clock::ManualClock;

use crate::sale::Sale;
use crate::{counters, queued, real, reserve};

#[tokio::test]
async fn fs_13_a_damaged_reservation_concerns_itself_and_nobody_beside_it() {
    let ground = real::Ground::new("damaged");
    let clock = Arc::new(ManualClock::new(real::now()));
    let sale = Sale::by(clock.clone(), 100, 2, 1).await;
    let gate = sale.gate(ground.options().with_time(Time::Handed(clock.clone())));
    let commands = sale.commands(0..20);
    assert!(gate.reserve(commands.clone()).await.is_ok());
    let (ordered, refused) = commands.split_at(10);
    let mut decided = Vec::new();
    for damaged in [&ordered[3], &refused[3]] {
        decided.extend(gate.find(damaged.purchase).await.unwrap().map(|view| view.purchase));
        ground.damage(damaged.purchase.bytes());
    }
    let claimed = gate.claim_send(1_000, Millis(30_000)).await.unwrap();
    assert_eq!(claimed.iter().map(|claim| claim.messages.len()).sum::<usize>(), 18);
    let sent = claimed.into_iter().map(|claim| SendSettlement::Sent(claim.held)).collect();
    assert_eq!(gate.settle_send(sent).await.unwrap(), 1);
    // Nobody knows what they are, so their deadline is never over.
    let unread = vec![ordered[3].purchase, refused[3].purchase];
    for open in [18, 0, 0] {
        clock.advance(Millis(120_000));
        let claim = gate.claim_overdue(10, Millis(30_000)).await.unwrap().remove(0);
        assert_eq!(claim.reservations.len(), open);
        assert_eq!(claim.remaining.as_ref().map(|(_, ids)| ids), Some(&unread));
        gate.settle_overdue(vec![claim]).await.unwrap();
        assert!(gate.claim_overdue(10, Millis(30_000)).await.unwrap().is_empty(), "not at once");
    }
    let event = |command: &Reserve| sale.ordered(command);
    let compensation = |command: &Reserve| sale.compensation(command.purchase);
    let class = |failed: &Error| failed.class();
    let projected = gate.project(ordered.iter().map(event).collect()).await.unwrap();
    let projected: Vec<_> = projected.iter().map(|one| one.as_ref().err().map(class)).collect();
    let released = gate.compensate(refused.iter().map(compensation).collect()).await.unwrap();
    let released: Vec<_> = released.iter().map(|one| one.as_ref().err().map(class)).collect();
    let expected: Vec<_> = (0..10).map(|place| (place == 3).then_some(Class::Manual)).collect();
    assert_eq!((projected, released), (expected.clone(), expected));
    assert_eq!(counters(&gate, &sale).await, (89, 2, 9));
    // The bucket opens all the same after a loss, although the store has more to say about them.
    sale.decide(decided.remove(0), decided.remove(0)).await;
    ground.fall_back(&ground.contents());
    assert_eq!(reserve(&gate, sale.command(50, "late", 1)).await.unwrap(), queued(50));
    assert_eq!(counters(&gate, &sale).await, (88, 3, 9));
}

#[tokio::test]
async fn fs_18_a_loan_that_cannot_be_read_keeps_no_bucket_closed() {
    let ground = real::Ground::new("loan");
    let sale = Sale::of(100, 2, 2).await;
    let gate = sale.gate(ground.options());
    assert!(gate.reserve(sale.commands(0..20)).await.is_ok(), "both buckets are open");
    let mut command = redis::cmd("HSET");
    command.arg(ground.key_of("{sale:sku:1}:loans")).arg("of a later version").arg("v2;0;1");
    let added: i64 = command.query(&mut ground.connection()).unwrap();
    assert_eq!(added, 1);
    ground.lose_bucket("{sale:sku}");
    assert!(gate.reserve(sale.commands(100..120)).await.is_ok(), "the lost one is opened again");
    assert!(ground.contents().iter().any(|(key, _)| key.ends_with(b"{sale:sku:1}:loans")), "it stays");
}

#[tokio::test]
async fn lq_05_work_that_cannot_be_read_is_set_aside_whole_and_holds_up_no_other() {
    let ground = real::Ground::new("stump");
    let queue = RedisQueue::open(ground.options()).unwrap();
    let lane = Lane::new("lane");
    let work = |member: &str| NewWork {
        member: member.into(),
        due: Due::At(Timestamp(1_000)),
        body: b"body".to_vec(),
    };
    queue.put(lane.clone(), ["a", "b", "c", "d"].map(work).to_vec()).await.unwrap();
    let of_lane = ground.key_of("queue:{lane}:work");
    for command in
        [redis::cmd("HSET").arg(&of_lane).arg("a").arg("1\0stump"), redis::cmd("HDEL").arg(&of_lane).arg("c")]
    {
        let _: i64 = command.query(&mut ground.connection()).unwrap();
    }
    // It keeps nobody from looking at the lane, and waits for its time.
    assert_eq!(queue.next_due(lane.clone()).await.unwrap(), Some(Timestamp(1_000)));
    let listed = queue.list(lane.clone(), 10, None).await.unwrap();
    assert_eq!(listed.iter().map(|one| &*one.member).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let (limit, lease) = (10, Millis(30_000));
    let request = ClaimWork { lane: lane.clone(), limit, lease, policy: RetryPolicy::default() };
    let claimed = queue.claim(request).await.unwrap();
    assert_eq!(claimed.iter().map(|one| &*one.held.member).collect::<Vec<_>>(), ["b", "d"]);
    let aside = queue.exhausted(lane.clone(), 10, None).await.unwrap();
    let aside: Vec<_> = aside.iter().map(|one| (&*one.member, one.body.as_slice())).collect();
    assert_eq!(aside, [("a", &b"1\0stump"[..]), ("c", b"")]);
    assert_eq!(queue.to_announce(lane.clone(), 10).await.unwrap().len(), 2, "a person can be told");
    // The entry of one that was set aside is lost as well; a person brings both back all the same.
    let mut command = redis::cmd("HDEL");
    let _: i64 =
        command.arg(ground.key_of("queue:{lane}:dead")).arg("c").query(&mut ground.connection()).unwrap();
    let which: Vec<Exhaustion> = queue.to_announce(lane.clone(), 10).await.unwrap();
    assert_eq!(queue.replay(lane, which).await.unwrap(), [Replayed::Revived; 2]);
}
