//! A real broker: where it is, and topics in it that nobody else has.
//!
//! Topics and groups are made over the broker's own port and its old binary protocol, because its gRPC proxy makes none,
//! and starting a JVM for each takes seconds. Read next: `onceward_testkit::services`, which finds the broker or fails.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use onceward_domain::ports::bus::Topic;
use onceward_rocketmq::{Names, Options};
use onceward_testkit::services;

/// The service, and the variables in which its addresses are.
const SERVICE: &str = "rocketmq";
const PROXY: &str = "ONCEWARD_TEST_BROKER_URL";
const BROKER: &str = "ONCEWARD_TEST_BROKER_ADMIN";
/// Codes of the broker's own protocol.
const MAKE_TOPIC: i32 = 17;
const DELETE_TOPIC: i32 = 215;
const MAKE_GROUP: i32 = 200;
const DELETE_GROUP: i32 = 207;
/// Deliveries after which the broker itself sets a message aside. More than any case makes.
const RETRIES_LIMIT: u32 = 32;
/// How long the broker may take to answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Topics and groups of one test; gone when it is dropped.
pub(crate) struct Ground {
    pub(crate) options: Options,
    pub(crate) names: Names,
    broker: String,
}

impl Ground {
    /// Makes topics and groups whose names end in this test's name and the process's id.
    pub(crate) fn new(test: &str) -> Self {
        let plain: String = test.chars().filter(char::is_ascii_alphanumeric).collect();
        let names = Names::with_suffix(&format!("-{plain}-{}", std::process::id()));
        let options = Options::parse(&services::address(SERVICE, PROXY)).expect("the service gives a URL");
        let options = options.with_names(names.clone());
        let ground = Self { options, names, broker: services::address(SERVICE, BROKER) };
        for topic in Topic::ALL {
            let is_ordered = topic == Topic::Events;
            ground.make_topic(&ground.names.topic(topic), if is_ordered { "FIFO" } else { "NORMAL" });
            ground.make_topic(&ground.names.dead_letters(topic), "NORMAL");
            ground.make_group(&ground.names.group(topic), is_ordered, RETRIES_LIMIT);
        }
        ground.make_topic(&ground.names.due_topic(), "DELAY");
        ground.make_group(&ground.names.due_group(), false, RETRIES_LIMIT);
        ground
    }

    fn make_topic(&self, name: &str, kind: &str) {
        let fields = format!(
            r#"{{"topic":"{name}","defaultTopic":"TBW102","readQueueNums":"4","writeQueueNums":"4","perm":"6","topicFilterType":"SINGLE_TAG","topicSysFlag":"0","order":"{}","attributes":"+message.type={kind}"}}"#,
            kind == "FIFO"
        );
        self.ask(MAKE_TOPIC, &fields, "").unwrap_or_else(|answer| panic!("making {name}: {answer}"));
    }

    /// Makes a group, or changes it.
    pub(crate) fn make_group(&self, name: &str, is_ordered: bool, retries: u32) {
        let body = format!(
            r#"{{"groupName":"{name}","consumeEnable":true,"consumeMessageOrderly":{is_ordered},"retryQueueNums":1,"retryMaxTimes":{retries}}}"#
        );
        self.ask(MAKE_GROUP, "{}", &body).unwrap_or_else(|answer| panic!("making {name}: {answer}"));
    }

    /// One request to the broker itself.
    fn ask(&self, code: i32, fields: &str, body: &str) -> Result<(), String> {
        let mut line =
            TcpStream::connect(&self.broker).map_err(|cause| format!("{}: {cause}", self.broker))?;
        line.set_read_timeout(Some(PATIENCE)).map_err(|cause| cause.to_string())?;
        let header = format!(
            r#"{{"code":{code},"language":"OTHER","version":0,"opaque":1,"flag":0,"extFields":{fields},"serializeTypeCurrentRPC":"JSON"}}"#
        );
        let size = |length: usize| u32::try_from(length).expect("requests are short").to_be_bytes();
        let frame =
            [&size(4 + header.len() + body.len()), &size(header.len()), header.as_bytes(), body.as_bytes()]
                .concat();
        line.write_all(&frame).map_err(|cause| cause.to_string())?;
        let mut lengths = [0; 8];
        line.read_exact(&mut lengths).map_err(|cause| cause.to_string())?;
        // The first byte of the header's length says how it is written.
        let length = usize::from(lengths[5]) << 16 | usize::from(lengths[6]) << 8 | usize::from(lengths[7]);
        let mut answer = vec![0; length];
        line.read_exact(&mut answer).map_err(|cause| cause.to_string())?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if answer.contains(r#""code":0,"#) { Ok(()) } else { Err(answer) }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        drop(self.ask(DELETE_TOPIC, &format!(r#"{{"topic":"{}"}}"#, self.names.due_topic()), ""));
        let due = format!(r#"{{"groupName":"{}","cleanOffset":"true"}}"#, self.names.due_group());
        drop(self.ask(DELETE_GROUP, &due, ""));
        for topic in Topic::ALL {
            let group = self.names.group(topic);
            for name in [self.names.topic(topic), self.names.dead_letters(topic)] {
                drop(self.ask(DELETE_TOPIC, &format!(r#"{{"topic":"{name}"}}"#), ""));
            }
            drop(self.ask(DELETE_GROUP, &format!(r#"{{"groupName":"{group}","cleanOffset":"true"}}"#), ""));
        }
    }
}
