//! The statements, one file each, under the name of their file.
//!
//! Invariant: no statement of the store is written anywhere else. Lists are bound as arrays, one for each column, and come
//! in as rows through `unnest`: one statement for any number of them. Read next: any of the files.

macro_rules! queries {
    ($($name:ident = $path:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../queries/", $path, ".sql"));)*

        /// Every statement, with the path of its file.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($path, $name),)*];
    };
}

queries! {
    ACTIVITY_BY_IDS = "activity/by_ids";
    ACTIVITY_DUMP = "activity/dump";
    ACTIVITY_LOCK = "activity/lock";
    ACTIVITY_PUT = "activity/put";
    ACTIVITY_RESTORE = "activity/restore";
    ANSWER_AGED = "answer/aged";
    ANSWER_BY_KEYS = "answer/by_keys";
    ANSWER_DUMP = "answer/dump";
    ANSWER_FORGET = "answer/forget";
    ANSWER_INSERT = "answer/insert";
    ANSWER_RESTORE = "answer/restore";
    BUCKET_BY_REFS = "bucket/by_refs";
    BUCKET_DUMP = "bucket/dump";
    BUCKET_INSERT = "bucket/insert";
    BUCKET_LOCK = "bucket/lock";
    BUCKET_MOVE = "bucket/move";
    BUCKET_PEEK = "bucket/peek";
    BUCKET_RESTORE = "bucket/restore";
    CALLBACK_AGED = "callback/aged";
    CALLBACK_BY_EVENTS = "callback/by_events";
    CALLBACK_DUMP = "callback/dump";
    CALLBACK_FORGET = "callback/forget";
    CALLBACK_INSERT = "callback/insert";
    CALLBACK_RESTORE = "callback/restore";
    COMPENSATION_BY_PURCHASES = "compensation/by_purchases";
    COMPENSATION_DUMP = "compensation/dump";
    COMPENSATION_INSERT = "compensation/insert";
    COMPENSATION_LOCK = "compensation/lock";
    COMPENSATION_MOVE = "compensation/move";
    COMPENSATION_PEEK = "compensation/peek";
    COMPENSATION_RESTORE = "compensation/restore";
    COUNTER_DUMP = "counter/dump";
    COUNTER_RESTORE = "counter/restore";
    CREDIT_ACCOUNT_BY_IDS = "credit_account/by_ids";
    CREDIT_ACCOUNT_DUMP = "credit_account/dump";
    CREDIT_ACCOUNT_GUARD = "credit_account/guard";
    CREDIT_ACCOUNT_INSERT = "credit_account/insert";
    CREDIT_ACCOUNT_LOCK = "credit_account/lock";
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
    CREDIT_ENTRY_OF_REFERENCES = "credit_entry/of_references";
    CREDIT_ENTRY_RESTORE = "credit_entry/restore";
    DUE_CLAIM_BY_ARRIVAL = "due/claim_by_arrival";
    DUE_CLAIM_BY_TIME = "due/claim_by_time";
    DUE_COMPLETE = "due/complete";
    DUE_DUMP = "due/dump";
    DUE_ENTRIES = "due/entries";
    DUE_EXHAUST = "due/exhaust";
    DUE_EXTEND = "due/extend";
    DUE_HELD = "due/held";
    DUE_HOLDING = "due/holding";
    DUE_LANES = "due/lanes";
    DUE_LIST = "due/list";
    DUE_LOCK = "due/lock";
    DUE_LOCK_LANE = "due/lock_lane";
    DUE_LOCK_PAUSE = "due/lock_pause";
    DUE_MAKE_WAY = "due/make_way";
    DUE_NEXT = "due/next";
    DUE_PEEK = "due/peek";
    DUE_PUT = "due/put";
    DUE_REMOVE = "due/remove";
    DUE_REPLAY = "due/replay";
    DUE_RESCHEDULE = "due/reschedule";
    DUE_RESTORE = "due/restore";
    DUE_RETRY = "due/retry";
    DUE_SET_ASIDE = "due/set_aside";
    DUE_TWICE = "due/twice";
    GROUP_ORDER_BY_IDS = "group_order/by_ids";
    GROUP_ORDER_DUMP = "group_order/dump";
    GROUP_ORDER_INSERT = "group_order/insert";
    GROUP_ORDER_LIST = "group_order/list";
    GROUP_ORDER_LOCK = "group_order/lock";
    GROUP_ORDER_MOVE = "group_order/move";
    GROUP_ORDER_PEEK = "group_order/peek";
    GROUP_ORDER_RESTORE = "group_order/restore";
    GROUP_TRANSITION_DUMP = "group_transition/dump";
    GROUP_TRANSITION_INSERT = "group_transition/insert";
    GROUP_TRANSITION_OF_GROUP = "group_transition/of_group";
    GROUP_TRANSITION_RESTORE = "group_transition/restore";
    JOB_BY_IDS = "job/by_ids";
    JOB_DUMP = "job/dump";
    JOB_INSERT = "job/insert";
    JOB_LOCK = "job/lock";
    JOB_MOVE = "job/move";
    JOB_PEEK = "job/peek";
    JOB_RESTORE = "job/restore";
    LANE_ALL = "lane/all";
    LANE_CLAIMED = "lane/claimed";
    LANE_DUMP = "lane/dump";
    LANE_IS_PAUSED = "lane/is_paused";
    LANE_OPEN = "lane/open";
    LANE_RESTORE = "lane/restore";
    LANE_SET_PAUSED = "lane/set_paused";
    MIGRATION_IS_THERE = "migration/is_there";
    MIGRATION_LOCK = "migration/lock";
    MIGRATION_MAKE = "migration/make";
    MIGRATION_NOTE = "migration/note";
    MIGRATION_VERSION = "migration/version";
    NOTICE_AGED = "notice/aged";
    NOTICE_BY_IDS = "notice/by_ids";
    NOTICE_DUMP = "notice/dump";
    NOTICE_FORGET = "notice/forget";
    NOTICE_INSERT = "notice/insert";
    NOTICE_LIST = "notice/list";
    NOTICE_LOCK = "notice/lock";
    NOTICE_MOVE = "notice/move";
    NOTICE_PEEK = "notice/peek";
    NOTICE_RESTORE = "notice/restore";
    OPEN_CASE_DUMP = "open_case/dump";
    OPEN_CASE_INSERT = "open_case/insert";
    OPEN_CASE_LIST = "open_case/list";
    OPEN_CASE_RESTORE = "open_case/restore";
    ORDER_LINE_CLASH = "order_line/clash";
    ORDER_LINE_DUMP = "order_line/dump";
    ORDER_LINE_FREE = "order_line/free";
    ORDER_LINE_INSERT = "order_line/insert";
    ORDER_LINE_MOVE_PLACE = "order_line/move_place";
    ORDER_LINE_OF_PURCHASES = "order_line/of_purchases";
    ORDER_LINE_RESTORE = "order_line/restore";
    PARTICIPANT_BY_USERS = "participant/by_users";
    PARTICIPANT_DUMP = "participant/dump";
    PARTICIPANT_INSERT = "participant/insert";
    PARTICIPANT_LOCK = "participant/lock";
    PARTICIPANT_LOCK_OF_GROUPS = "participant/lock_of_groups";
    PARTICIPANT_MOVE = "participant/move";
    PARTICIPANT_OF_GROUPS = "participant/of_groups";
    PARTICIPANT_PEEK = "participant/peek";
    PARTICIPANT_REMOVE = "participant/remove";
    PARTICIPANT_RESTORE = "participant/restore";
    PAYMENT_BY_IDS = "payment/by_ids";
    PAYMENT_DUMP = "payment/dump";
    PAYMENT_INSERT = "payment/insert";
    PAYMENT_LOCK = "payment/lock";
    PAYMENT_MOVE = "payment/move";
    PAYMENT_PEEK = "payment/peek";
    PAYMENT_RESTORE = "payment/restore";
    PURCHASE_BY_IDS = "purchase/by_ids";
    PURCHASE_CLASH = "purchase/clash";
    PURCHASE_CREATE_ORDER = "purchase/create_order";
    PURCHASE_DIRECT_OF_BUYERS = "purchase/direct_of_buyers";
    PURCHASE_DUMP = "purchase/dump";
    PURCHASE_EXPIRIES = "purchase/expiries";
    PURCHASE_FREE = "purchase/free";
    PURCHASE_INSERT = "purchase/insert";
    PURCHASE_KNOWN = "purchase/known";
    PURCHASE_LIST = "purchase/list";
    PURCHASE_LIST_OF_USER = "purchase/list_of_user";
    PURCHASE_LOCK = "purchase/lock";
    PURCHASE_MOVE_ADMISSION = "purchase/move_admission";
    PURCHASE_MOVE_INBOX = "purchase/move_inbox";
    PURCHASE_MOVE_ORDER = "purchase/move_order";
    PURCHASE_MOVE_RESERVATION = "purchase/move_reservation";
    PURCHASE_OF_BUYERS = "purchase/of_buyers";
    PURCHASE_PEEK = "purchase/peek";
    PURCHASE_RESTORE = "purchase/restore";
    QUARANTINE_DUMP = "quarantine/dump";
    QUARANTINE_INSERT = "quarantine/insert";
    QUARANTINE_RESTORE = "quarantine/restore";
    REFUND_BY_IDS = "refund/by_ids";
    REFUND_DUMP = "refund/dump";
    REFUND_INSERT = "refund/insert";
    REFUND_LOCK = "refund/lock";
    REFUND_MOVE = "refund/move";
    REFUND_PEEK = "refund/peek";
    REFUND_RESTORE = "refund/restore";
    SCHEMA_HELD = "schema/held";
    SCHEMA_HOLD = "schema/hold";
    SCHEMA_NUMBER_ON = "schema/number_on";
    SCHEMA_OCCUPIED = "schema/occupied";
    SCHEMA_SHARE = "schema/share";
    SERVER_EPOCH = "server/epoch";
    SERVER_LINE = "server/line";
    SERVER_NOW = "server/now";
    SERVER_SETTINGS = "server/settings";
    SERVER_SIZE = "server/size";
    SKU_ALL = "sku/all";
    SKU_BY_REFS = "sku/by_refs";
    SKU_CHANGE_TERMS = "sku/change_terms";
    SKU_DUMP = "sku/dump";
    SKU_INSERT = "sku/insert";
    SKU_KEYS_OF = "sku/keys_of";
    SKU_LIST = "sku/list";
    SKU_LOCK = "sku/lock";
    SKU_MOVE_STOCK = "sku/move_stock";
    SKU_PEEK = "sku/peek";
    SKU_REFS_OF = "sku/refs_of";
    SKU_RESTORE = "sku/restore";
    STATE_PUT = "state/put";
    STOCK_ENTRY_DUMP = "stock_entry/dump";
    STOCK_ENTRY_INSERT = "stock_entry/insert";
    STOCK_ENTRY_RESTORE = "stock_entry/restore";
    TALLY_BALANCE_CONTRADICTIONS = "tally/balance_contradictions";
    TALLY_BUCKETS = "tally/buckets";
    TALLY_BUYERS_OVER_LIMIT = "tally/buyers_over_limit";
    TALLY_CANCELS_WITHOUT_RELEASE = "tally/cancels_without_release";
    TALLY_COUNTS = "tally/counts";
    TALLY_GROUP_CONTRADICTIONS = "tally/group_contradictions";
    TALLY_GROUPS = "tally/groups";
    TALLY_GROUPS_UNSCHEDULED = "tally/groups_unscheduled";
    TALLY_INBOX_CONTRADICTIONS = "tally/inbox_contradictions";
    TALLY_JOB_CONTRADICTIONS = "tally/job_contradictions";
    TALLY_JOBS_NOWHERE = "tally/jobs_nowhere";
    TALLY_JOURNAL = "tally/journal";
    TALLY_LEDGER = "tally/ledger";
    TALLY_MONEY_CONTRADICTIONS = "tally/money_contradictions";
    TALLY_REJECTIONS_WITHOUT_TASK = "tally/rejections_without_task";
    TALLY_TASKS_WITHOUT_REJECTION = "tally/tasks_without_rejection";
    TALLY_WALLET_CONTRADICTIONS = "tally/wallet_contradictions";
    TRANSACTION_ENDED = "transaction/ended";
    TRANSACTION_ID = "transaction/id";
    TRANSACTION_STATUS = "transaction/status";
    TRANSITION_DUMP = "transition/dump";
    TRANSITION_INSERT = "transition/insert";
    TRANSITION_OF_PURCHASE = "transition/of_purchase";
    TRANSITION_RESTORE = "transition/restore";
    WORD_DUMP = "word/dump";
    WORD_INSERT = "word/insert";
    WORD_REFS_OF = "word/refs_of";
    WORD_RESTORE = "word/restore";
}

#[cfg(test)]
mod tests {
    //! Every file is listed; on a real server, each can be prepared, and works look up rows by an index and never read a table.

    use std::fs;
    use std::path::Path;

    use super::*;

    /// What reads whole tables, as its files say: sums, and lists of few rows.
    #[cfg(feature = "real-postgres")]
    const READ_ALL: &[&str] = &[
        "tally/",
        "migration/",
        "server/",
        "schema/",
        "counter/",
        "lane/all",
        "sku/all",
        "sku/list",
        "due/lanes",
    ];

    #[cfg(feature = "real-postgres")]
    #[tokio::test]
    async fn every_statement_can_be_prepared_and_works_use_their_indexes() {
        use crate::address::Address;
        use crate::link::Link;
        use crate::migrate::migrate;
        use crate::pool::{Purpose, configured};

        let server = onceward_testkit::services::address("postgres", "ONCEWARD_TEST_POSTGRES_URL");
        let name = format!("onceward_test_plans_{}", std::process::id());
        let people = Link::open(&Address::parse(&server).unwrap()).await.unwrap();
        people.batch("making a database", &format!("CREATE DATABASE {name}")).await.unwrap();
        let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        migrate(&url).await.unwrap();
        let link = Link::open(&configured(&Address::parse(&url).unwrap(), Purpose::Works)).await.unwrap();
        let mut wrong = Vec::new();
        for (path, sql) in ALL {
            let count =
                link.statement(sql).await.unwrap_or_else(|cause| panic!("{path}: {cause:?}")).params().len();
            if READ_ALL.iter().any(|known| path.starts_with(known)) {
                continue;
            }
            let values = vec!["NULL"; count].join(", ");
            let values = if count == 0 { values } else { format!("({values})") };
            let explain = format!("PREPARE q AS {sql}\nEXPLAIN (COSTS OFF) EXECUTE q{values}; DEALLOCATE q");
            let lines = link.client().simple_query(&explain).await.unwrap();
            for line in lines {
                let tokio_postgres::SimpleQueryMessage::Row(row) = line else { continue };
                let line = row.get(0).unwrap_or_default();
                let revision_only = line.contains("revision");
                if line.contains("Seq Scan") || (line.contains("Join Filter") && !revision_only) {
                    wrong.push(format!("{path}: {}", line.trim()));
                }
            }
        }
        drop(link);
        people.batch("dropping it", &format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
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
}
