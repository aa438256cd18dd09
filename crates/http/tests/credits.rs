//! Credits over HTTP: the contract of api.md, from the first gift to the export.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use axum::body::Body;
use axum::http::{Method, Request};
use house::{Answer, House};
use onceward_domain::time::Millis;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

const ACCOUNT: &str = "/v1/accounts/studio";
const ENTRIES: &str = "/v1/accounts/studio/entries";
const JOB: &str = "/v1/jobs/j";

/// A house in which the account `studio` holds this many credits.
async fn holding(mode: Mode, amount: i64) -> House {
    let house = House::empty(mode).await;
    let gift = house
        .post_with_key(
            &format!("{ACCOUNT}/grants"),
            "first",
            &json!({ "amount": amount, "reference": "spring" }),
        )
        .await;
    assert_eq!(gift.status, 201, "{}", gift.body);
    house
}

fn terms(cost: i64) -> Value {
    json!({ "account_id": "studio", "cost": cost })
}

async fn opened(mode: Mode, amount: i64, max_attempts: i64) -> House {
    let house = holding(mode, amount).await;
    let body = json!({ "account_id": "studio", "cost": 40, "max_attempts": max_attempts, "payload": { "scene": "lake" } });
    let job = house.put(JOB, &body).await;
    assert_eq!(job.status, 201, "{}", job.body);
    house
}

async fn fail(house: &House, retryable: bool, token: Option<i64>) -> Answer {
    let mut body = json!({ "reason": "no paper", "retryable": retryable });
    if let Some(token) = token {
        body["token"] = json!(token);
    }
    house.post(&format!("{JOB}/fail"), &body).await
}

async fn succeed(house: &House, token: Option<i64>) -> Answer {
    let body = token.map_or_else(|| json!({}), |token| json!({ "token": token }));
    house.post(&format!("{JOB}/succeed"), &body).await
}

async fn claim(house: &House, worker: &str) -> Vec<Value> {
    let found = house
        .post("/v1/job-queue/claim", &json!({ "worker": worker, "limit": 10, "lease_ms": 30_000 }))
        .await;
    assert_eq!(found.status, 200, "{}", found.body);
    found.body["data"].as_array().unwrap().clone()
}

/// Status, whether it was refunded and reclaimed, and its net, checked against the entries.
async fn state(house: &House) -> (String, bool, bool, i64) {
    let job = house.get(JOB).await.body;
    let entries = house.get(&format!("{ENTRIES}?limit=200")).await.body;
    let of_job = entries["data"].as_array().unwrap().iter().filter(|entry| entry["job_id"] == "j");
    let net = job["net"].as_i64().unwrap();
    assert_eq!(of_job.map(|entry| entry["amount"].as_i64().unwrap()).sum::<i64>(), net, "{job} {entries}");
    assert!(net == 0 || net == -40, "CL-05: {job}");
    (
        job["status"].as_str().unwrap().to_owned(),
        job["is_refunded"].as_bool().unwrap(),
        job["is_reclaimed"].as_bool().unwrap(),
        net,
    )
}

fn is(status: &str, refunded: bool, reclaimed: bool, net: i64) -> (String, bool, bool, i64) {
    (status.to_owned(), refunded, reclaimed, net)
}

async fn balance(house: &House) -> i64 {
    house.get(ACCOUNT).await.body["balance"].as_i64().unwrap()
}

async fn assert_invariants(house: &House) {
    let verdict = house.get("/v1/ops/invariants").await.body;
    assert_eq!(verdict["holds"], true, "{verdict}");
}

in_every_mode! {
    cl_01_a_gift_is_an_entry_once_per_key_and_opens_the_account,
    cl_02_cl_03_a_job_is_charged_refunded_and_reclaimed_once_each,
    cl_03_a_delivery_without_a_failure_takes_nothing_more,
    cl_07_a_job_is_opened_only_with_credit_for_it_unless_the_account_may_owe,
    cl_05_what_the_refund_bought_is_no_reason_to_give_a_delivery_away,
    cl_06_f2_a_stale_token_moves_nothing_in_the_queue_while_the_ledger_takes_what_is_true,
    cl_06_waits_grow_and_past_the_cap_only_a_person_sets_it_going_again,
    cl_05_a_delivery_after_the_dead_letter_is_one,
    c_27_a_payload_comes_back_to_the_last_digit_and_a_repeat_is_recognised,
    cl_08_a_balance_at_any_moment,
    cl_08_a_statement_is_replayed_page_by_page_in_json_and_csv,
}

