//! Floor 2: doing things in the workspace. The tools, what each would touch (for the permission
//! rules, which judge elsewhere), and running them so that nothing is left behind.
//!
//! - `toolbox`: the front door and the life of a call; `context`: what a call is given.
//! - `jail`, `care`: from the text of a path to the object and how careful to be with it.
//! - `disk`: opening and replacing files without races; `text`: encodings and line endings.
//! - `read`, `write`, `edit`, `glob`, `grep`, `ls`: one tool each; `guard`, `diff`, `near`, `walk`
//!   are shared by some of them.
//! - `inspect`: what became of a change that a crash interrupted.
//! - `shell`: Bash.

mod care;
mod context;
mod diff;
mod disk;
mod edit;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod glob;
mod grep;
mod guard;
mod input;
mod inspect;
mod jail;
mod ls;
mod near;
mod read;
mod refusal;
mod shell;
mod text;
mod toolbox;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use context::{Scene, Settings};
pub use shell::{
    Available, Birth, CgroupSetting, LevelSetting, Limits, NetworkSetting, SandboxSettings, Swept,
};
pub use toolbox::{SandboxReport, Toolbox};
