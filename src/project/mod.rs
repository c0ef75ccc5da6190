//! What a folder brings to its sessions: rules of the user, instructions and configuration, Markdown files, hooks.

pub mod extensions;
pub mod folders;
mod git;
pub mod hooks;
mod markdown;
pub mod policy;
pub mod workspace;
pub mod worktree;
