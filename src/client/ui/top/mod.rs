//! `agentctl top`: all sessions on one screen. [`overview`] holds the content and handles keys (pure),
//! [`view`] lays out the rows (pure), [`live`] connects both with the daemon, the keyboard and the screen.

mod live;
mod overview;
mod rates;
mod view;

pub(crate) use live::{SessionsScreen, TopOutcome, choose};
