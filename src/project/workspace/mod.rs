//! Data about a session's folder before the model is called: the system prompt, project instructions
//! as data, a description of the repository, and the files that need the user's trust.

mod git;
mod git_facts;
mod git_settings;
mod instructions;
mod memory;
mod notes;
mod project;
mod prompt;
mod repository;
mod trust_inventory;

use std::path::{Path, PathBuf};

pub use git::changed_files;
pub use git_facts::GitFacts;
pub use memory::{Memory, MemoryError};
pub use notes::{NoteError, NoteFile};
pub use project::{KeyUse, PROJECT_KEYS, Precedence, Project, ProjectValues, SetKey, key_use};
pub use prompt::{GatheredPrompt, PromptRequest, gather, instruction_versions};
pub use repository::repository;
pub use trust_inventory::{FolderFiles, FolderSettings, ScannedFile, TrustInventory, scan, scan_with_files};

/// The nearest folder at or above `cwd` that contains `.git`: there git looks for its facts. Git itself is not run.
fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf)
}
