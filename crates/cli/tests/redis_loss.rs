//! A sale of 5,000 units in whose middle Redis loses what it knows (FS-18): all of it, by a flush, or what it was told last, by
//! the promotion of a copy that lacks it.
//!
//! What is shown: the gate closes, is made anew from PostgreSQL, and opens by itself; no unit is sold twice, no buyer has two
//! orders, and admission's counters are those of the store in the end. What was answered `QUEUED` is an order, or was refused
//! with a reason, or is not known any more; then its buyer asks again under the same request id.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod crowd;
mod house;
mod nodes;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crowd::{AT_ONCE, Heard, Line, Receipt, Wish, all_want, at_once};
use house::{Folder, Server, comes_true};
use nodes::redis::{Pair, Redis};
use nodes::{Database, start};
use serde_json::{Value, json};

const UNITS: usize = 5_000;
/// More than can be let in, all told: before the loss every unit, after it every unit that the store still has.
const BUYERS: usize = 10_000;
const SKU: &str = "/v1/activities/sale/skus/a";
const RESERVE: &str = "/v1/activities/sale/skus/a/reservations";
const COUNTER: &str = "seckill:{sale:a}:counter";
/// Messages that the bus has not acknowledged.
const UNSENT: &str = "seckill:{sale:a}:send";

/// So many are let in while everything goes its way.
const BEFORE: usize = 1_500;
/// So many more are let in, and their messages sent, which wait for their decision; then Redis loses what it knows of them.
const UNDECIDED: usize = 700;
/// Where the messages wait.
const CONSUMER: &str = "/v1/ops/queues/bus%2Fonceward-order-create%2Forder-consumer";

struct Sale {
    database: Database,
    nodes: [Server; 2],
    _folders: [Folder; 2],
    heard: Heard,
}

impl Sale {
    fn open(name: &str, redis: &str) -> Self {
        let database = Database::new(&format!("cli_{name}"));
        let folders = [Folder::new("one"), Folder::new("two")];
        let urls = [("ONCEWARD_STORE_URL", &*database.url), ("ONCEWARD_REDIS_URL", redis)];
        let nodes = [0, 1].map(|number| start(&folders[number], &folders[0], &urls));
        let terms = json!({
            "name": "Sale", "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
            "reservation_deadline_ms": 3_600_000,
        });
        assert_eq!(nodes[0].put("/v1/activities/sale", &terms).0, 201);
        let price = json!({"amount": 1999, "currency": "CNY"});
        assert_eq!(nodes[0].put(SKU, &json!({"stock": UNITS, "price": price, "per_user_limit": 1})).0, 201);
        Self { database, nodes, _folders: folders, heard: Heard::while_allowed(BEFORE) }
    }

    fn addresses(&self) -> [&str; 2] {
        [&self.nodes[0].address, &self.nodes[1].address]
    }

    fn queued(&self) -> usize {
        self.heard.of(|heard| &heard.queued)
    }

    /// Whether so many were let in.
    fn until_queued(&self, count: usize) {
        comes_true("buyers are let in", || self.queued() >= count);
    }

    /// Whether every message that was sent is decided on.
    fn is_decided(&self) -> bool {
        let name = "bus/onceward-order-create/order-consumer";
        let queues = self.nodes[0].get("/v1/ops/queues").1["data"].clone();
        queues.as_array().unwrap().iter().any(|one| one["name"] == name && one["size"] == 0)
    }

    fn orders(&self) -> usize {
        let orders = self.database.number("SELECT count(*) FROM purchase WHERE order_status IS NOT NULL");
        usize::try_from(orders).unwrap()
    }

    /// Lets [`UNDECIDED`] more in, whose messages are sent and not decided on, and then everybody. Gives how many had been let
    /// in before.
    fn pile_up(&self, redis: &Redis) -> usize {
        let known = self.queued();
        comes_true("what was let in is decided on", || self.orders() == known);
        self.set_decisions("pause");
        self.heard.allow(known + UNDECIDED);
        self.until_queued(known + UNDECIDED);
        comes_true("their messages are sent", || redis.ask(&["HLEN", UNSENT]) == "0");
        self.heard.allow(BUYERS);
        self.until_queued(known + UNDECIDED + AT_ONCE);
        known
    }

    fn set_decisions(&self, verb: &str) {
        assert_eq!(self.nodes[0].post(&format!("{CONSUMER}/{verb}"), &json!({})).0, 204);
    }

