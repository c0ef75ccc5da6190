//! Scenarios: each test is one thing that a user or an editor does with a running daemon.

mod abort;
mod acp;
mod agent_restrictions;
mod agentctl;
mod agentctl_attach;
mod agentctl_conversation;
mod agentctl_paths;
mod agentctl_prompt;
mod answer;
mod approve;
mod approve_options;
mod archive;
mod ask_user;
mod attach;
mod background;
mod bad_input;
mod blobs;
mod budgets;
mod canary;
mod clock;
mod command_files;
mod commands;
mod compaction;
mod config;
mod context_overflow;
mod cost;
mod crash;
mod daemon_subscribe;
mod detached_daemon;
mod explain;
mod export;
mod feedback;
mod fetch;
mod files;
mod fork;
mod framings;
mod hooks;
mod hot_reload;
mod idempotency;
mod idempotency_of_all_methods;
mod interrupted_stream;
mod isolation;
mod items;
mod job_attempts;
mod job_faults;
mod job_notifications;
mod job_recipes;
mod job_templates;
mod jobs;
mod knowledge;
mod lifecycle;
mod limits;
mod list;
mod login;
mod mcp;
mod mcp_http;
mod mcp_odd;
mod mcp_questions;
mod mcp_reference;
mod mcp_resources;
mod mcp_revisions;
mod mcp_servers;
mod mcp_sessions;
mod media;
mod memory;
mod mentions;
mod metrics;
mod model_errors;
mod models;
mod modes;
mod neovim;
mod next_request;
mod notes;
mod one_daemon;
mod options;
mod orphans;
mod output_limit;
mod plan_mode;
mod processes;
mod project_root;
mod queue;
mod quiet_run;
mod recovery;
mod reload;
mod reminders;
mod remote;
mod repeated_call;
mod request_prefix;
mod response_cache;
mod responses_items;
mod restart;
mod resume;
mod retries;
mod rewind;
mod roles;
mod rules;
mod rules_at_start;
mod sandbox;
mod schedules;
mod search;
mod session_environment;
mod skills;
mod slash_commands;
mod stop;
mod storage;
mod stream_idle;
mod streaming_execution;
mod streams;
mod structured_output;
mod subagents;
mod subagents_background;
mod submit;
mod thinking;
mod titles;
mod todos;
mod trust;
mod trusted_project;
mod typed_clients;
mod unattended;
mod unload;
mod unreachable;
mod unsandboxed_retry;
mod update;
mod upgrade;
mod versions;
mod wait;
mod when_busy;
mod worktree_attacks;
mod worktrees;

use serde_json::{Value, json};

/// A call of the tool `Bash`.
fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

/// Whether the daemon prunes this event when its item completes.
fn is_delta(event: &Value) -> bool {
    let kind = event["type"].as_str().expect("a type");
    kind.ends_with("_delta") || kind == "tool.progress"
}

/// The events that are never pruned.
fn permanent(events: Vec<Value>) -> Vec<Value> {
    events.into_iter().filter(|event| !is_delta(event)).collect()
}
