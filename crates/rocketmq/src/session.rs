//! A session: the broker knows one of our clients, and goes on knowing it.
//!
//! A broker gives nothing to a consumer that has not introduced itself on a telemetry line, and forgets one that gives no
//! sign of life. Invariants: while a session lasts its line is open and heartbeats go out; when it breaks it is begun
//! again, with a bounded back-off, for as long as the bus lives. A group whose order does not fit its topic makes no
//! session: events would come out of order.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use onceward_domain::error::{Code, Error};
use onceward_domain::time::{Millis, back_off};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tonic::Streaming;

use crate::failure;
use crate::link::{CALL_DEADLINE, ClientName, Link, named};
use crate::proto::{self, ClientType, TelemetryCommand};

/// Between two signs of life. The broker forgets a client after two minutes.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Heartbeats that may fail in a row before a session counts as broken.
const SILENCE_LIMIT: u32 = 3;
/// First and longest wait before a broken session is begun again.
const BACK_OFF_BASE: Millis = Millis(100);
const BACK_OFF_CAP: Millis = Millis(5_000);

/// What a client does at the broker.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// Sends to these topics.
    Producer {
        /// Their names.
        topics: Vec<String>,
    },
    /// Reads this topic in this group.
    Consumer {
        /// The topic's name.
        topic: String,
        /// The group's name.
        group: String,
        /// Whether the group must be given its messages in order.
        is_ordered: bool,
    },
}

/// Whether the broker knows the client.
#[derive(Debug, Clone)]
enum State {
    Absent(Arc<str>),
    Present,
}

/// A session that keeps itself up until it is dropped.
pub(crate) struct Session {
    client: ClientName,
    state: watch::Receiver<State>,
    /// The task that keeps the session up ends when it is told so, or when this is gone.
    alive: watch::Sender<()>,
}

impl Session {
    /// Begins one on the present runtime.
    pub(crate) fn begin(link: Link, client: ClientName, role: Role) -> Self {
        let (alive, ended) = watch::channel(());
        let (told, state) = watch::channel(State::Absent(Arc::from("it has not answered yet")));
        let keeper = Keeper { link, client: client.clone(), role, told };
        tokio::spawn(keeper.keep(ended));
        Self { client, state, alive }
    }

    /// The name under which the broker knows the client.
    pub(crate) fn client(&self) -> &ClientName {
        &self.client
    }

    /// Waits until the broker knows the client.
    ///
    /// # Errors
    /// [`Code::Unavailable`] after this long, with the last trouble.
    pub(crate) async fn ready(&self, patience: Duration) -> Result<(), Error> {
        let mut state = self.state.clone();
        let present = state.wait_for(|state| matches!(state, State::Present));
        match timeout(patience, present).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Error::new(Code::Unavailable, self.trouble().unwrap_or_default())),
        }
    }

    /// What is wrong; `None` while the broker knows the client.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Present => None,
            State::Absent(why) => Some(format!("the broker does not know us: {why}")),
        }
    }

    /// Says goodbye, so that the broker forgets the client at once.
    pub(crate) async fn end(&self) {
        self.alive.send_replace(());
        let mut state = self.state.clone();
        // The task is gone when nobody tells the state any more; its goodbye has a deadline.
        while state.changed().await.is_ok() {}
    }
}

struct Keeper {
    link: Link,
    client: ClientName,
    role: Role,
    told: watch::Sender<State>,
}

impl Keeper {
    async fn keep(self, mut ended: watch::Receiver<()>) {
        let mut failures = 0;
        loop {
            let why = tokio::select! {
                broken = self.hold() => match broken {
                    Ok(why) => { failures = 0; why }
                    Err(error) => error.to_string(),
                },
                _ = ended.changed() => break,
            };
            failures += 1;
            tracing::warn!(target: "onceward", event = "broker.session_broken", client = ?self.client, why, failures);
            self.told.send_replace(State::Absent(Arc::from(why)));
            let wait = back_off(failures, BACK_OFF_BASE, BACK_OFF_CAP);
            let wait = Duration::from_millis(wait.0.unsigned_abs());
            if timeout(wait, ended.changed()).await.is_ok() {
                break;
            }
        }
        let group = match &self.role {
            Role::Producer { .. } => None,
            Role::Consumer { group, .. } => Some(named(group.clone())),
        };
        // Nobody waits for the answer: a broker that does not hear it forgets us two minutes later.
        drop(self.link.terminate(&self.client, group).await);
    }

