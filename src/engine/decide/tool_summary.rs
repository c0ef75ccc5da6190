//! The summary of one answer's calls, as one line for users. It is computed from the calls alone, without a model.

use std::collections::BTreeSet;

use crate::decide::plan::PlanBuilder;
use crate::state::{CallStage, CallState};
use types::event::Event;

/// How calls of some tools are counted. Calls of the same target count once.
struct CountRule {
    verb: &'static str,
    tools: &'static [&'static str],
    one: &'static str,
    many: &'static str,
    /// The argument that names the target.
    target: Option<&'static str>,
}

/// All other tools are counted as `called NAME 2 times`.
const COUNT_RULES: [CountRule; 7] = [
    CountRule { verb: "read", tools: &["Read"], one: "file", many: "files", target: Some("file_path") },
    CountRule {
        verb: "edited",
        tools: &["Edit", "MultiEdit", "Write", "ApplyPatch"],
        one: "file",
        many: "files",
        target: Some("file_path"),
    },
    CountRule {
        verb: "edited",
        tools: &["NotebookEdit"],
        one: "notebook",
        many: "notebooks",
        target: Some("notebook_path"),
    },
    CountRule {
        verb: "searched for",
        tools: &["Grep", "Glob"],
        one: "pattern",
        many: "patterns",
        target: Some("pattern"),
    },
    CountRule { verb: "listed", tools: &["LS"], one: "folder", many: "folders", target: Some("path") },
    CountRule { verb: "ran", tools: &["Bash"], one: "command", many: "commands", target: None },
    CountRule { verb: "fetched", tools: &["WebFetch"], one: "page", many: "pages", target: Some("url") },
];

/// Summarizes calls in one line, for example `read 2 files, ran 1 command; 1 failed`.
fn summarize(calls: &[CallState]) -> String {
    let mut parts = Vec::new();
    for CountRule { verb, tools, one, many, target } in COUNT_RULES {
        let of: Vec<&CallState> =
            calls.iter().filter(|call| tools.contains(&call.call.tool.as_str())).collect();
        let count = match target {
            // A call without this argument counts once. For example, a patch names its files inside its text.
            Some(key) => of
                .iter()
                .map(|call| match call.call.input.get(key).and_then(|value| value.as_str()) {
                    Some(target) => target.to_owned(),
                    None => call.call.call_id.to_string(),
                })
                .collect::<BTreeSet<_>>()
                .len(),
            None => of.len(),
        };
        if count > 0 {
            parts.push(format!("{verb} {count} {}", if count == 1 { one } else { many }));
        }
    }
    let is_known = |tool: &str| COUNT_RULES.iter().any(|counted| counted.tools.contains(&tool));
    let others: BTreeSet<&str> =
        calls.iter().map(|call| call.call.tool.as_str()).filter(|tool| !is_known(tool)).collect();
    for tool in others {
        let count = calls.iter().filter(|call| call.call.tool == tool).count();
        let times = if count == 1 { String::new() } else { format!(" {count} times") };
        parts.push(format!("called {}{times}", tool.chars().take(80).collect::<String>()));
    }
    let failed =
        calls.iter().filter(|call| matches!(call.stage, CallStage::Done { is_error: true, .. })).count();
    let end = if failed == 0 { String::new() } else { format!("; {failed} failed") };
    format!("{}{end}", parts.join(", "))
}

impl PlanBuilder<'_> {
    /// Summarizes the calls of the answer, if it has several calls.
    pub fn summarize_calls(&mut self) {
        let calls = self.state.calls();
        if calls.len() < 2 {
            return;
        }
        let (call_ids, text) = (calls.iter().map(|call| call.call.call_id).collect(), summarize(calls));
        self.push_turn(Event::ToolSummary { call_ids, text });
    }
}
