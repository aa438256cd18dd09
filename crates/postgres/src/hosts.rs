//! The servers of one URL, each by itself: the driver would wait at the first for as long as that one is silent.
//!
//! Invariants: they come in the URL's order, and together they have no longer than [`PATIENCE`]; what the URL says beside where
//! they are is the same for each. Deliberately absent: shuffling them, which is left to the driver where the URL asks for it.
//! Read next: `link`.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts};

/// How long a session may take to come about, from the look for a name's address to the first answered question. The servers of a
/// URL have equal parts of it, so that one that takes connections and says nothing does not keep us from the one that took over.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// How long each of so many servers has. A URL may ask for less by its `connect_timeout`, which in libpq too is for all that must
/// happen before the first question.
pub(crate) fn patience(asked: Option<Duration>, servers: usize) -> Duration {
    let part = PATIENCE / u32::try_from(servers.max(1)).unwrap_or(u32::MAX);
    asked.map_or(part, |asked| asked.min(part))
}

/// The settings for each server alone.
pub(crate) fn each(config: &Config) -> Vec<Config> {
    let count = config.get_hosts().len();
    // Lists that do not fit together are the driver's to refuse.
    let (addresses, ports) = (config.get_hostaddrs().len(), config.get_ports().len());
    let fit = (addresses == 0 || addresses == count) && (ports <= 1 || ports == count);
    if count < 2 || !fit || config.get_load_balance_hosts() != LoadBalanceHosts::Disable {
        return vec![config.clone()];
    }
    (0..count).map(|index| alone(config, index)).collect()
}

fn alone(config: &Config, index: usize) -> Config {
    let mut one = elsewhere(config);
    match &config.get_hosts()[index] {
        Host::Tcp(name) => one.host(name),
        Host::Unix(path) => one.host_path(path),
    };
    if let Some(address) = config.get_hostaddrs().get(index) {
        one.hostaddr(*address);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(index).or(ports.first()) {
        one.port(*port);
    }
    one
}

/// All but the servers: settings of the driver can be added to, and not taken from.
fn elsewhere(config: &Config) -> Config {
    let mut one = Config::new();
    one.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(database) = config.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one
}

#[cfg(test)]
mod tests {
    //! Nothing that the URL says is lost on the way to a server, and no server has for ever.

    use super::*;

    const EVERYTHING: &str = "postgres://me:secret@a:1/shop?options=-cx%3Dy&application_name=n&sslmode=require\
        &sslnegotiation=direct&hostaddr=10.0.0.1&connect_timeout=2&tcp_user_timeout=3&keepalives=1&keepalives_idle=4\
        &keepalives_interval=5&keepalives_retries=6&target_session_attrs=read-write&channel_binding=require\
        &load_balance_hosts=random";

    #[test]
    fn what_is_said_of_one_server_is_said_of_each() {
        let all: Config = EVERYTHING.parse().unwrap();
        assert_eq!(alone(&all, 0), all);
        let pair: Config = "postgres://me@a:1,b:2/shop?connect_timeout=2".parse().unwrap();
        let apart = ["a:1", "b:2"]
            .map(|server| format!("postgres://me@{server}/shop?connect_timeout=2").parse().unwrap());
        assert_eq!(each(&pair), apart);
        for whole in [
            "postgres://me@a/shop",
            "postgres://me@a:1,b:2/shop?hostaddr=10.0.0.1",
            "postgres://me@a,b/shop?load_balance_hosts=random",
        ] {
            let whole: Config = whole.parse().unwrap();
            assert_eq!(each(&whole), std::slice::from_ref(&whole));
        }
    }

    #[test]
    fn servers_share_the_time_and_a_url_may_ask_for_less() {
        assert_eq!(patience(None, 1), PATIENCE);
        assert_eq!(patience(None, 3), PATIENCE / 3);
        assert_eq!(patience(Some(Duration::from_secs(1)), 3), Duration::from_secs(1));
        assert_eq!(patience(Some(Duration::from_secs(600)), 2), PATIENCE / 2);
    }
}
