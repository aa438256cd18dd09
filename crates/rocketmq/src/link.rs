//! The line to the broker: one connection, and on it every call that we make, each under a deadline.
//!
//! Invariants: the connection comes up with the first call and comes back by itself; a call that gets no answer ends at
//! its deadline as a failure of the call. Deliberately absent: retries; they belong to whoever knows whether a thing may
//! be repeated.

use std::time::Duration;

use onceward_domain::error::{Code, Error};
use onceward_tls::Authorities;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use crate::options::Options;
use crate::proto::messaging_service_client::MessagingServiceClient;
use crate::proto::{self, Endpoints, Resource};

/// How long a call may take that is no long poll. A broker that is alive answers in milliseconds.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(3);
/// How long a connection may take to come up.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// How often a silent connection is tested, so that one that is half open is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long that test may take.
const KEEP_ALIVE_DEADLINE: Duration = Duration::from_secs(5);
/// More than the largest message that a broker takes, which is 4 MiB by default.
const MESSAGE_BYTES_LIMIT: usize = 8 << 20;
/// Bytes under way on one call, and on all: so that a poll of 32 full carriers does not wait for windows to open.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// The name under which a broker knows one of our clients.
pub(crate) type ClientName = MetadataValue<Ascii>;

/// The line.
#[derive(Clone)]
pub(crate) struct Link {
    client: MessagingServiceClient<Channel>,
    endpoints: Endpoints,
}

impl Link {
    /// A line to this broker; nothing is sent yet. Needs a tokio runtime around it.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let invalid = |cause| Error::new(Code::Invalid, "reading the broker's address").because(cause);
        let scheme = if options.is_encrypted() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", options.address())).map_err(invalid)?;
        let endpoint = match &options.authorities {
            Some(authorities) => endpoint.tls_config(handshake(authorities)?).map_err(invalid)?,
            None => endpoint,
        };
        let endpoint = endpoint
            .connect_timeout(CONNECT_DEADLINE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_DEADLINE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let client = MessagingServiceClient::new(endpoint.connect_lazy())
            .max_decoding_message_size(MESSAGE_BYTES_LIMIT)
            .max_encoding_message_size(MESSAGE_BYTES_LIMIT);
        let address = proto::Address { host: options.host.clone(), port: i32::from(options.port) };
        let scheme = if options.host.parse::<std::net::Ipv4Addr>().is_ok() {
            proto::AddressScheme::Ipv4
        } else {
            proto::AddressScheme::DomainName
        };
        Ok(Self { client, endpoints: Endpoints { scheme: scheme.into(), addresses: vec![address] } })
    }

    /// The broker's address, as it wants to be told.
    pub(crate) fn endpoints(&self) -> Endpoints {
        self.endpoints.clone()
    }

    /// Which queues a topic has.
    pub(crate) async fn route(
        &self,
        who: &ClientName,
        topic: String,
    ) -> Result<proto::QueryRouteResponse, Status> {
        let request =
            proto::QueryRouteRequest { topic: Some(named(topic)), endpoints: Some(self.endpoints()) };
        let mut client = self.client.clone();
        within(CALL_DEADLINE, client.query_route(request_of(who, CALL_DEADLINE, request))).await
    }

    /// Sends one of the broker's messages.
    pub(crate) async fn send(
        &self,
        who: &ClientName,
        message: proto::Message,
    ) -> Result<proto::SendMessageResponse, Status> {
        let request = proto::SendMessageRequest { messages: vec![message] };
        let mut client = self.client.clone();
        within(CALL_DEADLINE, client.send_message(request_of(who, CALL_DEADLINE, request))).await
    }

