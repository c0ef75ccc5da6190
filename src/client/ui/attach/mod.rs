//! The conversation in a terminal: history, the live stream, and an input line.
//!
//! [`app`] handles events and keys (pure). [`view`] lays out the rows (pure). [`screen`] draws below the
//! terminal's own scrollback. [`live`] connects them with keyboard and daemon; [`plain`] is for pipes.

mod app;
mod attachments;
mod calls;
mod entry;
mod live;
mod plain;
mod recent;
mod screen;
mod shell;
mod start_lines;
mod view;

pub(crate) use entry::{
    Options, attach, current_folder_params, follow_one_turn, follow_session, is_full_terminal,
    start_conversation,
};