async fn cl_01_a_gift_is_an_entry_once_per_key_and_opens_the_account(mode: Mode) {
    let house = House::empty(mode).await;
    assert_eq!(house.get(ACCOUNT).await.status, 404);
    assert_eq!(house.get(ENTRIES).await.status, 404);
    let path = format!("{ACCOUNT}/grants");
    let gift = json!({ "amount": 40, "reference": "spring" });
    let first = house.post_with_key(&path, "k", &gift).await;
    assert_eq!(
        (first.status, &first.body["type"], &first.body["amount"]),
        (201, &json!("grant"), &json!(40))
    );
    assert_eq!((&first.body["balance_after"], &first.body["reference"]), (&json!(40), &json!("spring")));
    assert_eq!(
        (&first.body["job_id"], &first.body["created_at"]),
        (&Value::Null, &json!("2026-11-11T00:00:00.000Z"))
    );
    let again = house.post_with_key(&path, "k", &gift).await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed"), &again.bytes),
        (201, "true", &first.bytes)
    );
    let other = house.post_with_key(&path, "k", &json!({ "amount": 41, "reference": "spring" })).await;
    assert_eq!((other.status, other.code()), (422, "idempotency_key_reused"));
    assert_eq!(house.post_with_key(&path, "k2", &gift).await.status, 201, "another key is another gift");
    let account = house.get(ACCOUNT).await.body;
    assert_eq!(
        (&account["account_id"], &account["balance"], &account["entries"]),
        (&json!("studio"), &json!(80), &json!(2))
    );
    let entries = house.get(ENTRIES).await.body;
    assert_eq!(entries["data"][1], first.body, "newest first, and nothing was changed");
    let wrong = house
        .post_with_key(&format!("{ACCOUNT}/adjustments"), "a", &json!({ "amount": -81, "reason": "x" }))
        .await;
    assert_eq!((wrong.status, wrong.code()), (409, "insufficient_credit"));
    let right = house
        .post_with_key(
            &format!("{ACCOUNT}/adjustments"),
            "b",
            &json!({ "amount": -80, "reason": "counted twice" }),
        )
        .await;
    assert_eq!(
        (right.status, &right.body["type"], &right.body["reason"]),
        (201, &json!("adjust"), &json!("counted twice"))
    );
    assert_eq!(balance(&house).await, 0);
    assert_invariants(&house).await;
}

async fn cl_02_cl_03_a_job_is_charged_refunded_and_reclaimed_once_each(mode: Mode) {
    let house = holding(mode, 100).await;
    let job = house.put(JOB, &terms(40)).await;
    assert_eq!((job.status, &job.body["status"], &job.body["net"]), (201, &json!("RUNNING"), &json!(-40)));
    assert_eq!((&job.body["attempts"], &job.body["not_before"]), (&json!(1), &Value::Null));
    let again = house.put(JOB, &terms(40)).await;
    assert_eq!((again.status, &again.body), (200, &job.body));
    let other = house.put(JOB, &terms(41)).await;
    assert_eq!((other.status, other.code()), (409, "conflict"));
    assert_eq!(balance(&house).await, 60);

    for _redelivery in 0..3 {
        let failed = fail(&house, true, None).await;
        assert_eq!((failed.status, &failed.body["not_before"]), (200, &json!("2026-11-11T00:00:01.000Z")));
        assert_eq!(state(&house).await, is("WAITING_RETRY", true, false, 0));
    }
    assert_eq!(balance(&house).await, 100);
    for _redelivery in 0..3 {
        assert_eq!(succeed(&house, None).await.status, 200);
        assert_eq!(state(&house).await, is("DELIVERED", true, true, -40));
    }
    for retryable in [true, false] {
        assert_eq!(fail(&house, retryable, None).await.status, 200);
        assert_eq!(state(&house).await, is("DELIVERED", true, true, -40));
    }
    let entries = house.get(ENTRIES).await.body;
    let kinds: Vec<&str> =
        entries["data"].as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reclaim", "refund", "charge", "grant"]);
    assert!(claim(&house, "w").await.is_empty(), "what was delivered is not run again");
    assert_invariants(&house).await;
}

