//! One file for each command of agentctl: it parses its arguments, calls the daemon and prints the reply.

pub(super) mod abort;
pub(super) mod answer;
pub(super) mod approve;
pub(super) mod audit;
pub(super) mod backup;
pub(super) mod command;
pub(super) mod cost;
pub(super) mod daemon;
pub(super) mod demo;
pub(super) mod diff;
pub(super) mod doctor;
pub(super) mod explain;
pub(super) mod logs;
pub(super) mod models;
pub(super) mod ps;
pub(super) mod rpc;
pub(super) mod rules;
pub(super) mod run;
pub(super) mod submit;
pub(super) mod trust;
pub(super) mod update;
