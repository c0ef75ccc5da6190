//! Runs commands as processes: their environment, limits and output, and the end of their whole process tree,
//! also after a crash of the daemon.

mod background;
mod bash;
mod bench_baseline;
mod cgroup;
mod commands;
mod environment;
mod limits;
mod outcome;
mod output;
mod process;
mod process_tree;
mod sandbox;
mod server_process;
mod spool;
mod sweep;

use std::ffi::OsString;

use crate::settings::Settings;
pub use background::RunningTask;
pub(super) use background::start;
pub(super) use bash::{CallChannels, CommandContext, DESCRIPTION, Input, hidden_paths, prepare, run};
pub(super) use bench_baseline::spawn as spawn_bare;
pub(super) use cgroup::Cgroups;
pub(super) use commands::{
    KILL, KillInput, OUTPUT, OutputInput, prepare_kill, prepare_output, run_kill, run_output,
};
pub use environment::ProgramSearch;
pub use process::ProcessStarted;
pub use sandbox::AvailableLevels;
pub(super) use sandbox::{
    FirstSeen, PlaceholderCache, forget_temp, remove_leftover_placeholders, sweep_temp, temp_folders,
};
pub(super) use server_process::launch;
pub use server_process::{RunningServer, ServerLaunch, ServerStreams};
pub(super) use spool::Spools;
pub use sweep::SweepResult;
pub(super) use sweep::sweep;
use types::session_environment::SessionEnvironment;
use types::tool::Confinement;

/// The environment that programs of the user get for a session: that of commands, without the marks of a call.
pub(super) fn environment(
    settings: &Settings,
    sent: Option<&SessionEnvironment>,
) -> Vec<(OsString, OsString)> {
    let mut variables = environment::of_program(settings, sent);
    variables.push(("AGENTD_INSTANCE".into(), settings.instance.clone().into()));
    variables
}

/// The confinement of a command, and its description for users.
pub(super) fn confinement_label(choice: sandbox::CallSandbox) -> (Confinement, &'static str) {
    (choice.confinement(), choice.description())
}