    /// A long poll: everything that it brings, with the broker's status.
    ///
    /// The deadline must be longer than the poll, else the proxy refuses it.
    pub(crate) async fn receive(
        &self,
        who: &ClientName,
        deadline: Duration,
        request: proto::ReceiveMessageRequest,
    ) -> Result<(Option<proto::Status>, Vec<proto::Message>), Status> {
        use proto::receive_message_response::Content;

        let mut client = self.client.clone();
        let whole = async {
            let mut answer = client.receive_message(request_of(who, deadline, request)).await?.into_inner();
            let (mut status, mut messages) = (None, Vec::new());
            while let Some(part) = answer.message().await? {
                match part.content {
                    Some(Content::Status(one)) => status = Some(one),
                    Some(Content::Message(message)) => messages.push(message),
                    Some(Content::DeliveryTimestamp(_)) | None => {}
                }
            }
            Ok(Response::new((status, messages)))
        };
        within(deadline, whole).await
    }

    /// Ends carriers.
    pub(crate) async fn ack(
        &self,
        who: &ClientName,
        request: proto::AckMessageRequest,
    ) -> Result<proto::AckMessageResponse, Status> {
        let mut client = self.client.clone();
        within(CALL_DEADLINE, client.ack_message(request_of(who, CALL_DEADLINE, request))).await
    }

    /// Moves the end of a carrier's lease.
    pub(crate) async fn change_lease(
        &self,
        who: &ClientName,
        request: proto::ChangeInvisibleDurationRequest,
    ) -> Result<proto::ChangeInvisibleDurationResponse, Status> {
        let mut client = self.client.clone();
        within(CALL_DEADLINE, client.change_invisible_duration(request_of(who, CALL_DEADLINE, request))).await
    }

    /// A sign of life.
    pub(crate) async fn heartbeat(
        &self,
        who: &ClientName,
        request: proto::HeartbeatRequest,
    ) -> Result<proto::HeartbeatResponse, Status> {
        let mut client = self.client.clone();
        within(CALL_DEADLINE, client.heartbeat(request_of(who, CALL_DEADLINE, request))).await
    }

    /// Opens the line on which client and broker tell each other what they are.
    pub(crate) async fn telemetry(
        &self,
        who: &ClientName,
        commands: impl futures_util::Stream<Item = proto::TelemetryCommand> + Send + 'static,
    ) -> Result<Streaming<proto::TelemetryCommand>, Status> {
        let mut client = self.client.clone();
        // No deadline of its own: it stays open. Only its beginning is awaited here.
        let mut request = Request::new(commands);
        introduce(who, request.metadata_mut());
        within(CALL_DEADLINE, client.telemetry(request)).await
    }

    /// Says goodbye.
    pub(crate) async fn terminate(
        &self,
        who: &ClientName,
        group: Option<Resource>,
    ) -> Result<proto::NotifyClientTerminationResponse, Status> {
        let mut client = self.client.clone();
        let request = request_of(who, CALL_DEADLINE, proto::NotifyClientTerminationRequest { group });
        within(CALL_DEADLINE, client.notify_client_termination(request)).await
    }
}

/// By whom the broker is judged, under the name in the URL.
fn handshake(authorities: &Authorities) -> Result<ClientTlsConfig, Error> {
    Ok(ClientTlsConfig::new().trust_anchors(authorities.roots()?.roots).timeout(CONNECT_DEADLINE))
}

/// A topic or group by name.
pub(crate) fn named(name: String) -> Resource {
    Resource { name, resource_namespace: String::new() }
}

async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    match timeout(deadline, call).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded("no answer in time")),
    }
}

fn request_of<T>(who: &ClientName, deadline: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    introduce(who, request.metadata_mut());
    request
}

fn introduce(who: &ClientName, metadata: &mut tonic::metadata::MetadataMap) {
    metadata.insert("x-mq-client-id", who.clone());
    metadata.insert("x-mq-language", MetadataValue::from_static("RUST"));
    metadata.insert("x-mq-protocol", MetadataValue::from_static("v2"));
    metadata.insert("x-mq-client-version", MetadataValue::from_static(env!("CARGO_PKG_VERSION")));
}
