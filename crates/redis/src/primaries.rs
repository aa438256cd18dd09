//! Which servers hold keys now: one, whom Sentinels name, or every primary of a cluster.
//!
//! Invariant: whoever is asked may be gone by the time of the answer, so what was found is looked up again now and then.
//! Deliberately absent: copies; a key runs out at its primary. Read next: `ears.rs`, which listens to each of them.

use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, TlsMode, Value,
};

use crate::options::{Options, Target, moved, tcp};

/// Where each primary is.
pub(crate) async fn primaries(options: &Options) -> Result<Vec<ConnectionInfo>, RedisError> {
    match &options.target {
        Target::Single(server) => Ok(vec![server.clone()]),
        Target::Sentinel { sentinels, service } => {
            let mut client = sentinel(options, sentinels, service)?;
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
pub(crate) fn sentinel(
    options: &Options,
    sentinels: &[ConnectionInfo],
    service: &str,
) -> Result<SentinelClient, RedisError> {
    let addresses = sentinels.iter().map(|sentinel| sentinel.addr().clone());
    let mut builder = SentinelClientBuilder::new(addresses, service, SentinelServerType::Master)?
        .set_client_to_sentinel_tcp_settings(tcp())
        .set_client_to_redis_tcp_settings(tcp());
    let login = sentinels[0].redis_settings();
    if let Some(user) = login.username() {
        builder = builder.set_client_to_sentinel_username(user).set_client_to_redis_username(user);
    }
    if let Some(password) = login.password() {
        builder = builder.set_client_to_sentinel_password(password).set_client_to_redis_password(password);
    }
    if options.is_encrypted() {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if let Some(certificates) = &options.certificates {
        builder = builder.set_client_to_redis_certificates(certificates.clone());
    }
    builder.build()
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
    for (host, port) in addresses(&slots, server) {
        let primary = moved(server, host, port);
        if found.iter().all(|known| known.addr() != primary.addr()) {
            found.push(primary);
        }
    }
    Ok(found)
}

/// Reads ranges of slots: first, last, the primary, copies. A server that does not know its own name leaves it out, and is
/// the one that was asked.
fn addresses(slots: &Value, asked: &ConnectionInfo) -> Vec<(String, u16)> {
    let Value::Array(ranges) = slots else { return Vec::new() };
    let primary = |range: &Value| {
        let Value::Array(parts) = range else { return None };
        let Value::Array(server) = parts.get(2)? else { return None };
        let (Value::Int(port), name) = (server.get(1)?, server.first()?) else { return None };
        let host = match (name, asked.addr()) {
            (Value::BulkString(name), _) if !name.is_empty() => String::from_utf8(name.clone()).ok()?,
            (_, ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. }) => host.clone(),
            _ => return None,
        };
        Some((host, u16::try_from(*port).ok()?))
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
        let at = |host: &str, port| (host.to_owned(), port);
        assert_eq!(addresses(&slots, &asked), [at("a", 1), at("seed", 2), at("seed", 3)]);
        let asked = "rediss://seed:7".into_connection_info().unwrap();
        assert_eq!(addresses(&slots, &asked), [at("a", 1), at("seed", 2), at("seed", 3)]);
        let primary = moved(&asked, "a".to_owned(), 1);
        let expected = "rediss://a:1".into_connection_info().unwrap();
        assert_eq!(primary.addr(), expected.addr(), "a line that is encrypted stays so");
    }
}
