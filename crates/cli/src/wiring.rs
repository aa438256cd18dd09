//! Puts an engine together from its adapters: the only place that picks them.
//!
//! Invariants: the lock is taken before the store is opened and given back after it is closed; the secret is there
//! and is the right one before the first id is derived, and it is on disk before there is a store that needs it.
//! Deliberately absent: anything that runs; starting roles is the caller's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceward::execute::transact;
use onceward::hand_over;
use onceward::queue_deadline::QueueTrigger;
use onceward::{Engine, Ports, Settings as EngineSettings};
use onceward_domain::changes::{Answered, ChangeSet};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::deadline::TriggerKind;
use onceward_domain::ports::notifier::Notifier;
use onceward_domain::ports::store::Store;
use onceward_postgres::{PostgresStore, Tenure};
use onceward_providers::notice::webhook::WebhookOptions;
use onceward_providers::notice::{FileNotifier, WebhookNotifier};
use onceward_providers::sandbox::{Bank, BankOptions, SandboxProvider, Signer};
use onceward_redis::{KeyspaceTrigger, Options as RedisOptions, RedisAdmission, RedisQueue, RedisTrigger};
use onceward_rocketmq::{RocketBus, RocketTrigger};
use onceward_sqlite::{OpenOptions, SqliteStore};

use crate::data_dir::{self, Lock};
use crate::failure::Failure;
use crate::output;
use crate::secret;
use crate::settings::{Settings, StorePlace};
use crate::time::{SystemClock, SystemIds};

/// The sandbox bank's journal inside the data folder.
const BANK_FILE: &str = "sandbox-bank.jsonl";
/// The secret that the sandbox bank signs its callbacks with.
const BANK_SECRET_FILE: &str = "sandbox-secret";
/// The notices of a server that only tries things out.
const NOTICES_FILE: &str = "notices.jsonl";

/// Under this name a shared store keeps the mark of the secret that it was begun with. No caller's key begins like this.
pub(crate) const SECRET_MARK: &str = "\u{1}secret";

/// Whether the built-in bank is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// Payments may go to it, and `/sandbox` plays it.
    Enabled,
    /// There is no such provider.
    Absent,
}

/// An engine over an open store. Fields are dropped in this order: the lock last.
pub(crate) struct Opened {
    /// The engine; nothing of it runs yet.
    pub(crate) engine: Engine,
    store: OpenStore,
    /// Where Redis is, if it keeps the gate.
    pub(crate) redis: Option<RedisOptions>,
    /// The sandbox bank, where it is enabled.
    pub(crate) bank: Option<Bank>,
    /// What goes over a broker, where there is one.
    pub(crate) broker: Option<Broker>,
    _lock: Option<Lock>,
}

/// The store, whichever it is.
pub(crate) enum OpenStore {
    File(Arc<SqliteStore>),
    Server(Arc<PostgresStore>),
}

impl OpenStore {
    /// Closes it, which may wait for its threads.
    pub(crate) fn close(&self) {
        match self {
            Self::File(store) => store.close(),
            Self::Server(store) => store.close(),
        }
    }
}

impl Opened {
    /// Closes the store; the lock goes last.
    pub(crate) fn close(self) {
        self.store.close();
    }
}

/// Opens the store of these settings: a file for this process alone, a server together with other nodes.
///
/// # Errors
/// When the folder, the secret or the store cannot be had.
pub(crate) async fn open(settings: &Settings, sandbox: Sandbox) -> Result<Opened, Failure> {
    open_under(settings, sandbox, Tenure::Shared).await
}

