//! The statements, one file each, under the name of their file.
//!
//! Invariant: no statement of the store is written anywhere else. Parameters have names for the reader and are bound by
//! position: the order in which the names first appear. Read next: any of the files.

macro_rules! queries {
    ($($name:ident = $path:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../queries/", $path, ".sql"));)*

        /// Every statement, with the path of its file.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($path, $name),)*];
    };
}

queries! {
    ACTIVITY_BY_ID = "activity/by_id";
    ACTIVITY_DUMP = "activity/dump";
    ACTIVITY_PUT = "activity/put";
    ACTIVITY_RESTORE = "activity/restore";
    ANSWER_AGED = "answer/aged";
    ANSWER_BY_KEY = "answer/by_key";
    ANSWER_DUMP = "answer/dump";
    ANSWER_FORGET = "answer/forget";
    ANSWER_INSERT = "answer/insert";
    ANSWER_RESTORE = "answer/restore";
    BUCKET_BY_REF = "bucket/by_ref";
    BUCKET_DUMP = "bucket/dump";
    BUCKET_INSERT = "bucket/insert";
    BUCKET_MOVE = "bucket/move";
    BUCKET_PEEK = "bucket/peek";
    BUCKET_RESTORE = "bucket/restore";
    CALLBACK_AGED = "callback/aged";
    CALLBACK_BY_EVENT = "callback/by_event";
    CALLBACK_DUMP = "callback/dump";
    CALLBACK_FORGET = "callback/forget";
    CALLBACK_INSERT = "callback/insert";
    CALLBACK_RESTORE = "callback/restore";
    COMPENSATION_BY_PURCHASE = "compensation/by_purchase";
    COMPENSATION_DUMP = "compensation/dump";
    COMPENSATION_INSERT = "compensation/insert";
    COMPENSATION_MOVE = "compensation/move";
    COMPENSATION_PEEK = "compensation/peek";
    COMPENSATION_RESTORE = "compensation/restore";
    COUNTER_ADVANCE = "counter/advance";
    COUNTER_DUMP = "counter/dump";
    COUNTER_RESTORE = "counter/restore";
    CREDIT_ACCOUNT_BY_ID = "credit_account/by_id";
    CREDIT_ACCOUNT_DUMP = "credit_account/dump";
    CREDIT_ACCOUNT_INSERT = "credit_account/insert";
    CREDIT_ACCOUNT_MOVE = "credit_account/move";
    CREDIT_ACCOUNT_PEEK = "credit_account/peek";
    CREDIT_ACCOUNT_RESTORE = "credit_account/restore";
    CREDIT_ACCOUNT_SEQ_OF = "credit_account/seq_of";
    CREDIT_BALANCE_DUMP = "credit_balance/dump";
    CREDIT_BALANCE_RESTORE = "credit_balance/restore";
    CREDIT_ENTRY_AT_NUMBER = "credit_entry/at_number";
    CREDIT_ENTRY_DUMP = "credit_entry/dump";
    CREDIT_ENTRY_INSERT = "credit_entry/insert";
    CREDIT_ENTRY_LAST_NUMBER = "credit_entry/last_number";
    CREDIT_ENTRY_LIST = "credit_entry/list";
    CREDIT_ENTRY_OF_REFERENCE = "credit_entry/of_reference";
    CREDIT_ENTRY_RESTORE = "credit_entry/restore";
    DUE_CLAIM_BY_ARRIVAL = "due/claim_by_arrival";
    DUE_CLAIM_BY_TIME = "due/claim_by_time";
    DUE_COMPLETE = "due/complete";
    DUE_DUMP = "due/dump";
    DUE_ENTRY = "due/entry";
    DUE_EXHAUST = "due/exhaust";
    DUE_EXTEND = "due/extend";
    DUE_HOLDING = "due/holding";
    DUE_LANES = "due/lanes";
    DUE_LATEST = "due/latest";
    DUE_LEASE = "due/lease";
    DUE_LIST = "due/list";
    DUE_NEXT = "due/next";
    DUE_PEEK = "due/peek";
    DUE_PUT = "due/put";
    DUE_REMOVE = "due/remove";
    DUE_REPLAY = "due/replay";
    DUE_RESCHEDULE = "due/reschedule";
    DUE_RESTORE = "due/restore";
    DUE_RETRY = "due/retry";
    DUE_SET_ASIDE = "due/set_aside";
    GROUP_ORDER_BY_ID = "group_order/by_id";
    GROUP_ORDER_DUMP = "group_order/dump";
    GROUP_ORDER_INSERT = "group_order/insert";
    GROUP_ORDER_LIST = "group_order/list";
    GROUP_ORDER_MOVE = "group_order/move";
    GROUP_ORDER_PEEK = "group_order/peek";
    GROUP_ORDER_RESTORE = "group_order/restore";
    GROUP_ORDER_SEQ_OF = "group_order/seq_of";
    GROUP_TRANSITION_DUMP = "group_transition/dump";
    GROUP_TRANSITION_INSERT = "group_transition/insert";
    GROUP_TRANSITION_OF_GROUP = "group_transition/of_group";
    GROUP_TRANSITION_RESTORE = "group_transition/restore";
    JOB_BY_ID = "job/by_id";
    JOB_DUMP = "job/dump";
    JOB_INSERT = "job/insert";
    JOB_MOVE = "job/move";
    JOB_RESTORE = "job/restore";
    JOB_SEQ_OF = "job/seq_of";
    LANE_ALL = "lane/all";
    LANE_CLAIMED = "lane/claimed";
    LANE_DUMP = "lane/dump";
    LANE_IS_PAUSED = "lane/is_paused";
    LANE_RESTORE = "lane/restore";
    LANE_SET_PAUSED = "lane/set_paused";
    NOTICE_AGED = "notice/aged";
    NOTICE_BY_ID = "notice/by_id";
    NOTICE_DUMP = "notice/dump";
    NOTICE_FORGET = "notice/forget";
    NOTICE_INSERT = "notice/insert";
    NOTICE_LIST = "notice/list";
    NOTICE_MOVE = "notice/move";
    NOTICE_PEEK = "notice/peek";
    NOTICE_RESTORE = "notice/restore";
    OPEN_CASE_DUMP = "open_case/dump";
    OPEN_CASE_INSERT = "open_case/insert";
    OPEN_CASE_LIST = "open_case/list";
    OPEN_CASE_RESTORE = "open_case/restore";
    ORDER_LINE_ANY = "order_line/any";
    ORDER_LINE_CLASH = "order_line/clash";
    ORDER_LINE_DUMP = "order_line/dump";
    ORDER_LINE_INSERT = "order_line/insert";
    ORDER_LINE_MOVE_PLACE = "order_line/move_place";
    ORDER_LINE_OF_BUYER = "order_line/of_buyer";
    ORDER_LINE_OF_PURCHASE = "order_line/of_purchase";
    ORDER_LINE_RESTORE = "order_line/restore";
    PARTICIPANT_BY_USER = "participant/by_user";
    PARTICIPANT_DUMP = "participant/dump";
    PARTICIPANT_INSERT = "participant/insert";
    PARTICIPANT_MOVE = "participant/move";
    PARTICIPANT_OF_GROUP = "participant/of_group";
    PARTICIPANT_PEEK = "participant/peek";
    PARTICIPANT_REMOVE = "participant/remove";
    PARTICIPANT_RESTORE = "participant/restore";
    PAYMENT_BY_ID = "payment/by_id";
    PAYMENT_DUMP = "payment/dump";
    PAYMENT_INSERT = "payment/insert";
    PAYMENT_MOVE = "payment/move";
    PAYMENT_OF_PURCHASE = "payment/of_purchase";
    PAYMENT_PEEK = "payment/peek";
    PAYMENT_RESTORE = "payment/restore";
    PURCHASE_BY_ID = "purchase/by_id";
    PURCHASE_BY_SEQ = "purchase/by_seq";
    PURCHASE_CLASH = "purchase/clash";
    PURCHASE_CREATE_ORDER = "purchase/create_order";
    PURCHASE_DUMP = "purchase/dump";
    PURCHASE_EXPIRIES = "purchase/expiries";
    PURCHASE_INSERT = "purchase/insert";
    PURCHASE_LATEST = "purchase/latest";
    PURCHASE_LIST = "purchase/list";
    PURCHASE_LIST_OF_USER = "purchase/list_of_user";
    PURCHASE_MOVE_ADMISSION = "purchase/move_admission";
    PURCHASE_MOVE_INBOX = "purchase/move_inbox";
    PURCHASE_MOVE_ORDER = "purchase/move_order";
    PURCHASE_MOVE_PLACE = "purchase/move_place";
    PURCHASE_MOVE_RESERVATION = "purchase/move_reservation";
    PURCHASE_OF_BUYER = "purchase/of_buyer";
    PURCHASE_PEEK = "purchase/peek";
    PURCHASE_RESTORE = "purchase/restore";
    PURCHASE_SEQ_OF = "purchase/seq_of";
    QUARANTINE_DUMP = "quarantine/dump";
    QUARANTINE_INSERT = "quarantine/insert";
    QUARANTINE_RESTORE = "quarantine/restore";
    REFUND_BY_ID = "refund/by_id";
    REFUND_DUMP = "refund/dump";
    REFUND_INSERT = "refund/insert";
    REFUND_MOVE = "refund/move";
    REFUND_OF_PURCHASE = "refund/of_purchase";
    REFUND_PEEK = "refund/peek";
    REFUND_RESTORE = "refund/restore";
    SCHEMA_COUNT = "schema/count";
    SCHEMA_OCCUPIED = "schema/occupied";
    SKU_ALL = "sku/all";
    SKU_BY_REF = "sku/by_ref";
    SKU_CHANGE_TERMS = "sku/change_terms";
    SKU_DUMP = "sku/dump";
    SKU_INSERT = "sku/insert";
    SKU_KEY_OF = "sku/key_of";
    SKU_LIST = "sku/list";
    SKU_MOVE_STOCK = "sku/move_stock";
    SKU_PEEK = "sku/peek";
    SKU_REF_OF = "sku/ref_of";
    SKU_RESTORE = "sku/restore";
    STATE_PUT = "state/put";
    STOCK_ENTRY_DUMP = "stock_entry/dump";
    STOCK_ENTRY_INSERT = "stock_entry/insert";
    STOCK_ENTRY_RESTORE = "stock_entry/restore";
    TALLY_BALANCE_CONTRADICTIONS = "tally/balance_contradictions";
    TALLY_BUYERS_OVER_LIMIT = "tally/buyers_over_limit";
    TALLY_CANCELS_WITHOUT_RELEASE = "tally/cancels_without_release";
    TALLY_CASES = "tally/cases";
    TALLY_CREDIT_COUNTS = "tally/credit_counts";
    TALLY_GROUP_CONTRADICTIONS = "tally/group_contradictions";
    TALLY_GROUP_COUNTS = "tally/group_counts";
    TALLY_GROUPS = "tally/groups";
    TALLY_GROUPS_UNSCHEDULED = "tally/groups_unscheduled";
    TALLY_INBOX_CONTRADICTIONS = "tally/inbox_contradictions";
    TALLY_JOB_CONTRADICTIONS = "tally/job_contradictions";
    TALLY_JOBS_NOWHERE = "tally/jobs_nowhere";
    TALLY_JOURNAL = "tally/journal";
    TALLY_LEDGER = "tally/ledger";
    TALLY_MONEY_CONTRADICTIONS = "tally/money_contradictions";
    TALLY_QUARANTINED = "tally/quarantined";
    TALLY_REJECTIONS_WITHOUT_TASK = "tally/rejections_without_task";
    TALLY_TASKS_WITHOUT_REJECTION = "tally/tasks_without_rejection";
    TALLY_WALLET_CONTRADICTIONS = "tally/wallet_contradictions";
    TRANSITION_DUMP = "transition/dump";
    TRANSITION_INSERT = "transition/insert";
    TRANSITION_LATEST = "transition/latest";
    TRANSITION_OF_PURCHASE = "transition/of_purchase";
    TRANSITION_RESTORE = "transition/restore";
    WORD_DUMP = "word/dump";
    WORD_INSERT = "word/insert";
    WORD_REF_OF = "word/ref_of";
    WORD_RESTORE = "word/restore";
    WORD_TEXT_OF = "word/text_of";
}

#[cfg(test)]
mod tests {
    //! Every statement fits the tables, every file is listed, and the hot statements use the index they name.

    use std::fs;
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::migrate::{MIGRATIONS, migrate};

    fn fresh() -> Connection {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, Path::new("fresh"), MIGRATIONS).unwrap();
        conn
    }

    fn plan(conn: &Connection, sql: &str) -> String {
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines =
            statement.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<Vec<_>, _>>();
        lines.unwrap().join("; ")
    }

    #[test]
    fn every_statement_can_be_prepared() {
        let conn = fresh();
        for (path, sql) in ALL {
            conn.prepare(sql).unwrap_or_else(|cause| panic!("{path}: {cause}"));
        }
    }

    #[test]
    fn every_file_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
        let mut files = Vec::new();
        for noun in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            for verb in fs::read_dir(&noun).unwrap().map(|entry| entry.unwrap().path()) {
                let path = verb.strip_prefix(&folder).unwrap().with_extension("");
                files.push(path.to_str().unwrap().replace('\\', "/"));
            }
        }
        files.sort();
        let listed: Vec<&str> = ALL.iter().map(|(path, _)| *path).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn hot_statements_use_their_index() {
        let conn = fresh();
        for (sql, expected) in [
            (PURCHASE_BY_ID, "SEARCH p USING INDEX purchase_by_id (id=?)"),
            (
                PURCHASE_OF_BUYER,
                "SEARCH p USING INDEX purchase_by_place (user_id=? AND sku_ref=? AND place>?)",
            ),
            (
                ORDER_LINE_ANY,
                "SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SCAN order_line USING COVERING INDEX order_line_by_place",
            ),
            (
                ORDER_LINE_OF_BUYER,
                "SEARCH order_line USING COVERING INDEX order_line_by_place (user_id=? AND sku_ref=? AND place>?)",
            ),
            (ORDER_LINE_OF_PURCHASE, "SEARCH order_line USING PRIMARY KEY (purchase=?)"),
            (PURCHASE_CREATE_ORDER, "SEARCH purchase USING INTEGER PRIMARY KEY (rowid=?)"),
            (PURCHASE_MOVE_ORDER, "SEARCH purchase USING INTEGER PRIMARY KEY (rowid=?)"),
            (PURCHASE_EXPIRIES, "SEARCH purchase USING INDEX purchase_by_expiry (may_expire_at>?)"),
            (SKU_MOVE_STOCK, "SEARCH sku USING INTEGER PRIMARY KEY (rowid=?)"),
            (DUE_CLAIM_BY_TIME, "SEARCH due USING INDEX due_by_time (lane=? AND due_at<?)"),
            (DUE_CLAIM_BY_ARRIVAL, "SEARCH due USING INDEX due_by_arrival (lane=?)"),
            (DUE_NEXT, "SEARCH due USING COVERING INDEX due_by_time (lane=?)"),
            (DUE_COMPLETE, "SEARCH due USING INDEX sqlite_autoindex_due_1 (lane=? AND member=?)"),
            (DUE_ENTRY, "SEARCH due USING INDEX sqlite_autoindex_due_1 (lane=? AND member=?)"),
            (LANE_IS_PAUSED, "SEARCH lane USING INTEGER PRIMARY KEY (rowid=?)"),
            (
                PARTICIPANT_OF_GROUP,
                "SEARCH g USING INDEX sqlite_autoindex_group_order_1 (id=?); SEARCH p USING PRIMARY KEY (group_ref=?)",
            ),
            (PARTICIPANT_MOVE, "SEARCH participant USING PRIMARY KEY (group_ref=? AND user_id=?)"),
            (GROUP_TRANSITION_OF_GROUP, "SEARCH t USING INDEX group_transition_by_group (group_ref=?)"),
            (CREDIT_ENTRY_AT_NUMBER, "SEARCH credit_entry USING PRIMARY KEY (account=? AND number=?)"),
            (CREDIT_ENTRY_LAST_NUMBER, "SEARCH credit_entry USING PRIMARY KEY (account=?)"),
            (
                CREDIT_ENTRY_LIST,
                "SEARCH e USING PRIMARY KEY (account=? AND number<?); SEARCH j USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            ),
            (
                CREDIT_ENTRY_OF_REFERENCE,
                "SEARCH a USING COVERING INDEX sqlite_autoindex_credit_account_1 (id=?); \
                 SEARCH e USING INDEX credit_entry_once_per_reference (account=? AND reference=?)",
            ),
            (CREDIT_ACCOUNT_MOVE, "SEARCH credit_account USING INTEGER PRIMARY KEY (rowid=?)"),
            (TRANSITION_OF_PURCHASE, "SEARCH t USING INDEX transition_by_purchase (purchase=?)"),
        ] {
            assert_eq!(plan(&conn, sql), expected);
        }
    }
}
