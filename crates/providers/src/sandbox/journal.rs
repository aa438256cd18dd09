//! The bank's file: one JSON line per thing that happened, on disk before anybody hears of it.
//!
//! Invariants: lines are only ever appended; an answer waits until its line, and every line before it, is on disk; lines
//! that come together share one `fdatasync`; a last line that a kill has torn was never answered for, so it is cut off at
//! opening; a broken line before the last is damage, and the file is refused. Deliberately absent: compaction.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use onceward_domain::error::{Code, Error};
use tokio::sync::watch;

use super::book::{Book, Entry};

/// How far the file is.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    durable: u64,
    has_failed: bool,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    appended: u64,
    is_closing: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Bytes and count change together, without anything between them that can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The open file with its one writing thread.
#[derive(Debug)]
pub(super) struct Journal {
    shared: Arc<Shared>,
    progress: watch::Receiver<Progress>,
    writer: Option<JoinHandle<()>>,
}

impl Journal {
    /// Opens or makes the file and reads the book that it tells.
    ///
    /// # Errors
    /// When the file cannot be had, or is damaged before its last line.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Book)> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let (book, whole) = replay(&content)?;
        if whole < content.len() {
            file.set_len(whole as u64)?;
        }
        file.sync_all()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        let shared = Arc::new(Shared::default());
        let (told, progress) = watch::channel(Progress::default());
        let writer = thread::Builder::new().name("sandbox-bank".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || write(&shared, file, &told)
        })?;
        Ok((Self { shared, progress, writer: Some(writer) }, book))
    }

    /// Queues a line and answers its number. Callers keep the order of their book by holding its lock.
    pub(super) fn append(&self, entries: &[Entry]) -> u64 {
        let line = serde_json::to_vec(entries).expect("entries are texts and numbers");
        let mut queue = self.shared.queue();
        queue.bytes.extend_from_slice(&line);
        queue.bytes.push(b'\n');
        queue.appended += 1;
        self.shared.wake.notify_one();
        queue.appended
    }

    /// The number of the last line.
    pub(super) fn last(&self) -> u64 {
        self.shared.queue().appended
    }

    /// Waits until this line is on disk.
    ///
    /// # Errors
    /// [`Code::OutcomeUnknown`] where the file failed: the line may be there or not.
    pub(super) async fn durable(&self, line: u64) -> Result<(), Error> {
        let mut progress = self.progress.clone();
        let reached = progress.wait_for(|progress| progress.has_failed || progress.durable >= line).await;
        match reached {
            Ok(progress) if progress.durable >= line => Ok(()),
            Ok(_) | Err(_) => Err(Error::new(Code::OutcomeUnknown, "writing the sandbox bank's journal")),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.queue().is_closing = true;
        self.shared.wake.notify_one();
        if let Some(writer) = self.writer.take() {
            // It ends after at most one more write. That it panicked is told by its progress.
            drop(writer.join());
        }
    }
}

fn write(shared: &Shared, mut file: File, told: &watch::Sender<Progress>) {
    loop {
        let mut queue = shared.queue();
        while queue.bytes.is_empty() {
            if queue.is_closing {
                return;
            }
            queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let bytes = std::mem::take(&mut queue.bytes);
        let durable = queue.appended;
        drop(queue);
        match file.write_all(&bytes).and_then(|()| file.sync_data()) {
            Ok(()) => told.send_modify(|progress| progress.durable = durable),
            Err(error) => {
                tracing::error!(target: "onceward", %error, "the sandbox bank's journal cannot be written");
                told.send_modify(|progress| progress.has_failed = true);
                return;
            }
        }
    }
}

/// Reads the book, and how many bytes of the file tell it.
fn replay(content: &[u8]) -> io::Result<(Book, usize)> {
    let mut book = Book::default();
    let mut whole = 0;
    while let Some(length) = content[whole..].iter().position(|byte| *byte == b'\n') {
        let line = &content[whole..whole + length];
        let entries: Vec<Entry> = serde_json::from_slice(line)
            .map_err(|error| io::Error::other(format!("the journal is damaged at byte {whole}: {error}")))?;
        book.apply(&entries);
        whole += length + 1;
    }
    // What is left has no end, so nobody was answered for it.
    Ok((book, whole))
}
