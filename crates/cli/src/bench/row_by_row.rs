//! The plain way of cluster mode: the tables and the transaction of reference 003 (§8.5, §9.3) in PostgreSQL, one transaction
//! a message.
//!
//! Purpose: the baseline for durable orders per second, in two forms: eleven statements one after the other, as the reference
//! has it, and the same as one call of a function, which saves the round trips.
//!
//! Invariants: a client ends with the first message that does not become an order, so that too few orders tell of it; each
//! client has a session of its own and handles one message after the other; the server's settings are its own. Kept fair:
//! statements are prepared before the clock starts, times are the server's, and the message comes decoded with its hash.
//!
//! Deliberately absent: copies, rejections and batches, and the engine. Read next: `row_by_row/insert_inbox.sql`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};
use uuid::Uuid;

use super::plain::{ACTIVITY, CONSUMER_GROUP, DEADLINE_MS, Message, RESERVED_AT, TOPIC};
use super::server;

const SCHEMA: [&str; 9] = [
    include_str!("row_by_row/create_consumer_inbox.sql"),
    include_str!("row_by_row/create_inventory_reservation.sql"),
    include_str!("row_by_row/create_inventory_reservation_reconcile.sql"),
    include_str!("row_by_row/create_sku_inventory.sql"),
    include_str!("row_by_row/create_orders.sql"),
    include_str!("row_by_row/create_inventory_ledger.sql"),
    include_str!("row_by_row/create_event_outbox.sql"),
    include_str!("row_by_row/create_event_outbox_dispatch.sql"),
    include_str!("row_by_row/create_consume.sql"),
];
const INSERT_STOCK: &str = include_str!("row_by_row/insert_stock.sql");
const COUNT_ORDERS: &str = include_str!("row_by_row/count_orders.sql");
const CALL_CONSUME: &str = include_str!("row_by_row/call_consume.sql");
/// The statements between `BEGIN` and `COMMIT`, in their order.
const STATEMENTS: [&str; 9] = [
    include_str!("row_by_row/insert_inbox.sql"),
    include_str!("row_by_row/upsert_reservation.sql"),
    include_str!("row_by_row/load_reservation.sql"),
    include_str!("row_by_row/take_stock.sql"),
    include_str!("row_by_row/insert_order.sql"),
    include_str!("row_by_row/settle_reservation.sql"),
    include_str!("row_by_row/insert_ledger.sql"),
    include_str!("row_by_row/insert_outbox.sql"),
    include_str!("row_by_row/finish_inbox.sql"),
];
const STOCK: i64 = 1_000_000_000;

/// How a message's transaction is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Statement by statement.
    Statements,
    /// As one call of a function.
    OneCall,
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How.
    pub(crate) form: Form,
    /// Sessions at work at once.
    pub(crate) clients: u64,
    /// SKUs that the messages are spread over.
    pub(crate) skus: u64,
    /// Messages.
    pub(crate) messages: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Orders that are there.
    pub(crate) orders: u64,
    /// From the first message to the last commit.
    pub(crate) elapsed: Duration,
    /// By how much the server's log grew meanwhile, whoever wrote it.
    pub(crate) log_bytes: u64,
}

impl Run {
    /// Durable orders per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.orders as f64 / self.elapsed.as_secs_f64()
    }

    /// Bytes of the server's log for each order.
    pub(crate) fn log_bytes_per_order(&self) -> f64 {
        self.log_bytes as f64 / self.orders as f64
    }
}

/// Handles messages in fresh tables, in the schema that sessions of this URL find first.
///
/// # Errors
/// The server's, where tables of these names are there already as well.
pub(crate) async fn run(url: &str, plan: Plan) -> Result<Run, Error> {
    let admin = server::connect(url).await?;
    for statement in SCHEMA {
        admin.batch_execute(statement).await?;
    }
    let skus = i64::try_from(plan.skus).unwrap_or(i64::MAX);
    admin.execute(INSERT_STOCK, &[&ACTIVITY, &skus, &STOCK]).await?;
    let ready = Arc::new(Barrier::new(usize::try_from(plan.clients).unwrap_or(usize::MAX).saturating_add(1)));
    let mut clients = JoinSet::new();
    for lane in 0..plan.clients {
        let worker = Worker::new(server::connect(url).await?, plan.form).await?;
        let ready = Arc::clone(&ready);
        clients.spawn(async move {
            ready.wait().await;
            for number in (lane..plan.messages).step_by(usize::try_from(plan.clients).unwrap_or(1)) {
                if !worker.consume(number, plan.skus).await? {
                    break;
                }
            }
            Ok::<_, Error>(())
        });
    }
    let log_before = server::log_position(&admin).await?;
    ready.wait().await;
    let started = Instant::now();
    for ended in clients.join_all().await {
        ended?;
    }
    let elapsed = started.elapsed();
    let log_bytes = server::log_position(&admin).await?.saturating_sub(log_before);
    let orders: i64 = admin.query_one(COUNT_ORDERS, &[]).await?.get(0);
    Ok(Run { orders: orders.unsigned_abs(), elapsed, log_bytes })
}

