//! The document and the server agree: routes, parameters, and the shapes of answers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use house::{ADJUST, House, RESERVE, SKU, activity, buyer, sku};
use onceward_ground::Mode;
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::to_value(onceward_http::openapi()).unwrap()
}

/// Follows a `$ref` inside the document.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            document.pointer(&reference[1..]).unwrap_or_else(|| panic!("{reference} is missing"))
        }
        None => schema,
    }
}

/// Compares a value with its schema: types, required and known fields, names of enums; all the way down.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = resolve(document, schema);
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let is_null = |choice: &&Value| choice["type"] == "null";
        if value.is_null() {
            assert!(choices.iter().any(|choice| is_null(&choice)), "{place}: null is not allowed");
        } else {
            check(document, choices.iter().find(|choice| !is_null(choice)).unwrap(), value, place);
        }
        return;
    }
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        assert!(names.contains(value), "{place}: {value} is not in {names:?}");
        return;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_allowed = match &schema["type"] {
        Value::String(only) => only == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    };
    assert!(is_allowed, "{place}: {value} against {schema}");
    if let Value::Array(items) = value {
        items.iter().for_each(|item| check(document, &schema["items"], item, &format!("{place}[]")));
    }
    if let (Value::Object(fields), Some(known)) = (value, schema["properties"].as_object()) {
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let found: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        assert!(required.is_subset(&found), "{place}: {required:?} against {found:?}");
        for (name, field) in fields {
            let shape = known.get(name).unwrap_or_else(|| panic!("{place}/{name} is not in the document"));
            check(document, shape, field, &format!("{place}/{name}"));
        }
    }
}

fn check_answer(document: &Value, method: &str, template: &str, answer: &house::Answer) {
    let responses = &document["paths"][template][method]["responses"];
    let status = answer.status.to_string();
    let response =
        responses.get(&status).unwrap_or_else(|| panic!("{method} {template}: {status} is not documented"));
    let media_type = answer.header("content-type").split(';').next().unwrap();
    let schema = &response["content"][media_type]["schema"];
    assert!(!schema.is_null(), "{method} {template} {status}: {media_type} is not documented");
    check(document, schema, &answer.body, template);
}

#[tokio::test]
async fn every_operation_of_the_document_is_served_and_no_other() {
    let house = House::empty(Mode::Embedded).await;
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(house.get("/openapi.json").await.body, document);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
            let request = Request::builder().method(method).uri(path.replace(['{', '}'], "x"));
            let answer = house.ask(request.body(Body::empty()).unwrap()).await;
            let is_documented = operations.get(method.to_lowercase()).is_some();
            assert_eq!(answer.status != 405, is_documented, "{method} {path}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn every_query_parameter_of_the_document_is_known_and_no_other() {
    let house = House::empty(Mode::Embedded).await;
    for (path, operations) in document()["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            for name in
                ["user_id", "status", "activity_id", "limit", "after", "wait_ms", "from", "to", "other"]
            {
                let path = format!("{}?{name}=x", path.replace(['{', '}'], "x"));
                let request = Request::builder().method(method.to_uppercase().as_str()).uri(path);
                let answer = house.ask(request.body(Body::empty()).unwrap()).await;
                let is_documented = parameters
                    .iter()
                    .any(|parameter| parameter["in"] == "query" && parameter["name"] == name);
                let is_unknown = answer.status == 400 && answer.pointer() == "/?";
                assert_eq!(!is_unknown, is_documented, "{method} {name}: {}", answer.body);
            }
        }
    }
}

#[test]
fn every_operation_says_what_it_is_and_how_it_refuses() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{method} {path}");
            let refusal = &operation["responses"]["default"]["content"]["application/problem+json"]["schema"];
            assert_eq!(refusal["$ref"], "#/components/schemas/Problem", "{method} {path}");
            // A callback's signature is its key.
            let is_signed = path == "/v1/webhooks/{provider}";
            let needs_key = (path.starts_with("/v1/") || path.starts_with("/sandbox/")) && !is_signed;
            assert_eq!(operation["security"][0].get("api_key").is_some(), needs_key, "{path}");
            for name in path
                .split('/')
                .filter_map(|part| part.strip_prefix('{'))
                .map(|part| part.trim_end_matches('}'))
            {
                let is_documented =
                    operation["parameters"].as_array().into_iter().flatten().any(|parameter| {
                        parameter["in"] == "path"
                            && parameter["name"] == name
                            && parameter["required"] == true
                    });
                assert!(is_documented, "{method} {path}: {name}");
            }
        }
    }
    let text = document.to_string();
    for (start, _) in text.match_indices("#/components/schemas/") {
        let name = &text[start + "#/components/schemas/".len()..];
        let name = &name[..name.find('"').unwrap()];
        assert!(document["components"]["schemas"].get(name).is_some(), "{name} is missing");
    }
}

