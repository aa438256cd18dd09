//! A line to the people that refuses, falls silent, or loses the answer after they were told.
//!
//! Invariant: who was told stays told, whoever crashed meanwhile. Deliberately absent: what people do then.

use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::notice::Notice;
use onceward_domain::ports::Answer;
use onceward_domain::ports::notifier::Notifier;

use super::world::{Fate, Fault, World};

/// How often nobody takes a notice while lines are bad, in thousandths: mail is down for hours, not for moments.
const AWAY: u32 = 700;

/// One node's line.
pub(crate) struct FaultyNotifier {
    world: Arc<World>,
    node: usize,
}

impl FaultyNotifier {
    pub(crate) fn new(world: Arc<World>, node: usize) -> Self {
        Self { world, node }
    }

    async fn tell(&self, notice: Notice) -> Result<(), Error> {
        let world = &*self.world;
        world.linger().await;
        let is_away = world.rates().unavailable > 0 && world.draw(|rng| rng.chance(AWAY));
        let fate = if is_away { Fate::Refuse } else { world.fate("notify", false) };
        match fate {
            Fate::Go | Fate::Meet(Fault::CrashAfter | Fault::LoseAnswer) => {}
            Fate::Refuse => {
                world.sometimes("notifier_away");
                return Err(Error::new(Code::Unavailable, "telling people: nobody is there"));
            }
            Fate::Meet(Fault::LoseCall) => return Err(silent()),
            Fate::Meet(Fault::CrashBefore) => self.die().await,
        }
        world.saw_notice(notice.id);
        world.trace("told", u64::from(notice.id.0.as_bytes()[0]));
        world.step_aside().await;
        world.linger().await;
        match fate {
            Fate::Meet(Fault::CrashAfter) => self.die().await,
            Fate::Meet(Fault::LoseAnswer) => return Err(silent()),
            Fate::Go | Fate::Refuse | Fate::Meet(Fault::CrashBefore | Fault::LoseCall) => {}
        }
        Ok(())
    }

    /// Asks for this node's death and never goes on.
    async fn die(&self) {
        self.world.doom(self.node);
        std::future::pending::<()>().await;
    }
}

fn silent() -> Error {
    Error::new(Code::OutcomeUnknown, "telling people: no answer came")
}

impl Notifier for FaultyNotifier {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn notify(&self, notice: Notice) -> Answer<'_, ()> {
        Box::pin(self.tell(notice))
    }
}