/// A session with its statements.
struct Worker {
    client: Client,
    statements: Vec<Statement>,
}

impl Worker {
    async fn new(client: Client, form: Form) -> Result<Self, Error> {
        let texts = match form {
            Form::Statements => STATEMENTS.as_slice(),
            Form::OneCall => &[CALL_CONSUME],
        };
        let mut statements = Vec::with_capacity(texts.len());
        for text in texts {
            statements.push(client.prepare(text).await?);
        }
        Ok(Self { client, statements })
    }

    /// Whether the message has become an order.
    async fn consume(&self, number: u64, skus: u64) -> Result<bool, Error> {
        let message = Values::of(&Message::nth(number), 1 + number % skus);
        if let [call] = self.statements.as_slice() {
            self.client.query_one(call, &message.all()).await?;
            return Ok(true);
        }
        self.client.batch_execute("BEGIN").await?;
        for (statement, values) in self.statements.iter().zip(message.by_statement()) {
            if self.client.execute(statement, &values).await? != 1 {
                return Ok(false);
            }
        }
        self.client.batch_execute("COMMIT").await?;
        Ok(true)
    }
}

type Parameter<'a> = &'a (dyn ToSql + Sync);

/// A message as the statements take it.
struct Values {
    message: Uuid,
    reservation: Uuid,
    request: Uuid,
    order: Uuid,
    event: Uuid,
    user: i64,
    sku: i64,
    deadline: i64,
    hash: Vec<u8>,
    payload: String,
}

impl Values {
    fn of(message: &Message, sku: u64) -> Self {
        let [reservation, order] = [message.reservation_id, message.order_id].map(Uuid::from_bytes);
        let (user, sku) = (message.user_id, i64::try_from(sku).unwrap_or(1));
        let payload = format!(
            "{{\"order_id\":\"{order}\",\"reservation_id\":\"{reservation}\",\"activity_id\":{ACTIVITY},\"sku_id\":{sku},\"user_id\":{user}}}"
        );
        Self {
            message: Uuid::from_bytes(message.message_id),
            reservation,
            request: Uuid::from_bytes(message.request_id),
            order,
            event: Uuid::from_bytes(message.event_id),
            user,
            sku,
            deadline: RESERVED_AT + DEADLINE_MS,
            hash: message.payload_hash.to_vec(),
            payload,
        }
    }

    /// The values of each of [`STATEMENTS`].
    fn by_statement(&self) -> [Vec<Parameter<'_>>; 9] {
        let Self { message, reservation, request, order, event, user, sku, deadline, hash, payload } = self;
        [
            vec![&CONSUMER_GROUP, message, &TOPIC, reservation, request, hash],
            vec![reservation, request, &ACTIVITY, sku, user, message, &RESERVED_AT, deadline],
            vec![reservation],
            vec![&ACTIVITY, sku],
            vec![order, &ACTIVITY, sku, user, request, reservation],
            vec![reservation, order],
            vec![&ACTIVITY, sku, reservation, order],
            vec![event, order, payload],
            vec![&CONSUMER_GROUP, message, order],
        ]
    }

    /// The arguments of the function.
    fn all(&self) -> [Parameter<'_>; 14] {
        let Self { message, reservation, request, order, event, user, sku, deadline, hash, payload } = self;
        [
            &CONSUMER_GROUP,
            message,
            &TOPIC,
            reservation,
            request,
            hash,
            &ACTIVITY,
            sku,
            user,
            &RESERVED_AT,
            deadline,
            order,
            event,
            payload,
        ]
    }
}