async fn cl_03_a_delivery_without_a_failure_takes_nothing_more(mode: Mode) {
    let house = opened(mode, 40, 5).await;
    let path = format!("{JOB}/succeed");
    let bare = house.ask(Request::post(&path).body(Body::empty()).unwrap()).await;
    assert_eq!((bare.status, &bare.body["status"]), (200, &json!("DELIVERED")), "the body may be left out");
    assert_eq!(state(&house).await, is("DELIVERED", false, false, -40));
    assert_eq!(fail(&house, true, None).await.status, 200);
    assert_eq!(state(&house).await, is("DELIVERED", false, false, -40));
    assert_eq!(balance(&house).await, 0);
}

async fn cl_07_a_job_is_opened_only_with_credit_for_it_unless_the_account_may_owe(mode: Mode) {
    let house = holding(mode, 39).await;
    let refused = house.put(JOB, &terms(40)).await;
    assert_eq!((refused.status, refused.code()), (409, "insufficient_credit"));
    refused.assert_problem();
    assert_eq!(house.get(JOB).await.status, 404);
    let unknown = house.put("/v1/jobs/other", &json!({ "account_id": "nobody", "cost": 1 })).await;
    assert_eq!((unknown.status, unknown.code()), (409, "insufficient_credit"));
    let allowed = house.put(ACCOUNT, &json!({ "overdraft": 1 })).await;
    assert_eq!(
        (allowed.status, &allowed.body["overdraft"], &allowed.body["balance"]),
        (200, &json!(1), &json!(39))
    );
    assert_eq!(house.put(JOB, &terms(40)).await.status, 201);
    assert_eq!(balance(&house).await, -1);
    assert_eq!(house.put("/v1/accounts/new", &json!({})).await.status, 201);
    assert_invariants(&house).await;
}

async fn cl_05_what_the_refund_bought_is_no_reason_to_give_a_delivery_away(mode: Mode) {
    let house = opened(mode, 40, 5).await;
    assert_eq!(fail(&house, true, None).await.status, 200);
    assert_eq!(house.put("/v1/jobs/next", &terms(40)).await.status, 201, "the refund is spent");
    assert_eq!(succeed(&house, None).await.status, 200);
    assert_eq!((state(&house).await, balance(&house).await), (is("DELIVERED", true, true, -40), -40));
    assert_invariants(&house).await;
}

async fn cl_06_f2_a_stale_token_moves_nothing_in_the_queue_while_the_ledger_takes_what_is_true(mode: Mode) {
    let house = opened(mode, 100, 5).await;
    assert_eq!(fail(&house, true, None).await.status, 200);
    assert!(claim(&house, "early").await.is_empty(), "its time has not come");
    house.clock.advance(Millis(1_000));
    let first = claim(&house, "one").await;
    assert_eq!(first.len(), 1);
    assert_eq!((&first[0]["job_id"], &first[0]["attempts"]), (&json!("j"), &json!(2)));
    assert_eq!(
        (&first[0]["payload"], &first[0]["lease_until"]),
        (&json!({ "scene": "lake" }), &json!("2026-11-11T00:00:31.000Z"))
    );
    assert!(claim(&house, "two").await.is_empty(), "it is out");
    let old = first[0]["token"].as_i64().unwrap();
    let extend = |token: i64| json!({ "job_id": "j", "token": token, "lease_ms": 60_000 });
    let longer = house.post("/v1/job-queue/extend", &extend(old)).await;
    assert_eq!((longer.status, &longer.body["lease_until"]), (200, &json!("2026-11-11T00:01:01.000Z")));
    house.clock.advance(Millis(30_000));
    assert!(claim(&house, "two").await.is_empty(), "the longer lease holds");
    house.clock.advance(Millis(30_000));
    let second = claim(&house, "two").await;
    let new = second[0]["token"].as_i64().unwrap();
    assert_eq!(
        (&second[0]["attempts"], new == old),
        (&json!(3), false),
        "LQ-03: the lost lease cost an attempt"
    );

    let before = house.get(JOB).await.body;
    for answer in
        [fail(&house, false, Some(old)).await, house.post("/v1/job-queue/extend", &extend(old)).await]
    {
        answer.assert_problem();
        assert_eq!((answer.status, answer.code()), (409, "lease_lost"));
    }
    assert_eq!(house.get(JOB).await.body, before, "no field of the job changed");
    let late = succeed(&house, Some(old)).await;
    assert_eq!((late.status, late.code()), (409, "lease_lost"));
    assert_eq!(state(&house).await, is("DELIVERED", true, true, -40), "it was delivered, whoever held it");
    assert_eq!(fail(&house, true, Some(new)).await.status, 200, "the holder hears that it is over");
    assert_eq!(state(&house).await, is("DELIVERED", true, true, -40));
    house.clock.advance(Millis(600_000));
    assert!(claim(&house, "three").await.is_empty());
    assert_invariants(&house).await;
}

