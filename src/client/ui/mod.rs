//! The terminal interface of agentctl: styles, formats, rendered events, approval prompts, the attach view.

pub(super) mod attach;
pub(super) mod choice;
pub(super) mod cursor;
pub(super) mod diff;
pub(super) mod editor;
pub(super) mod feedback;
pub(super) mod keys;
pub(super) mod line_prompt;
pub(super) mod markdown;
pub(super) mod pager;
pub(super) mod picker;
pub(super) mod prompt;
pub(super) mod question;
mod question_list;
pub(super) mod render;
pub(super) mod request_list;
pub(super) mod request_timing;
#[cfg(test)]
pub(super) mod screen_files;
pub(super) mod session_state;
pub(super) mod summary;
pub(super) mod top;
pub(super) mod undo;
pub(super) mod watch;
