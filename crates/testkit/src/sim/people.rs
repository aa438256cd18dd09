//! Buyers and back office: what they ask, and what they expect to hear.
//!
//! Invariants checked here, from outside: a repeat hears of the first reservation (FS-02); another body is refused;
//! two requests of one user never share a reservation. Every answer goes into the trace.

use std::sync::Arc;

use onceward::Engine;
use onceward::operations::catalogue::{self, AdjustStock, Idempotent, Render, SkuView};
use onceward::operations::order::{self, DirectOrder};
use onceward::operations::queue;
use onceward_domain::due::Lane;
use onceward_domain::error::Code;
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::time::Millis;

use super::group_people;
use super::job_people;
use super::money;
use super::net::Net;
use super::payer;
use super::scenario::{Then, Wish};

/// The SKU with this number; each has an activity of its own.
pub(crate) fn sku_key(number: usize) -> SkuKey {
    let activity = ActivityId::trusted(&format!("sale-{number}"));
    SkuKey { activity, sku: SkuId::trusted("sku") }
}

fn user_id(number: u64) -> UserId {
    UserId::trusted(&format!("user-{number}"))
}

/// Lets a wish come true, or not, and checks the answers.
pub(crate) async fn live(net: Net, at: Millis, wish: Wish) {
    net.world.sleep(at).await;
    match wish {
        Wish::Buy { sku, user, request, quantity, repeats, other_body, then } => {
            let request = RequestId::trusted(&format!("request-{request}"));
            let buyer = Buyer { net, key: sku_key(sku), user: user_id(user), request, quantity };
            buyer.buy(repeats, other_body, then).await;
        }
        Wish::Crowd { skus, first_user, buyers } => crowd(&net, skus, first_user, buyers).await,
        Wish::Direct { skus, user, request, then } => direct(&net, skus, user, request, then).await,
        Wish::Adjust { sku, delta, key } => adjust(&net, sku, delta, key).await,
        Wish::Gather(circle) => group_people::gather(net, circle).await,
        Wish::Produce(studio) => job_people::produce(net, studio).await,
    }
}

struct Buyer {
    net: Net,
    key: SkuKey,
    user: UserId,
    request: RequestId,
    quantity: u32,
}

fn command(engine: &Engine, key: &SkuKey, user: &UserId, request: &RequestId, quantity: u32) -> Reserve {
    let purchase = engine.keys().reservation(key, user, request);
    Reserve {
        purchase,
        older: Vec::new(),
        key: key.clone(),
        user: user.clone(),
        request: request.clone(),
        quantity,
    }
}

fn code_of(answer: &ReserveAnswer) -> u64 {
    match answer {
        ReserveAnswer::Queued { .. } => 0,
        ReserveAnswer::Repeat { .. } => 1,
        ReserveAnswer::RequestConflict => 2,
        ReserveAnswer::Unknown => 3,
        ReserveAnswer::NotOpen => 4,
        ReserveAnswer::LimitReached { .. } => 5,
        ReserveAnswer::SoldOut => 6,
    }
}

impl Buyer {
    async fn reserve(&self, quantity: u32) -> Option<ReserveAnswer> {
        let (key, user, request) = (self.key.clone(), self.user.clone(), self.request.clone());
        let asked = self.net.ask(move |engine: Engine| {
            let command = command(&engine, &key, &user, &request, quantity);
            async move { engine.admission().reserve(vec![command]).await }
        });
        let mut answers = asked.await?.ok()?;
        let answer = answers.pop()?;
        self.net.world.trace("reserve", code_of(&answer));
        match &answer {
            ReserveAnswer::Queued { reservation } | ReserveAnswer::Repeat { reservation, .. } => {
                match reservation.purchase() {
                    Ok(purchase) => self.net.world.promise(purchase, "QUEUED"),
                    Err(error) => self.net.world.violated(format!("an answer names no reservation: {error}")),
                }
            }
            ReserveAnswer::SoldOut => self.net.world.sometimes("sold_out"),
            ReserveAnswer::LimitReached { .. } => self.net.world.sometimes("limit_reached"),
            ReserveAnswer::RequestConflict => self.net.world.sometimes("request_conflict"),
            ReserveAnswer::Unknown | ReserveAnswer::NotOpen => {
                self.net.world.violated(format!("an open sale answered {answer:?}"));
            }
        }
        Some(answer)
    }