/// The same, where the store may be held by the caller.
///
/// # Errors
/// As [`open`].
pub(crate) async fn open_under(
    settings: &Settings,
    sandbox: Sandbox,
    tenure: Tenure,
) -> Result<Opened, Failure> {
    data_dir::make(&settings.data)?;
    let lock = lock(settings, sandbox, tenure)?;
    let files = secret::Files::of(settings)?;
    let keys = files.key_ring()?;
    let (store, ports) = open_ports(settings, &files, tenure).await?;
    let engine_settings = EngineSettings {
        lease: settings.lease(),
        provider_lease: settings.provider_lease(),
        // A round of a settlement is as many calls: asked about, asked for, asked about again.
        settlement_lease: settings.provider_lease(),
        retention: settings.retention(),
        governor: settings.governor(),
        ..EngineSettings::default()
    };
    let bank = match sandbox {
        Sandbox::Enabled => Some(open_bank(settings)?),
        Sandbox::Absent => None,
    };
    let providers = bank.iter().map(|bank| Arc::new(SandboxProvider::new(bank.clone())) as _).collect();
    let notifier = notifier(settings, sandbox)?;
    let redis = settings.redis()?.map(|options| options.with_retention(settings.retention()));
    let ports = with_redis(ports, redis.clone())?;
    let broker = Broker::open(settings)?;
    refuse_open_reservations(&*ports.store, redis.is_some()).await?;
    let ports = with_broker(with_trigger(ports, settings).await?, broker.as_ref());
    let engine = Engine::new(Ports { notifier, ..ports }.with_providers(providers), keys, engine_settings);
    Ok(Opened { engine, store, redis, bank, broker, _lock: lock })
}

/// A store in a file is one process's. Of several nodes at one server, one has the sandbox bank of a folder.
fn lock(settings: &Settings, sandbox: Sandbox, tenure: Tenure) -> Result<Option<Lock>, Failure> {
    let path = match (settings.store_place()?, sandbox, tenure) {
        (StorePlace::File(path), _, Tenure::Shared) => path,
        (StorePlace::Server(_), Sandbox::Enabled, _) => bank_path(settings),
        (StorePlace::File(_), _, Tenure::Held) | (StorePlace::Server(_), Sandbox::Absent, _) => {
            return Ok(None);
        }
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        data_dir::make(folder)?;
    }
    data_dir::lock(&path).map(Some)
}

/// Opens the store, with the ports that live in it.
///
/// # Errors
/// When it cannot be had, or was begun with another secret.
pub(crate) async fn open_ports(
    settings: &Settings,
    files: &secret::Files,
    tenure: Tenure,
) -> Result<(OpenStore, Ports), Failure> {
    match settings.store_place()? {
        StorePlace::File(path) => {
            files.keep_mark()?;
            let store = open_store(&path)?;
            if let Some(copy) = store.backup() {
                output::note(&format!("the store was migrated; its copy from before is {}", copy.display()));
            }
            let ports = Ports::embedded(Arc::clone(&store) as _, Arc::new(SystemIds));
            Ok((OpenStore::File(store), ports))
        }
        StorePlace::Server(url) => {
            if let Some(begun) = onceward_postgres::begin(&url).await? {
                output::note(&format!("made the tables, of version {}", begun.to));
            }
            let options =
                onceward_postgres::OpenOptions { tenure, ..onceward_postgres::OpenOptions::new(url) };
            let store = Arc::new(PostgresStore::open(options).await?);
            agree_on_secret(&*store, files).await?;
            files.keep_mark()?;
            let adopted = hand_over::adopt_journal(&*store).await?;
            if adopted > 0 {
                output::note(&format!("{adopted} open reservations came from an embedded gate"));
            }
            let ports = Ports::store_backed(Arc::clone(&store) as _, Arc::new(SystemIds));
            Ok((OpenStore::Server(store), ports))
        }
    }
}

