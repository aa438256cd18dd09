//! Things that must hold: ours, and those that the server looks at itself.

use serde_json::Value;

use crate::client::Client;
use crate::failure::Failure;

/// Places that a detail names; the rest is counted.
const NAMED: usize = 3;

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Check {
    /// Stable name.
    pub(crate) name: String,
    /// Whether it holds.
    pub(crate) holds: bool,
    /// What was compared, or what is wrong.
    pub(crate) detail: String,
}

impl Check {
    /// From what is wrong; nothing wrong is good.
    pub(crate) fn of(name: &str, compared: &str, wrong: &[String]) -> Self {
        let detail = match wrong.len() {
            0 => compared.to_owned(),
            count => format!("{count} wrong: {}", wrong[..count.min(NAMED)].join("; ")),
        };
        Self { name: name.to_owned(), holds: wrong.is_empty(), detail }
    }
}

/// The server's own invariants, computed now.
///
/// # Errors
/// When they cannot be had.
pub(crate) async fn of_the_server(client: &mut Client<'_>) -> Result<Vec<Check>, Failure> {
    let answer = client.get("/v1/ops/invariants").await?;
    let text = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    let checks: Vec<Check> = answer.body["checks"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|check| Check {
            name: text(check, "name"),
            holds: check["holds"] == true,
            detail: text(check, "detail"),
        })
        .collect();
    if answer.status != 200 || checks.is_empty() {
        return Err(Failure::Other(format!("the server's invariants are {}", answer.short())));
    }
    Ok(checks)
}
