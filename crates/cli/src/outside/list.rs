//! Lists that are read to their end, page by page.

use serde_json::Value;

use crate::client::Client;
use crate::failure::Failure;

/// Most pages of a list that are read: far more than the largest run has.
const PAGES_MAX: u32 = 100_000;

/// Every order of an activity.
///
/// # Errors
/// When the server does not answer, or the list does not end.
pub(crate) async fn orders_of(client: &mut Client<'_>, activity: &str) -> Result<Vec<Value>, Failure> {
    let first = format!("/v1/orders?activity_id={activity}&limit=200");
    let mut orders = Vec::new();
    let mut path = first.clone();
    for _page in 0..PAGES_MAX {
        let mut answer = client.get(&path).await?;
        let Some(Value::Array(data)) = answer.body.get_mut("data").map(Value::take) else {
            return Err(Failure::Other(format!("a list of orders is {}", answer.short())));
        };
        orders.extend(data);
        match answer.body["next"].as_str() {
            Some(cursor) => path = format!("{first}&after={cursor}"),
            None => return Ok(orders),
        }
    }
    Err(Failure::Other("the list of orders does not end".to_owned()))
}
