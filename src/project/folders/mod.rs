//! The folders of a project, and how files in them are opened.

mod links;
mod plain_file;
mod project_folders;

pub(crate) use links::{project_target, refuse_secret, user_target};
pub use plain_file::read_up_to;
pub(crate) use plain_file::{open_plain, open_plain_at};
pub use project_folders::ProjectFolders;
pub(crate) use project_folders::may_exist;
