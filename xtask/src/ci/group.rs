//! Runs a command in a process group of its own, and ends the whole group: when it overruns, when it leaves
//! children behind, and when this process dies first.
//!
//! A small shell waits beside the command for its standard input to close, then kills the group. This process
//! holds the other end of that pipe, and the system closes it whatever way this process ends: by Ctrl-C or by
//! SIGKILL as well. So there is one way to end a group, and no step outlives the run.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::Failure;

/// How a step ended.
#[derive(Debug, PartialEq)]
pub(super) enum Ending {
    Success,
    Failed(ExitStatus),
    Overrun,
    /// It ended well and did not show what it had to.
    Unproved(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => write!(f, "passed"),
            Self::Failed(status) => write!(f, "failed: {status}"),
            Self::Overrun => write!(f, "overran its time limit and was ended"),
            Self::Unproved(missing) => write!(f, "proved nothing: {missing}"),
        }
    }
}

/// A command, and how it is to be run.
pub(super) struct Job<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [&'a str],
    pub(super) folder: &'a Path,
    /// Where its standard output goes.
    pub(super) output: Stdio,
    pub(super) limit: Duration,
}

/// Runs a command to its end, or to its time limit.
pub(super) fn run(job: Job<'_>) -> Result<Ending, Failure> {
    let Job { command, folder, output, limit } = job;
    let (program, arguments) = command.split_first().ok_or("a step without a command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output)
        .process_group(0)
        .spawn()
        .map_err(|cause| format!("could not start {program}: {cause}"))?;
    let guard = match Guard::over(&child) {
        Ok(guard) => guard,
        Err(cause) => {
            // Without a guard the step could outlive us; its own death is the best that is left.
            child.kill()?;
            return Err(format!("could not start the guard of {program}: {cause}").into());
        }
    };

    // The standard library cannot wait for a child with a limit; a channel can.
    let (sender, receiver) = mpsc::sync_channel(1);
    let waiter = thread::spawn(move || sender.send(child.wait()));
    let ending = match receiver.recv_timeout(limit) {
        Ok(status) => Ok(status?),
        Err(RecvTimeoutError::Timeout) => Err(Ending::Overrun),
        Err(RecvTimeoutError::Disconnected) => return Err("the thread that waits for the step died".into()),
    };
    guard.end_group()?;
    waiter.join().map_err(|_| "the thread that waits for the step panicked")?.ok();
    Ok(match ending {
        Ok(status) if status.success() => Ending::Success,
        Ok(status) => Ending::Failed(status),
        Err(overrun) => overrun,
    })
}

/// The shell that ends the group once its standard input closes.
struct Guard(Child);

impl Guard {
    fn over(child: &Child) -> io::Result<Self> {
        let script = format!("read -r _; kill -s KILL -- -{} 2>/dev/null; exit 0", child.id());
        let mut command = Command::new("sh");
        // In a group of its own, so that Ctrl-C does not end it before it has done its work.
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        command.spawn().map(Self)
    }

    fn end_group(mut self) -> io::Result<()> {
        // Waiting for a child closes our end of its standard input first.
        self.0.wait().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    //! The commands under test are shells. Whether what they started still lives is seen by a named pipe that
    //! it holds open for writing: reading from it comes to an end when the last holder is gone.

    use std::fs::{self, File};
    use std::io::Read;
    use std::path::PathBuf;

    use super::*;

    /// Long enough for what must happen, on a busy machine too; nothing waits this long unless it is broken.
    const LONG: Duration = Duration::from_secs(60);
    /// Long enough for a shell to open a pipe before it is ended.
    const SHORT: Duration = Duration::from_secs(3);

    #[test]
    fn success_and_failure_are_told_apart() -> Result<(), Failure> {
        let here = crate::workspace::root();
        assert_eq!(run_shown(&["sh", "-c", "exit 0"], &here, LONG)?, Ending::Success);
        assert!(matches!(run_shown(&["sh", "-c", "exit 3"], &here, LONG)?, Ending::Failed(_)));
        assert!(run_shown(&["onceward-no-such-program"], &here, LONG).is_err());
        Ok(())
    }

    #[test]
    fn an_overrun_ends_the_command_and_its_children() -> Result<(), Failure> {
        let held = HeldPipe::new("overrun")?;
        let script = "exec 3>pipe; sleep 3600 & wait";
        assert_eq!(run_shown(&["sh", "-c", script], &held.folder, SHORT)?, Ending::Overrun);
        held.assert_released()
    }

    #[test]
    fn a_child_left_behind_is_ended_too() -> Result<(), Failure> {
        let held = HeldPipe::new("left-behind")?;
        let script = "exec 3>pipe; sleep 3600 & exit 0";
        assert_eq!(run_shown(&["sh", "-c", script], &held.folder, LONG)?, Ending::Success);
        held.assert_released()
    }

    fn run_shown(command: &[&str], folder: &Path, limit: Duration) -> Result<Ending, Failure> {
        run(Job { command, folder, output: Stdio::inherit(), limit })
    }

    struct HeldPipe {
        folder: PathBuf,
        released: mpsc::Receiver<io::Result<()>>,
    }

    impl HeldPipe {
        fn new(name: &str) -> Result<Self, Failure> {
            let folder = std::env::temp_dir().join(format!("onceward-xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder)?;
            let pipe = folder.join("pipe");
            assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
            let (sender, released) = mpsc::sync_channel(1);
            thread::spawn(move || {
                let read = File::open(pipe).and_then(|mut pipe| pipe.read_to_end(&mut Vec::new()));
                sender.send(read.map(|_| ()))
            });
            Ok(Self { folder, released })
        }

        fn assert_released(self) -> Result<(), Failure> {
            let released = self.released.recv_timeout(LONG);
            fs::remove_dir_all(&self.folder)?;
            Ok(released??)
        }
    }
}