    async fn buy(&self, repeats: u32, other_body: bool, then: Then) {
        let world = &self.net.world;
        let first = self.reserve(self.quantity).await;
        let Some(ReserveAnswer::Queued { reservation } | ReserveAnswer::Repeat { reservation, .. }) = first
        else {
            return;
        };
        for _ in 0..repeats {
            world.sleep(Millis(world.draw(|rng| rng.between(0, 40_000)))).await;
            match self.reserve(self.quantity).await {
                Some(ReserveAnswer::Repeat { reservation: again, .. }) if again == reservation => {
                    world.sometimes("request_repeated");
                }
                other => world.violated(format!("FS-02: a repeat of {reservation} heard {other:?}")),
            }
        }
        if other_body {
            let heard = self.reserve(self.quantity + 1).await;
            if heard != Some(ReserveAnswer::RequestConflict) {
                world.violated(format!("FS-02: another body of {reservation} heard {heard:?}"));
            }
        }
        if then != Then::Leave
            && let Ok(purchase) = reservation.purchase()
        {
            self.act_when_ordered(purchase, then).await;
        }
    }

    /// Watches the reservation until it is decided, then pays or cancels the order, if there is one.
    async fn act_when_ordered(&self, purchase: PurchaseId, then: Then) {
        const LOOKS: u32 = 50;
        for _ in 0..LOOKS {
            let seen =
                self.net.ask(move |engine: Engine| async move { engine.admission().find(purchase).await });
            match seen.await {
                Some(Ok(Some(view))) => match view.purchase.reservation_status() {
                    Status::Reserved => {}
                    Status::OrderCreated => return act(&self.net, purchase, then).await,
                    Status::OrderRejected
                    | Status::Compensating
                    | Status::Compensated
                    | Status::Cancelled
                    | Status::ManualReview => return,
                },
                other => {
                    let heard = other.map(|answer| answer.map(|view| view.is_some()));
                    self.net.world.violated(format!("{purchase:?} was QUEUED and is not found: {heard:?}"));
                    return;
                }
            }
            let wait = self.net.world.draw(|rng| rng.between(500, 5_000));
            self.net.world.sleep(Millis(wait)).await;
        }
    }
}

async fn act(net: &Net, purchase: PurchaseId, then: Then) {
    match then {
        Then::Leave => {}
        Then::Cancel => cancel(net, purchase).await,
        Then::Pay => payer::pay(net, purchase).await,
    }
}

pub(crate) async fn cancel(net: &Net, purchase: PurchaseId) {
    let wish = move |engine: Engine| async move {
        order::cancel(&engine, purchase.order(), Arc::from("changed my mind"), Arc::from("buyer")).await
    };
    match net.ask(wish).await {
        Some(Ok(_)) => net.world.sometimes("cancelled_by_user"),
        Some(Err(Code::OrderNotCancellable)) if money::was_taken(&net.world, purchase) => {
            net.world.sometimes("cancel_came_too_late");
        }
        other => {
            net.world.violated(format!("cancelling {purchase:?} heard {:?}", other.map(|one| one.err())))
        }
    }
}

/// Distinct buyers in one call: the answers are as if they had come one by one.
async fn crowd(net: &Net, skus: Vec<usize>, first_user: u64, buyers: u64) {
    let asked = net.ask(move |engine: Engine| {
        let request = RequestId::trusted("crowd");
        let users = (first_user..first_user + buyers).map(user_id);
        let wanted = skus.iter().copied().cycle().map(sku_key);
        let commands = users.zip(wanted).map(|(user, key)| command(&engine, &key, &user, &request, 1));
        let commands = commands.collect();
        async move { engine.admission().reserve(commands).await }
    });
    let Some(Ok(answers)) = asked.await else { return };
    for answer in &answers {
        net.world.trace("crowd", code_of(answer));
        match answer {
            ReserveAnswer::Queued { reservation } | ReserveAnswer::Repeat { reservation, .. } => {
                if let Ok(purchase) = reservation.purchase() {
                    net.world.promise(purchase, "QUEUED in a crowd");
                }
            }
            ReserveAnswer::SoldOut => net.world.sometimes("sold_out"),
            ReserveAnswer::RequestConflict
            | ReserveAnswer::Unknown
            | ReserveAnswer::NotOpen
            | ReserveAnswer::LimitReached { .. } => {
                net.world.violated(format!("a new buyer in a crowd heard {answer:?}"))
            }
        }
    }
}

