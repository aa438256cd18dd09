//! The table of routes: which scope each needs and which query parameters it knows.
//!
//! Invariants: a path that is routed and not listed here is answered with 403, so a route can be forgotten but not
//! left open; tests compare the table with the OpenAPI document, in both directions. Read next: [`crate::edge`].

use axum::http::Method;

use crate::auth::Scope;

/// One operation.
#[derive(Debug)]
pub(crate) struct Route {
    /// Method, in capitals.
    pub(crate) method: &'static str,
    /// Path template.
    pub(crate) path: &'static str,
    /// What a key needs; `None` is open to all.
    pub(crate) scope: Option<Scope>,
    /// Query parameters it knows.
    pub(crate) query: &'static [&'static str],
}

const fn open(path: &'static str) -> Route {
    Route { method: "GET", path, scope: None, query: &[] }
}

const fn get(path: &'static str, scope: Scope, query: &'static [&'static str]) -> Route {
    Route { method: "GET", path, scope: Some(scope), query }
}

const fn put(path: &'static str) -> Route {
    Route { method: "PUT", path, scope: Some(Scope::Write), query: &[] }
}

const fn post(path: &'static str, scope: Scope) -> Route {
    Route { method: "POST", path, scope: Some(scope), query: &[] }
}

const fn delete(path: &'static str) -> Route {
    Route { method: "DELETE", path, scope: Some(Scope::Write), query: &[] }
}

const GROUP: &str = "/v1/groups/{group_id}";
const PARTICIPANT: &str = "/v1/groups/{group_id}/participants/{user_id}";
const ACTIVITY: &str = "/v1/activities/{activity_id}";
const SKU: &str = "/v1/activities/{activity_id}/skus/{sku_id}";

const ACCOUNT: &str = "/v1/accounts/{account_id}";
const JOB: &str = "/v1/jobs/{job_id}";

/// Every operation; the busiest first, because the list is searched from its beginning.
pub(crate) static ROUTES: &[Route] = &[
    post("/v1/activities/{activity_id}/skus/{sku_id}/reservations", Scope::Write),
    get("/v1/reservations/{reservation_id}", Scope::Read, &["wait_ms"]),
    get("/v1/orders/{order_id}", Scope::Read, &[]),
    post("/v1/orders", Scope::Write),
    get("/v1/orders", Scope::Read, &["user_id", "status", "activity_id", "limit", "after"]),
    get("/v1/orders/{order_id}/timeline", Scope::Read, &[]),
    post("/v1/orders/{order_id}/cancel", Scope::Write),
    post("/v1/orders/{order_id}/payments", Scope::Write),
    Route { method: "POST", path: "/v1/webhooks/{provider}", scope: None, query: &[] },
    post("/v1/orders/{order_id}/refunds", Scope::Write),
    get("/v1/orders/{order_id}/refunds", Scope::Read, &["limit", "after"]),
    put(ACTIVITY),
    get(ACTIVITY, Scope::Read, &[]),
    put(SKU),
    get(SKU, Scope::Read, &[]),
    post("/v1/activities/{activity_id}/skus/{sku_id}/stock-adjustments", Scope::Write),
    put(GROUP),
    get(GROUP, Scope::Read, &[]),
    put(PARTICIPANT),
    delete(PARTICIPANT),
    get("/v1/groups", Scope::Read, &["status", "limit", "after"]),
    get("/v1/groups/{group_id}/timeline", Scope::Read, &[]),
    post("/v1/groups/{group_id}/settle", Scope::Ops),
    put(JOB),
    get(JOB, Scope::Read, &[]),
    post("/v1/jobs/{job_id}/fail", Scope::Write),
    post("/v1/jobs/{job_id}/succeed", Scope::Write),
    post("/v1/job-queue/claim", Scope::Write),
    post("/v1/job-queue/extend", Scope::Write),
    get(ACCOUNT, Scope::Read, &["at"]),
    // How far an account may be overdrawn, and what a person sets right, is not the shop's business.
    Route { method: "PUT", path: ACCOUNT, scope: Some(Scope::Ops), query: &[] },
    get("/v1/accounts/{account_id}/entries", Scope::Read, &["limit", "after"]),
    get("/v1/accounts/{account_id}/statement", Scope::Read, &["limit", "after"]),
    post("/v1/accounts/{account_id}/grants", Scope::Write),
    post("/v1/accounts/{account_id}/adjustments", Scope::Ops),
    get("/v1/ops/overview", Scope::Ops, &[]),
    get("/v1/ops/invariants", Scope::Ops, &[]),
    Route { method: "POST", path: "/v1/ops/statements", scope: Some(Scope::Ops), query: &["provider"] },
    get("/v1/ops/anomalies", Scope::Ops, &["limit", "after"]),
    get("/v1/ops/admission", Scope::Ops, &["limit", "after"]),
    get("/v1/ops/admission/{activity_id}/{sku_id}", Scope::Ops, &[]),
    post("/v1/ops/admission/{activity_id}/{sku_id}/rebuild", Scope::Ops),
    get("/v1/ops/queues", Scope::Ops, &[]),
    post("/v1/ops/queues/{name}/pause", Scope::Ops),
    post("/v1/ops/queues/{name}/resume", Scope::Ops),
    get("/v1/ops/notices", Scope::Ops, &["limit", "after"]),
    get("/v1/ops/dead-letters", Scope::Ops, &["limit", "after"]),
    post("/v1/ops/dead-letters/{id}/replay", Scope::Ops),
    post("/sandbox/payments/{payment_id}/succeed", Scope::Write),
    post("/sandbox/payments/{payment_id}/fail", Scope::Write),
    get("/sandbox/payments/{payment_id}", Scope::Read, &[]),
    put("/sandbox/mode"),
    get("/sandbox/statement", Scope::Read, &["from", "to"]),
    get("/sandbox/customers/{user_id}/charges", Scope::Read, &[]),
    open("/livez"),
    open("/readyz"),
    open("/metrics"),
    open("/openapi.json"),
];

impl Route {
    /// The operation behind a matched path, where the table knows it. `HEAD` is a `GET` without its body.
    pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Self> {
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        ROUTES.iter().find(|route| route.method == method && route.path == path)
    }

    /// Its position in the table.
    pub(crate) fn index(&'static self) -> usize {
        ROUTES.iter().position(|route| std::ptr::eq(route, self)).expect("routes exist in the table only")
    }

    /// Whether it only looks.
    pub(crate) fn is_read(&self) -> bool {
        self.method == "GET"
    }
}
