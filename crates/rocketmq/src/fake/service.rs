//! The calls that the broker in memory answers.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::Millis;
use tonic::{Request, Response, Status, Streaming};

use super::{Ask, Call, FakeBroker, Fault, MAX_ATTEMPTS};
use crate::failure::{LEASE_LOST, NOTHING_THERE};
use crate::proto::messaging_service_server::MessagingService;
use crate::proto::receive_message_response::Content;
use crate::proto::settings::PubSub;
use crate::proto::telemetry_command::Command;
use crate::proto::{self, Resource};

const OK: i32 = 20_000;
const UNKNOWN_TOPIC: i32 = 40_402;
const TOO_SHORT_A_LEASE: i32 = 40_011;
const UNKNOWN_CLIENT: i32 = 40_015;
const TOO_LONG_A_DELAY: i32 = 40_018;
/// The longest delay, as proxies have it.
const LONGEST_DELAY: Millis = Millis(24 * 3_600_000);
/// The shortest lease, as brokers have it.
const SHORTEST_LEASE: Millis = Millis(10_000);

type Parts<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn status(code: i32) -> Option<proto::Status> {
    Some(proto::Status { code, message: format!("code {code}") })
}

fn name(resource: Option<&Resource>) -> &str {
    resource.map_or("", |one| one.name.as_str())
}

fn millis(length: Option<proto::Duration>) -> Millis {
    let length = length.unwrap_or_default();
    Millis(length.seconds * 1_000 + i64::from(length.nanos / 1_000_000))
}

fn client_of<T>(request: &Request<T>) -> String {
    let client = request.metadata().get("x-mq-client-id").and_then(|name| name.to_str().ok());
    client.unwrap_or_default().to_owned()
}

impl FakeBroker {
    /// Answers a call as its fault wants it.
    async fn answer<T>(
        &self,
        call: Call,
        refused: impl FnOnce(Option<proto::Status>) -> T,
        carry_out: impl FnOnce() -> T,
    ) -> Result<Response<T>, Status> {
        match self.next_fault(call) {
            None => Ok(Response::new(carry_out())),
            Some(Fault::LoseAnswer) => {
                drop(carry_out());
                Err(Status::unavailable("the answer was lost"))
            }
            Some(Fault::LoseRequest) => Err(Status::unavailable("the request was lost")),
            Some(Fault::Refuse(code)) => Ok(Response::new(refused(status(code)))),
            Some(Fault::Hang) => {
                drop(carry_out());
                std::future::pending().await
            }
            Some(Fault::Wait) => {
                self.go.notified().await;
                Ok(Response::new(carry_out()))
            }
        }
    }

    fn receive(&self, client: &str, request: &proto::ReceiveMessageRequest) -> Vec<Content> {
        let mut state = self.state();
        let lease = millis(request.invisible_duration);
        let topic = name(request.message_queue.as_ref().and_then(|queue| queue.topic.as_ref()));
        let refused = if !state.clients.contains(client) {
            Some(UNKNOWN_CLIENT)
        } else if lease < SHORTEST_LEASE {
            Some(TOO_SHORT_A_LEASE)
        } else if !state.topics.contains_key(topic) {
            Some(UNKNOWN_TOPIC)
        } else {
            None
        };
        if let Some(code) = refused {
            return status(code).map(Content::Status).into_iter().collect();
        }
        let given = state.take(&Ask {
            topic,
            group: name(request.group.as_ref()),
            attempt: request.attempt_id(),
            limit: usize::try_from(request.batch_size).unwrap_or_default(),
            lease,
            now: self.clock.now(),
        });
        let first = status(if given.is_empty() { NOTHING_THERE } else { OK });
        first.map(Content::Status).into_iter().chain(given.into_iter().map(Content::Message)).collect()
    }

    fn settings(&self, client: &str, mut settings: proto::Settings) -> proto::Settings {
        let mut state = self.state();
        if let Some(PubSub::Subscription(subscription)) = &mut settings.pub_sub {
            subscription.fifo = Some(state.ordered.contains(name(subscription.group.as_ref())));
        }
        settings.backoff_policy = Some(proto::RetryPolicy { max_attempts: MAX_ATTEMPTS });
        state.clients.insert(client.to_owned());
        settings
    }
}

#[tonic::async_trait]
impl MessagingService for FakeBroker {
    type ReceiveMessageStream = Parts<proto::ReceiveMessageResponse>;
    type TelemetryStream = Parts<proto::TelemetryCommand>;

    async fn query_route(
        &self,
        request: Request<proto::QueryRouteRequest>,
    ) -> Result<Response<proto::QueryRouteResponse>, Status> {
        let topic = request.into_inner().topic;
        if !self.state().topics.contains_key(name(topic.as_ref())) {
            let message_queues = Vec::new();
            return Ok(Response::new(proto::QueryRouteResponse {
                status: status(UNKNOWN_TOPIC),
                message_queues,
            }));
        }
        let queue = proto::MessageQueue {
            topic,
            permission: proto::Permission::ReadWrite.into(),
            broker: Some(proto::Broker { name: "fake".to_owned(), id: 0 }),
            ..proto::MessageQueue::default()
        };
        Ok(Response::new(proto::QueryRouteResponse { status: status(OK), message_queues: vec![queue] }))
    }

