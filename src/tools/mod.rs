//! Floor 2: doing things in the workspace. The tools, what each would touch (for the permission
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

mod ahead;
mod aliases;
mod care;
mod configured;
mod context;
mod convert;
mod crowd;
mod diff;
mod digest;
mod disk;
mod edit;
mod exact;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod given;
mod glob;
mod grep;
mod guard;
mod hardlink;
mod held;
mod input;
mod inspect;
mod jail;
mod jails;
mod ls;
mod media;
mod multi_edit;
mod near;
mod notebook;
mod patch;
mod read;
mod refusal;
mod repository;
mod resolve;
mod room;
mod search;
mod shell;
mod text;
mod toolbox;
mod walk;
mod web;
mod write;

#[cfg(test)]
mod tests;

pub use care::Access;
pub use context::{BackgroundTaskView, Blobs, SessionContext, Settings, Unreadable};
pub use convert::{DOCUMENT_ARGUMENT, convert_document};
pub use crowd::ActiveModelCall;
pub use diff::lines as changed_lines;
pub use given::{IngestedFile, InputFile, Source};
pub use held::PinnedPath;
pub use jail::Jail;
pub use refusal::ToolError;
pub use shell::{
    Available, CgroupSetting, LevelSetting, Limits, Live, NetworkSetting, ProcessStarted, Running,
    SandboxSettings, Spools, Swept,
};
pub use toolbox::{CallPreparer, SandboxReport, Toolbox};
pub use web::{Ranges, WrongRange};
