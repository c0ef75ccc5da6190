//! `agentctl attach`: history, the live stream, and an input line.
//!
//! [`app`] decides (pure), [`view`] lays out (pure), [`screen`] draws below the terminal's own
//! scrollback. [`live`] connects them with keyboard and daemon; [`plain`] is for pipes.

mod app;
mod live;
mod plain;
mod screen;
mod view;

pub(in crate::client) use live::attach;
