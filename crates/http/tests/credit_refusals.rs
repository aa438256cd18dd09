//! Credits: bad input at every route is a problem document with the right code and pointer, and changes nothing (SE-04).
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use axum::body::Body;
use axum::http::{Method, Request};
use house::House;
use onceward_ground::{Mode, in_every_mode};
use serde_json::{Value, json};

const ACCOUNT: &str = "/v1/accounts/studio";
const ENTRIES: &str = "/v1/accounts/studio/entries";
const JOB: &str = "/v1/jobs/j";

/// A house whose account `studio` was given 100 and has paid 40 for the job `j`.
async fn opened(mode: Mode) -> House {
    let house = House::empty(mode).await;
    let gift = json!({ "amount": 100, "reference": "spring" });
    assert_eq!(house.post_with_key(&format!("{ACCOUNT}/grants"), "first", &gift).await.status, 201);
    assert_eq!(house.put(JOB, &terms(40)).await.status, 201);
    house
}

fn terms(cost: i64) -> Value {
    json!({ "account_id": "studio", "cost": cost })
}

/// Method, path, body, status, code, pointer.
type Row = (Method, &'static str, String, u16, &'static str, &'static str);

/// What every account, entry, job and queue says.
async fn everything(house: &House) -> String {
    let mut all = house.stored().await;
    for path in [ACCOUNT, &format!("{ENTRIES}?limit=200"), JOB, "/v1/accounts/other", "/v1/jobs/other"] {
        let mut body = house.get(path).await.body;
        body["request_id"] = Value::Null;
        all.push_str(&body.to_string());
    }
    all
}

async fn walk(house: &House, rows: &[Row]) {
    let before = everything(house).await;
    for (number, (method, path, body, status, code, pointer)) in rows.iter().enumerate() {
        let request = Request::builder()
            .method(method.clone())
            .uri(*path)
            .header("content-type", "application/json")
            .header("idempotency-key", format!("row-{number}"))
            .body(Body::from(body.clone()));
        let answer = house.ask(request.unwrap()).await;
        let found = (answer.status, answer.code(), answer.pointer());
        assert_eq!(found, (*status, *code, *pointer), "{method} {path} {body}: {}", answer.body);
        answer.assert_problem();
    }
    assert_eq!(everything(house).await, before, "a refusal changed something");
}

fn with(base: &Value, name: &str, value: Value) -> String {
    let mut body = base.clone();
    body[name] = value;
    body.to_string()
}

fn without(base: &Value, name: &str) -> String {
    let mut body = base.clone();
    body.as_object_mut().unwrap().remove(name);
    body.to_string()
}

in_every_mode! {
    se_04_wrong_accounts_gifts_and_corrections,
    se_04_wrong_jobs_reports_and_claims,
    se_04_wrong_questions_about_credits,
}

async fn se_04_wrong_accounts_gifts_and_corrections(mode: Mode) {
    let house = opened(mode).await;
    const OTHER: &str = "/v1/accounts/other";
    const SPACED: &str = "/v1/accounts/two%20words";
    const GRANT: &str = "/v1/accounts/other/grants";
    const ADJUST: &str = "/v1/accounts/studio/adjustments";
    let (put, gift) = (json!({ "overdraft": 1 }), json!({ "amount": 1, "reference": "x" }));
    let correction = json!({ "amount": 1, "reason": "x" });
    let invalid = |method: Method, path, body, pointer| (method, path, body, 422, "invalid", pointer);
    let malformed = |method: Method, path, body, pointer| (method, path, body, 400, "malformed", pointer);
    let most = 1_000_000_000_000_000_i64;
    let mut rows = vec![
        invalid(Method::PUT, SPACED, put.to_string(), "/account_id"),
        invalid(Method::PUT, OTHER, with(&put, "overdraft", json!(-1)), "/overdraft"),
        invalid(Method::PUT, OTHER, with(&put, "overdraft", json!(9_007_199_254_740_992_i64)), "/overdraft"),
        invalid(Method::PUT, OTHER, with(&put, "overdraft", json!(u64::MAX)), "/overdraft"),
        malformed(Method::PUT, OTHER, with(&put, "overdraft", json!(1.5)), "/overdraft"),
        malformed(Method::PUT, OTHER, with(&put, "overdraft", Value::Null), "/overdraft"),
        malformed(Method::PUT, OTHER, with(&put, "balance", json!(1_000)), "/balance"),
        malformed(Method::PUT, OTHER, "[]".to_owned(), ""),
        (Method::PUT, "/v1/accounts", put.to_string(), 404, "not_found", ""),
        invalid(Method::POST, "/v1/accounts/two%20words/grants", gift.to_string(), "/account_id"),
        (Method::POST, "/v1/accounts/nobody/adjustments", correction.to_string(), 404, "not_found", ""),
        (Method::POST, ADJUST, with(&correction, "amount", json!(-61)), 409, "insufficient_credit", ""),
        (Method::DELETE, OTHER, String::new(), 405, "method_not_allowed", ""),
        (Method::DELETE, ENTRIES, String::new(), 405, "method_not_allowed", ""),
    ];
    for (path, base, text) in [(GRANT, &gift, "reference"), (ADJUST, &correction, "reason")] {
        let pointer = if text == "reference" { "/reference" } else { "/reason" };
        rows.extend([
            invalid(Method::POST, path, with(base, "amount", json!(0)), "/amount"),
            invalid(Method::POST, path, with(base, "amount", json!(most + 1)), "/amount"),
            invalid(Method::POST, path, with(base, "amount", json!(u64::MAX)), "/amount"),
            malformed(Method::POST, path, with(base, "amount", json!("40")), "/amount"),
            malformed(Method::POST, path, with(base, "amount", json!(1.0)), "/amount"),
            malformed(Method::POST, path, without(base, "amount"), "/amount"),
            malformed(Method::POST, path, without(base, text), pointer),
            malformed(Method::POST, path, with(base, text, json!(7)), pointer),
            invalid(Method::POST, path, with(base, text, json!("")), pointer),
            invalid(Method::POST, path, with(base, text, json!("a\u{0}b")), pointer),
            invalid(Method::POST, path, with(base, text, json!("x".repeat(501))), pointer),
            malformed(Method::POST, path, with(base, "job_id", json!("j")), "/job_id"),
        ]);
    }
    rows.push(invalid(Method::POST, GRANT, with(&gift, "amount", json!(-1)), "/amount"));
    rows.push(invalid(Method::POST, ADJUST, with(&correction, "amount", json!(-most - 1)), "/amount"));
    walk(&house, &rows).await;
    for path in [GRANT, ADJUST] {
        assert_eq!(house.post(path, &gift).await.code(), "idempotency_key_required");
    }
}

async fn se_04_wrong_jobs_reports_and_claims(mode: Mode) {
    let house = opened(mode).await;
    const OTHER: &str = "/v1/jobs/other";
    const FAIL: &str = "/v1/jobs/j/fail";
    const SUCCEED: &str = "/v1/jobs/j/succeed";
    const CLAIM: &str = "/v1/job-queue/claim";
    const EXTEND: &str = "/v1/job-queue/extend";
    let (job, report) = (terms(1), json!({ "reason": "x" }));
    let (wish, lease) = (json!({ "worker": "w" }), json!({ "job_id": "j", "token": 1, "lease_ms": 1 }));
    let invalid = |method: Method, path, body, pointer| (method, path, body, 422, "invalid", pointer);
    let malformed = |method: Method, path, body, pointer| (method, path, body, 400, "malformed", pointer);
    let deep = format!(
        r#"{{"account_id":"studio","cost":1,"payload":{{"a":{}{}}}}}"#,
        "[".repeat(9_000),
        "]".repeat(9_000)
    );
    let rows: Vec<Row> = vec![
        invalid(Method::PUT, "/v1/jobs/two%20words", job.to_string(), "/job_id"),
        malformed(Method::PUT, OTHER, with(&job, "account_id", json!(7)), "/account_id"),
        invalid(Method::PUT, OTHER, with(&job, "account_id", json!("a\u{0}")), "/account_id"),
        malformed(Method::PUT, OTHER, without(&job, "account_id"), "/account_id"),
        invalid(Method::PUT, OTHER, with(&job, "cost", json!(0)), "/cost"),
        invalid(Method::PUT, OTHER, with(&job, "cost", json!(-40)), "/cost"),
        invalid(Method::PUT, OTHER, with(&job, "cost", json!(1_000_000_000_000_001_i64)), "/cost"),
        malformed(Method::PUT, OTHER, with(&job, "cost", json!("1")), "/cost"),
        invalid(Method::PUT, OTHER, with(&job, "max_attempts", json!(0)), "/max_attempts"),
        invalid(Method::PUT, OTHER, with(&job, "max_attempts", json!(1_001)), "/max_attempts"),
        malformed(Method::PUT, OTHER, with(&job, "payload", json!([1])), "/payload"),
        malformed(Method::PUT, OTHER, with(&job, "payload", json!("{}")), "/payload"),
        malformed(Method::PUT, OTHER, deep, "/payload"),
        malformed(
            Method::PUT,
            OTHER,
            r#"{"account_id":"studio","cost":1,"payload":{"a":"\ud800"}}"#.to_owned(),
            "/payload",
        ),
        malformed(Method::PUT, OTHER, with(&job, "is_refunded", json!(true)), "/is_refunded"),
        (Method::PUT, OTHER, with(&job, "cost", json!(61)), 409, "insufficient_credit", ""),
        (Method::PUT, JOB, with(&job, "cost", json!(39)), 409, "conflict", ""),
        malformed(Method::POST, FAIL, json!({}).to_string(), "/reason"),
        malformed(Method::POST, FAIL, with(&report, "reason", Value::Null), "/reason"),
        invalid(Method::POST, FAIL, with(&report, "reason", json!("")), "/reason"),
        invalid(Method::POST, FAIL, with(&report, "reason", json!("a\nb")), "/reason"),
        malformed(Method::POST, FAIL, with(&report, "retryable", json!("yes")), "/retryable"),
        malformed(Method::POST, FAIL, with(&report, "token", json!("1")), "/token"),
        // Amounts come from the job, never from the caller (CL-04).
        malformed(Method::POST, FAIL, with(&report, "amount", json!(1_000)), "/amount"),
        malformed(Method::POST, SUCCEED, json!({ "cost": 1 }).to_string(), "/cost"),
        malformed(Method::POST, SUCCEED, json!({ "token": 1.0 }).to_string(), "/token"),
        malformed(Method::POST, SUCCEED, "[]".to_owned(), ""),
        (Method::POST, FAIL, with(&report, "token", json!(99)), 409, "lease_lost", ""),
        (Method::POST, FAIL, with(&report, "token", json!(u64::MAX)), 409, "lease_lost", ""),
        (Method::POST, "/v1/jobs/other/fail", report.to_string(), 404, "not_found", ""),
        (Method::POST, "/v1/jobs/other/succeed", "{}".to_owned(), 404, "not_found", ""),
        (Method::POST, "/v1/jobs/%00/fail", report.to_string(), 404, "not_found", ""),
        malformed(Method::POST, CLAIM, json!({}).to_string(), "/worker"),
        invalid(Method::POST, CLAIM, with(&wish, "worker", json!("")), "/worker"),
        invalid(Method::POST, CLAIM, with(&wish, "limit", json!(0)), "/limit"),
        invalid(Method::POST, CLAIM, with(&wish, "limit", json!(101)), "/limit"),
        invalid(Method::POST, CLAIM, with(&wish, "lease_ms", json!(0)), "/lease_ms"),
        invalid(Method::POST, CLAIM, with(&wish, "lease_ms", json!(86_400_001)), "/lease_ms"),
        malformed(Method::POST, CLAIM, with(&wish, "lane", json!("outbox")), "/lane"),
        malformed(Method::POST, EXTEND, with(&lease, "job_id", json!(7)), "/job_id"),
        invalid(Method::POST, EXTEND, with(&lease, "job_id", json!("a b")), "/job_id"),
        malformed(Method::POST, EXTEND, without(&lease, "token"), "/token"),
        invalid(Method::POST, EXTEND, with(&lease, "lease_ms", json!(0)), "/lease_ms"),
        (Method::POST, EXTEND, with(&lease, "job_id", json!("other")), 404, "not_found", ""),
        (Method::POST, EXTEND, lease.to_string(), 409, "lease_lost", ""),
    ];
    walk(&house, &rows).await;
}

async fn se_04_wrong_questions_about_credits(mode: Mode) {
    let house = opened(mode).await;
    let table = [
        ("/v1/accounts/studio?at=yesterday", 422, "invalid", "/at"),
        ("/v1/accounts/studio?at=2026-11-11T00:00:00Z&at=2026-11-11T00:00:00Z", 400, "malformed", "/at"),
        ("/v1/accounts/studio?limit=1", 400, "malformed", "/?"),
        ("/v1/accounts/studio/entries?limit=0", 422, "invalid", "/limit"),
        ("/v1/accounts/studio/entries?limit=201", 422, "invalid", "/limit"),
        ("/v1/accounts/studio/entries?after=x", 422, "invalid", "/after"),
        ("/v1/accounts/studio/statement?after=c1zzz", 422, "invalid", "/after"),
        ("/v1/accounts/studio/statement?format=csv", 400, "malformed", "/?"),
        ("/v1/accounts/two%20words", 404, "not_found", ""),
        ("/v1/accounts/%00/entries", 404, "not_found", ""),
        ("/v1/accounts/nobody/entries", 404, "not_found", ""),
        ("/v1/jobs/%F0%9F%9B%92", 404, "not_found", ""),
        ("/v1/jobs/none", 404, "not_found", ""),
        ("/v1/job-queue/claim", 405, "method_not_allowed", ""),
    ];
    for (path, status, code, pointer) in table {
        let answer = house.get(path).await;
        assert_eq!(
            (answer.status, answer.code(), answer.pointer()),
            (status, code, pointer),
            "{path}: {}",
            answer.body
        );
        answer.assert_problem();
    }
}
