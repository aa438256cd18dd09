//! The processes: two of each role that works, and one that looks after them.
//!
//! Invariants: each has a folder of its own and all share one secret; whoever is killed is started again by the same place
//! in the crew. Deliberately absent: when; see the plan in `mod.rs`.

use std::path::{Path, PathBuf};

use onceward_domain::time::Millis;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::client::Address;
use crate::failure::Failure;
use crate::outside::check::Check;
use crate::outside::server::{Member, Server};
use crate::settings::SECRET_FILE;

/// The role of each process; two that stand together share it.
const ROLES: [&str; 9] =
    ["api", "api", "consumer", "consumer", "relay", "relay", "scheduler", "scheduler", "reconciler"];
/// Those before this one come in pairs, and are killed.
const PAIRED: usize = 8;
/// Of so many kills one takes both of a role.
const BOTH_OF: u32 = 5;
/// What was claimed by a killed process is taken up soon.
const LEASE: Millis = Millis(1_000);
/// Kills that the fingerprint of a plan covers.
const FINGERPRINTED: usize = 1_000;

/// All processes.
pub(super) struct Crew {
    members: Vec<Server>,
    kills: [u64; PAIRED],
}

impl Crew {
    /// The crew, in folders inside this one; nobody runs yet.
    pub(super) fn new(folder: &Path, config: Option<&Path>, secret: Option<PathBuf>) -> Self {
        let place = |index: usize| folder.join(format!("{}-{index}", ROLES[index]));
        let made_by_the_first = place(0).join(SECRET_FILE);
        let member = |index: usize| {
            let shared = secret.clone().or_else(|| (index > 0).then(|| made_by_the_first.clone()));
            let member = Member {
                role: ROLES[index],
                config: config.map(Path::to_owned),
                secret: shared,
                lease: LEASE,
            };
            Server::member(&place(index), member)
        };
        Self { members: (0..ROLES.len()).map(member).collect(), kills: [0; PAIRED] }
    }

    /// Starts everybody, one after the other: the first makes the secret and the tables.
    pub(super) async fn start(&mut self) -> Result<(), Failure> {
        for member in &mut self.members {
            member.start().await?;
        }
        Ok(())
    }

    /// Starts one again.
    pub(super) async fn start_one(&mut self, index: usize) -> Result<(), Failure> {
        self.members[index].start().await.map_err(|cause| told(index, &cause))
    }

    /// `SIGKILL`.
    pub(super) async fn kill(&mut self, index: usize) -> Result<(), Failure> {
        self.kills[index] += 1;
        self.members[index].kill().await.map_err(|cause| told(index, &cause))
    }

    /// `SIGTERM` for everybody, and each drains.
    pub(super) async fn stop(&mut self) -> Result<(), Failure> {
        for (index, member) in self.members.iter_mut().enumerate() {
            member.stop().await.map_err(|cause| told(index, &cause))?;
        }
        Ok(())
    }

    /// Where requests are answered.
    pub(super) fn addresses(&self) -> Vec<Address> {
        let answering = ROLES.iter().zip(&self.members).filter(|(role, _)| **role == "api");
        answering.map(|(_, member)| member.address()).collect()
    }

    /// The last words of everybody.
    pub(super) fn log(&self) -> impl Iterator<Item = String> {
        let named = ROLES.iter().zip(&self.members).enumerate();
        named.flat_map(|(index, (role, member))| {
            member.log().into_iter().map(move |line| format!("{role} {index}: {line}"))
        })
    }

    /// Whether the run was long enough to say something of every role.
    pub(super) fn all_were_killed(&self) -> Check {
        let of = |role: &str| -> u64 {
            ROLES.iter().zip(self.kills).filter(|(one, _)| **one == role).map(|(_, kills)| kills).sum()
        };
        let roles = ["api", "consumer", "relay", "scheduler"];
        let spared: Vec<String> =
            roles.iter().filter(|role| of(role) == 0).map(|role| format!("no {role}")).collect();
        let figures = roles.map(|role| format!("{role} {}", of(role))).join(", ");
        Check::of("every_role_was_killed", &figures, &spared)
    }
}

fn told(index: usize, cause: &Failure) -> Failure {
    Failure::Other(format!("{} {index}: {cause}", ROLES[index]))
}

/// Who is killed next: one, or sometimes both of a role.
pub(super) fn victims(rng: &mut StdRng) -> Vec<usize> {
    let first = rng.random_range(0..PAIRED);
    if rng.random_range(0..BOTH_OF) == 0 { vec![first, first ^ 1] } else { vec![first] }
}

/// A figure of the plan: equal for equal seeds and builds.
pub(super) fn fingerprint(seed: u64) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut rng = StdRng::seed_from_u64(seed);
    (0..FINGERPRINTED)
        .flat_map(|_| victims(&mut rng))
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, victim| (hash ^ victim as u64).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_share_a_role_and_a_seed_is_a_plan() {
        for (index, role) in ROLES.iter().enumerate().take(PAIRED) {
            assert_eq!(ROLES[index ^ 1], *role);
        }
        assert_eq!(fingerprint(7), fingerprint(7));
        assert_ne!(fingerprint(7), fingerprint(8));
    }
}
