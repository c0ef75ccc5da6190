//! Layer 2: doing things in the workspace. The tools, what each would touch (for the permission
//! rules, which judge elsewhere), and running them so that nothing is left behind.
//!
//! - `toolbox`: the front door and the life of a call; `context`: what a call is given.
//! - `jail`: from the text of a path (`resolve`) to a judged object (`care`, `hardlink`) that is `held`, and
//!   opened or replaced without races; `disk`: how the kernel is asked. `text`: encodings and line endings.
//! - `read`, `write`, `edit`, `multi_edit`, `patch`, `notebook`, `glob`, `grep`, `ls`: one tool each; `guard`,
//!   `exact`, `diff`, `near`, `walk` are shared by some of them.
//! - `digest`: the SHA-256 of a content, made beside the work on it.
//! - `search`: the engine of Grep.
//! - `crowd`: who waits for a model meanwhile, so that a flood holds itself back.
//! - `inspect`: what became of a change that a crash interrupted.
//! - `media`: PDFs and pictures in Read; `given`: what a person hands over; `shell`: Bash; `web`: WebFetch; `convert`: documents and pictures of others, in a
//!   process of their own.

mod active_model_calls;
mod ahead;
mod context;
mod convert;
mod digest;
mod error;
mod files;
mod fs;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod input;
mod room;
mod sensitivity;
mod shell;
mod toolbox;
mod web;

#[cfg(test)]
mod tests;

pub use active_model_calls::ActiveModelCall;
pub use context::{BackgroundTaskView, Blobs, SessionContext, Settings, Unreadable};
pub use convert::{DOCUMENT_ARGUMENT, convert_document};
pub use error::ToolError;
pub use files::input_files::{IngestedFile, InputFile, Source};
pub use fs::diff::lines as changed_lines;
pub use fs::jail::Jail;
pub use fs::pinned::PinnedPath;
pub use sensitivity::Access;
pub use shell::{
    Available, CgroupSetting, LevelSetting, Limits, Live, NetworkSetting, ProcessStarted, Running,
    SandboxSettings, Spools, Swept,
};
pub use toolbox::{CallPreparer, SandboxReport, Toolbox};
pub use web::{Ranges, WrongRange};