    /// While the store is held up a rebuild cannot end: the gate is seen closed.
    fn while_the_store_is_held_up(&self, work: impl FnOnce()) {
        self.database.say("BEGIN; LOCK TABLE purchase IN ACCESS EXCLUSIVE MODE");
        work();
        self.database.say("ROLLBACK");
    }

    /// Buyers hear it, and so does whoever looks after the server.
    fn until_closed(&self) {
        let before = self.heard.of(|heard| &heard.unavailable);
        comes_true("the gate is seen closed", || self.heard.of(|heard| &heard.unavailable) > before);
        comes_true("a node says that it rebuilds", || {
            self.nodes.iter().any(|node| node.get("/readyz").1["admission"]["rebuilding"] == 1)
        });
    }

    /// How often nodes have made the gate anew.
    fn rebuilt(&self) -> u64 {
        let of = |node: &Server| {
            let line = Line::to(&node.address).text("/metrics").unwrap();
            let count = line.lines().find_map(|line| line.strip_prefix("onceward_admission_rebuilt_total "));
            count.expect("it is counted").parse::<u64>().unwrap()
        };
        self.nodes.iter().map(of).sum()
    }

    /// What the program says of the gate, as JSON.
    fn admission(&self, arguments: &[&str]) -> Value {
        let mut command = house::onceward();
        command.arg("admission").args(arguments).args(["--json", "--server", &self.nodes[0].address]);
        let output = house::finish(&mut command);
        assert!(output.status.success(), "{}", house::stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The whole sale, with this in its middle, which tells how many had been let in before decisions stopped. Buyers who were
    /// let in since ask again afterwards. Gives the wishes that the store refused.
    fn sell(&self, mishap: impl FnOnce(&Self) -> usize) -> Vec<Wish> {
        let wish =
            |user: usize, request: &str| Wish { user: format!("u{user}"), request: request.to_owned() };
        let wishes: Vec<Wish> = (0..BUYERS).map(|user| wish(user, "first")).collect();
        let mut receipts = std::thread::scope(|scope| {
            let crowd = scope.spawn(|| all_want(&self.addresses(), RESERVE, &wishes, &self.heard));
            let decided = mishap(self);
            let before = self.queued();
            self.until_queued(before + 1);
            // Nobody knows any more that these were let in, and what they wanted is not decided on: some ask for it once
            // more, and some want more.
            let undecided = (decided + AT_ONCE..decided + UNDECIDED - AT_ONCE).step_by(4);
            let again = undecided.flat_map(|user| [wish(user, "first"), wish(user + 1, "second")]);
            let mut receipts = all_want(&self.addresses(), RESERVE, &again.collect::<Vec<_>>(), &self.heard);
            comes_true("the gate has promised all that the store has", || {
                self.heard.of(|heard| &heard.sold_out) > 0
            });
            self.set_decisions("resume");
            receipts.extend(crowd.join().unwrap());
            receipts
        });
        receipts.sort_by(|one, other| one.wish.cmp(&other.wish));
        receipts.dedup_by(|one, other| one.wish == other.wish && one.reservation == other.reservation);
        // Until then a reservation that Redis has lost may be on its way: that nobody knows it proves nothing (DR-05).
        comes_true("decisions have caught up", || self.is_decided());
        let ends = self.follow(&receipts);
        eprintln!("{:?}; {} receipts ended {:?}", self.heard, receipts.len(), ends.figures());
        self.check(&ends);
        assert!(self.rebuilt() >= 2, "at its beginning, and after the loss");
        ends.refused.into_inner().unwrap()
    }

    /// Looks what became of every receipt; whose reservation nobody knows any more asks again.
    fn follow(&self, receipts: &[Receipt]) -> Ends {
        let ends = Ends::default();
        at_once(&self.addresses(), receipts, |lines, receipt| self.follow_one(lines, receipt, &ends));
        ends
    }

    fn follow_one(&self, lines: &mut [Line<'_>], receipt: &Receipt, ends: &Ends) {
        let path = format!("/v1/reservations/{}?wait_ms=5000", receipt.reservation);
        let mut was_lost = false;
        comes_true("a reservation is decided", || {
            let (status, found) = lines[0].ask("GET", &path, None).unwrap();
            if status == 404 {
                was_lost = true;
                let again = all_want_one(lines, &receipt.wish);
                return match again {
                    Some(reservation) => {
                        assert_eq!(reservation, receipt.reservation, "the same request has the same id");
                        false
                    }
                    None => Ends::count(&ends.lost),
                };
            }
            assert_eq!(status, 200, "{found}");
            match (found["status"].as_str().unwrap(), found["reason_code"].as_str()) {
                ("ORDER_CREATED", None) if was_lost => Ends::count(&ends.ordered_again),
                ("ORDER_CREATED", None) => Ends::count(&ends.ordered),
                ("COMPENSATED", Some("STOCK_SHORT")) => {
                    ends.refused.lock().unwrap().push(receipt.wish.clone());
                    Ends::count(&ends.stock_short)
                }
                ("COMPENSATED", Some("USER_LIMIT")) => Ends::count(&ends.user_limit),
                ("RESERVED" | "ORDER_REJECTED" | "COMPENSATING", _) => false,
                _ => panic!("{found}"),
            }
        });
    }

    fn until_counted(&self, units: usize, orders: usize) {
        let wanted = json!({"available": units - orders, "open_reserved": 0, "committed": orders});
        let mut admission = Value::Null;
        comes_true("admission's counters are those of the store", || {
            let found = self.nodes[1].get(SKU).1["admission"].clone();
            if found != admission {
                eprintln!("admission: {found}");
                admission = found;
            }
            admission == wanted
        });
    }

    /// Who was refused by the store asks again after Redis has lost that too, now that there is something: the refusal stands,
    /// and the gate keeps nothing for it.
    fn refusals_stand(&self, redis: &Redis, refused: &[Wish]) {
        let more = refused.len();
        let adjustment = json!({"delta": more, "reason": "found"});
        let path = format!("{SKU}/stock-adjustments");
        let body = Some(&adjustment);
        let (status, said) =
            house::ask_with(&self.nodes[0].address, "POST", &path, body, "idempotency-key: more\r\n")
                .unwrap();
        assert_eq!(status, 201, "{said}");
        assert_eq!(redis.ask(&["FLUSHALL"]), "OK");
        assert_eq!(self.admission(&["status", "sale", "a"])["open"], false, "looking opens nothing");
        let rebuilt = self.admission(&["rebuild", "sale", "a"]);
        let free = json!({"available": more, "open_reserved": 0, "committed": UNITS});
        assert_eq!((&rebuilt["open"], &rebuilt["admission"]), (&json!(true), &free), "{rebuilt}");
        let again = all_want(&self.addresses(), RESERVE, refused, &Heard::nothing());
        assert_eq!(again.len(), more, "the gate does not know them any more");
        self.until_counted(UNITS + more, UNITS);
        assert_eq!(self.orders(), UNITS);
        assert_eq!(self.nodes[0].get("/v1/ops/invariants").1["holds"], true);
    }

    fn check(&self, ends: &Ends) {
        let orders = self.orders();
        assert!(orders <= UNITS, "{orders} orders of {UNITS} units");
        assert_eq!(orders, ends.ordered.load(Ordering::Relaxed) + ends.ordered_again.load(Ordering::Relaxed));
        let doubles = "SELECT count(*) FROM (SELECT user_id FROM purchase WHERE order_status IS NOT NULL
            GROUP BY user_id HAVING count(*) > 1) AS twice";
        assert_eq!(self.database.number(doubles), 0, "buyers with two orders");
        self.until_counted(UNITS, orders);
        let (_, invariants) = self.nodes[0].get("/v1/ops/invariants");
        assert_eq!(invariants["holds"], true, "{invariants}");
        assert_eq!(self.nodes[0].get("/v1/ops/overview").1["quarantined"], 0, "nothing is left for a person");
        assert_eq!(self.nodes[0].get("/v1/ops/notices").1["data"], json!([]));
    }
}

/// Asks for it once more, until there is an answer.
fn all_want_one(lines: &mut [Line<'_>], wish: &Wish) -> Option<String> {
    crowd::want(lines, RESERVE, wish, &Heard::nothing()).map(|receipt| receipt.reservation)
}

/// How receipts ended.
#[derive(Default)]
struct Ends {
    /// As an order.
    ordered: AtomicUsize,
    /// As an order, after its buyer had to ask again.
    ordered_again: AtomicUsize,
    /// Refused by the store, because the gate had let in more than there was.
    stock_short: AtomicUsize,
    /// Refused by the store, because the buyer has an order.
    user_limit: AtomicUsize,
    /// Lost, and nothing was left when its buyer asked again.
    lost: AtomicUsize,
    /// Who was refused because the stock was short.
    refused: Mutex<Vec<Wish>>,
}

impl Ends {
    /// As the fields stand, but for the last.
    fn figures(&self) -> [usize; 5] {
        [&self.ordered, &self.ordered_again, &self.stock_short, &self.user_limit, &self.lost]
            .map(|count| count.load(Ordering::Relaxed))
    }

    fn count(which: &AtomicUsize) -> bool {
        which.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[test]
fn fs_18_redis_is_flushed_in_the_middle_of_a_sale_of_5000() {
    let redis = Redis::start("flushed");
    let sale = Sale::open("redis_flushed", &redis.url());
    let refused = sale.sell(|sale| {
        sale.until_queued(BEFORE);
        let known = sale.pile_up(&redis);
        sale.while_the_store_is_held_up(|| {
            assert_eq!(redis.ask(&["FLUSHALL"]), "OK");
            sale.until_closed();
        });
        known
    });
    assert!(!refused.is_empty(), "the gate has let in more than there was");
    sale.refusals_stand(&redis, &refused);
}

#[test]
fn fs_18_while_one_sale_is_rebuilt_nobody_else_is_refused() {
    const EACH: usize = 400;
    let redis = Redis::start("apart");
    let sale = Sale::open("redis_apart", &redis.url());
    let price = json!({"amount": 1999, "currency": "CNY"});
    let other = "/v1/activities/sale/skus/b";
    assert_eq!(
        sale.nodes[0].put(other, &json!({"stock": UNITS, "price": price, "per_user_limit": 1})).0,
        201
    );
    let wishes = |names: &str| -> Vec<Wish> {
        (0..EACH).map(|user| Wish { user: format!("{names}{user}"), request: "first".to_owned() }).collect()
    };
    let address = [&*sale.nodes[0].address];
    let (known, closed, open) = (Heard::nothing(), Heard::nothing(), Heard::nothing());
    let reserve_other = format!("{other}/reservations");
    for path in [RESERVE, &reserve_other] {
        all_want(&address, path, &wishes("early"), &known);
    }
    std::thread::scope(|scope| {
        sale.while_the_store_is_held_up(|| {
            assert_eq!(redis.ask(&["DEL", COUNTER]), "1");
            scope.spawn(|| all_want(&address, RESERVE, &wishes("late"), &closed));
            comes_true("the gate is seen closed", || closed.of(|heard| &heard.unavailable) > AT_ONCE);
            assert_eq!(all_want(&address, &reserve_other, &wishes("late"), &open).len(), EACH);
            assert_eq!(closed.of(|heard| &heard.queued), 0, "it is closed all the while");
        });
    });
    let refused = open.of(|heard| &heard.unavailable) + open.of(|heard| &heard.again);
    assert_eq!((refused, open.of(|heard| &heard.queued)), (0, EACH));
    assert_eq!(closed.of(|heard| &heard.queued), EACH, "it has opened by itself");
}

fn a_copy_that_lacks_the_last_500_is_promoted(name: &str, mut pair: Pair) {
    let sale = Sale::open(name, &pair.url());
    let refused = sale.sell(|sale| {
        sale.until_queued(BEFORE);
        pair.cut();
        sale.heard.allow(BEFORE + 500);
        sale.until_queued(BEFORE + 500);
        let known = sale.pile_up(pair.primary());
        sale.while_the_store_is_held_up(|| {
            let epoch = pair.copy.ask(&["HGET", COUNTER, "epoch"]);
            pair.take_over();
            sale.until_closed();
            assert_eq!(
                pair.copy.ask(&["HGET", COUNTER, "epoch"]),
                epoch,
                "nobody opens it before it is rebuilt"
            );
        });
        known
    });
    assert!(!refused.is_empty(), "the gate has let in more than there was");
}

#[test]
fn fs_18_a_copy_that_lacks_the_last_500_takes_the_primarys_place_in_a_sale_of_5000() {
    a_copy_that_lacks_the_last_500_is_promoted("redis_promoted", Pair::by_hand());
}

#[test]
fn fs_18_a_copy_that_lacks_the_last_500_is_promoted_by_sentinel_in_a_sale_of_5000() {
    a_copy_that_lacks_the_last_500_is_promoted("redis_sentinel", Pair::by_sentinel());
}