async fn direct(net: &Net, skus: Vec<usize>, user: u64, request: u64, then: Then) {
    let user = user_id(user);
    let request = RequestId::trusted(&format!("direct-{request}"));
    let lines: Vec<(SkuKey, u32)> = skus.into_iter().map(|sku| (sku_key(sku), 1)).collect();
    let place = move |engine: Engine| {
        let order = DirectOrder { user: user.clone(), request: request.clone(), lines: lines.clone() };
        async move { order::place(&engine, order).await }
    };
    let first = net.ask(place.clone()).await;
    let purchase = match first {
        Some(Ok(placed)) => placed.purchase.id,
        Some(Err(Code::LimitReached | Code::InsufficientStock | Code::RequestConflict)) => {
            return net.world.sometimes("direct_refused");
        }
        Some(Err(code)) => return net.world.violated(format!("a direct order heard {code:?}")),
        None => return,
    };
    net.world.sometimes("direct_order");
    net.world.promise(purchase, "a direct order");
    match net.ask(place).await {
        Some(Ok(again)) if again.repeated && again.purchase.id == purchase => {}
        other => {
            net.world.violated(format!("a repeated direct order heard {:?}", other.map(|one| one.err())))
        }
    }
    act(net, purchase, then).await;
}

/// A person's adjustment, sent twice under one key: it counts once.
async fn adjust(net: &Net, sku: usize, delta: i64, key: u64) {
    let render: Render<SkuView> = Arc::new(|answer| match answer {
        Ok(_) => (OK, Vec::new()),
        Err(error) => (REFUSED, error.code().as_str().as_bytes().to_vec()),
    });
    let name: Arc<str> = Arc::from(format!("back-office/adjustment-{key}"));
    let idempotent = Idempotent { key: name, fingerprint: [7; 32], render };
    let command = AdjustStock {
        key: sku_key(sku),
        delta,
        reason: Arc::from("counted again"),
        actor: Arc::from("back office"),
        idempotent,
    };
    let wish = move |engine: Engine| {
        let command = command.clone();
        async move { catalogue::adjust_stock(&engine, command).await }
    };
    let mut first = None;
    for _ in 0..2 {
        match net.ask(wish.clone()).await {
            Some(Ok(answer)) => {
                if *first.get_or_insert(answer.status) != answer.status {
                    net.world.violated(format!("a repeated adjustment heard {answer:?}"));
                }
            }
            Some(Err(code)) => return net.world.violated(format!("an adjustment heard {code:?}")),
            None => return,
        }
    }
    net.world.sometimes(if first == Some(OK) { "stock_adjusted" } else { "adjustment_refused" });
}

/// How the back office writes down an answer.
const OK: u16 = 200;
/// How it writes down a refusal.
const REFUSED: u16 = 409;

/// A person puts every dead letter back, after the trouble is over.
pub(crate) async fn replay_dead_letters(net: Net) {
    const PAGE: u32 = 200;
    let look = |engine: Engine| async move { queue::dead_letters(&engine, PAGE, None).await };
    let Some(Ok(letters)) = net.ask(look).await else { return };
    // Whoever opened a job sees to it.
    let of_jobs = Lane::new(Lane::JOB_RETRY).dead_letters();
    for letter in letters.into_iter().filter(|letter| letter.lane != of_jobs) {
        let member = letter.member.clone();
        let replay = move |engine: Engine| {
            let member = member.clone();
            async move { queue::replay_dead_letter(&engine, &member, "back office").await }
        };
        match net.ask(replay).await {
            Some(Ok(())) => net.world.sometimes("dead_letter_replayed"),
            other => net.world.violated(format!("replaying {} heard {other:?}", letter.member)),
        }
    }
}
