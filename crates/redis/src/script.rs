//! The scripts: each a file with its keys, arguments and answers at its head.
//!
//! Invariant: every key that a script touches is handed to it as a key, and all of them lie in one slot.

use std::sync::LazyLock;

use redis::Cmd;

/// A script and its digest, under which servers keep it.
pub(crate) struct Script {
    text: &'static str,
    digest: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self { text, digest: redis::Script::new(text).get_hash().to_owned() }
    }

    /// The call for a server that knows the script.
    pub(crate) fn by_digest(&self, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
        call("EVALSHA", &self.digest, keys, arguments)
    }

    /// The call for a server that does not.
    pub(crate) fn by_text(&self, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
        call("EVAL", self.text, keys, arguments)
    }
}

fn call(verb: &str, script: &str, keys: &[&str], arguments: &[&[u8]]) -> Cmd {
    let size = arguments.iter().map(|one| one.len()).sum::<usize>();
    let mut command = Cmd::with_capacity(keys.len() + arguments.len() + 3, size + 512);
    command.arg(verb).arg(script).arg(keys.len());
    for key in keys {
        command.arg(*key);
    }
    for argument in arguments {
        command.arg(*argument);
    }
    command
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident $file:literal;)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: LazyLock<Script> =
                LazyLock::new(|| Script::new(include_str!(concat!("../scripts/", $file))));
        )*

        /// Every script, by its file.
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$(($file, include_str!(concat!("../scripts/", $file))),)*];
    };
}

scripts! {
    /// Lets buyers in.
    RESERVE "admission/reserve.lua";
    /// Claims batches.
    CLAIM "admission/claim.lua";
    /// Ends claims of batches.
    SETTLE "admission/settle.lua";
    /// Counts what waits to be sent.
    UNSENT "admission/unsent.lua";
    /// Projects decisions.
    PROJECT "admission/project.lua";
    /// Gives units back.
    COMPENSATE "admission/compensate.lua";
    /// Applies an adjustment.
    ADJUST "admission/adjust.lua";
    /// Tells of a new limit.
    RULES "admission/rules.lua";
    /// Takes units out of a bucket for another one.
    LEND "admission/lend.lua";
    /// Puts them into the other one.
    BORROW "admission/borrow.lua";
    /// Looks a reservation up.
    FIND "admission/find.lua";
    /// Makes a bucket, closed.
    PREPARE "admission/prepare.lua";
    /// Opens it.
    OPEN "admission/open.lua";
    /// Looks how it stands.
    STAND "admission/stand.lua";
    /// Says what time it is there.
    TIME "admission/time.lua";
    /// Pages through its reservations.
    WALK "admission/walk.lua";
    /// Drops it, once its sale is past.
    RETIRE "admission/retire.lua";
    /// Puts work into a lane.
    PUT "queue/put.lua";
    /// Claims work.
    CLAIM_WORK "queue/claim.lua";
    /// Ends claims of work.
    SETTLE_WORK "queue/settle.lua";
    /// Takes work out.
    REMOVE "queue/remove.lua";
    /// Gives work another due-time.
    RESCHEDULE "queue/reschedule.lua";
    /// One lane at a glance.
    STATUS "queue/status.lua";
    /// A page of work.
    LIST "queue/list.lua";
    /// Brings exhausted work back.
    REPLAY "queue/replay.lua";
    /// Ends a telling of an order's deadline.
    SETTLE_EXPIRY "expiry/settle.lua";
    /// What others are measured against.
    PLAIN "plain/reserve.lua";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_takes_and_answers() {
        for (file, text) in ALL {
            let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("--")).collect();
            for word in ["KEYS: 1", "ARGV: ", "Returns: "] {
                assert!(head.iter().any(|line| line.contains(word)), "{file} does not say its {word}");
            }
        }
    }
}
