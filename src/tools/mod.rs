//! Works in the workspace. The tools, the targets of each call (for the permission rules in `judge`),
//! and running calls without leaving processes behind.
//!
//! - `toolbox`: public interface and lifecycle of a call; `context`: data of a call; `call`: steps that several
//!   tools share; `settings`: plain values from the configuration.
//! - `fs/`: `jail` resolves the text of a path (`resolve`) to a judged object (`hardlink`); `pinned` opens or
//!   replaces it without races; `disk` makes the system calls. `text`: encodings and line endings.
//! - `sensitivity`: how sensitive a path is.
//! - `files/`: one file per tool: `read`, `write`, `edit`, `multi_edit`, `patch`, `notebook`, `glob`, `grep`,
//!   `ls`. Several of them share `edit_guard`, `replace`, `did_you_mean`, and `diff` and `walk` of `fs/`.
//! - `files/search`: the engine of Grep.
//! - `file_reads`: what the disk says about the files that a command would read, for its judgement.
//! - `active_model_calls`: counts sessions that wait for a model, so that commands with much output slow down.
//! - `files/inspect`: state of a change that a crash interrupted.
//! - `session_tools/`: tools that reach only the session itself: its todo list.
//! - `files/media`: PDFs and pictures in Read; `files/input_files`: files that a user attaches; `shell`: Bash; `mcp`:
//!   tools of MCP servers; `web`: WebFetch; `convert`: converts untrusted documents and pictures in a process of
//!   their own.

mod active_model_calls;
mod address;
mod background_task;
mod call;
mod capture;
mod coerce;
mod context;
mod convert;
mod error;
mod file_errors;
mod file_identity;
mod file_reads;
mod files;
mod folder_handle;
mod fs;
#[doc(hidden)]
pub mod fuzz;
mod input;
mod knowledge_search;
mod limits;
mod mcp;
mod mcp_context;
mod progress;
mod sensitivity;
mod session_tools;
mod settings;
mod shell;
mod task;
mod terminal_text;
mod toolbox;
mod web;

#[cfg(test)]
mod tests;

pub use active_model_calls::ActiveModelCall;
pub use address::{AddressRanges, InvalidRange};
pub use background_task::{BackgroundTaskHandle, BackgroundTaskView};
pub use context::{Blobs, DataError, EnvironmentSource, ProjectData, SessionContext, UnreadablePaths};
pub use convert::{DOCUMENT_ARGUMENT, convert_document};
pub use error::ToolError;
pub use file_reads::inspect_reads;
pub use files::checkpoint::{FileState, FileVersion, RestoreStep};
pub use files::input_files::{IngestedFile, InputFile, InputSource};
pub use files::patch::PatchedFile;
pub use files::workspace_files::WorkspaceFiles;
pub use fs::diff::lines as changed_lines;
pub use fs::in_place::restore_interrupted_writes;
pub use fs::jail::Jail;
pub use fs::pinned::PinnedPath;
pub use knowledge_search::NAME as KNOWLEDGE_SEARCH;
pub use mcp_context::{McpContext, McpServers};
pub use sensitivity::Access;
pub use settings::{CgroupSetting, LevelSetting, NetworkSetting, SandboxSettings, Settings, ToolConfig};
pub use shell::{
    AvailableLevels, ProcessStarted, ProgramSearch, RunningServer, RunningTask, ServerLaunch, ServerStreams,
    SweepResult,
};
pub use toolbox::{CallPreparer, SandboxReport, Toolbox};
