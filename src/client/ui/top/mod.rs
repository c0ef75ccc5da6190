//! `agentctl top`: all sessions on one screen. [`overview`] holds what is shown and decides what keys do (pure), [`view`]
//! lays out (pure), [`live`] connects both with the daemon, the keyboard and the screen.

mod live;
mod overview;
mod rates;
mod view;

pub(in crate::client) use live::{SessionsScreen, TopOutcome, choose};