    /// Begins the session and holds it until it breaks; says why it broke.
    async fn hold(&self) -> Result<String, Error> {
        let mut line = self.introduce().await?;
        self.told.send_replace(State::Present);
        let mut beats = interval(HEARTBEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = 0;
        loop {
            tokio::select! {
                told = line.message() => match told {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok("the broker closed the line".to_owned()),
                    Err(status) => return Ok(format!("{:?}, {}", status.code(), status.message())),
                },
                _ = beats.tick() => match self.beat().await {
                    Ok(()) => silent = 0,
                    Err(error) => {
                        silent += 1;
                        if silent >= SILENCE_LIMIT {
                            return Ok(error.to_string());
                        }
                    }
                },
            }
        }
    }

    async fn introduce(&self) -> Result<Streaming<TelemetryCommand>, Error> {
        const DOING: &str = "introducing a client";
        use proto::telemetry_command::Command;

        let hello = TelemetryCommand { status: None, command: Some(Command::Settings(self.settings())) };
        let commands = stream::once(std::future::ready(hello)).chain(stream::pending());
        let opened = self.link.telemetry(&self.client, commands).await;
        let mut line = opened.map_err(|status| failure::unavailable(DOING, &status))?;
        let answer = match timeout(CALL_DEADLINE, line.message()).await {
            Ok(answer) => answer.map_err(|status| failure::unavailable(DOING, &status))?,
            Err(_) => None,
        };
        let answer = answer.ok_or_else(|| Error::new(Code::Unavailable, format!("{DOING}: no answer")))?;
        failure::expect_done(DOING, answer.status.as_ref())?;
        let Some(Command::Settings(settings)) = answer.command else { return Ok(line) };
        self.check(&settings)?;
        Ok(line)
    }

    fn check(&self, settings: &proto::Settings) -> Result<(), Error> {
        let fifo = match &settings.pub_sub {
            Some(proto::settings::PubSub::Subscription(subscription)) => subscription.fifo(),
            Some(proto::settings::PubSub::Publishing(_)) | None => return Ok(()),
        };
        match &self.role {
            Role::Consumer { group, is_ordered, .. } if *is_ordered != fifo => {
                let wanted = if *is_ordered { "true" } else { "false" };
                let text = format!("the group {group} must have consumeMessageOrderly={wanted}");
                Err(Error::new(Code::Unavailable, text))
            }
            Role::Consumer { .. } | Role::Producer { .. } => Ok(()),
        }
    }

    async fn beat(&self) -> Result<(), Error> {
        const DOING: &str = "giving a sign of life";
        let (group, client_type) = match &self.role {
            Role::Producer { .. } => (None, ClientType::Producer),
            Role::Consumer { group, .. } => (Some(named(group.clone())), ClientType::SimpleConsumer),
        };
        let request = proto::HeartbeatRequest { group, client_type: client_type.into() };
        let answer = self.link.heartbeat(&self.client, request).await;
        let answer = answer.map_err(|status| failure::unavailable(DOING, &status))?;
        failure::expect_done(DOING, answer.status.as_ref())
    }

    fn settings(&self) -> proto::Settings {
        use proto::settings::PubSub;

        let (client_type, pub_sub) = match &self.role {
            Role::Producer { topics } => {
                let topics = topics.iter().cloned().map(named).collect();
                (ClientType::Producer, PubSub::Publishing(proto::Publishing { topics }))
            }
            Role::Consumer { topic, group, is_ordered } => {
                let entry = proto::SubscriptionEntry {
                    topic: Some(named(topic.clone())),
                    expression: Some(everything()),
                };
                let subscription = proto::Subscription {
                    group: Some(named(group.clone())),
                    subscriptions: vec![entry],
                    fifo: Some(*is_ordered),
                };
                (ClientType::SimpleConsumer, PubSub::Subscription(subscription))
            }
        };
        proto::Settings {
            client_type: Some(client_type.into()),
            access_point: Some(self.link.endpoints()),
            backoff_policy: None,
            request_timeout: Some(seconds(CALL_DEADLINE)),
            pub_sub: Some(pub_sub),
            user_agent: Some(proto::UserAgent {
                language: proto::Language::Rust.into(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
        }
    }
}

/// No filter.
pub(crate) fn everything() -> proto::FilterExpression {
    proto::FilterExpression { r#type: proto::FilterType::Tag.into(), expression: "*".to_owned() }
}

/// A length of time, as the protocol has it.
pub(crate) fn seconds(length: Duration) -> proto::Duration {
    let nanos = i32::try_from(length.subsec_nanos()).expect("below a thousand million");
    proto::Duration { seconds: i64::try_from(length.as_secs()).unwrap_or(i64::MAX), nanos }
}
