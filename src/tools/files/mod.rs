//! Tools that read, search and change files.

pub(super) mod checkpoint;
pub(super) mod did_you_mean;
pub(super) mod edit;
pub(super) mod edit_guard;
pub(super) mod file_checks;
pub(super) mod glob;
pub(super) mod grep;
pub(super) mod input_files;
pub(super) mod inspect;
pub(super) mod ls;
pub(super) mod media;
pub(super) mod multi_edit;
pub(super) mod notebook;
pub(super) mod patch;
pub(super) mod read;
pub(super) mod replace;
pub(super) mod search;
pub(super) mod walk;
pub(super) mod workspace_files;
pub(super) mod write;