#[test]
fn bodies_are_closed_and_their_limits_are_told() {
    let document = document();
    for name in [
        "ActivityTerms",
        "SkuTerms",
        "StockAdjustment",
        "ReservationRequest",
        "OrderRequest",
        "OrderRequestLine",
        "Price",
        "Cancellation",
    ] {
        let schema = &document["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"], false, "{name}: {schema}");
    }
    let reservation = &document["components"]["schemas"]["ReservationRequest"];
    assert_eq!(reservation["properties"]["quantity"]["minimum"], 1);
    assert_eq!(reservation["required"], json!(["user_id", "request_id"]));
    assert_eq!(document["components"]["schemas"]["CallerId"]["maxLength"], 64);
}

#[tokio::test]
async fn answers_have_the_shapes_that_the_document_says() {
    let house = House::selling(Mode::Embedded, 3, 1).await;
    let document = document();
    let sku_template = "/v1/activities/{activity_id}/skus/{sku_id}";
    let reserve_template = "/v1/activities/{activity_id}/skus/{sku_id}/reservations";
    let adjust_template = "/v1/activities/{activity_id}/skus/{sku_id}/stock-adjustments";
    let order_template = "/v1/orders/{order_id}";

    let receipt = house.post(RESERVE, &buyer("u1", "r1")).await;
    let reservation = format!("/v1/reservations/{}", receipt.body["reservation_id"].as_str().unwrap());
    let open = house.get(&reservation).await;
    house.rest().await;
    let decided = house.get(&reservation).await;
    let order = format!("/v1/orders/{}", decided.body["order_id"].as_str().unwrap());
    let lines = json!([{ "activity_id": "sale", "sku_id": "cup" }]);
    let direct = json!({ "user_id": "u2", "request_id": "r", "lines": lines });
    let adjustment = json!({ "delta": 1, "reason": "found one" });
    let reason = json!({ "reason": "no" });
    let answers = [
        ("put", "/v1/activities/{activity_id}", house.put("/v1/activities/sale", &activity()).await),
        ("get", "/v1/activities/{activity_id}", house.get("/v1/activities/sale").await),
        ("get", "/v1/activities/{activity_id}", house.get("/v1/activities/none").await),
        ("put", sku_template, house.put(SKU, &sku(3, 1)).await),
        ("get", sku_template, house.get(SKU).await),
        ("post", adjust_template, house.post_with_key(ADJUST, "k", &adjustment).await),
        ("post", reserve_template, receipt),
        ("post", reserve_template, house.post(RESERVE, &buyer("u1", "r1")).await),
        ("post", reserve_template, house.post(RESERVE, &buyer("u1", "r9")).await),
        ("post", reserve_template, house.post(RESERVE, &buyer("a b", "r9")).await),
        ("get", "/v1/reservations/{reservation_id}", open),
        ("get", "/v1/reservations/{reservation_id}", decided),
        ("post", "/v1/orders", house.post("/v1/orders", &direct).await),
        ("post", "/v1/orders", house.post("/v1/orders", &direct).await),
        ("get", order_template, house.get(&order).await),
        ("get", "/v1/orders", house.get("/v1/orders?limit=1").await),
        ("post", "/v1/orders/{order_id}/cancel", house.post(&format!("{order}/cancel"), &reason).await),
        ("get", order_template, house.get(&order).await),
        ("get", "/v1/orders/{order_id}/timeline", house.get(&format!("{order}/timeline")).await),
        ("get", "/v1/ops/overview", house.get("/v1/ops/overview").await),
        ("get", "/v1/ops/invariants", house.get("/v1/ops/invariants").await),
        ("get", "/v1/ops/queues", house.get("/v1/ops/queues").await),
        ("get", "/v1/ops/admission", house.get("/v1/ops/admission").await),
        ("get", "/v1/ops/dead-letters", house.get("/v1/ops/dead-letters").await),
        ("get", "/v1/ops/notices", house.get("/v1/ops/notices").await),
        ("get", "/livez", house.get("/livez").await),
        ("get", "/readyz", house.get("/readyz").await),
    ];
    for (method, template, answer) in &answers {
        check_answer(&document, method, template, answer);
    }
}
