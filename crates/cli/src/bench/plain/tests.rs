//! What the plain way must do to be a baseline worth beating.

use super::*;
use std::path::PathBuf;

/// A folder of its own for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onceward-plain-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

impl PlainShop {
    fn count(&self, table: &str) -> i64 {
        self.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    /// Rows in the order inbox, reservation, orders, ledger, outbox, compensation.
    fn counts(&self) -> [i64; 6] {
        [
            "consumer_inbox",
            "inventory_reservation",
            "orders",
            "inventory_ledger",
            "event_outbox",
            "compensation_task",
        ]
        .map(|table| self.count(table))
    }

    fn stock(&self) -> (i64, i64) {
        let sql = "SELECT available_stock, occupied_stock FROM sku_inventory";
        self.connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }
}

#[test]
fn a_hundred_messages_are_a_hundred_orders() {
    let folder = Folder::new("hundred");
    let run = run(&folder.0, 100).unwrap();
    assert_eq!((run.messages, run.orders), (100, 100));
    assert!(run.orders_per_second() > 0.0);
    assert!(run.grown_per_order() > 0.0);
    assert!(run.written_per_order().is_none_or(|bytes| bytes > 0.0));

    let connection = Connection::open(folder.0.join("plain.db")).unwrap();
    let shop = PlainShop { connection };
    assert_eq!(shop.counts(), [100, 100, 100, 100, 100, 0]);
    assert_eq!(shop.stock(), (0, 100));
    let unsettled = "inventory_reservation WHERE status <> 'ORDER_CREATED' OR order_id IS NULL";
    assert_eq!(shop.count(unsettled), 0);
    assert_eq!(shop.count("consumer_inbox WHERE result_code <> 'ORDER_CREATED'"), 0);
}

#[test]
fn each_delivery_has_its_outcome() {
    let folder = Folder::new("outcomes");
    let mut shop = PlainShop::open(&folder.0, 2).unwrap();
    let first = Message::nth(0);
    let altered = Message { payload_hash: [7; 32], ..first.clone() };
    let same_user = Message { user_id: first.user_id, ..Message::nth(1) };
    let same_reservation = Message { reservation_id: first.reservation_id, ..Message::nth(4) };
    let deliveries = [
        (&first, PlainOutcome::OrderCreated, [1, 1, 1, 1, 1, 0], (1, 1)),
        (&first, PlainOutcome::Duplicate, [1, 1, 1, 1, 1, 0], (1, 1)),
        (&altered, PlainOutcome::PayloadConflict, [1, 1, 1, 1, 1, 0], (1, 1)),
        (&same_user, PlainOutcome::Rejected, [2, 2, 1, 1, 2, 1], (1, 1)),
        (&Message::nth(2), PlainOutcome::OrderCreated, [3, 3, 2, 2, 3, 1], (0, 2)),
        (&Message::nth(3), PlainOutcome::Rejected, [4, 4, 2, 2, 4, 2], (0, 2)),
        (&Message::nth(3), PlainOutcome::Duplicate, [4, 4, 2, 2, 4, 2], (0, 2)),
        (&same_reservation, PlainOutcome::AlreadySettled, [5, 4, 2, 2, 4, 2], (0, 2)),
    ];
    for (step, (message, outcome, counts, stock)) in deliveries.into_iter().enumerate() {
        assert_eq!(shop.consume(message).unwrap(), outcome, "step {step}");
        assert_eq!(shop.counts(), counts, "step {step}");
        assert_eq!(shop.stock(), stock, "step {step}");
    }
}

#[test]
fn a_commit_is_on_disk_when_it_is_answered() {
    let folder = Folder::new("durable");
    let shop = PlainShop::open(&folder.0, 1).unwrap();
    let pragma = |name: &str| -> String {
        let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
        shop.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!((pragma("journal_mode").as_str(), pragma("synchronous").as_str()), ("wal", "2"));
}

#[test]
fn an_existing_database_is_refused() {
    let folder = Folder::new("existing");
    run(&folder.0, 1).unwrap();
    assert!(matches!(run(&folder.0, 1), Err(PlainError::Sqlite(_))));
}