async fn cl_06_waits_grow_and_past_the_cap_only_a_person_sets_it_going_again(mode: Mode) {
    let house = opened(mode, 100, 4).await;
    let mut token = None;
    for (wait, attempt) in [(1_000, 1), (2_000, 2), (4_000, 3)] {
        let failed = fail(&house, true, token).await.body;
        assert_eq!((&failed["status"], &failed["attempts"]), (&json!("WAITING_RETRY"), &json!(attempt)));
        house.clock.advance(Millis(wait - 1));
        assert!(claim(&house, "w").await.is_empty(), "{wait}");
        house.clock.advance(Millis(1));
        token = claim(&house, "w").await[0]["token"].as_i64();
    }
    assert_eq!(fail(&house, true, token).await.body["status"], "DEAD_LETTER");
    assert_eq!(state(&house).await, is("DEAD_LETTER", true, false, 0));
    house.pass(10_000_000).await;
    assert!(claim(&house, "w").await.is_empty(), "nothing consumes a dead letter by itself");
    let letters = house.get("/v1/ops/dead-letters").await.body;
    assert_eq!((&letters["data"][0]["id"], letters["data"].as_array().unwrap().len()), (&json!("j"), 1));
    let notices = house.get("/v1/ops/notices").await.body;
    assert_eq!(notices["data"].as_array().unwrap().len(), 1, "{notices}");
    let replay = Request::post("/v1/ops/dead-letters/j/replay").body(Body::empty()).unwrap();
    assert_eq!(house.ask(replay).await.status, 204);
    let waiting = house.get(JOB).await.body;
    assert_eq!((&waiting["status"], &waiting["attempts"]), (&json!("WAITING_RETRY"), &json!(0)));
    let given = claim(&house, "w").await;
    assert_eq!(given[0]["attempts"], 1, "tries are fresh");
    assert_eq!(succeed(&house, given[0]["token"].as_i64()).await.status, 200);
    assert_eq!(state(&house).await, is("DELIVERED", true, true, -40));
    assert_invariants(&house).await;
}

async fn cl_05_a_delivery_after_the_dead_letter_is_one(mode: Mode) {
    let house = opened(mode, 100, 1).await;
    assert_eq!(fail(&house, true, None).await.body["status"], "DEAD_LETTER");
    assert_eq!(succeed(&house, None).await.body["status"], "DELIVERED");
    assert_eq!(state(&house).await, is("DELIVERED", true, true, -40));
    assert_eq!(house.get("/v1/ops/dead-letters").await.body["data"], json!([]));
    assert_invariants(&house).await;
}

