//! The connection to the daemon: connecting to it, starting it, calls, subscriptions, and reconnecting. Also
//! the files that a user attaches to an input.

pub(super) mod client;
pub(super) mod connector;
pub(super) mod environment;
pub(super) mod events;
pub(super) mod expand_truncated;
mod fault_words;
pub(super) mod first_time;
pub(super) mod follow;
pub(super) mod host_choice;
pub(super) mod host_list;
pub(super) mod input_files;
pub(super) mod knowledge_events;
pub(super) mod lock_holder;
pub(super) mod mcp_file;
pub(super) mod mentions;
pub(super) mod pages;
pub(super) mod paths;
pub(super) mod plain_text;
pub(super) mod remote;
pub(super) mod service;
pub(super) mod session_calls;
pub(super) mod session_feed;
pub(super) mod ssh;
pub(super) mod stdin;
mod subscription;
pub(super) mod versions;
pub(super) mod waiting;
pub(super) mod wire;