    async fn heartbeat(
        &self,
        request: Request<proto::HeartbeatRequest>,
    ) -> Result<Response<proto::HeartbeatResponse>, Status> {
        let is_known = self.state().clients.contains(&client_of(&request));
        Ok(Response::new(proto::HeartbeatResponse {
            status: status(if is_known { OK } else { UNKNOWN_CLIENT }),
        }))
    }

    async fn send_message(
        &self,
        request: Request<proto::SendMessageRequest>,
    ) -> Result<Response<proto::SendMessageResponse>, Status> {
        let messages = request.into_inner().messages;
        let refused = |status| proto::SendMessageResponse { status, entries: Vec::new() };
        let carry_out = || {
            let entries: Vec<_> = messages
                .into_iter()
                .map(|message| {
                    let topic = name(message.topic.as_ref()).to_owned();
                    let properties = message.system_properties.clone().unwrap_or_default();
                    let now = self.clock.now();
                    let delay = super::delivery_of(&message).map_or(Millis(0), |at| at.since(now));
                    let code = if delay > LONGEST_DELAY {
                        TOO_LONG_A_DELAY
                    } else if self.state().put(&topic, message, now) {
                        OK
                    } else {
                        UNKNOWN_TOPIC
                    };
                    proto::SendResultEntry { status: status(code), message_id: properties.message_id }
                })
                .collect();
            proto::SendMessageResponse { status: status(OK), entries }
        };
        self.answer(Call::Send, refused, carry_out).await
    }

    async fn receive_message(
        &self,
        request: Request<proto::ReceiveMessageRequest>,
    ) -> Result<Response<Self::ReceiveMessageStream>, Status> {
        let client = client_of(&request);
        let request = request.into_inner();
        let refused = |status: Option<proto::Status>| status.map(Content::Status).into_iter().collect();
        let parts =
            self.answer(Call::Receive, refused, || self.receive(&client, &request)).await?.into_inner();
        let parts =
            parts.into_iter().map(|content| Ok(proto::ReceiveMessageResponse { content: Some(content) }));
        Ok(Response::new(Box::pin(stream::iter(parts.collect::<Vec<_>>()))))
    }

    async fn ack_message(
        &self,
        request: Request<proto::AckMessageRequest>,
    ) -> Result<Response<proto::AckMessageResponse>, Status> {
        let request = request.into_inner();
        let refused = |status| proto::AckMessageResponse { status, entries: Vec::new() };
        let carry_out = || {
            let mut state = self.state();
            let now = self.clock.now();
            let entries = request.entries.iter().map(|entry| {
                let held = state.held(name(request.topic.as_ref()), &entry.receipt_handle, now);
                let code = held.map_or(LEASE_LOST, |(place, all)| {
                    all.remove(place);
                    OK
                });
                let (message_id, receipt_handle) = (entry.message_id.clone(), entry.receipt_handle.clone());
                proto::AckMessageResultEntry { message_id, receipt_handle, status: status(code) }
            });
            proto::AckMessageResponse { entries: entries.collect(), status: status(OK) }
        };
        self.answer(Call::Ack, refused, carry_out).await
    }

    async fn change_invisible_duration(
        &self,
        request: Request<proto::ChangeInvisibleDurationRequest>,
    ) -> Result<Response<proto::ChangeInvisibleDurationResponse>, Status> {
        let request = request.into_inner();
        let refused =
            |status| proto::ChangeInvisibleDurationResponse { status, receipt_handle: String::new() };
        let carry_out = || {
            let mut state = self.state();
            let now = self.clock.now();
            let held = state.held(name(request.topic.as_ref()), &request.receipt_handle, now);
            let code = held.map_or(LEASE_LOST, |(place, all)| {
                all[place].visible_at = now.plus(millis(request.invisible_duration));
                OK
            });
            let receipt_handle = request.receipt_handle.clone();
            proto::ChangeInvisibleDurationResponse { status: status(code), receipt_handle }
        };
        self.answer(Call::ChangeLease, refused, carry_out).await
    }

    async fn telemetry(
        &self,
        request: Request<Streaming<proto::TelemetryCommand>>,
    ) -> Result<Response<Self::TelemetryStream>, Status> {
        let client = client_of(&request);
        let mut commands = request.into_inner();
        let Some(proto::TelemetryCommand { command: Some(Command::Settings(settings)), .. }) =
            commands.message().await?
        else {
            return Err(Status::invalid_argument("a client begins with its settings"));
        };
        let refused = |status| proto::TelemetryCommand { status, command: None };
        let carry_out = || proto::TelemetryCommand {
            status: status(OK),
            command: Some(Command::Settings(self.settings(&client, settings))),
        };
        let mut lines = self.lines.subscribe();
        let first = self.answer(Call::Telemetry, refused, carry_out).await?.into_inner();
        // Open until all lines break; then it ends.
        let broken = stream::once(async move { drop(lines.changed().await) });
        let rest = broken.map(|()| Err(Status::unavailable("the broker goes away")));
        // What the client says later is read and thrown away for as long as the line is open.
        Ok(Response::new(Box::pin(stream::once(std::future::ready(Ok(first))).chain(rest))))
    }

    async fn notify_client_termination(
        &self,
        request: Request<proto::NotifyClientTerminationRequest>,
    ) -> Result<Response<proto::NotifyClientTerminationResponse>, Status> {
        self.state().clients.remove(&client_of(&request));
        Ok(Response::new(proto::NotifyClientTerminationResponse { status: status(OK) }))
    }
}