async fn c_27_a_payload_comes_back_to_the_last_digit_and_a_repeat_is_recognised(mode: Mode) {
    let house = holding(mode, 100).await;
    let text = |payload: &str| format!(r#"{{"account_id":"studio","cost":40,"payload":{payload}}}"#);
    let huge = r#"{"z": 201605131024011015123456789, "a": [0.10, 1E400]}"#;
    assert_eq!(house.send(Method::PUT, JOB, text(huge)).await.status, 201);
    let reordered = r#"{"a":[0.10,1E400],"z":201605131024011015123456789}"#;
    assert_eq!(house.send(Method::PUT, JOB, text(reordered)).await.status, 200);
    let nearly = reordered.replace("789", "788");
    assert_eq!(house.send(Method::PUT, JOB, text(&nearly)).await.code(), "conflict");
    assert_eq!(fail(&house, true, None).await.status, 200);
    house.clock.advance(Millis(1_000));
    let found = house.post("/v1/job-queue/claim", &json!({ "worker": "w" })).await;
    let said = String::from_utf8(found.bytes).unwrap();
    assert!(said.contains(&format!(r#""payload":{reordered}"#)), "{said}");
}

async fn cl_08_a_balance_at_any_moment(mode: Mode) {
    let house = holding(mode, 10).await;
    for number in 1..=3 {
        house.clock.advance(Millis(1_000));
        let gift = json!({ "amount": 10, "reference": "more" });
        assert_eq!(
            house.post_with_key(&format!("{ACCOUNT}/grants"), &format!("k{number}"), &gift).await.status,
            201
        );
    }
    let table = [
        ("2026-11-10T23:59:59.999Z", 0, 0),
        ("2026-11-11T00:00:00Z", 10, 1),
        ("2026-11-11T00:00:00.999Z", 10, 1),
        ("2026-11-11T00:00:01Z", 20, 2),
        ("2026-11-11T08:00:02%2B08:00", 30, 3),
        ("2026-11-11T00:00:03Z", 40, 4),
        ("2027-01-01T00:00:00Z", 40, 4),
    ];
    for (at, balance, entries) in table {
        let account = house.get(&format!("{ACCOUNT}?at={at}")).await.body;
        assert_eq!(
            (&account["balance"], &account["entries"]),
            (&json!(balance), &json!(entries)),
            "{at}: {account}"
        );
    }
    let now = house.get(&format!("{ACCOUNT}?at=2027-01-01T00:00:00Z")).await.body;
    assert_eq!(now["as_of"], "2026-11-11T00:00:03.000Z", "a moment that is yet to come is now");
}

async fn csv(house: &House, path: &str) -> Answer {
    house.ask(Request::get(path).header("accept", "text/csv").body(Body::empty()).unwrap()).await
}

async fn cl_08_a_statement_is_replayed_page_by_page_in_json_and_csv(mode: Mode) {
    let house = holding(mode, 100).await;
    house.put(JOB, &terms(40)).await;
    fail(&house, false, None).await;
    let odd = json!({ "amount": 1, "reference": "=1+1, \"so\"" });
    assert_eq!(house.post_with_key(&format!("{ACCOUNT}/grants"), "odd", &odd).await.status, 201);

    let (mut rows, mut path) = (Vec::new(), format!("{ACCOUNT}/statement?limit=3"));
    for pages in 1.. {
        assert!(pages <= 2, "it ends");
        let page = house.get(&path).await.body;
        rows.extend(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        path = format!("{ACCOUNT}/statement?limit=3&after={next}");
    }
    let mut sum = 0;
    for row in &rows {
        sum += row["amount"].as_i64().unwrap();
        assert_eq!(row["balance_after"], sum, "{row}");
    }
    assert_eq!((rows.len(), sum), (4, balance(&house).await));
    let kinds: Vec<&str> = rows.iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["grant", "charge", "refund", "grant"]);

    let first = csv(&house, &format!("{ACCOUNT}/statement?limit=3")).await;
    assert_eq!((first.status, first.header("content-type")), (200, "text/csv; charset=utf-8"));
    let link = first.header("link");
    let next = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).unwrap();
    let last = csv(&house, next).await;
    assert_eq!((last.status, last.header("link")), (200, ""));
    let lines = |answer: &Answer| -> Vec<String> {
        String::from_utf8(answer.bytes.clone()).unwrap().split("\r\n").map(str::to_owned).collect()
    };
    let (first, last) = (lines(&first), lines(&last));
    assert_eq!(
        (first.len(), last.len(), &first[0]),
        (5, 3, &last[0]),
        "head, rows, and nothing behind the last line end"
    );
    let charge: Vec<&str> = first[2].split(',').collect();
    assert_eq!(charge[1..7], ["studio", "j", "charge", "-40", "60", "2026-11-11T00:00:00.000Z"]);
    assert!(first[3].contains(",\"no paper\","), "why it was refunded: {}", first[3]);
    assert!(
        last[1].contains(",\"'=1+1, \"\"so\"\"\","),
        "no spreadsheet takes it for a formula: {}",
        last[1]
    );
    let unknown = csv(&house, "/v1/accounts/nobody/statement").await;
    assert_eq!((unknown.status, unknown.code()), (404, "not_found"));
}
