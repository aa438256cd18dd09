//! A notifier for trying things out: one JSON line per notice, in a file and in the log.
//!
//! Invariants: a line is synced before the notice counts as sent; a notice whose line is there already is not written
//! again, also after a restart. Deliberately absent: rotation; it is for `--dev`.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::error::{Code, Error};
use onceward_domain::notice::Notice;
use onceward_domain::ports::Answer;
use onceward_domain::ports::notifier::Notifier;
use serde::Deserialize;

use super::encode;

/// Longest line that can be a notice of ours; a longer one is somebody else's.
const LINE_LIMIT: usize = 64 * 1024;

struct Pages {
    file: File,
    written: HashSet<String>,
}

/// Writes notices into a file.
#[derive(Clone)]
pub struct FileNotifier {
    pages: Arc<Mutex<Pages>>,
}

#[derive(Deserialize)]
struct Line {
    data: LineData,
}

#[derive(Deserialize)]
struct LineData {
    notice_id: String,
}

impl FileNotifier {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let lines = BufReader::new(File::open(path)?).lines();
        let mut written = HashSet::new();
        for line in lines {
            // A line that a crash has torn is no notice; its notice is written again.
            let line = line?;
            let known =
                (line.len() <= LINE_LIMIT).then(|| serde_json::from_str::<Line>(&line).ok()).flatten();
            written.extend(known.map(|line| line.data.notice_id));
        }
        Ok(Self { pages: Arc::new(Mutex::new(Pages { file, written })) })
    }

    fn write(&self, notice: &Notice) -> io::Result<()> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let id = notice.id.to_string();
        if pages.written.contains(&id) {
            return Ok(());
        }
        // It begins a line of its own, also behind one that was torn.
        let mut line = b"\n".to_vec();
        line.extend(encode(notice));
        line.push(b'\n');
        pages.file.write_all(&line)?;
        pages.file.sync_data()?;
        pages.written.insert(id);
        tracing::warn!(target: "onceward", event = "notice.written", notice_id = %notice.id, detail = %notice.detail);
        Ok(())
    }
}

impl Notifier for FileNotifier {
    fn name(&self) -> &'static str {
        "file"
    }

    fn notify(&self, notice: Notice) -> Answer<'_, ()> {
        let this = self.clone();
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || this.write(&notice)).await;
            let lost = |cause: String| Error::new(Code::OutcomeUnknown, format!("writing a notice: {cause}"));
            written.map_err(|cause| lost(cause.to_string()))?.map_err(|cause| lost(cause.to_string()))
        })
    }
}