/// Every node derives ids with the same secret, or a repeat at another node would be a new request. The first one writes
/// down which it is, in the store that they share.
async fn agree_on_secret(store: &dyn Store, files: &secret::Files) -> Result<(), Failure> {
    let mark = files.mark()?;
    let key: Arc<str> = Arc::from(SECRET_MARK);
    let need = Need { answers: vec![Arc::clone(&key)], ..Need::default() };
    let decide = move |facts: &mut Facts| {
        let known = facts.answers.get(&key).map(|answer| answer.fingerprint);
        let first = Answered {
            key: Arc::clone(&key),
            fingerprint: mark,
            status: 0,
            body: Vec::new(),
            at: facts.now,
            lasting: true,
        };
        let answers = if known.is_none() { vec![first] } else { Vec::new() };
        Ok((ChangeSet { answers, ..ChangeSet::default() }, known.is_none_or(|known| known == mark)))
    };
    match transact(store, "agreeing on the secret", need, decide).await? {
        true => Ok(()),
        false => Err(files.foreign()),
    }
}

/// A gate elsewhere begins when the store's own holds nothing any more: nobody would look at it again. What the store's bus
/// holds is brought over instead.
async fn refuse_open_reservations(store: &dyn Store, has_redis: bool) -> Result<(), Failure> {
    if has_redis && hand_over::holds_open_reservations(store).await? {
        return Err(Failure::Usage(
            "redis_url: the gate in the store still holds open reservations, and Redis would not know them. Run once without \
             redis_url until they have their orders"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The ports with the gate in Redis, where there is one.
fn with_redis(ports: Ports, redis: Option<RedisOptions>) -> Result<Ports, Failure> {
    let Some(options) = redis else { return Ok(ports) };
    let gate = RedisAdmission::open(options, Arc::clone(&ports.store), Arc::new(SystemIds))?;
    Ok(Ports { admission: Arc::new(gate), ..ports })
}

/// What goes over a broker.
pub(crate) struct Broker {
    /// Where it is, for people.
    pub(crate) address: String,
    bus: Arc<RocketBus>,
    /// The deadline trigger, where it is the broker's.
    trigger: Option<Arc<RocketTrigger>>,
}

impl Broker {
    /// The broker of these settings, where there is one. Nothing is sent yet: a broker that is away keeps no server from
    /// starting (FS-16).
    fn open(settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(options) = settings.broker()? else { return Ok(None) };
        let bus = Arc::new(RocketBus::open(&options, clock(), Arc::new(SystemIds))?);
        let trigger = match settings.trigger()? {
            TriggerKind::Broker => {
                Some(Arc::new(RocketTrigger::open(&options, clock(), Arc::new(SystemIds))?))
            }
            TriggerKind::Store | TriggerKind::Queue | TriggerKind::Zset | TriggerKind::Keyspace => None,
        };
        Ok(Some(Self { address: options.address(), bus, trigger }))
    }

    /// Looks whether it answers and has the topics that it must have.
    ///
    /// # Errors
    /// With what is missing.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.bus.check().await.map(|_| ())
    }

    /// Asks it for nothing more, and waits until the workers were given what it has sent.
    pub(crate) async fn wind_down(&self) {
        let trigger = async {
            if let Some(trigger) = &self.trigger {
                trigger.wind_down().await;
            }
        };
        tokio::join!(self.bus.wind_down(), trigger);
    }

    /// Says goodbye to it.
    pub(crate) async fn close(&self) {
        let trigger = async {
            if let Some(trigger) = &self.trigger {
                trigger.close().await;
            }
        };
        tokio::join!(self.bus.close(), trigger);
    }
}

/// The ports with what goes over the broker.
fn with_broker(ports: Ports, broker: Option<&Broker>) -> Ports {
    let Some(broker) = broker else { return ports };
    let ports = match &broker.trigger {
        Some(trigger) => ports.with_deadline_trigger(trigger.clone()),
        None => ports,
    };
    ports.with_bus(broker.bus.clone())
}

/// Opens a store's file.
///
/// # Errors
/// When it cannot be opened, or is not a store of this version.
pub(crate) fn open_store(path: &Path) -> Result<Arc<SqliteStore>, Failure> {
    // SQLite would make it readable for everybody; its log takes the mode of the file.
    data_dir::make_private(path)?;
    Ok(Arc::new(SqliteStore::open(OpenOptions::new(path, clock()))?))
}

/// The bank keeps its own truth beside the store, under the store's lock, so that one process has both.
fn open_bank(settings: &Settings) -> Result<Bank, Failure> {
    let secret = data_dir::secret(&settings.data.join(BANK_SECRET_FILE))?;
    bank_at(&bank_path(settings), &secret, settings)
}

/// The sandbox bank's journal.
pub(crate) fn bank_path(settings: &Settings) -> PathBuf {
    settings.data.join(BANK_FILE)
}

/// A bank over this journal, which is mended where a kill has torn its last line.
///
/// # Errors
/// When the journal cannot be had or is damaged.
pub(crate) fn bank_at(path: &Path, secret: &[u8], settings: &Settings) -> Result<Bank, Failure> {
    let options =
        BankOptions { signer: Signer::new(secret), clock: clock(), timeout: settings.provider_timeout() };
    Bank::open(path, options).map_err(|cause| Failure::file("opening the sandbox bank", path, &cause))
}

/// Who tells people: the webhook that is set, else a file beside the store where the sandbox is enabled, else nobody, and
/// notices wait.
fn notifier(settings: &Settings, sandbox: Sandbox) -> Result<Option<Arc<dyn Notifier>>, Failure> {
    if let Some((target, secret_file)) = settings.notices()? {
        let options = WebhookOptions {
            target,
            signer: notice_signer(&secret_file)?,
            clock: clock(),
            timeout: settings.provider_timeout(),
        };
        return Ok(Some(Arc::new(WebhookNotifier::new(options)?)));
    }
    match sandbox {
        Sandbox::Absent => Ok(None),
        Sandbox::Enabled => {
            let path = settings.data.join(NOTICES_FILE);
            let opened = FileNotifier::open(&path);
            let file = opened.map_err(|cause| Failure::file("opening the notices", &path, &cause))?;
            Ok(Some(Arc::new(file)))
        }
    }
}

fn notice_signer(path: &Path) -> Result<Signer, Failure> {
    let doing = "reading the secret of the webhook";
    let secret = data_dir::read_bounded(path).map_err(|cause| Failure::file(doing, path, &cause))?;
    let text = String::from_utf8(secret).map_err(|_| Failure::Usage(format!("{doing}: it is not text")))?;
    Ok(Signer::from_text(&text)?)
}

/// The ports with what tells when orders' time is up.
///
/// # Errors
/// Where Redis cannot be named, or keeps to itself what a trigger must hear.
async fn with_trigger(ports: Ports, settings: &Settings) -> Result<Ports, Failure> {
    match (settings.trigger()?, settings.redis()?) {
        (TriggerKind::Zset, Some(options)) => {
            let queue = RedisQueue::open(options)?;
            Ok(ports.with_deadline_trigger(Arc::new(RedisTrigger::new(queue))))
        }
        (TriggerKind::Keyspace, Some(options)) => {
            let trigger = KeyspaceTrigger::open(options, &SystemIds)?;
            match trigger.prepare().await {
                Ok(()) => {}
                Err(error) if error.code() == Code::Invalid => return Err(error.into()),
                // One that is away is told when it is there.
                Err(error) => output::note(&format!(
                    "Redis tells of no deadlines yet, and the sweep ends orders: {}",
                    error.operator_text()
                )),
            }
            Ok(ports.with_deadline_trigger(Arc::new(trigger)))
        }
        (kind, _) => Ok(with_local_trigger(ports, kind)),
    }
}

/// The same where nothing but this process is needed for it.
pub(crate) fn with_local_trigger(ports: Ports, kind: TriggerKind) -> Ports {
    match kind {
        TriggerKind::Queue => ports.with_deadline_trigger(Arc::new(QueueTrigger::new(clock()))),
        // The store-backed ports bring theirs along; Redis and the broker bring their own.
        TriggerKind::Store | TriggerKind::Zset | TriggerKind::Broker | TriggerKind::Keyspace => ports,
    }
}

/// The machine's clock, as the port.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}
