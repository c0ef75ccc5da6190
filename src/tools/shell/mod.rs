//! Commands as processes: their environment, their limits, their output, and the end of their whole
//! tree, also of what a dead daemon left.

mod background;
#[cfg(feature = "fuzzing")]
mod bare;
mod bash;
mod birth;
mod capture;
mod cell;
mod commands;
mod environment;
mod limits;
mod output;
mod over;
mod process;
mod sandbox;
mod spool;
mod sweep;
mod tree;

use crate::types::tool::Confinement;
pub(super) use background::start;
pub use background::{Live, Running};
#[cfg(feature = "fuzzing")]
pub(super) use bare::spawn as spawn_bare;
pub(super) use bash::{CallChannels, DESCRIPTION, Input, prepare, run};
pub use birth::ProcessStarted;
pub use cell::CgroupSetting;
pub(super) use cell::Cgroups;
pub(super) use commands::{
    KILL, KillInput, OUTPUT, OutputInput, prepare_kill, prepare_output, run_kill, run_output,
};
pub use limits::Limits;
pub use sandbox::{Available, LevelSetting, NetworkSetting, SandboxSettings};
pub(super) use sandbox::{Found, PlaceholderCache, clear_stand_ins, forget_temp, sweep_temp, temp_folders};
pub use spool::Spools;
pub use sweep::Swept;
pub(super) use sweep::sweep;

/// What a command gets, with what holds it in words.
pub(super) fn confinement_label(choice: sandbox::Choice) -> (Confinement, &'static str) {
    (choice.told(), choice.words())
}
