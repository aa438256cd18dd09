//! Which servers hold keys now: one, whom Sentinels name, or every primary of a cluster.
//!
//! Invariant: whoever is asked may be gone by the time of the answer, so what was found is looked up again now and then.
//! Deliberately absent: copies; a key runs out at its primary. Read next: `ears.rs`, which listens to each of them.

use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, Value};

use crate::options::{Options, Target, tcp};

/// Where each primary is.
pub(crate) async fn primaries(options: &Options) -> Result<Vec<ConnectionInfo>, RedisError> {
    match &options.target {
        Target::Single(server) => Ok(vec![server.clone()]),
        Target::Sentinel { sentinels, service } => {
            let mut client = sentinel(sentinels, service)?;
            Ok(vec![client.async_get_client().await?.get_connection_info().clone()])
        }
        Target::Cluster(servers) => {
            let mut failed = RedisError::from((ErrorKind::InvalidClientConfig, "a cluster of no servers"));
            for server in servers {
                match of_cluster(options, server).await {
                    Ok(found) => return Ok(found),
                    Err(cause) => failed = cause,
                }
            }
            Err(failed)
        }
    }
}

/// Asks Sentinels for the primary; its login is theirs.
pub(crate) fn sentinel(sentinels: &[ConnectionInfo], service: &str) -> Result<SentinelClient, RedisError> {
    let node = SentinelNodeConnectionInfo::default()
        .set_tcp_settings(tcp())
        .set_redis_connection_info(sentinels[0].redis_settings().clone());
    SentinelClient::build(sentinels.to_vec(), service.to_owned(), Some(node), SentinelServerType::Master)
}

/// How long a connection to one server may take, and an answer of it.
pub(crate) fn patience(options: &Options) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_response_timeout(Some(options.response_limit))
        .set_connection_timeout(Some(options.connect_limit))
}

async fn of_cluster(options: &Options, server: &ConnectionInfo) -> Result<Vec<ConnectionInfo>, RedisError> {
    let client = Client::open(server.clone())?;
    let mut line = client.get_multiplexed_async_connection_with_config(&patience(options)).await?;
    let slots: Value = redis::cmd("CLUSTER").arg("SLOTS").query_async(&mut line).await?;
    let mut found: Vec<ConnectionInfo> = Vec::new();
    for addr in addresses(&slots, server) {
        if found.iter().all(|known| *known.addr() != addr) {
            found.push(server.clone().set_addr(addr));
        }
    }
    Ok(found)
}

/// Reads ranges of slots: first, last, the primary, copies. A server that does not know its own name leaves it out, and is
/// the one that was asked.
fn addresses(slots: &Value, asked: &ConnectionInfo) -> Vec<ConnectionAddr> {
    let Value::Array(ranges) = slots else { return Vec::new() };
    let primary = |range: &Value| {
        let Value::Array(parts) = range else { return None };
        let Value::Array(server) = parts.get(2)? else { return None };
        let (Value::Int(port), name) = (server.get(1)?, server.first()?) else { return None };
        let host = match (name, asked.addr()) {
            (Value::BulkString(name), _) if !name.is_empty() => String::from_utf8(name.clone()).ok()?,
            (_, ConnectionAddr::Tcp(host, _)) => host.clone(),
            _ => return None,
        };
        Some(ConnectionAddr::Tcp(host, u16::try_from(*port).ok()?))
    };
    ranges.iter().filter_map(primary).collect()
}

#[cfg(test)]
mod tests {
    use redis::IntoConnectionInfo as _;

    use super::*;

    #[test]
    fn a_cluster_names_its_primaries_and_not_their_copies() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let server = |name: Value, port| Value::Array(vec![name, Value::Int(port), text("id")]);
        let range =
            |primary| Value::Array(vec![Value::Int(0), Value::Int(9), primary, server(text("copy"), 9)]);
        let slots = Value::Array(vec![
            range(server(text("a"), 1)),
            range(server(Value::Nil, 2)),
            range(server(text(""), 3)),
            Value::Int(0),
        ]);
        let asked = "redis://seed:7".into_connection_info().unwrap();
        let tcp = |host: &str, port| ConnectionAddr::Tcp(host.to_owned(), port);
        assert_eq!(addresses(&slots, &asked), [tcp("a", 1), tcp("seed", 2), tcp("seed", 3)]);
    }
}
