//! Calls with an unknown outcome: which of them could have changed something outside of the attempt's worktree?

use std::collections::BTreeMap;
use std::path::Path;

use types::event::Event;
use types::ids::CallId;
use types::tool::{Access, Confinement, PreparedCall, Subject};

/// Weakest sandbox level that keeps a command in its folders.
const MIN_LEVEL: u8 = 2;

/// What the journal says about a call.
#[derive(Default)]
struct CallFacts<'e> {
    /// What the newest permission or verdict is about.
    subject: Option<&'e Subject>,
    /// Confinement of its newest run.
    sandbox: Option<Confinement>,
}

/// The newest of these calls that could have reached outside of the worktree; `None` if none could. `events` are all
/// events about the calls. Without a worktree, each call could. A call could not if it is a command without network in
/// a sandbox, or if it changes only files of the worktree.
pub(crate) fn newest_outside(events: &[Event], worktree: Option<&Path>) -> Option<CallId> {
    let mut calls: BTreeMap<CallId, CallFacts<'_>> = BTreeMap::new();
    for event in events {
        match event {
            Event::ToolStatus { call_id, prepared, .. }
            | Event::PermissionResolved { call_id, prepared: Some(prepared), .. } => {
                calls.entry(*call_id).or_default().subject = Some(&prepared.subject);
            }
            Event::PermissionRequested { request, .. } => {
                calls.entry(request.call_id).or_default().subject = Some(&request.subject);
            }
            Event::ToolStarted { call_id, sandbox, .. } => {
                calls.entry(*call_id).or_default().sandbox = *sandbox;
            }
            Event::ToolCompleted { call_id, .. } => _ = calls.entry(*call_id).or_default(),
            _ => {}
        }
    }
    calls.into_iter().rev().find(|(_, facts)| !stays_inside(facts, worktree)).map(|(call_id, _)| call_id)
}

fn stays_inside(facts: &CallFacts<'_>, worktree: Option<&Path>) -> bool {
    let Some(worktree) = worktree else { return false };
    if let Some(sandbox) = facts.sandbox {
        return sandbox.level >= MIN_LEVEL && !sandbox.network;
    }
    let Some(subject) = facts.subject else { return false };
    let call = PreparedCall::new(subject.clone(), String::new());
    match call.access() {
        Access::Changes(paths) => paths.iter().all(|path| path.starts_with(worktree)),
        Access::Reads(_) | Access::ReadsAnything | Access::Subagent | Access::Everything => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use types::ids::{Mint, Seed};

    fn call_id() -> CallId {
        Mint::new(1, Seed(1)).call()
    }

    fn event(members: Value) -> Event {
        serde_json::from_value(members).expect("an event")
    }

    fn started(sandbox: Value) -> Event {
        event(
            json!({"type": "tool.started", "call_id": call_id().to_string(), "tool": "T", "allowed_by": "a", "read_only": false,
            "sandbox": sandbox}),
        )
    }

    fn judged(subject: Value) -> Event {
        let prepared = json!({"subject": subject, "summary": "s", "read_only": false});
        event(
            json!({"type": "tool.status", "call_id": call_id().to_string(), "prepared": prepared, "allowed_by": "a"}),
        )
    }

    fn edit(path: &str) -> Event {
        let path = json!({"path": path, "in_workspace": true, "sensitivity": "ordinary"});
        judged(json!({"kind": "edit", "path": path}))
    }

    fn sandbox(level: u8, network: bool) -> Value {
        json!({"level": level, "network": network})
    }

    #[track_caller]
    fn check(events: &[Event], is_outside: bool) {
        let worktree = Path::new("/data/worktrees/j");
        assert_eq!(newest_outside(events, Some(worktree)), is_outside.then(call_id));
        assert_eq!(newest_outside(events, None), Some(call_id()), "without a worktree");
    }

    #[test]
    fn command_stays_inside_only_in_a_sandbox_without_network() {
        for (level, network, is_outside) in
            [(3, false, false), (2, false, false), (1, false, true), (0, false, true), (3, true, true)]
        {
            check(&[started(sandbox(level, network))], is_outside);
        }
        let again = json!({"level": 1, "network": true, "unsandboxed": true});
        check(&[started(sandbox(3, false)), started(again)], true);
    }

    #[test]
    fn edit_stays_inside_only_in_the_worktree() {
        check(&[edit("/data/worktrees/j/src/a.rs"), started(Value::Null)], false);
        check(&[edit("/data/worktrees/jk/a.rs"), started(Value::Null)], true);
        check(&[edit("/etc/a"), started(Value::Null)], true);
    }

    #[test]
    fn call_without_known_confinement_reaches_outside() {
        check(&[started(Value::Null)], true);
        let completed = json!({"type": "tool.completed", "call_id": call_id().to_string(), "tool": "T", "status": "unknown",
            "output": "", "duration_ms": 0});
        check(&[event(completed)], true);
        check(&[judged(json!({"kind": "web", "url": "https://a.example/", "host": "a.example"}))], true);
        assert_eq!(newest_outside(&[], None), None);
    }
}
