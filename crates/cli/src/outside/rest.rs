//! Whether a server has come to rest: nothing is on its way any more.

use serde_json::Value;

use crate::client::Answer;

/// Which queues may hold members whose time has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Those of orders, which somebody may still pay, and those of reservations.
    OrdersAndReservations,
    /// Those of reservations alone: every order's time has come.
    Reservations,
}

/// Queues with something to do, each with its size.
pub(crate) fn busy_queues(overview: &Answer, ahead: Ahead) -> Vec<String> {
    let now = overview.text("now");
    let queues = overview.body["queues"].as_array().map_or(&[][..], Vec::as_slice);
    let is_busy = |queue: &&Value| {
        let name = queue["name"].as_str().unwrap_or_default();
        let may_wait = match name {
            "deadline" | "journal" => true,
            "order_expiry" => ahead == Ahead::OrdersAndReservations,
            _ => false,
        };
        // Times of one form compare as texts do.
        let lies_ahead = queue["next_due_at"].as_str().is_some_and(|due| due > now);
        queue["size"] != 0 && !(may_wait && queue["leased"] == 0 && lies_ahead)
    };
    let name = |queue: &Value| format!("{} {}", queue["name"].as_str().unwrap_or("?"), queue["size"]);
    queues.iter().filter(is_busy).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_due_times_that_lie_ahead_are_rest() {
        let queue = |name: &str, size: u32, leased: u32, due: &str| json!({"name": name, "size": size, "leased": leased, "next_due_at": due, "oldest_at": null});
        let (both, reservations) = (Ahead::OrdersAndReservations, Ahead::Reservations);
        let cases = [
            (queue("order_expiry", 2, 0, "2026-01-01T00:00:01.000Z"), both, false),
            (queue("order_expiry", 2, 0, "2026-01-01T00:00:01.000Z"), reservations, true),
            (queue("order_expiry", 2, 0, "2026-01-01T00:00:00.000Z"), both, true),
            (queue("deadline", 2, 0, "2026-01-01T00:00:01.000Z"), reservations, false),
            (queue("deadline", 2, 1, "2026-01-01T00:00:01.000Z"), both, true),
            (queue("outbox", 1, 0, "2026-01-01T00:00:01.000Z"), both, true),
            (queue("dead/outbox", 1, 0, "2026-01-01T00:00:01.000Z"), both, true),
        ];
        for (queue, ahead, is_busy) in cases {
            let body = json!({"now": "2026-01-01T00:00:00.000Z", "queues": [queue]});
            let overview = Answer { status: 200, body };
            let found = busy_queues(&overview, ahead);
            assert_eq!(!found.is_empty(), is_busy, "{found:?}");
        }
    }
}
