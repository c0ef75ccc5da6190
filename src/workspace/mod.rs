//! Layer 2: data about a session's folder before the model is called: the system prompt, project instructions
//! as data, a description of the repository, and the files that need the user's trust.

mod git;
mod instructions;
mod project;
mod prompt;
mod repository;
mod trust_inventory;

use std::path::{Path, PathBuf};

pub use project::Project;
pub use prompt::{Gathered, Request, gather};
pub use repository::repository;
pub use trust_inventory::{TrustInventory, scan};

/// The nearest folder at or above `cwd` that contains `.git`. Git itself is not run.
fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf)
}
